"""Rewards scaled by the deviation of what they add up to."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from opentinker.algorithms.sequences import ends
from opentinker.data.segment import Segment
from opentinker.policies.normalizer import RunningNormalizer

_EPSILON = 1e-8


class ReturnScale:
    """Keeps the variance of the discounted sums of past rewards, over all environments and agents.

    Rewards divided by its root have returns of about unit size, whatever the task
    (https://arxiv.org/abs/2005.12729, section 3). They are scaled after they are re-scored.
    """

    def __init__(self, gamma: float) -> None:
        self._gamma = np.float32(gamma)
        self._sums: dict[str, np.ndarray] = {}
        self._returns = RunningNormalizer(1)

    def learn(self, segments: list[Segment]) -> None:
        """Take segments into the statistics; those of a sampler come in order."""
        seen = []
        for segment in segments:
            running = self._sums.get(segment.sampler)
            if running is None or running.shape != segment.reward.shape[1:]:
                running = np.zeros(segment.reward.shape[1:], np.float32)
            ended = ends(segment)
            for step, reward in enumerate(segment.reward):
                running = running * self._gamma + reward
                seen.append(running[segment.active[step]])
                running = np.where(ended[step], np.float32(0), running)
            self._sums[segment.sampler] = running
        self._returns.update(torch.from_numpy(np.concatenate(seen))[:, None])

    def scaled(self, reward: np.ndarray) -> np.ndarray:
        """Rewards of any shape, as float32."""
        return (reward / np.sqrt(float(self._returns.variance) + _EPSILON)).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """The statistics and the running sums."""
        return {'returns': self._returns.state_dict(), 'sums': self._sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._returns.load_state_dict(state['returns'])
        self._sums = dict(state['sums'])
