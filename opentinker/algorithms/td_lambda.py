"""λ-returns by their own recursion, Sutton and Barto 2018, "Reinforcement Learning", chapter 12."""

from __future__ import annotations

import numpy as np

from opentinker import registry
from opentinker.algorithms.advantage_estimator import BaseAdvantageEstimator, Steps
from opentinker.algorithms.algorithm import ESTIMATOR
from opentinker.algorithms.gae import GaeSettings, accumulated


@registry.register(ESTIMATOR, 'td_lambda')
class TdLambda(BaseAdvantageEstimator):
    """The λ-return is the value target; the advantage of an action is the one-step TD error.

    The critic learns as under ``gae``; the actor sees less noise and more of the critic's bias.
    """

    settings = GaeSettings

    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """TD errors and λ-returns."""
        gamma, lam = np.float32(self.chosen.gamma), np.float32(self.chosen.lam)
        one_step = steps.reward + gamma * steps.next_value
        # the last step of an episode or of the segment has nothing beyond its bootstrap
        last = steps.ended.copy()
        last[-1] = True
        share = np.where(last, np.float32(1), 1 - lam)
        target = accumulated(steps.reward + gamma * share * steps.next_value, gamma * lam * ~last)
        return one_step - steps.value, target
