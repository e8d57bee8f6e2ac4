"""The environment descriptor: what is observed, accepted and rewarded, as versioned JSON."""

from __future__ import annotations

import math
import zlib
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1


class _Frozen(BaseModel):
    model_config = ConfigDict(extra='forbid', frozen=True)


Bound = float | tuple[float | None, ...] | None
Dtype = Literal[
    'float32', 'float64', 'float16', 'uint8', 'int8', 'uint16', 'int16',
    'uint32', 'int32', 'uint64', 'int64', 'bool',
]  # fmt: skip


class ArrayInfo(_Frozen):
    """One observation key or the action of an agent: shape without the env and agent axes."""

    shape: tuple[int, ...]
    dtype: Dtype = 'float32'
    low: Bound = None
    """One bound for all elements or one for each (C order); None: unbounded."""
    high: Bound = None
    categories: tuple[int, ...] | None = None
    """For choices: how many there are for each element (C order); values count from 0."""
    unit: str = ''
    frame: str = ''

    @property
    def size(self) -> int:
        """Elements of an agent."""
        return math.prod(self.shape)

    @property
    def discrete(self) -> bool:
        """Whether the values are choices."""
        return self.categories is not None


class GroupInfo(_Frozen):
    """A group of equal agents: their names, observation keys (in wire order) and action."""

    agents: tuple[str, ...]
    observation: dict[str, ArrayInfo]
    """By key; nested spaces have their path as key, ``camera/rgb``, or ``[0]/rgb`` in a tuple. The
    key ``action_mask`` (bool, one value a choice of the action) tells the choices that are open.
    """
    action: ArrayInfo
    signals: tuple[str, ...] = ()
    """Per-agent scalars from which reward terms are computed, stored with every transition."""

    @property
    def observation_size(self) -> int:
        return sum(info.size for info in self.observation.values())

    @property
    def transition_bytes(self) -> int:
        """Memory of what is stored of one step of one agent."""
        arrays = [*self.observation.values(), self.action]
        # log-probability, reward and signals in float32; flags, version, revision and step number
        scalars = 4 * (2 + len(self.signals)) + 3 + 24
        return sum(info.size * np.dtype(info.dtype).itemsize for info in arrays) + scalars

    def zeros(self, rows: int) -> dict[str, np.ndarray]:
        """Observations ``[rows, *shape]`` of nothing."""
        return {
            key: np.zeros((rows, *info.shape), info.dtype) for key, info in self.observation.items()
        }


class EnvDescriptor(_Frozen):
    """The contract between an environment and the policies that act in it."""

    schema_version: int = SCHEMA_VERSION
    name: str
    groups: dict[str, GroupInfo]
    control_period: float = Field(gt=0)
    """Seconds between two actions."""
    step_limit: int | None = None

    def crc(self) -> int:
        """CRC-32 of the JSON form: a cheap check that two processes mean the same environment."""
        return zlib.crc32(self.model_dump_json().encode())
