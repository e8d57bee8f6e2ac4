"""Generalized advantage estimation, Schulman et al. 2016, https://arxiv.org/abs/1506.02438."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from opentinker import registry
from opentinker.algorithms.advantage_estimator import (
    AdvantageSettings,
    BaseAdvantageEstimator,
    Steps,
)
from opentinker.algorithms.algorithm import ESTIMATOR


class GaeSettings(AdvantageSettings):
    """Settings of estimators ``gae`` and ``td_lambda``."""

    gamma: float = Field(0.97, ge=0, le=1)
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
    return accumulated(delta, np.float32(gamma * lam) * ~ended)


def accumulated(values: np.ndarray, carry: np.ndarray) -> np.ndarray:
    """``[T, ...]``: each value plus ``carry`` times what has accumulated after it."""
    sums = np.zeros_like(values)
    running = np.zeros_like(values[0])
    for step in reversed(range(len(values))):
        running = values[step] + carry[step] * running
        sums[step] = running
    return sums


@registry.register(ESTIMATOR, 'gae')
class Gae(BaseAdvantageEstimator):
    """The exponentially weighted mean of the advantages of all horizons."""

    settings = GaeSettings

    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """Value targets are value plus advantage."""
        advantage = gae(
            steps.reward,
            steps.value,
            steps.next_value,
            steps.ended,
            self.chosen.gamma,
            self.chosen.lam,
        )
        return advantage, advantage + steps.value
