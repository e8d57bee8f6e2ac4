"""Which processes a job consists of: its workers, and a graph such as the ROS one beside them.

Registry kind ``graph``: a callable ``(config: JobConfig, run_directory: Path)`` that returns the
list of :class:`ProcessSpec`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opentinker import registry
from opentinker.config import ConfigError, JobConfig


@dataclass(frozen=True)
class ProcessSpec:
    """A process for the supervisor to start."""

    name: str
    command: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those that it inherits."""
    essential: bool = True
    """The job cannot go on without it."""
    ends_job: bool = False
    """Its orderly end is the end of the job."""


def workers(config: JobConfig, run_directory: Path) -> list[ProcessSpec]:
    """The learner and the samplers of a job, in the order in which they start."""
    command = [sys.executable, '-m', 'opentinker', 'worker']
    run = ['--run', str(run_directory)]
    learner = ProcessSpec('learner', [*command, 'learner', *run], ends_job=True)
    samplers = [
        ProcessSpec(f'sampler_{index}', [*command, 'sampler', *run, '--index', str(index)])
        for index in range(config.samplers.count)
    ]
    return [learner, *samplers]


def job_processes(config: JobConfig, run_directory: Path) -> list[ProcessSpec]:
    """The workers and the processes of the graph. Raises ConfigError where nobody would act."""
    if config.graph is None and not config.samplers.count:
        raise ConfigError('samplers.count: 0, and there is no graph: nobody would act')
    return [*workers(config, run_directory), *graph_processes(config, run_directory)]


def graph_processes(config: JobConfig, run_directory: Path) -> list[ProcessSpec]:
    """The processes of the graph that a config names; none where it names none."""
    if config.graph is None:
        return []
    return list(registry.get('graph', config.graph['name'])(config, run_directory))
