"""The policy node: observations in, joint-angle commands out; new versions between two steps."""

from __future__ import annotations

import sys
import time
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import String

from opentinker.envs.descriptor import EnvDescriptor
from opentinker_ros import qos
from opentinker_ros.conversions import to_doubles, to_floats
from opentinker_ros.msg import JointCommand, Observation, PolicyVersion
from opentinker_ros.nodes.diagnostics import Diagnostics
from opentinker_ros.nodes.host import run
from opentinker_ros.nodes.parameters import declare
from opentinker_ros.nodes.policy_server import PolicyServer


class PolicyNode(LifecycleNode):
    """Serves the agents of parameter ``agents``, or all of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__('policy', **options)
        self._agents = declare(self, 'agents', [''], "names of the agents to serve; [''] for all")
        self._fresh = declare(
            self,
            'policy',
            '',
            'policy to start with, freshly initialised, as JSON {"name": "actor_critic"}; '
            'empty: wait for a version on policy_versions',
        )
        self._deterministic = declare(self, 'deterministic', False, 'act without exploring')
        self._seed = declare(self, 'seed', 0, 'seed of the exploration', low=0)
        self._diagnostics = Diagnostics(self, self._report)
        self._server: PolicyServer | None = None
        self._next: dict[str, PolicyVersion] = {}
        self._active = False
        self._swap_ms = 0.0

    def _report(self) -> dict[str, Any]:
        versions = self._server.versions if self._server else {}
        report = {f'{group} version': version for group, version in versions.items()}
        return {**report, 'last swap ms': f'{self._swap_ms:.1f}'}

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        options = {'qos_overriding_options': qos.OVERRIDABLE}
        self._command_publisher = self.create_publisher(
            JointCommand, 'joint_commands', qos.STEP, **options
        )
        self.create_subscription(String, 'descriptor', self._on_descriptor, qos.LATCHED)
        self.create_subscription(PolicyVersion, 'policy_versions', self._on_version, qos.VERSIONS)
        self.create_subscription(
            Observation, 'observations', self._on_observation, qos.STEP, **options
        )
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active = False
        return super().on_deactivate(state)

    def _on_descriptor(self, message: String) -> None:
        wanted = [name for name in self._agents if name]
        try:
            descriptor = EnvDescriptor.model_validate_json(message.data)
            server = PolicyServer(descriptor, wanted, self._seed)
            if self._fresh:
                server.start(self._fresh)
        except (ValueError, LookupError) as error:
            self._diagnostics.fault(f'topic descriptor: {error}')
            return
        self._server = server
        self._diagnostics.clear()

    def _on_version(self, message: PolicyVersion) -> None:
        self._next[message.group] = message

    def _swap(self, server: PolicyServer) -> None:
        """Take the versions that came since the last step; one that does not fit is refused."""
        started = time.perf_counter()
        for message in self._next.values():
            try:
                server.load(
                    message.group,
                    message.version,
                    message.policy,
                    message.descriptor,
                    bytes(message.weights),
                )
                self._diagnostics.clear()
            except (ValueError, LookupError) as error:
                self._diagnostics.fault(
                    f'version {message.version} of the policy of group {message.group} '
                    f'is refused: {error}'
                )
        self._next.clear()
        self._swap_ms = 1e3 * (time.perf_counter() - started)

    def _on_observation(self, message: Observation) -> None:
        server = self._server
        if not self._active or server is None:
            return
        if message.descriptor != server.crc:
            self._diagnostics.count('observation of another environment descriptor')
            return
        if self._next:
            self._swap(server)
        if not server.complete:
            self._diagnostics.count('observation without a policy version')
            return
        try:
            observation = server.codec.decode(message.data)
        except ValueError as error:
            self._diagnostics.count(str(error))
            return
        commands = server.act(observation, self._deterministic)
        self._command_publisher.publish(
            JointCommand(
                header=message.header,
                step=message.step,
                agents=server.agents,
                policy_version=commands.version,
                targets=to_doubles(commands.targets),
                action=to_floats(commands.action),
                log_prob=to_floats(commands.log_prob),
            )
        )


NODE = PolicyNode


def main() -> None:
    """Entry point of executable ``policy``."""
    sys.exit(run(['policy']))
