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

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
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

    All arguments are ``[T, E, A]``. ``next_value`` is 0 after a terminal state and the value of the
    true last observation after a truncation. Where ``ended``, the recursion stops.
    """
    delta = reward + gamma * next_value - value
    carry = np.float32(gamma * lam) * ~ended
    advantage = np.zeros_like(delta)
    running = np.zeros_like(delta[0])
    for step in reversed(range(len(delta))):
        running = delta[step] + carry[step] * running
        advantage[step] = running
    return advantage


@registry.register(ESTIMATOR, 'gae')
class Gae:
    """Advantages and value targets of on-policy segments by the critic in training."""

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
            segment.reward.astype(np.float32),
            value,
            next_values(policy, segment, value),
            (segment.terminated | segment.truncated)[..., None] | leavings(segment.active),
            self._gamma,
            self._lam,
        )
        columns = [flat.numpy(), segment.action, segment.log_prob, advantage, advantage + value]
        # a mask copies, so what is read-only or of another precision may come in
        rows = (column[segment.active].astype(np.float32, copy=False) for column in columns)
        return tuple(torch.from_numpy(column) for column in rows)


def next_values(policy: ActorCritic, segment: Segment, value: np.ndarray) -> np.ndarray:
    """``[T, E, A]``: the value of what followed each step: of the true last observation at an
    episode's end, and 0 after a terminal state or where an agent left the running episode.
    """
    last = policy.value(policy.flat(segment.last_observation)).numpy()
    following = np.concatenate([value[1:], last[None]])
    following[leavings(segment.active)] = 0
    if len(segment.final_index):
        step, env = segment.final_index.T
        following[step, env] = policy.value(policy.flat(segment.final_observation)).numpy()
    following[segment.terminated] = 0
    return following


def leavings(active: np.ndarray) -> np.ndarray:
    """``[T, E, A]``: the last step of an agent that takes no part in the next one."""
    leaves = np.zeros_like(active)
    leaves[:-1] = active[:-1] & ~active[1:]
    return leaves
