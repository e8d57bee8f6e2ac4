"""The environment descriptor: what is observed, accepted and rewarded, as versioned JSON."""

from __future__ import annotations

import math
import zlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1


class _Frozen(BaseModel):
    model_config = ConfigDict(extra='forbid', frozen=True)


class ArrayInfo(_Frozen):
    """One observation key or the action of an agent: shape without the env and agent axes."""

    shape: tuple[int, ...]
    dtype: Literal['float32', 'float64', 'uint8', 'int32', 'int64', 'bool'] = 'float32'
    low: float | tuple[float, ...] | None = None
    high: float | tuple[float, ...] | None = None
    unit: str = ''
    frame: str = ''

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class GroupInfo(_Frozen):
    """A group of equal agents: their names, observation keys (in wire order) and action."""

    agents: tuple[str, ...]
    observation: dict[str, ArrayInfo]
    action: ArrayInfo
    signals: tuple[str, ...] = ()
    """Per-agent scalars from which reward terms are computed, stored with every transition."""

    @property
    def observation_size(self) -> int:
        return sum(info.size for info in self.observation.values())


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
