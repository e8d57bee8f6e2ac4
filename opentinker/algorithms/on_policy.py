"""The on-policy sampler: every segment is used once, newest policies first in mind."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from opentinker import registry
from opentinker.algorithms.algorithm import SAMPLER
from opentinker.config import checked
from opentinker.data.segment import Segment


class OnPolicySettings(BaseModel):
    """Settings of sampler ``on_policy``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    batch_size: int = Field(4096, ge=1)
    """Agent transitions that make an update."""


@registry.register(SAMPLER, 'on_policy')
class OnPolicySampler:
    """Collects segments until they hold a batch; then hands all of them out and starts over."""

    settings = OnPolicySettings
    family = 'on-policy'

    def __init__(self, **settings: Any) -> None:
        self.batch_size = checked('algorithm', OnPolicySettings, settings).batch_size
        self._segments: list[Segment] = []
        self._transitions = 0

    def add(self, segment: Segment) -> None:
        """Keep a segment for the next update."""
        self._segments.append(segment)
        self._transitions += segment.transitions

    def ready(self) -> bool:
        """Whether there is a batch."""
        return self._transitions >= self.batch_size

    def take(self) -> list[Segment]:
        """All segments, once."""
        segments, self._segments, self._transitions = self._segments, [], 0
        return segments

    def state_dict(self) -> dict[str, Any]:
        """The segments that wait for the next update."""
        # not asdict: it would copy every array
        return {'segments': [vars(segment) for segment in self._segments]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._segments = [Segment(**fields) for fields in state['segments']]
        self._transitions = sum(segment.transitions for segment in self._segments)
