"""V-trace, Espeholt et al. 2018 (IMPALA), https://arxiv.org/abs/1802.01561, section 4.1."""

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
from opentinker.algorithms.gae import accumulated


class VTraceSettings(AdvantageSettings):
    """Settings of estimator ``v_trace``."""

    lam: float = Field(1.0, ge=0, le=1)
    """Weight of longer returns (remark 2 of the paper)."""
    max_rho: float = Field(1.0, gt=0)
    """Bound of the ratio that weighs a TD error: it decides which policy is evaluated."""
    max_c: float = Field(1.0, gt=0)
    """Bound of the ratio that carries later errors back: it decides how fast."""


@registry.register(ESTIMATOR, 'v_trace')
class VTrace(BaseAdvantageEstimator):
    """Corrects for a policy that has moved on since it acted, as where learner and samplers lag."""

    settings = VTraceSettings
    corrects_lag = True

    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """The actor's weighted advantages, and the targets v_s of the critic."""
        assert steps.log_ratio is not None
        gamma = np.float32(self.chosen.gamma)
        ratio = np.exp(steps.log_ratio)
        rho = np.minimum(ratio, np.float32(self.chosen.max_rho))
        trace = np.float32(self.chosen.lam) * np.minimum(ratio, np.float32(self.chosen.max_c))
        error = rho * (steps.reward + gamma * steps.next_value - steps.value)
        target = steps.value + accumulated(error, gamma * trace * ~steps.ended)
        following = np.concatenate([target[1:], steps.next_value[-1:]])
        following = np.where(steps.ended, steps.next_value, following)
        return rho * (steps.reward + gamma * following - steps.value), target
