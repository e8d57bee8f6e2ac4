"""What the advantage estimators of on-policy algorithms share: values, ends of episodes, rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from opentinker.algorithms.algorithm import Rollout
from opentinker.data.segment import Segment
from opentinker.policies.actor_critic import ActorCritic


@dataclass
class Steps:
    """Consecutive steps as an estimator sees them; every array is ``[T, E, A]``."""

    reward: np.ndarray
    value: np.ndarray
    next_value: np.ndarray
    """Of what followed: 0 after a terminal state, of the true last observation at a truncation."""
    ended: np.ndarray
    """Nothing after these steps belongs to the same episode."""
    log_ratio: np.ndarray | None = None
    """Log of how much likelier the action has become since it was chosen; where asked for."""


class BaseAdvantageEstimator(ABC):
    """Advantages and value targets of on-policy segments by the critic in training.

    Register a subclass as ``estimator`` and name it in a config; :meth:`advantages` is all that it
    must have.
    """

    families: tuple[str, ...] = ('on-policy',)
    gives = 'advantages'
    corrects_lag = False
    """It weighs steps by their ratios itself, so that the optimizer's ratios start at 1."""

    @abstractmethod
    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """Advantages and value targets, ``[T, E, A]`` each."""

    @torch.no_grad()
    def estimate(self, policy: ActorCritic, segments: list[Segment]) -> Rollout:
        """Rows of all active agents of all segments."""
        parts = [self._rows(policy, segment) for segment in segments]
        return Rollout(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _rows(self, policy: ActorCritic, segment: Segment) -> tuple[Tensor, ...]:
        flat = policy.flat(segment.observation)
        value = policy.value(flat).numpy()
        log_prob = segment.log_prob
        steps = Steps(
            segment.reward.astype(np.float32),
            value,
            next_values(policy, segment, value),
            (segment.terminated | segment.truncated)[..., None] | leavings(segment.active),
        )
        if self.corrects_lag:
            now = policy.evaluate(flat, torch.from_numpy(np.array(segment.action)))[0].numpy()
            steps.log_ratio, log_prob = now - log_prob, now
        advantage, target = self.advantages(steps)
        action = segment.action
        if action.dtype.kind == 'f':
            action = action.astype(np.float32, copy=False)
        columns = [flat.numpy(), action, *map(_single, (log_prob, advantage, target, value))]
        # a mask copies, so what is read-only may come in
        return tuple(torch.from_numpy(column[segment.active]) for column in columns)


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32, copy=False)


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
