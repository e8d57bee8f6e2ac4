"""The zmq_bridge node: makes the ROS graph one more sampler of the training job.

Transitions become segments for the learner; its policy versions and rewards become latched topics;
reward requests of the graph go to the job's authority.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import String

from opentinker.bus.messages import BusError, Message, PolicyUpdate, Welcome
from opentinker.bus.worker import WorkerBus
from opentinker.data.segment import Segment
from opentinker.data.segment_builder import SegmentBuilder
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.rewards import RewardSpec
from opentinker.protocol.arrays import FrameError
from opentinker.training.run_directory import RunDirectory
from opentinker_ros import qos
from opentinker_ros.conversions import from_reward_settings, to_bytes, to_reward_settings
from opentinker_ros.msg import PolicyVersion, RewardSettings, Transition
from opentinker_ros.nodes.diagnostics import Diagnostics
from opentinker_ros.nodes.host import NodeFailure, run
from opentinker_ros.nodes.parameters import declare
from opentinker_ros.nodes.transitions import from_transition

_POLL_S = 0.01
_MAX_WAITING_SEGMENTS = 256
_REQUEST_TIMEOUT_S = 30.0


class ZmqBridgeNode(Node):
    """Between the topics of one cell and the bus of one job."""

    def __init__(self, **options: Any) -> None:
        super().__init__('zmq_bridge', **options)
        self._run = Path(declare(self, 'run', '', 'run directory of the training job'))
        self._length = declare(self, 'segment_steps', 64, 'steps in a segment', low=1, high=100000)
        timeout = declare(
            self, 'join_timeout', 120.0, 's to wait for the learner', low=1.0, high=1e6
        )
        self._diagnostics = Diagnostics(self, self._report)
        self._builder: SegmentBuilder | None = None
        self._waiting: deque[Segment] = deque()
        self._version_publisher = self.create_publisher(
            PolicyVersion, 'policy_versions', qos.VERSIONS
        )
        self._reward_publisher = self.create_publisher(RewardSettings, 'rewards', qos.LATCHED)
        self.create_subscription(String, 'descriptor', self._on_descriptor, qos.LATCHED)
        self.create_subscription(
            RewardSettings, 'reward_requests', self._on_reward_request, qos.STEP
        )
        self.create_subscription(Transition, 'transitions', self._on_transition, qos.STREAM)
        self._bus: WorkerBus | None = None
        self._closing = False
        # a learner in the middle of an update answers late: the arms do not wait for it
        self._requests = ThreadPoolExecutor(1)
        self._joining = self._requests.submit(self._join, timeout)
        self._answers: list[Future[dict[str, Any]]] = []
        self.create_timer(_POLL_S, self._poll, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _report(self) -> dict[str, Any]:
        return {
            'segments waiting': len(self._waiting),
            'transitions without an end': self._builder.dropped if self._builder else 0,
        }

    # the bus

    def _join(self, timeout: float) -> tuple[WorkerBus, Welcome]:
        endpoints = RunDirectory(self._run).wait_for_endpoints(timeout, lambda: self._closing)
        bus = WorkerBus(endpoints, name='ros')
        return bus, bus.join(timeout)

    def _poll(self) -> None:
        if self._bus is None:
            if self._joining.done():
                self._finish_joining()
            return
        for update in self._bus.poll():
            self._pass_on(update)
        while self._waiting and self._bus.send(self._waiting[0], timeout_s=0):
            self._waiting.popleft()
        self._pass_on_answers()

    def _finish_joining(self) -> None:
        try:
            self._bus, welcome = self._joining.result()
        except (BusError, TimeoutError) as error:
            raise NodeFailure(f'cannot join the job in {self._run}: {error}') from None
        self._pass_on(welcome.rewards)
        for update in welcome.policies.values():
            self._pass_on(update)

    def _pass_on(self, update: Message) -> None:
        """Publish what the learner decided."""
        if isinstance(update, PolicyUpdate):
            self._version_publisher.publish(
                PolicyVersion(
                    group=update.group,
                    version=update.version,
                    policy=json.dumps(update.policy),
                    descriptor=update.descriptor,
                    weights=to_bytes(update.weights),
                )
            )
        elif isinstance(update, RewardSpec):
            self._in_force = update
            self._publish_rewards()

    def _publish_rewards(self) -> None:
        spec = self._in_force
        self._reward_publisher.publish(
            to_reward_settings({**spec.flat(), 'terms': list(spec.terms)}, spec.revision)
        )

    # the graph

    def _on_descriptor(self, message: String) -> None:
        descriptor = EnvDescriptor.model_validate_json(message.data)
        (group,) = descriptor.groups
        self._builder = SegmentBuilder(group, self._length, sampler='ros')

    def _on_transition(self, message: Transition) -> None:
        if self._builder is None:
            self._diagnostics.count('transition before the descriptor')
            return
        try:
            transition = from_transition(message)
        except (FrameError, KeyError, ValueError) as error:
            self._diagnostics.count(f'transition refused: {error}')
            return
        segment = self._builder.add(transition)
        if segment is not None:
            self._waiting.append(segment)
        if len(self._waiting) > _MAX_WAITING_SEGMENTS:
            self._waiting.popleft()
            self._diagnostics.count('segment dropped: the learner takes none')

    def _on_reward_request(self, message: RewardSettings) -> None:
        body = {
            'settings': from_reward_settings(message),
            'origin': self.get_fully_qualified_name(),
        }
        self._answers.append(self._requests.submit(self._ask, body))

    def _ask(self, body: dict) -> dict:
        if self._bus is None:
            return {'ok': False, 'error': 'there is no learner'}
        return self._bus.request('rewards', body, timeout_s=_REQUEST_TIMEOUT_S)

    def _pass_on_answers(self) -> None:
        """A refused request is said, and the parameters go back to the rewards in force."""
        for answer in [answer for answer in self._answers if answer.done()]:
            self._answers.remove(answer)
            error = str(answer.exception() or '') or answer.result().get('error', '')
            if error:
                self._diagnostics.count(f'reward request refused: {error}')
                self.get_logger().error(f'reward request refused: {error}')
                self._publish_rewards()

    def destroy_node(self) -> None:
        self._closing = True
        self._requests.shutdown(wait=False, cancel_futures=True)
        if self._bus is not None:
            self._bus.close()
        super().destroy_node()


NODE = ZmqBridgeNode


def main() -> None:
    """Entry point of executable ``zmq_bridge``."""
    sys.exit(run(['zmq_bridge']))
