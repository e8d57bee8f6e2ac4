"""Where the tools are and what touches, from joint positions alone: the same for every world."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from opentinker_ros.arms.scene import Scene


class NoFreeConfigurationError(ValueError):
    """The arms could not be placed without touching: which ones, and what to change."""


@dataclass
class Poses:
    """What follows from joint positions ``[env, arm, joint]``; world frame, m."""

    tool_position: np.ndarray
    """``[env, arm, 3]``."""
    tool_rotation: np.ndarray
    """``[env, arm, 3, 3]`` from tool frame to world frame."""
    first_rotation: np.ndarray
    """``[env, arm, 3, 3]`` from the frame of the first moving link to world frame."""
    contact: np.ndarray
    """``[env, arm]`` bool: the arm penetrates another arm, itself or the floor."""


class Kinematics:
    """Forward kinematics and collision checks of a cell, by MuJoCo without dynamics."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._data = mujoco.MjData(scene.model)
        self._xpos, self._xmat = self._data.xpos, self._data.xmat

    def poses(self, joint_positions: np.ndarray) -> Poses:
        """Tool poses and contacts of ``joint_positions`` ``[env, arm, joint]``."""
        scene, model, data = self.scene, self.scene.model, self._data
        envs = len(joint_positions)
        xpos = np.empty((envs, *self._xpos.shape))
        xmat = np.empty((envs, *self._xmat.shape))
        contact = np.zeros((envs, scene.arms), bool)
        for env, qpos in enumerate(scene.qpos(joint_positions)):
            data.qpos = qpos
            mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            xpos[env], xmat[env] = self._xpos, self._xmat
            if data.ncon:
                contact[env, self._arms_in_contact()] = True
        rotations = xmat.reshape(envs, -1, 3, 3)
        return Poses(
            xpos[:, scene.tool_body],
            rotations[:, scene.tool_body],
            rotations[:, scene.first_body],
            contact,
        )

    def _arms_in_contact(self) -> np.ndarray:
        arms = self.scene.arm_of_geom[self._data.contact.geom[self._data.contact.dist < 0]]
        return arms[arms >= 0]

    def to_base(self, points: np.ndarray) -> np.ndarray:
        """World points ``[env, arm, 3]`` or ``[env, arm, k, 3]`` in the base frame of their arm."""
        extra = (slice(None), None) if points.ndim == 4 else (slice(None),)
        relative = points - self.scene.base_position[extra]
        if points.ndim == 4:
            return relative @ self.scene.base_rotation
        return np.einsum('eai,aij->eaj', relative, self.scene.base_rotation)

    def random_configuration(
        self, rng: np.random.Generator, low: np.ndarray, high: np.ndarray, attempts: int = 1000
    ) -> np.ndarray:
        """Joint positions ``[arm, joint]``, uniform in ``[low, high]``, in which nothing touches.

        Arms that touch are drawn again until none does. Raises :class:`NoFreeConfigurationError`.
        """
        arms = self.scene.arms
        positions = rng.uniform(low, high, (arms, len(low)))
        for _ in range(attempts):
            (touching,) = np.nonzero(self.poses(positions[None]).contact[0])
            if not touching.size:
                return positions
            positions[touching] = rng.uniform(low, high, (touching.size, len(low)))
        raise NoFreeConfigurationError(
            f'no configuration without contact in {attempts} draws: '
            f'arms {touching.tolist()} touch; '
            'put the arms further apart (spacing) or check the shapes in the robot description'
        )
