"""Steps along the natural gradient, bounded by the change of the policy that they cause.

``natural_gradient``: Kakade 2001, "A natural policy gradient", with the step length of
Rajeswaran et al. 2017, https://arxiv.org/abs/1703.02660. ``trust_region``: Schulman et al. 2015,
https://arxiv.org/abs/1502.05477.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from opentinker import registry
from opentinker.algorithms.algorithm import OPTIMIZER
from opentinker.algorithms.clipped_surrogate import explained_variance, noise, normalized
from opentinker.algorithms.gradient_step import GradientStep
from opentinker.algorithms.rollout import Rollout
from opentinker.config import TrainingConfig, checked
from opentinker.policies.actor_critic import ActorCritic

_SMALL = 1e-10


class NaturalGradientSettings(BaseModel):
    """Settings of optimizer ``natural_gradient``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    max_kl: float = Field(0.01, gt=0)
    """Bound of the mean KL divergence between the policy before an update and after it, nats."""
    damping: float = Field(0.1, ge=0)
    """Added to the diagonal of the Fisher matrix."""
    conjugate_steps: int = Field(10, ge=1)
    """Of the conjugate gradient that inverts the Fisher matrix."""
    critic_learning_rate: float = Field(1e-3, gt=0)
    critic_epochs: int = Field(10, ge=1)
    minibatch_size: int = Field(256, ge=1)
    """Of the critic; the actor sees the whole rollout at once."""


class TrustRegionSettings(NaturalGradientSettings):
    """Settings of optimizer ``trust_region``."""

    backtracks: int = Field(10, ge=1)
    """Times that a step is shortened before the update is given up."""
    shrink: float = Field(0.8, gt=0, lt=1)
    """Factor of each shortening."""


@registry.register(OPTIMIZER, 'natural_gradient')
class NaturalGradient:
    """One step of the actor by the natural gradient, some epochs of the critic by Adam."""

    settings: type[NaturalGradientSettings] = NaturalGradientSettings
    needs = 'advantages'
    tolerates_lag = True
    minibatch_size = None

    def __init__(self, **settings: Any) -> None:
        self._chosen: Any = checked('algorithm', self.settings, settings)

    def attach(self, policy: ActorCritic, training: TrainingConfig) -> None:
        """Train this policy from now on; the actor's step is computed at once, in float32."""
        self._policy = policy
        self._micro = training.micro_batch
        # what actor and critic share belongs to the actor: its divergence is bounded
        adam = torch.optim.Adam(policy.critic.parameters(), self._chosen.critic_learning_rate)
        self._critic_step = GradientStep(policy, adam, training)

    def optimize(
        self,
        rollout: Rollout,
        transitions: int,
        generator: torch.Generator,
        again: Callable[[], Rollout],
    ) -> dict[str, float]:
        """Improve actor and critic."""
        metrics = self._improve_actor(rollout)
        value_loss = self._fit_critic(rollout, generator)
        return {
            **metrics,
            'value_loss': value_loss,
            'explained_variance': explained_variance(rollout),
            **noise(self._policy),
        }

    def _improve_actor(self, rollout: Rollout) -> dict[str, float]:
        parameters = self._policy.actor_parameters()
        with torch.no_grad():
            before = self._policy.distribution(rollout.observation)
            if self._policy.log_std is not None:
                # the parameter itself is about to move
                before.log_std = before.log_std.clone()  # type: ignore[attr-defined]
        advantage = normalized(rollout.advantage)

        def gain() -> Tensor:
            log_prob = self._policy.distribution(rollout.observation).log_prob(rollout.action)
            return ((log_prob - rollout.log_prob).exp() * advantage).mean()

        def divergence() -> Tensor:
            return before.kl(self._policy.distribution(rollout.observation)).mean()

        start = gain()
        gradient = flat_gradient(start, parameters)
        fisher = fisher_product(divergence, parameters, self._chosen.damping)
        direction = conjugate_gradient(fisher, gradient, self._chosen.conjugate_steps)
        curvature = float(direction @ fisher(direction))
        if not math.isfinite(curvature) or curvature <= _SMALL:
            return {'approx_kl': 0.0, 'gain': 0.0, 'step_length': 0.0}
        step = direction * math.sqrt(2 * self._chosen.max_kl / curvature)
        origin = parameters_to_vector(parameters).detach()
        length = self._step_length(origin, step, gain, divergence, start.item())
        with torch.no_grad():
            reached = {'approx_kl': float(divergence()), 'gain': float(gain() - start)}
        return {**reached, 'step_length': length}

    def _move(self, origin: Tensor, step: Tensor) -> None:
        vector_to_parameters(origin + step, self._policy.actor_parameters())
        self._policy.constrain()

    def _step_length(
        self,
        origin: Tensor,
        step: Tensor,
        gain: Callable[[], Tensor],
        divergence: Callable[[], Tensor],
        start: float,
    ) -> float:
        """Move the actor; the share of ``step`` that was gone."""
        self._move(origin, step)
        return 1.0

    def _fit_critic(self, rollout: Rollout, generator: torch.Generator) -> float:
        def losses(rows: Tensor) -> list[Tensor]:
            error = self._policy.value(rollout.observation[rows]) - rollout.value_target[rows]
            return [error.square().mean()]

        size = self._chosen.minibatch_size
        steps = [
            self._critic_step(pieces, losses)[0]
            for _ in range(self._chosen.critic_epochs)
            for pieces in rollout.minibatches(size, generator, self._micro)
        ]
        return float(torch.stack(steps).mean())

    def state_dict(self) -> dict[str, Any]:
        """The critic's Adam; the actor's steps have no memory."""
        return self._critic_step.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._critic_step.load_state_dict(state)


