"""A segment: consecutive steps of some environments, sent by a sampler, trained on by a learner."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Segment:
    """``T`` steps of ``E`` environments of one group of ``A`` agents, in time order.

    Ended episodes stay inside: step ``t`` of an environment that ended at ``t - 1`` begins its next
    one.
    """

    group: str
    observation: dict[str, np.ndarray]
    """``[T, E, A, ...]`` by key, what the actions were chosen from."""
    last_observation: dict[str, np.ndarray]
    """``[E, A, ...]``: what followed the last step (of the next episode where one ended there)."""
    action: np.ndarray
    """``[T, E, A, action]`` raw policy output."""
    log_prob: np.ndarray
    """``[T, E, A]`` under the policy that acted."""
    reward: np.ndarray
    """``[T, E, A]`` under ``reward_revision``; a learner re-scores it from ``signals``."""
    signals: dict[str, np.ndarray]
    """``[T, E, A]`` by name."""
    active: np.ndarray
    """``[T, E, A]`` bool."""
    terminated: np.ndarray
    """``[T, E]`` bool."""
    truncated: np.ndarray
    """``[T, E]`` bool."""
    final_index: np.ndarray
    """``[K, 2]`` int: (t, env) of the steps at which an episode ended."""
    final_observation: dict[str, np.ndarray]
    """``[K, A, ...]``: the true last observations there."""
    policy_version: np.ndarray
    """``[T]`` int64: the version that acted."""
    reward_revision: np.ndarray
    """``[T]`` int64."""
    step: np.ndarray
    """``[T]`` int64: the sampler's own step number, without gaps."""
    episodes: dict[str, np.ndarray] = field(default_factory=dict)
    """Statistics of the episodes that ended, ``[K]`` by name."""
    sampler: str = ''
    """Who sent it; ``name/number`` where one sampler has environments that go at their own pace."""

    @property
    def transitions(self) -> int:
        """Agent transitions: active agents summed over steps and environments."""
        return int(self.active.sum())
