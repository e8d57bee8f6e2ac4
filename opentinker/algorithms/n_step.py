"""n-step returns, as in Mnih et al. 2016 (A3C), https://arxiv.org/abs/1602.01783."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from opentinker import registry
from opentinker.algorithms.advantage_estimator import BaseAdvantageEstimator, Steps
from opentinker.algorithms.algorithm import ESTIMATOR
from opentinker.config import checked


class NStepSettings(BaseModel):
    """Settings of estimator ``n_step``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    gamma: float = Field(0.99, ge=0, le=1)
    """Discount of a step."""
    n: int = Field(5, ge=1)
    """Rewards that are summed before the critic speaks; fewer where an episode or the data end."""


@registry.register(ESTIMATOR, 'n_step')
class NStep(BaseAdvantageEstimator):
    """Sums ``n`` rewards and bootstraps."""

    settings = NStepSettings

    def __init__(self, **settings: Any) -> None:
        chosen = checked('algorithm', NStepSettings, settings)
        self._gamma, self._n = np.float32(chosen.gamma), chosen.n

    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """n-step returns are the value targets."""
        one_step = steps.reward + self._gamma * steps.next_value
        target = one_step
        for _ in range(min(self._n, len(one_step)) - 1):
            longer = steps.reward[:-1] + self._gamma * target[1:]
            longer = np.where(steps.ended[:-1], one_step[:-1], longer)
            target = np.concatenate([longer, one_step[-1:]])
        return target - steps.value, target
