"""How a replay buffer is laid out in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opentinker.envs.descriptor import GroupInfo

_ROW = 8 + 8 + 2
"""Bytes of a step beside what its agents have: age, policy version, two flags."""


class ReplayError(ValueError):
    """What a buffer cannot take or give; nothing was changed."""


@dataclass(frozen=True)
class ReplayLayout:
    """How much a buffer holds and how it hands it out."""

    capacity: int
    """Steps of all environments together."""
    num_envs: int
    """Environments of all samplers together."""
    n_step: int = 1
    gamma: float = 0.99
    frames: Mapping[str, int] = field(default_factory=dict)
    """Observation keys that are stacks of so many frames (their first axis). Only the newest frame
    is stored, and the stack is rebuilt when it is asked for."""
    half: bool = False
    """Store observations of float32 and float64 in float16: three digits, up to 65,504."""

    def __post_init__(self) -> None:
        if self.length < 1 or self.n_step < 1:
            raise ReplayError(
                f'capacity {self.capacity}, {self.num_envs} environments, n_step '
                f'{self.n_step}: every environment needs a row, and n_step is 1 or more'
            )

    @property
    def length(self) -> int:
        """Rows of each environment."""
        return self.capacity // self.num_envs

    def dtype(self, dtype: np.dtype) -> np.dtype:
        """In which observations of this type are stored."""
        return np.dtype(np.float16) if self.half and dtype.kind == 'f' else dtype

    @property
    def form(self) -> dict[str, Any]:
        """What the form of stored arrays depends on."""
        return {
            'rows': self.length,
            'environments': self.num_envs,
            'frames': dict(self.frames),
            'half': self.half,
        }

    def row_bytes(self, group: GroupInfo) -> int:
        """Memory of a stored step of one environment."""
        agent = group.action.size * np.dtype(group.action.dtype).itemsize
        # log-probability, reward, whether it took part, and signals
        agent += 4 + 4 + 1 + 4 * len(group.signals)
        for key, info in group.observation.items():
            size = info.size // self.frames.get(key, 1)
            agent += size * self.dtype(np.dtype(info.dtype)).itemsize
        return len(group.agents) * agent + _ROW

    def fitted(self, group: GroupInfo, memory: int) -> ReplayLayout:
        """One whose full rings take at most so many bytes: this one; else in float16; else that
        with fewer steps. The true last observations of its episodes come on top.

        Raises :class:`ReplayError` where not even one step of every environment fits.
        """
        for layout in (self, replace(self, half=True)):
            if layout.length * self.num_envs * layout.row_bytes(group) <= memory:
                return layout
        length = memory // (self.num_envs * layout.row_bytes(group))
        if length < 1:
            raise ReplayError(
                f'a step of {self.num_envs} environments takes '
                f'{self.num_envs * layout.row_bytes(group):,} bytes, there are {memory:,}'
            )
        return replace(layout, capacity=length * self.num_envs)
