"""The graph of :mod:`opentinker_ros.bringup` as launch_ros actions, for ``launch/``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from opentinker import registry
from opentinker.config import load_config
from opentinker.training.graph import ProcessSpec, workers
from opentinker.training.run_directory import RunDirectory
from opentinker_ros.bringup import GraphSpec, graph_of_job

if TYPE_CHECKING:
    from launch import Action

_ENVIRONMENT = {'OMP_NUM_THREADS': '1', 'PYTHONUNBUFFERED': '1'}
"""As the supervisor of ``opentinker up`` sets it: many processes share the cores."""


def node_actions(spec: GraphSpec, parameters: Path | None = None) -> list[Action]:
    """One launch_ros ``Node`` action a process; the launch ends when one of them does."""
    from launch_ros.actions import Node

    if parameters is None:
        # read by the nodes at any time while they run, so it outlives this function
        parameters = Path(tempfile.mkdtemp(prefix='opentinker_')) / 'parameters.yaml'
    spec.write_parameters(parameters)
    return [
        Node(
            package='opentinker_ros',
            executable='host',
            namespace=spec.namespace,
            arguments=host.arguments,
            parameters=[str(parameters)],
            additional_env=_ENVIRONMENT,
            output='screen',
            on_exit=_shutdown(host.name),
        )
        for host in spec.hosts
    ]


def job_actions(
    config_name: str, arms: int | None = None, minutes: float | None = None
) -> list[Action]:
    """The workers of a job beside its graph; the launch ends when the learner has finished."""
    known = config_name in registry.names('config')
    config = load_config(registry.get('config', config_name) if known else config_name)
    if arms is not None:
        config.env['arms'] = arms
    if minutes is not None:
        config.stop.minutes = minutes
    run = RunDirectory.create(config)
    spec = graph_of_job(config, run.path)
    return [
        *map(_worker_action, workers(config, run.path)),
        *node_actions(spec, run.path / 'parameters.yaml'),
    ]


def _worker_action(worker: ProcessSpec) -> Action:
    from launch.actions import ExecuteProcess

    return ExecuteProcess(
        cmd=worker.command,
        name=worker.name,
        additional_env=_ENVIRONMENT,
        output='screen',
        on_exit=_shutdown(worker.name),
    )


def _shutdown(name: str) -> list[Action]:
    from launch.actions import Shutdown

    return [Shutdown(reason=f'{name} has ended')]
