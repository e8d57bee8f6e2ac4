"""The plain policy gradient of advantage actor-critic, Mnih et al. 2016,
https://arxiv.org/abs/1602.01783.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from opentinker import registry
from opentinker.algorithms.algorithm import OPTIMIZER, Rollout
from opentinker.algorithms.clipped_surrogate import explained_variance, noise, normalized
from opentinker.config import checked
from opentinker.policies.actor_critic import ActorCritic


class PolicyGradientSettings(BaseModel):
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

    def __init__(self, **settings: Any) -> None:
        self._chosen = checked('algorithm', PolicyGradientSettings, settings)

    def attach(self, policy: ActorCritic) -> None:
        """Train this policy from now on."""
        self._policy = policy
        self._rmsprop = torch.optim.RMSprop(
            policy.parameters(), self._chosen.learning_rate, alpha=self._chosen.decay, eps=1e-5
        )

    def optimize(
        self, rollout: Rollout, transitions: int, generator: torch.Generator
    ) -> dict[str, float]:
        """Improve the policy by the gradient at its present parameters."""
        advantage = rollout.advantage
        if self._chosen.normalize_advantage:
            advantage = normalized(advantage)
        log_prob, entropy = self._policy.evaluate(rollout.observation, rollout.action)
        policy_loss = -(log_prob * advantage).mean()
        error = self._policy.value(rollout.observation) - rollout.value_target
        value_loss = error.square().mean()
        loss = (
            policy_loss
            + self._chosen.value_coefficient * value_loss
            - self._chosen.entropy_coefficient * entropy
        )
        self._rmsprop.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self._policy.parameters(), self._chosen.max_grad_norm)
        # one step with a gradient that is not finite would end the policy
        if norm.isfinite():
            self._rmsprop.step()
            self._policy.constrain()
        return {
            'policy_loss': policy_loss.item(),
            'value_loss': value_loss.item(),
            'entropy': entropy.item(),
            'skipped_steps': float(not norm.isfinite()),
            'explained_variance': explained_variance(rollout),
            **noise(self._policy),
        }

    def state_dict(self) -> dict[str, Any]:
        """RMSprop's state."""
        return self._rmsprop.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._rmsprop.load_state_dict(state)
