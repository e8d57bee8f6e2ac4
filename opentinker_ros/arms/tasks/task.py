"""What arms are to do: how an episode starts, what is measured, and when it is achieved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from opentinker.envs.descriptor import ArrayInfo
from opentinker_ros.arms.kinematics import Kinematics, Poses

KIND = 'task'
"""Registry kind of :class:`Task` classes."""


class Task(ABC):
    """One kind of episode. A task keeps nothing between steps: what changes is in the world."""

    observation: ClassVar[dict[str, ArrayInfo]]
    """Observation keys that the task adds to those of the arms."""
    signals: ClassVar[tuple[str, ...]]
    """Signals that the task adds to those of the arms."""
    reward_terms: ClassVar[list[str]]
    """Terms that a job starts with."""
    hold_steps: ClassVar[int]
    """Consecutive steps for which the goal must hold: then the episode is a success for good."""

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics

    @classmethod
    @abstractmethod
    def object_names(cls, arms: int) -> tuple[str, ...]:
        """What there is in the cell beside the arms."""

    @abstractmethod
    def start(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Joint positions ``[arm, joint]`` and object poses ``[object, 7]`` of one new episode."""

    @abstractmethod
    def observe(self, poses: Poses, objects: np.ndarray) -> dict[str, np.ndarray]:
        """The keys ``[env, arm, ...]``; ``objects`` is ``[env, object, 7]`` in the world frame."""

    @abstractmethod
    def measure(self, poses: Poses, objects: np.ndarray) -> dict[str, np.ndarray]:
        """The signals ``[env, arm]``."""

    @abstractmethod
    def achieved(self, signals: dict[str, np.ndarray]) -> np.ndarray:
        """``[env]`` bool: the goal holds in this step."""
