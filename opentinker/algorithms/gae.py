"""Generalized advantage estimation, Schulman et al. 2016, https://arxiv.org/abs/1506.02438."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from opentinker import registry
from opentinker.algorithms.algorithm import ESTIMATOR, Rollout
from opentinker.config import checked
from opentinker.data.segment import Segment
from opentinker.policies.actor_critic import ActorCritic


class GaeSettings(BaseModel):
    """Settings of estimator ``gae``."""

    model_config = ConfigDict(extra='forbid')
    gamma: float = Field(0.97, ge=0, le=1)
    """Discount of a step."""
    lam: float = Field(0.95, ge=0, le=1)
    """Weight of longer returns: 0 bootstraps at once, 1 sums rewards to the end."""


def gae(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    ended: np.ndarray,
    gamma: float,
    lam: float,
) -> np.ndarray:
    """Advantages ``[T, E, A]``.

    ``reward``, ``value`` and ``next_value`` are ``[T, E, A]``; ``next_value`` is 0 after a terminal
    state and the value of the true last observation after a truncation. ``ended`` is ``[T, E]``:
    the recursion stops there.
    """
    delta = reward + gamma * next_value - value
    carry = gamma * lam * ~ended[..., None]
    advantage = np.zeros_like(delta)
    running = np.zeros_like(delta[0])
    for step in reversed(range(len(delta))):
        running = delta[step] + carry[step] * running
        advantage[step] = running
    return advantage


@registry.register(ESTIMATOR, 'gae')
class Gae:
    """Advantages and value targets of on-policy segments by the critic of the policy in training."""

    settings = GaeSettings
    families = ('on-policy',)
    gives = 'advantages'

    def __init__(self, **settings: Any) -> None:
        chosen = checked('algorithm', GaeSettings, settings)
        self._gamma, self._lam = chosen.gamma, chosen.lam

    @torch.no_grad()
    def estimate(self, policy: ActorCritic, segments: list[Segment]) -> Rollout:
        """Rows of all active agents of all segments."""
        parts = [self._rows(policy, segment) for segment in segments]
        return Rollout(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _rows(self, policy: ActorCritic, segment: Segment) -> tuple[Tensor, ...]:
        flat = policy.flat(segment.observation)
        value = policy.value(flat).numpy()
        advantage = gae(
            segment.reward,
            value,
            next_values(policy, segment, value),
            segment.terminated | segment.truncated,
            self._gamma,
            self._lam,
        )
        active = torch.from_numpy(np.array(segment.active))
        columns = [
            flat,
            torch.from_numpy(np.array(segment.action)),
            torch.from_numpy(np.array(segment.log_prob)),
            torch.from_numpy(advantage),
            torch.from_numpy(advantage + value),
        ]
        return tuple(column[active] for column in columns)


def next_values(policy: ActorCritic, segment: Segment, value: np.ndarray) -> np.ndarray:
    """``[T, E, A]``: the value of what followed each step, of the true last observation at an
    episode's end, and 0 after a terminal state.
    """
    last = policy.value(policy.flat(segment.last_observation)).numpy()
    following = np.concatenate([value[1:], last[None]])
    if len(segment.final_index):
        step, env = segment.final_index.T
        following[step, env] = policy.value(policy.flat(segment.final_observation)).numpy()
    following[segment.terminated] = 0
    return following
