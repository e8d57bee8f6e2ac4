"""Which processes and nodes run with which parameters, as data.

``opentinker up`` starts what :func:`processes` lists; the launch files turn the same data into
launch_ros actions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from opentinker import registry
from opentinker.config import JobConfig, checked
from opentinker.training.graph import ProcessSpec
from opentinker_ros.arms.arms_env import ArmsSettings

#: Nodes that the lifecycle manager brings up: who answers is there before who asks.
LIFECYCLE_NODES = ('sim', 'policy', 'arms_env')
LIFECYCLE_MANAGER = 'lifecycle_manager'


class GraphSettings(BaseModel):
    """The part ``graph`` of a job: the ROS graph around the arms."""

    model_config = ConfigDict(extra='forbid')
    namespace: str = Field('', pattern=r'^(/?[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*)?$')
    lockstep: bool = True
    real_time_factor: float = Field(1.0, gt=0)
    per_arm_topics: bool = False
    command_interface: Literal['position', 'trajectory'] = 'position'
    segment_steps: int = Field(64, ge=1)
    liveness_deadline: float = Field(2.0, gt=0)
    processes: dict[str, list[str]] = {
        'cell': ['sim', 'arms_env', 'zmq_bridge', LIFECYCLE_MANAGER],
        'policy': ['policy'],
    }
    """Process name to the nodes in it; nodes in one process share one thread."""
    parameters: dict[str, dict[str, Any]] = {}
    """More parameters by node name."""


@dataclass(frozen=True)
class HostSpec:
    """One process of ROS nodes."""

    name: str
    nodes: tuple[str, ...]
    plugins: tuple[str, ...] = ()
    """Modules to import first."""

    @property
    def arguments(self) -> list[str]:
        """Of executable ``host``."""
        return [*self.nodes, *(word for name in self.plugins for word in ('--import', name))]


@dataclass(frozen=True)
class GraphSpec:
    """The whole graph: its processes, and the parameters of each node."""

    namespace: str
    hosts: tuple[HostSpec, ...]
    parameters: Mapping[str, Mapping[str, Any]]

    def write_parameters(self, path: Path) -> Path:
        """Write the parameters as a ROS parameter file, for any namespace."""
        tree = {
            f'/**/{node}': {'ros__parameters': dict(values)}
            for node, values in self.parameters.items()
        }
        path.write_text(yaml.safe_dump(tree, sort_keys=False))
        return path


def graph(
    arms: ArmsSettings,
    settings: GraphSettings,
    *,
    seed: int = 0,
    run: str = '',
    policy: str = '',
    plugins: Sequence[str] = (),
) -> GraphSpec:
    """The graph of a cell of arms.

    ``run`` is the run directory of a training job (without one there is no bridge); ``policy`` is
    the JSON description of a policy to start with; ``plugins`` are modules that each process
    imports first.
    """
    absent = '' if run else 'zmq_bridge'
    hosts = tuple(
        HostSpec(name, tuple(node for node in nodes if node != absent), tuple(plugins))
        for name, nodes in settings.processes.items()
    )
    present = [node for host in hosts for node in host.nodes]
    cell = arms.model_dump()
    control = {'lockstep': settings.lockstep, 'per_arm_topics': settings.per_arm_topics}
    parameters: dict[str, dict[str, Any]] = {
        'sim': {**cell, **control, 'real_time_factor': settings.real_time_factor},
        'arms_env': {
            **cell,
            **control,
            'seed': seed,
            'command_interface': settings.command_interface,
            'liveness_deadline': settings.liveness_deadline,
            # where time flows, the simulator's clock says how fast
            'use_sim_time': not settings.lockstep,
        },
        'policy': {'seed': seed, 'policy': policy},
        'zmq_bridge': {'run': run, 'segment_steps': settings.segment_steps},
        LIFECYCLE_MANAGER: {'nodes': [node for node in LIFECYCLE_NODES if node in present]},
    }
    for node, extra in settings.parameters.items():
        parameters.setdefault(node, {}).update(extra)
    return GraphSpec(
        settings.namespace,
        hosts,
        {node: parameters[node] for node in present if node in parameters},
    )


def graph_of_job(config: JobConfig, run_directory: Path) -> GraphSpec:
    """The graph that a job's config asks for. Raises ConfigError naming the wrong key."""
    settings = {key: value for key, value in (config.graph or {}).items() if key != 'name'}
    arms = {key: value for key, value in config.env.items() if key != 'name'}
    return graph(
        checked('env', ArmsSettings, arms),
        checked('graph', GraphSettings, settings),
        seed=config.seed,
        run=str(run_directory),
        plugins=config.plugins,
    )


@registry.register('graph', 'ros')
def processes(config: JobConfig, run_directory: Path) -> list[ProcessSpec]:
    """The processes of the graph for the supervisor of ``opentinker up``."""
    spec = graph_of_job(config, run_directory)
    parameters = spec.write_parameters(run_directory / 'parameters.yaml')
    return [ProcessSpec(host.name, host_command(spec, host, parameters)) for host in spec.hosts]


def host_command(spec: GraphSpec, host: HostSpec, parameters: Path) -> list[str]:
    """The command line of one process of nodes."""
    command = [
        sys.executable,
        '-m',
        'opentinker_ros.nodes.host',
        *host.arguments,
        '--ros-args',
        '--params-file',
        str(parameters),
    ]
    if spec.namespace:
        command += ['-r', f'__ns:=/{spec.namespace.lstrip("/")}']
    return command
