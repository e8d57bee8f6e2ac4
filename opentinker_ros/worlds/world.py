"""The World interface: robots and objects, simulated or real, behind five methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class WorldError(RuntimeError):
    """A world that cannot go on: what, where, and what to do."""


@dataclass
class WorldState:
    """What drivers and sensors measured, ``[env, ...]``: m, rad, world frame."""

    time: np.ndarray
    """``[env]`` seconds, monotonic through resets."""
    joint_positions: np.ndarray
    """``[env, arm, joint]``."""
    joint_velocities: np.ndarray
    """``[env, arm, joint]``."""
    grippers: np.ndarray
    """``[env, arm]``: 0 released, 1 holding on."""
    objects: np.ndarray
    """``[env, object, 7]``: x y z qw qx qy qz, in the order of :attr:`World.object_names`."""


@dataclass
class Start:
    """Where an episode begins: what a simulator sets, and what real arms are asked to move to."""

    joint_positions: np.ndarray
    """``[k, arm, joint]``."""
    objects: np.ndarray
    """``[k, object, 7]``."""


class World(ABC):
    """Several independent copies of one cell of arms."""

    num_envs: int
    object_names: Sequence[str]

    @abstractmethod
    def reset(self, envs: np.ndarray, start: Start) -> None:
        """Bring the cells with these indices to ``start``; commands become the start positions."""

    @abstractmethod
    def command(self, targets: np.ndarray) -> None:
        """Set absolute targets ``[env, arm, joint + 1]``, the gripper (0 to 1) last."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Let time pass in every cell; 0 waits for what was asked for, such as a reset.

        Raises :class:`WorldError` where time does not pass.
        """

    @abstractmethod
    def read(self) -> WorldState:
        """The latest measurements, as fresh arrays."""

    def render(self) -> np.ndarray:
        """The first cell as a picture ``[height, width, 3]``, uint8, where a world has one."""
        raise NotImplementedError(f'{type(self).__name__} has no picture')

    def state_dict(self) -> dict[str, Any] | None:
        """What :meth:`load_state_dict` goes on from; None for a world that is not simulated."""
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        raise NotImplementedError(f'{type(self).__name__} cannot save its state')

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Release what the world holds."""
