"""λ-returns by their own recursion, Sutton and Barto 2018, "Reinforcement Learning", chapter 12."""

from __future__ import annotations

from typing import Any

import numpy as np

from opentinker import registry
from opentinker.algorithms.advantage_estimator import BaseAdvantageEstimator, Steps
from opentinker.algorithms.algorithm import ESTIMATOR
from opentinker.algorithms.gae import GaeSettings, accumulated
from opentinker.config import checked


@registry.register(ESTIMATOR, 'td_lambda')
class TdLambda(BaseAdvantageEstimator):
    """The λ-return is the value target; the advantage of an action is the one-step TD error.

    The critic learns as under ``gae``; the actor sees less noise and more of the critic's bias.
    """

    settings = GaeSettings

    def __init__(self, **settings: Any) -> None:
        chosen = checked('algorithm', GaeSettings, settings)
        self._gamma, self._lam = np.float32(chosen.gamma), np.float32(chosen.lam)

    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """TD errors and λ-returns."""
        one_step = steps.reward + self._gamma * steps.next_value
        # the last step of an episode or of the segment has nothing beyond its bootstrap
        last = steps.ended.copy()
        last[-1] = True
        share = np.where(last, np.float32(1), 1 - self._lam)
        target = accumulated(
            steps.reward + self._gamma * share * steps.next_value, self._gamma * self._lam * ~last
        )
        return one_step - steps.value, target
