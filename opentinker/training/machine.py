"""What a training process uses of its machine: device, processors, threads."""

from __future__ import annotations

import importlib
import os

import torch
from threadpoolctl import threadpool_limits

from opentinker.config import ConfigError, JobConfig, TrainingConfig
from opentinker.policies.policy import Policy
from opentinker.training.memory import return_large_blocks


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


def use_machine(config: JobConfig) -> None:
    """Keep a training process to the threads and processors of its job. Raises ConfigError."""
    use_threads(config.training.threads)
    use_processors(config.resources.cpus)
    if config.resources.memory:
        return_large_blocks()


def use_processors(cpus: list[int] | None) -> None:
    """Keep this process, and those that it starts, to these processors; None: to what it has.

    Raises ConfigError for others than those.
    """
    if cpus is None:
        return
    allowed = os.sched_getaffinity(0)
    if not allowed.issuperset(cpus):
        raise ConfigError(
            f'resources.cpus: {sorted(set(cpus) - allowed)} are not among those that this '
            f'process may use, {sorted(allowed)}'
        )
    os.sched_setaffinity(0, cpus)


def use_threads(number: int) -> None:
    """Threads of torch and of numpy in this process."""
    torch.set_num_threads(number)
    threadpool_limits(number)


def compile_networks(policy: Policy) -> None:
    """Have torch compile every network of a policy on its first use."""
    for network in policy.children():
        network.compile()
