"""What a training process uses of its machine: device, processors, threads."""

from __future__ import annotations

import ctypes
import importlib
import os
from contextlib import suppress

import torch
from threadpoolctl import threadpool_limits

from opentinker.config import ConfigError, JobConfig, TrainingConfig
from opentinker.policies.policy import Policy

_M_MMAP_THRESHOLD = -3
_LARGE = 2**20


def device(training: TrainingConfig) -> torch.device:
    """The device to train on. Raises ConfigError for one that is not there."""
    name = training.device
    if name == 'auto':
        name = 'cuda' if torch.cuda.is_available() else 'cpu'
    if name == 'xla':
        try:
            xla = importlib.import_module('torch_xla.core.xla_model')
        except ImportError:
            raise ConfigError('training.device: xla needs the package torch_xla') from None
        there: torch.device = xla.xla_device()
        return there
    known = {'cpu': True, 'mps': torch.backends.mps.is_available()}
    kind, _, index = name.partition(':')
    if not known.get(kind, int(index or 0) < torch.cuda.device_count()):
        raise ConfigError(f'training.device: this machine has no {name}')
    return torch.device(name)


class UsedMachine:
    """Keeps this process, and those that it starts, to the threads and processors of a job until it
    is closed. Raises ConfigError for processors that the process may not use.
    """

    def __init__(self, config: JobConfig, threads: int | None = None) -> None:
        self._cpus = os.sched_getaffinity(0)
        self._torch_threads = torch.get_num_threads()
        use_processors(config.resources.cpus)
        threads = threads or config.training.threads
        torch.set_num_threads(threads)
        self._limits = threadpool_limits(threads)
        if config.resources.memory:
            _return_large_blocks()

    def close(self) -> None:
        """Use what was used before."""
        os.sched_setaffinity(0, self._cpus)
        self._limits.restore_original_limits()
        torch.set_num_threads(self._torch_threads)


def use_processors(cpus: list[int] | int | None) -> None:
    """Keep this process to these processors, or so many of those that it has; None: to all of them.

    Raises ConfigError where it may not use them.
    """
    if cpus is None:
        return
    allowed = os.sched_getaffinity(0)
    chosen = sorted(allowed)[:cpus] if isinstance(cpus, int) else cpus
    if isinstance(cpus, int) and len(chosen) < cpus:
        raise ConfigError(f'resources.cpus: {cpus} of the {len(allowed)} that this process may use')
    if not allowed.issuperset(chosen):
        raise ConfigError(
            f'resources.cpus: {sorted(set(chosen) - allowed)} are not among those that this '
            f'process may use, {sorted(allowed)}'
        )
    os.sched_setaffinity(0, chosen)


def _return_large_blocks() -> None:
    """Let freed arrays go back to the system, so that memory does not depend on their order.

    The GNU C library otherwise learns to keep blocks of up to 32 MiB, and its heap gets holes.
    """
    # mallopt(3); other C libraries have no such thing
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def compile_networks(policy: Policy) -> None:
    """Have torch compile every network of a policy on its first use."""
    for network in policy.children():
        network.compile()
