"""Reach: every arm brings its tool to a target of its own, in a shared workspace."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from opentinker import registry
from opentinker.envs.descriptor import ArrayInfo
from opentinker_ros.arms import rewards  # noqa: F401  (registers the terms)
from opentinker_ros.arms.kinematics import Kinematics, Poses
from opentinker_ros.arms.tasks.task import KIND, Task

SUCCESS_RADIUS = 0.05
"""m."""
START_SPREAD = 0.2
"""Episodes start this close (rad or m) to the home position."""


@registry.register(KIND, 'reach')
class Reach(Task):
    """Targets come from the whole workspace; all arms can be at theirs at once without contact."""

    observation: ClassVar = {
        'target': ArrayInfo(shape=(3,), unit='m', frame='base'),
        'target_error': ArrayInfo(shape=(3, 3), unit='m', frame='base, first link, tool'),
    }
    signals: ClassVar = ('distance',)
    reward_terms: ClassVar = ['distance', 'reached', 'collision', 'action_rate', 'joint_limit']
    hold_steps: ClassVar = 10

    def __init__(self, kinematics: Kinematics) -> None:
        super().__init__(kinematics)
        robot = kinematics.scene.robot
        bounded = np.isfinite(robot.lower)
        self._low = np.where(bounded, robot.lower, -np.pi)
        self._high = np.where(bounded, robot.upper, np.pi)
        self._start_low = np.maximum(self._low, robot.home - START_SPREAD)
        self._start_high = np.minimum(self._high, robot.home + START_SPREAD)

    @classmethod
    def object_names(cls, arms: int) -> tuple[str, ...]:
        """One target an arm."""
        return tuple(f'target_{arm}' for arm in range(arms))

    def start(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Arms near home; targets where the tools are in a random configuration without contact."""
        positions, _, objects = self.draw(rng)
        return positions, objects

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Start and solution ``[arm, joint]`` of one episode, and the target poses ``[arm, 7]``."""
        start = self.kinematics.random_configuration(rng, self._start_low, self._start_high)
        solution = self.kinematics.random_configuration(rng, self._low, self._high)
        targets = self.kinematics.poses(solution[None]).tool_position[0]
        upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(targets), 1))
        return start, solution, np.concatenate([targets, upright], axis=1)

    def observe(self, poses: Poses, objects: np.ndarray) -> dict[str, np.ndarray]:
        """The target, and the way from tool to target in three frames.

        The first link turns with the arm and the tool frame with the tool: in these frames a
        joint's effect on the way depends on fewer joints, which makes reaching several times
        quicker to learn.
        """
        way = objects[..., :3] - poses.tool_position
        base = np.broadcast_to(self.kinematics.scene.base_rotation, poses.tool_rotation.shape)
        frames = np.stack([base, poses.first_rotation, poses.tool_rotation], axis=2)
        return {
            'target': self.kinematics.to_base(objects[..., :3]),
            'target_error': np.einsum('eai,eafij->eafj', way, frames),
        }

    def measure(self, poses: Poses, objects: np.ndarray) -> dict[str, np.ndarray]:
        """Distance from tool to target, m."""
        return {'distance': np.linalg.norm(objects[..., :3] - poses.tool_position, axis=-1)}

    def achieved(self, signals: dict[str, np.ndarray]) -> np.ndarray:
        """Every tool is within 5 cm of its target."""
        return np.all(signals['distance'] < SUCCESS_RADIUS, axis=1)