@registry.register(OPTIMIZER, 'trust_region')
class TrustRegion(NaturalGradient):
    """The natural gradient's step, shortened until it gains and stays within the bound."""

    settings = TrustRegionSettings

    @torch.no_grad()
    def _step_length(
        self,
        origin: Tensor,
        step: Tensor,
        gain: Callable[[], Tensor],
        divergence: Callable[[], Tensor],
        start: float,
    ) -> float:
        length = 1.0
        for _ in range(self._chosen.backtracks):
            self._move(origin, length * step)
            if gain() > start and divergence() <= self._chosen.max_kl:
                return length
            length *= self._chosen.shrink
        self._move(origin, torch.zeros_like(step))
        return 0.0


def flat_gradient(
    value: Tensor,
    parameters: list[nn.Parameter],
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> Tensor:
    """The gradient of a scalar as one vector."""
    parts = torch.autograd.grad(
        value, parameters, create_graph=create_graph, retain_graph=retain_graph
    )
    return torch.cat([part.reshape(-1) for part in parts])


def fisher_product(
    divergence: Callable[[], Tensor], parameters: list[nn.Parameter], damping: float
) -> Callable[[Tensor], Tensor]:
    """The product with the Fisher matrix, which is the Hessian of the KL divergence at 0."""
    slope = flat_gradient(divergence(), parameters, create_graph=True)

    def product(vector: Tensor) -> Tensor:
        return flat_gradient(slope @ vector, parameters, retain_graph=True) + damping * vector

    return product


def conjugate_gradient(
    product: Callable[[Tensor], Tensor], target: Tensor, steps: int, tolerance: float = 1e-10
) -> Tensor:
    """Solve ``product(x) = target`` for a symmetric, positive definite ``product``.

    Hestenes and Stiefel 1952, "Methods of conjugate gradients for solving linear systems".
    """
    solution = torch.zeros_like(target)
    residual = target.clone()
    direction = residual.clone()
    square = residual @ residual
    for _ in range(steps):
        if square <= tolerance:
            break
        image = product(direction)
        length = square / (direction @ image)
        solution += length * direction
        residual -= length * image
        following = residual @ residual
        direction = residual + following / square * direction
        square = following
    return solution
