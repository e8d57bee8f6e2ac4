"""RosWorld: robots behind topics, the same interface as a simulated world."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayLayout
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from opentinker_ros import qos
from opentinker_ros.conversions import (
    NANOSECONDS,
    from_pose,
    from_stamp,
    step_dimension,
    to_doubles,
    to_pose,
    to_stamp,
)
from opentinker_ros.msg import ObjectStates
from opentinker_ros.srv import ResetWorld
from opentinker_ros.worlds.joint_states import JointStateReader
from opentinker_ros.worlds.world import Start, World, WorldError, WorldState

POSITION = 'position'
TRAJECTORY = 'trajectory'


@dataclass
class RosWorldSettings:
    """How a cell of arms is reached.

    ``topics`` are the prefixes of joint-state and command topics: ``['']`` for one of each for all
    arms, or one prefix an arm. In lock-step the world moves by ``period`` seconds a command and
    waits for the state with that stamp; otherwise it takes the latest state.
    """

    arms: Sequence[Sequence[str]]
    """Joint names of each arm, its gripper last."""
    object_names: Sequence[str]
    period: float
    lockstep: bool = True
    per_arm_topics: bool = False
    command_interface: str = POSITION
    timeout: float = 5.0
    """Steady seconds without the awaited state after which :meth:`RosWorld.advance` gives up."""


class RosWorld(World):
    """One cell of arms over ROS topics.

    ``on_state`` is called when the state that a command or a reset leads to has arrived, for
    callers that live in callbacks; others call :meth:`advance`, which spins the node.
    """

    num_envs = 1

    def __init__(
        self,
        node: Node,
        settings: RosWorldSettings,
        on_state: Callable[[], None] = lambda: None,
        count: Callable[[str], None] = lambda what: None,
    ) -> None:
        self._node = node
        self._settings = settings
        self._on_state = on_state
        self._count = count
        self.object_names = list(settings.object_names)
        self._joints = [name for arm in settings.arms for name in arm]
        self._reader = JointStateReader(self._joints, count)
        self._objects = np.full((1, len(self.object_names), 7), np.nan)
        self._objects_stamp = self._objects_from = -1
        """Objects older than the last reset are those of the episode before."""
        self._stamp = -1
        self._awaited: int | None = None
        self._reset_pending = False
        self._request: ResetWorld.Request | None = None
        """Of a reset that waits for the service to be there."""
        self._entities(node)

    def _entities(self, node: Node) -> None:
        prefixes = self._prefixes()
        states = qos.STEP if self._settings.lockstep else qos_profile_sensor_data
        for prefix in prefixes:
            node.create_subscription(
                JointState,
                f'{prefix}joint_states',
                self._joint_state,
                states,
                qos_overriding_options=qos.OVERRIDABLE,
            )
        if self._settings.command_interface == TRAJECTORY:
            topic, kind = 'joint_trajectory_controller/joint_trajectory', JointTrajectory
        else:
            topic, kind = 'forward_position_controller/commands', Float64MultiArray
        self._publishers = [
            node.create_publisher(kind, prefix + topic, qos.STEP) for prefix in prefixes
        ]
        node.create_subscription(ObjectStates, 'objects', self._object_states, qos.LATCHED)
        self._reset_client = node.create_client(ResetWorld, 'reset_world')

    def _prefixes(self) -> list[str]:
        if not self._settings.per_arm_topics:
            return ['']
        return [f'arm_{index}/' for index in range(len(self._settings.arms))]

    # what the arms are told

    def reset(self, envs: np.ndarray, start: Start) -> None:
        """Ask the simulator for a start state; it is there when the awaited state has arrived."""
        request = ResetWorld.Request()
        arms = start.joint_positions.shape[1]
        positions = np.concatenate([start.joint_positions[0], np.zeros((arms, 1))], axis=1)
        request.joint_names = self._joints
        request.joint_positions = to_doubles(positions.ravel())
        request.object_names = self.object_names
        request.object_poses = [to_pose(row) for row in start.objects[0]]
        self._reset_pending = True
        self._awaited = None
        self._request = request
        if self.connected:
            self._send_reset()

    def _send_reset(self) -> None:
        self._reset_client.call_async(self._request).add_done_callback(self._reset_answered)
        self._request = None

    def _reset_answered(self, future) -> None:
        response = future.result()
        if response is None or not response.success:
            self._count(f'reset refused: {response.message if response else "no answer"}')
            return
        self._reset_pending = False
        self._awaited = self._objects_from = from_stamp(response.stamp)
        self._announce()

    def command(self, targets: np.ndarray) -> None:
        """Publish absolute targets; in lock-step the state one period later is awaited."""
        step = self._stamp // self.period_ns
        values = targets[0]
        rows = [values.ravel()] if not self._settings.per_arm_topics else list(values)
        for publisher, row, names in zip(self._publishers, rows, self._names(), strict=True):
            publisher.publish(self._command_message(step, row, names))
        if self._settings.lockstep:
            self._awaited = self._stamp + self.period_ns

    def _names(self) -> Sequence[Sequence[str]]:
        return self._settings.arms if self._settings.per_arm_topics else [self._joints]

    def _command_message(self, step: int, row: np.ndarray, names: Sequence[str]):
        if self._settings.command_interface == POSITION:
            return Float64MultiArray(
                layout=MultiArrayLayout(dim=[step_dimension(step, row.size)]), data=to_doubles(row)
            )
        point = JointTrajectoryPoint(positions=to_doubles(row))
        point.time_from_start.nanosec = self.period_ns
        message = JointTrajectory(joint_names=list(names), points=[point])
        if self._settings.lockstep:
            message.header.stamp = to_stamp(self._stamp)
        return message

    # what the arms and trackers say

    def _joint_state(self, message: JointState) -> None:
        stamp = from_stamp(message.header.stamp)
        if stamp < self._stamp:
            self._count('joint state with an earlier stamp')
            if self._settings.lockstep:
                return
        if self._reader.update(message):
            self._stamp = stamp
            self._announce()

    def _object_states(self, message: ObjectStates) -> None:
        for name, pose in zip(message.names, message.poses, strict=False):
            row = np.array(from_pose(pose))
            if name not in self.object_names:
                continue
            if not np.isfinite(row).all():
                self._count(f'object pose of {name} that is not finite')
                return
            self._objects[0, self.object_names.index(name)] = row
        self._objects_stamp = from_stamp(message.header.stamp)
        self._announce()

    def _announce(self) -> None:
        if self.ready():
            self._awaited = None
            self._on_state()

    def ready(self) -> bool:
        """Whether every joint has the awaited stamp and every object was seen."""
        return (
            self._awaited is not None
            and self._stamp >= self._awaited
            and self._reader.complete_at(self._awaited)
            and self._objects_stamp >= self._objects_from
            and not np.isnan(self._objects).any()
        )

    @property
    def period_ns(self) -> int:
        """Control period in whole nanoseconds."""
        return round(self._settings.period * NANOSECONDS)

    @property
    def stamp(self) -> Time:
        """When the latest joint state was measured."""
        return to_stamp(max(self._stamp, 0))

    @property
    def connected(self) -> bool:
        """Whether a simulator that can be reset is there."""
        return self._reset_client.service_is_ready()

    @property
    def missing(self) -> str:
        """What the world waits for, in words."""
        if self._reset_pending:
            return 'an answer of service reset_world'
        absent = self._reader.missing()
        if absent:
            return f'joints {absent} on topic joint_states'
        unseen = [
            name
            for name, row in zip(self.object_names, self._objects[0], strict=True)
            if np.isnan(row).any()
        ]
        return (
            f'objects {unseen} on topic objects'
            if unseen
            else 'the next joint state on topic joint_states'
        )

    def advance(self, seconds: float) -> None:
        """Spin until the awaited state has arrived. Not for use inside a callback."""
        deadline = time.monotonic() + self._settings.timeout
        if not self._settings.lockstep and self._awaited is None:
            self._awaited = self._stamp + round(seconds * NANOSECONDS)
        while self._awaited is not None or self._reset_pending:
            if self._request is not None and self.connected:
                self._send_reset()
            if time.monotonic() > deadline:
                raise WorldError(
                    f'{self._node.get_fully_qualified_name()}: waited {self._settings.timeout} s '
                    f'for {self.missing}'
                )
            rclpy.spin_once(self._node, timeout_sec=0.01)

    def read(self) -> WorldState:
        """The latest measurements."""
        shape = (1, len(self._settings.arms), -1)
        positions = self._reader.positions.reshape(shape)
        velocities = self._reader.velocities.reshape(shape)
        return WorldState(
            time=np.array([self._stamp / NANOSECONDS]),
            joint_positions=positions[..., :-1].copy(),
            joint_velocities=velocities[..., :-1].copy(),
            grippers=positions[..., -1].copy(),
            objects=self._objects.copy(),
        )
