"""What travels over the bus besides segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.rewards import RewardSpec

POLICY, REWARDS, METRICS, STOP = 'policy', 'rewards', 'metrics', 'stop'
"""Topics of the control channel."""
JOIN = 'join'
"""Kind of the request that a worker joins with, and topic of its echo on the control channel."""


class BusError(RuntimeError):
    """The bus cannot do what was asked: a port in use, no answer in time."""


class Endpoints(BaseModel):
    """Where the coordinator listens, as ZeroMQ addresses."""

    model_config = ConfigDict(extra='forbid', frozen=True)
    control: str
    data: str
    requests: str


@dataclass(frozen=True)
class PolicyUpdate:
    """A version of one group's policy."""

    group: str
    version: int
    policy: dict[str, Any]
    """Registered name and settings of the policy."""
    descriptor: int
    """CRC-32 of the environment descriptor that it was made for."""
    weights: bytes = field(repr=False)
    """safetensors"""

    def body(self) -> dict[str, Any]:
        """All but the weights, as JSON takes it."""
        return {key: value for key, value in vars(self).items() if key != 'weights'}


@dataclass(frozen=True)
class Metrics:
    """Flat numbers about the job."""

    values: dict[str, Any]


@dataclass(frozen=True)
class Stop:
    """The job ends."""

    reason: str


Message = PolicyUpdate | RewardSpec | Metrics | Stop


def message_of(topic: str, body: dict[str, Any], blob: bytes) -> Message:
    """The message of a topic's body. Raises ValueError or TypeError where it is malformed."""
    if topic == POLICY:
        return PolicyUpdate(**body, weights=blob)
    if topic == REWARDS:
        return RewardSpec.model_validate(body)
    if topic == METRICS:
        return Metrics(body)
    if topic == STOP:
        return Stop(**body)
    raise ValueError(f'unknown topic {topic!r}')


@dataclass(frozen=True)
class Welcome:
    """What a worker that joined starts from."""

    rewards: RewardSpec
    policies: dict[str, PolicyUpdate]
    descriptor: EnvDescriptor | None
    config: dict[str, Any]
    """The job's config, as JobConfig dumps it."""

    def body(self) -> dict[str, Any]:
        """All but the weights, as JSON takes it."""
        return {
            'rewards': self.rewards.model_dump(),
            'policies': [update.body() for update in self.policies.values()],
            'descriptor': self.descriptor and self.descriptor.model_dump(),
            'config': self.config,
        }

    @classmethod
    def of(cls, body: dict[str, Any], blobs: Sequence[bytes]) -> Welcome:
        """From :meth:`body` and the weights in the order of the policies."""
        updates = [
            PolicyUpdate(**update, weights=blob)
            for update, blob in zip(body['policies'], blobs, strict=True)
        ]
        return cls(
            rewards=RewardSpec.model_validate(body['rewards']),
            policies={update.group: update for update in updates},
            descriptor=body['descriptor'] and EnvDescriptor.model_validate(body['descriptor']),
            config=body['config'],
        )


@dataclass(frozen=True)
class Request:
    """A question to the coordinator. Answer it once, with :meth:`reply`."""

    kind: str
    body: dict[str, Any]
    origin: str
    """The name that the worker gave itself."""
    answer: Callable[[dict[str, Any], Sequence[bytes]], None] = field(repr=False)

    def reply(self, body: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
        """Send the answer; one to a worker that left is dropped."""
        self.answer(body, blobs)
