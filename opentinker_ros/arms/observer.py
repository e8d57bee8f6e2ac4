"""What an arm knows: its joints, its last command and every point in its own base frame.

Nothing tells the arms apart, so that they can share one policy: the others' tools come in the order
of the ring, beginning with the next arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opentinker.envs.descriptor import ArrayInfo, GroupInfo
from opentinker_ros.arms.cell import Cell
from opentinker_ros.arms.scene import arm_name
from opentinker_ros.worlds.world import WorldState

GROUP = 'arm'
FREE_MARGIN = np.float32(np.pi)
"""Rad: the margin of a joint without limits."""


@dataclass
class View:
    """One look at the world."""

    keys: dict[str, np.ndarray]
    signals: dict[str, np.ndarray]
    """``[env, arm]`` float32, by name."""

    def observation(self, last_command: np.ndarray) -> dict[str, np.ndarray]:
        """The observation keys with the last gated command ``[env, arm, joint + 1]`` among them."""
        return {**self.keys, 'last_command': last_command.astype(np.float32)}


class Observer:
    """Turns measurements into observations and signals."""

    def __init__(self, cell: Cell) -> None:
        self._task, self._kinematics = cell.task, cell.task.kinematics
        scene, robot = cell.scene, cell.scene.robot
        arms, joints = scene.arms, len(robot.joints)
        ring = np.arange(arms)
        self._others = (ring[:, None] + ring[1:]) % arms
        self._lower, self._upper = robot.lower, robot.upper
        self.group = GroupInfo(
            agents=tuple(arm_name(arm) for arm in range(arms)),
            observation={
                'joint_positions': ArrayInfo(shape=(joints,), unit='rad'),
                'joint_velocities': ArrayInfo(shape=(joints,), unit='rad/s'),
                'tool_position': ArrayInfo(shape=(3,), unit='m', frame='base'),
                'tool_orientation': ArrayInfo(shape=(6,), low=-1, high=1, frame='base'),
                'other_tools': ArrayInfo(shape=(arms - 1, 3), unit='m', frame='base'),
                **cell.task.observation,
                'last_command': ArrayInfo(shape=(joints + 1,), unit='rad'),
            },
            action=ArrayInfo(shape=(joints + 1,), low=-1, high=1),
            signals=('contact', 'limit_margin', *cell.task.signals, 'action_change'),
        )

    def look(self, state: WorldState, envs: np.ndarray | slice = slice(None)) -> View:
        """Observation keys and signals of these environments."""
        positions, objects = state.joint_positions[envs], state.objects[envs]
        poses = self._kinematics.poses(positions)
        # two columns of the rotation are a continuous representation (Zhou et al. 2019)
        columns = self._kinematics.scene.base_rotation.swapaxes(1, 2) @ poses.tool_rotation[..., :2]
        keys = {
            'joint_positions': positions,
            'joint_velocities': state.joint_velocities[envs],
            'tool_position': self._kinematics.to_base(poses.tool_position),
            'tool_orientation': columns.reshape(*columns.shape[:2], 6),
            'other_tools': self._kinematics.to_base(poses.tool_position[:, self._others]),
            **self._task.observe(poses, objects),
        }
        margin = np.minimum(positions - self._lower, self._upper - positions).min(axis=-1)
        signals = {
            'contact': poses.contact,
            'limit_margin': np.minimum(margin, FREE_MARGIN),
            **self._task.measure(poses, objects),
        }
        return View(_single(keys), _single(signals))


def _single(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key: values.astype(np.float32) for key, values in arrays.items()}
