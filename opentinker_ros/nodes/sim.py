"""The sim node: MujocoWorld behind the topics of robot drivers.

In lock-step every complete command moves the world by one control period; otherwise time flows at
its own rate and the latest command holds. The clock goes on through resets.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from opentinker_ros import qos
from opentinker_ros.arms.arms_env import ArmsSettings, make_cell
from opentinker_ros.conversions import (
    NANOSECONDS,
    from_pose,
    labelled_step,
    to_doubles,
    to_pose,
    to_stamp,
)
from opentinker_ros.msg import ObjectStates
from opentinker_ros.nodes.diagnostics import Diagnostics
from opentinker_ros.nodes.host import run
from opentinker_ros.nodes.parameters import declare, declare_model
from opentinker_ros.srv import ResetWorld
from opentinker_ros.worlds.mujoco import MujocoWorld
from opentinker_ros.worlds.world import Start

_ENV = np.array([0])


class SimNode(LifecycleNode):
    """One simulated cell of arms as drivers, trackers and a clock."""

    def __init__(self, **options: Any) -> None:
        super().__init__('sim', **options)
        self._settings = ArmsSettings(**declare_model(self, ArmsSettings))
        self._lockstep = declare(
            self, 'lockstep', True, 'move one control period a command; otherwise time flows'
        )
        self._rate = declare(
            self, 'real_time_factor', 1.0, 'speed of time where it flows', low=0.01, high=100.0
        )
        self._per_arm = declare(
            self, 'per_arm_topics', False, 'one joint-state and command topic an arm'
        )
        self._diagnostics = Diagnostics(self)
        self._step = 0
        self._active = False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            cell = make_cell(self._settings)
            self._world = MujocoWorld(cell.scene, num_envs=1)
        except (ValueError, LookupError, OSError) as error:
            self.get_logger().error(f'cannot build the world: {error}')
            return TransitionCallbackReturn.FAILURE
        self._arms = cell.joint_names
        self._objects = list(cell.object_names)
        self._row = {
            name: (arm, joint)
            for arm, names in enumerate(self._arms)
            for joint, name in enumerate(names)
        }
        self._period_ns = round(self._settings.control_period * NANOSECONDS)
        self._start = cell.home()
        self._world.reset(_ENV, self._start)
        self._targets = self._held()
        self._commanded = [False] * len(self._prefixes())
        self._entities()
        return TransitionCallbackReturn.SUCCESS

    def _prefixes(self) -> list[str]:
        return [f'arm_{index}/' for index in range(len(self._arms))] if self._per_arm else ['']

    def _entities(self) -> None:
        options = {'qos_overriding_options': qos.OVERRIDABLE}
        self._clock_publisher = self.create_publisher(Clock, '/clock', qos.STEP)
        self._object_publisher = self.create_publisher(ObjectStates, 'objects', qos.LATCHED)
        self._state_publishers = []
        for index, prefix in enumerate(self._prefixes()):
            self._state_publishers.append(
                self.create_publisher(JointState, f'{prefix}joint_states', qos.STEP, **options)
            )
            self.create_subscription(
                Float64MultiArray,
                f'{prefix}forward_position_controller/commands',
                lambda message, index=index: self._on_positions(index, message),
                qos.STEP,
                **options,
            )
            self.create_subscription(
                JointTrajectory,
                f'{prefix}joint_trajectory_controller/joint_trajectory',
                lambda message, index=index: self._on_trajectory(index, message),
                qos.STEP,
                **options,
            )
        self.create_service(ResetWorld, 'reset_world', self._on_reset)
        if not self._lockstep:
            self._timer = self.create_timer(self._settings.control_period / self._rate, self._flow)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active = True
        self._publish_objects()
        self._publish()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active = False
        return super().on_deactivate(state)

    def _held(self) -> np.ndarray:
        """Targets that keep the arms where they are: [arm, joint + gripper]."""
        state = self._world.read()
        return _columns(state.joint_positions[0], state.grippers[0])

    # commands

    def _on_positions(self, index: int, message: Float64MultiArray) -> None:
        rows = self._targets[index : index + 1] if self._per_arm else self._targets
        if len(message.data) != rows.size:
            self._diagnostics.count(
                f'command with {len(message.data)} values for {rows.size} joints'
            )
            return
        values = np.frombuffer(message.data, np.float64).reshape(rows.shape)
        self._accept(index, labelled_step(message.layout.dim), rows, values)

    def _on_trajectory(self, index: int, message: JointTrajectory) -> None:
        strangers = [name for name in message.joint_names if name not in self._row]
        if (
            strangers
            or not message.points
            or len(message.points[-1].positions) != len(message.joint_names)
        ):
            self._diagnostics.count(
                f'trajectory refused: unknown joints {strangers} or no complete point'
            )
            return
        targets = self._targets.copy()
        for name, value in zip(message.joint_names, message.points[-1].positions, strict=True):
            targets[self._row[name]] = value
        stamp = message.header.stamp.sec * NANOSECONDS + message.header.stamp.nanosec
        self._accept(index, stamp // self._period_ns if stamp else None, self._targets, targets)

    def _accept(self, index: int, step: int | None, rows: np.ndarray, values: np.ndarray) -> None:
        if not self._active:
            self._diagnostics.count('command while inactive')
        elif not np.isfinite(values).all():
            self._diagnostics.count('command with a non-finite value')
        elif self._lockstep and step is not None and step != self._step:
            self._diagnostics.count('command for another step')
        else:
            rows[:] = values
            self._commanded[index] = True
            if self._lockstep and all(self._commanded):
                self._move()

    def _on_reset(
        self, request: ResetWorld.Request, response: ResetWorld.Response
    ) -> ResetWorld.Response:
        try:
            start = self._requested(request)
        except ValueError as error:
            response.message = str(error)
            return response
        self._world.reset(_ENV, start)
        self._targets = self._held()
        self._commanded = [False] * len(self._commanded)
        self._step += 1
        response.success = True
        response.stamp = to_stamp(self._step * self._period_ns)
        if self._active:
            self._publish_objects()
            self._publish()
        return response

    def _requested(self, request: ResetWorld.Request) -> Start:
        """The start state of a request; joints and objects that it does not name start at home."""
        if len(request.joint_names) != len(request.joint_positions):
            raise ValueError(
                f'{len(request.joint_positions)} positions for {len(request.joint_names)} joints'
            )
        strangers = [name for name in request.joint_names if name not in self._row]
        strangers += [name for name in request.object_names if name not in self._objects]
        if strangers:
            raise ValueError(f'unknown joints or objects: {strangers}')
        home = self._start
        values = _columns(home.joint_positions[0], 0.0)
        for name, value in zip(request.joint_names, request.joint_positions, strict=True):
            values[self._row[name]] = value
        poses = home.objects[0].copy()
        for name, pose in zip(request.object_names, request.object_poses, strict=True):
            poses[self._objects.index(name)] = from_pose(pose)
        if not (np.isfinite(values).all() and np.isfinite(poses).all()):
            raise ValueError('a joint position or an object pose is not finite')
        return Start(values[None, :, :-1], poses[None])

    # time

    def _flow(self) -> None:
        if self._active:
            self._move()

    def _move(self) -> None:
        self._commanded = [False] * len(self._commanded)
        self._world.command(self._targets[None])
        self._world.advance(self._settings.control_period)
        self._step += 1
        self._publish()

    def _publish(self) -> None:
        stamp = to_stamp(self._step * self._period_ns)
        state = self._world.read()
        positions = _columns(state.joint_positions[0], state.grippers[0])
        velocities = _columns(state.joint_velocities[0], 0.0)
        rows: list[Any] = list(range(len(self._arms))) if self._per_arm else [slice(None)]
        names = self._arms if self._per_arm else [list(self._row)]
        for publisher, row, joints in zip(self._state_publishers, rows, names, strict=True):
            message = JointState(
                name=joints,
                position=to_doubles(positions[row].ravel()),
                velocity=to_doubles(velocities[row].ravel()),
            )
            message.header.stamp = stamp
            publisher.publish(message)
        self._clock_publisher.publish(Clock(clock=stamp))

    def _publish_objects(self) -> None:
        poses = self._world.read().objects[0]
        message = ObjectStates(names=self._objects, poses=[to_pose(pose) for pose in poses])
        message.header.stamp = to_stamp(self._step * self._period_ns)
        message.header.frame_id = 'world'
        self._object_publisher.publish(message)


def _columns(joints: np.ndarray, gripper: np.ndarray | float) -> np.ndarray:
    """``[arm, joint + 1]``: the gripper as the last column."""
    values = np.empty((joints.shape[0], joints.shape[1] + 1))
    values[:, :-1], values[:, -1] = joints, gripper
    return values


NODE = SimNode


def main() -> None:
    """Entry point of executable ``sim``."""
    sys.exit(run(['sim']))
