"""What a training process uses of its machine: device, processors, threads."""

from __future__ import annotations

import importlib
import os

import torch
from threadpoolctl import threadpool_limits

from opentinker.config import ConfigError, TrainingConfig
from opentinker.policies.policy import Policy


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


def use_machine(training: TrainingConfig) -> None:
    """Keep this process to its processors and threads. Raises ConfigError for other processors."""
    use_threads(training.threads)
    if training.cpus is None:
        return
    allowed = os.sched_getaffinity(0)
    if not allowed.issuperset(training.cpus):
        raise ConfigError(
            f'training.cpus: {sorted(set(training.cpus) - allowed)} are not among those that this '
            f'process may use, {sorted(allowed)}'
        )
    os.sched_setaffinity(0, training.cpus)


def use_threads(number: int) -> None:
    """Threads of torch and of numpy in this process."""
    torch.set_num_threads(number)
    threadpool_limits(number)


def compile_networks(policy: Policy) -> None:
    """Have torch compile every network of a policy on its first use."""
    for network in policy.children():
        network.compile()
