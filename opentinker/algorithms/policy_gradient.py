"""The plain policy gradient of advantage actor-critic, Mnih et al. 2016,
https://arxiv.org/abs/1602.01783.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pydantic import ConfigDict, Field
from torch import Tensor

from opentinker import registry
from opentinker.algorithms.algorithm import OPTIMIZER
from opentinker.algorithms.clipped_surrogate import explained_variance, noise, normalized
from opentinker.algorithms.gradient_step import GradientStep
from opentinker.algorithms.learning_rate import LearningRateSettings, set_rate
from opentinker.algorithms.rollout import Rollout
from opentinker.config import TrainingConfig, checked
from opentinker.policies.actor_critic import ActorCritic

_STATISTICS = ('loss', 'policy_loss', 'value_loss', 'entropy', 'skipped_steps')


class PolicyGradientSettings(LearningRateSettings):
    """Settings of optimizer ``policy_gradient``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    learning_rate: float = Field(7e-4, gt=0)
    decay: float = Field(0.99, ge=0, lt=1)
    """Of RMSprop's mean square."""
    value_coefficient: float = Field(0.5, ge=0)
    entropy_coefficient: float = 0.0
    normalize_advantage: bool = False
    max_grad_norm: float = Field(0.5, gt=0)


@registry.register(OPTIMIZER, 'policy_gradient')
class PolicyGradient:
    """One step of RMSprop a rollout."""

    settings = PolicyGradientSettings
    needs = 'advantages'
    tolerates_lag = False
    minibatch_size = None

    def __init__(self, **settings: Any) -> None:
        self._chosen = checked('algorithm', PolicyGradientSettings, settings)

    def attach(self, policy: ActorCritic, training: TrainingConfig) -> None:
        """Train this policy from now on."""
        self._policy = policy
        self._micro = training.micro_batch
        rmsprop = torch.optim.RMSprop(
            policy.parameters(), alpha=self._chosen.decay, eps=1e-5, foreach=True
        )
        self._step = GradientStep(policy, rmsprop, training, self._chosen.max_grad_norm)

    def optimize(
        self,
        rollout: Rollout,
        transitions: int,
        generator: torch.Generator,
        again: Callable[[], Rollout],
    ) -> dict[str, float]:
        """Improve the policy by the gradient at its present parameters."""
        rate = self._chosen.rate(transitions)
        set_rate(self._step.optimizer, rate)
        advantage = rollout.advantage
        if self._chosen.normalize_advantage:
            advantage = normalized(advantage)
        (pieces,) = rollout.minibatches(len(rollout), generator, self._micro)
        values = self._step(pieces, lambda rows: self._losses(rollout, rows, advantage[rows]))
        return {
            **dict(zip(_STATISTICS, values.tolist(), strict=True)),
            'explained_variance': explained_variance(rollout),
            'learning_rate': rate,
            **noise(self._policy),
        }

    def _losses(self, rollout: Rollout, rows: Tensor, advantage: Tensor) -> list[Tensor]:
        """Means over rows: the loss, and those of ``_STATISTICS`` that come of it."""
        chances, value = self._policy(rollout.observation[rows])
        policy_loss = -(chances.log_prob(rollout.action[rows]) * advantage).mean()
        value_loss = (value - rollout.value_target[rows]).square().mean()
        entropy = chances.entropy().mean()
        loss = (
            policy_loss
            + self._chosen.value_coefficient * value_loss
            - self._chosen.entropy_coefficient * entropy
        )
        return [loss, policy_loss, value_loss, entropy]

    def state_dict(self) -> dict[str, Any]:
        """RMSprop's state."""
        return self._step.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._step.load_state_dict(state)
