"""The policy node: observations in, joint-angle commands out, new versions swapped in between two
steps.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from opentinker.policies.policy import Policy
from opentinker.policies.weights import PolicyMismatchError, load_weights
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import String

from opentinker import registry
from opentinker.envs.descriptor import EnvDescriptor
from opentinker_ros import qos
from opentinker_ros.arms.actions import to_targets
from opentinker_ros.conversions import ObservationCodec, agent_rows, to_doubles, to_floats
from opentinker_ros.msg import JointCommand, Observation, PolicyVersion
from opentinker_ros.nodes.diagnostics import Diagnostics
from opentinker_ros.nodes.host import run
from opentinker_ros.nodes.parameters import declare


@dataclass
class Served:
    """A group's policy, and which of its agents this node serves."""

    policy: Policy
    version: int
    description: str


class PolicyNode(LifecycleNode):
    """Serves the agents of parameter ``agents`` (all, where it is empty)."""

    def __init__(self, **options: Any) -> None:
        super().__init__('policy', **options)
        self._agents = declare(self, 'agents', [''], "names of the agents to serve; [''] for all")
        self._fresh = declare(
            self,
            'policy',
            '',
            'policy to start with, freshly initialised, as JSON '
            '{"name": "actor_critic"}; empty: wait for a version on policy_versions',
        )
        self._deterministic = declare(
            self, 'deterministic', False, 'act without exploring', read_only=False
        )
        self._seed = declare(self, 'seed', 0, 'seed of the exploration', low=0)
        self._diagnostics = Diagnostics(self, self._report)
        self._descriptor: EnvDescriptor | None = None
        self._rows: dict[str, list[int]] = {}
        self._served: dict[str, Served] = {}
        self._next: dict[str, PolicyVersion] = {}
        self._active = False
        self._swap_ms = 0.0

    def _report(self) -> dict[str, Any]:
        versions = {f'{group} version': served.version for group, served in self._served.items()}
        return {**versions, 'last swap ms': f'{self._swap_ms:.1f}'}

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._command_publisher = self.create_publisher(
            JointCommand, 'joint_commands', qos.STEP, qos_overriding_options=qos.OVERRIDABLE
        )
        self.create_subscription(String, 'descriptor', self._on_descriptor, qos.LATCHED)
        self.create_subscription(PolicyVersion, 'policy_versions', self._on_version, qos.VERSIONS)
        self.create_subscription(
            Observation,
            'observations',
            self._on_observation,
            qos.STEP,
            qos_overriding_options=qos.OVERRIDABLE,
        )
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active = False
        return super().on_deactivate(state)

    def _on_descriptor(self, message: String) -> None:
        try:
            descriptor = EnvDescriptor.model_validate_json(message.data)
            wanted = [name for name in self._agents if name]
            self._rows = _rows(descriptor, wanted)
        except ValueError as error:
            self._diagnostics.fault(f'topic descriptor: {error}')
            return
        self._descriptor = descriptor
        self._codec = ObservationCodec(descriptor)
        self._crc = descriptor.crc()
        if self._fresh:
            for group in self._rows:
                self._served.setdefault(
                    group, Served(self._build(group, self._fresh), 0, self._fresh)
                )
        self._diagnostics.clear()

    def _build(self, group: str, description: str) -> Policy:
        settings = json.loads(description)
        return registry.get('policy', settings.pop('name'))(
            self._descriptor, group, seed=self._seed, **settings
        )

    def _on_version(self, message: PolicyVersion) -> None:
        self._next[message.group] = message

    def _swap(self) -> None:
        """Take the versions that arrived since the last step; one that does not fit changes
        nothing.
        """
        for group, message in self._next.items():
            if group not in self._rows:
                continue
            started = time.perf_counter()
            try:
                if message.descriptor not in (0, self._crc):
                    raise PolicyMismatchError('it was made for another environment descriptor')
                served = self._served.get(group)
                same = served is not None and served.description == message.policy
                policy = served.policy if same else self._build(group, message.policy)
                load_weights(policy, bytes(message.weights))
            except (ValueError, LookupError) as error:
                self._diagnostics.fault(
                    f'policy version {message.version} of group {group} refused: {error}'
                )
                continue
            self._served[group] = Served(policy, message.version, message.policy)
            self._swap_ms = 1e3 * (time.perf_counter() - started)
            self._diagnostics.clear()
        self._next.clear()

    def _on_observation(self, message: Observation) -> None:
        if not self._active or self._descriptor is None:
            return
        if message.descriptor != self._crc:
            self._diagnostics.count('observation of another environment descriptor')
            return
        if self._next:
            self._swap()
        if len(self._served) < len(self._rows):
            self._diagnostics.count('observation without a policy version')
            return
        try:
            observation = self._codec.decode(message.data)
        except ValueError as error:
            self._diagnostics.count(str(error))
            return
        self._command_publisher.publish(self._act(message, observation))

    def _act(
        self, message: Observation, observation: dict[str, dict[str, np.ndarray]]
    ) -> JointCommand:
        agents, targets, actions, log_probs = [], [], [], []
        for group, rows in self._rows.items():
            own = {key: values[0, rows] for key, values in observation[group].items()}
            output = self._served[group].policy.get_action(own, deterministic=self._deterministic)
            agents += [self._descriptor.groups[group].agents[row] for row in rows]
            targets.append(to_targets(own['last_command'], output.action).ravel())
            actions.append(output.action.ravel())
            log_probs.append(output.log_prob)
        return JointCommand(
            header=message.header,
            step=message.step,
            agents=agents,
            policy_version=min(self._served[group].version for group in self._rows),
            targets=to_doubles(np.concatenate(targets)),
            action=to_floats(np.concatenate(actions)),
            log_prob=to_floats(np.concatenate(log_probs)),
        )


def _rows(descriptor: EnvDescriptor, wanted: list[str]) -> dict[str, list[int]]:
    """Rows to serve in each group. Raises ValueError for a name that no group has."""
    known = [agent for info in descriptor.groups.values() for agent in info.agents]
    strangers = set(wanted) - set(known)
    if strangers:
        raise ValueError(f'parameter agents names {sorted(strangers)}; the environment has {known}')
    rows = {
        group: agent_rows(info, [name for name in info.agents if not wanted or name in wanted])
        for group, info in descriptor.groups.items()
    }
    return {group: members for group, members in rows.items() if members}


NODE = PolicyNode


def main() -> None:
    """Entry point of executable ``policy``."""
    sys.exit(run(['policy']))
