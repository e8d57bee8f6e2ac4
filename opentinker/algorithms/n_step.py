"""n-step returns, as in Mnih et al. 2016 (A3C), https://arxiv.org/abs/1602.01783."""

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


class NStepSettings(AdvantageSettings):
    """Settings of estimator ``n_step``."""

    n: int = Field(5, ge=1)
    """Rewards that are summed before the critic speaks; fewer where an episode or the data end."""


@registry.register(ESTIMATOR, 'n_step')
class NStep(BaseAdvantageEstimator):
    """Sums ``n`` rewards and bootstraps."""

    settings = NStepSettings

    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """n-step returns are the value targets."""
        gamma = np.float32(self.chosen.gamma)
        one_step = steps.reward + gamma * steps.next_value
        target = one_step
        for _ in range(min(self.chosen.n, len(one_step)) - 1):
            longer = steps.reward[:-1] + gamma * target[1:]
            longer = np.where(steps.ended[:-1], one_step[:-1], longer)
            target = np.concatenate([longer, one_step[-1:]])
        return target - steps.value, target
