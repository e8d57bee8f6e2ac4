"""Gaussian actor and critic as two multi-layer perceptrons over all observation keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from torch import Tensor, nn

from opentinker import registry
from opentinker.config import checked
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.policies.normalizer import RunningNormalizer
from opentinker.policies.policy import KIND, ActionOutput, Arrays, Policy

LOG_TWO_PI = math.log(2 * math.pi)


class ActorCriticSettings(BaseModel):
    """Settings of policy ``actor_critic``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    hidden: list[PositiveInt] = Field([128, 128], min_length=1)
    """Units of each hidden layer, of actor and critic alike."""
    std: float = Field(0.5, gt=0)
    """Standard deviation of the actions at first; it is learnt."""
    min_std: float = Field(0.05, gt=0)
    """It is not learnt below this."""


class ActorCritic(Policy):
    """Draws actions from a normal distribution whose deviation does not depend on the state."""

    def __init__(
        self, descriptor: EnvDescriptor, group: str, settings: ActorCriticSettings, seed: int
    ) -> None:
        super().__init__(descriptor, group)
        size, actions = self.info.observation_size, self.info.action.size
        self._min_log_std = math.log(settings.min_std)
        self._generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = perceptron(size, settings.hidden, actions, gain=0.01)
            self.critic = perceptron(size, settings.hidden, 1, gain=1.0)
        self.log_std = nn.Parameter(torch.full((actions,), math.log(settings.std)))
        self.normalizer = RunningNormalizer(size)

    @torch.inference_mode()
    def get_action(self, observation: Arrays, deterministic: bool = False) -> ActionOutput:
        """Draw actions; the mean where ``deterministic``."""
        mean = self.actor(self.normalizer(self.flat(observation)))
        action = mean
        if not deterministic:
            noise = torch.randn(mean.shape, generator=self._generator)
            action = mean + self.log_std.exp() * noise
        return ActionOutput(action.numpy(), log_prob(mean, self.log_std, action).numpy())

    def flat(self, observation: Arrays) -> Tensor:
        """``[..., size]``: all keys in descriptor order, as float32."""
        self.check(observation)
        parts = []
        for key, info in self.info.observation.items():
            values = observation[key]
            lead = values.shape[: values.ndim - len(info.shape)]
            parts.append(values.reshape(*lead, info.size))
        return torch.from_numpy(np.concatenate(parts, axis=-1, dtype=np.float32))

    def evaluate(self, flat: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability ``[n]`` of actions under this policy, and its entropy (scalar)."""
        entropy = (self.log_std + 0.5 * (1 + LOG_TWO_PI)).sum()
        return log_prob(self.actor(self.normalizer(flat)), self.log_std, action), entropy

    def value(self, flat: Tensor) -> Tensor:
        """``[...]``: what the critic expects from observations ``[..., size]``."""
        return self.critic(self.normalizer(flat)).squeeze(-1)

    @torch.no_grad()
    def constrain(self) -> None:
        """Put parameters back within their bounds; for after an optimizer's step.

        A bound inside the forward pass would cut the gradient of what is below it, for good.
        """
        self.log_std.clamp_(min=self._min_log_std)


def log_prob(mean: Tensor, log_std: Tensor, action: Tensor) -> Tensor:
    """Log-density of independent normal distributions, summed over the last axis."""
    z = (action - mean) * torch.exp(-log_std)
    return (-0.5 * z * z - log_std - 0.5 * LOG_TWO_PI).sum(-1)


def perceptron(size: int, hidden: list[int], outputs: int, gain: float) -> nn.Sequential:
    """Tanh layers with orthogonal weights; ``gain`` scales those of the last one."""
    sizes = [size, *hidden]
    layers: list[nn.Module] = []
    for before, after in zip(sizes, hidden, strict=False):
        layers += [_linear(before, after, math.sqrt(2)), nn.Tanh()]
    return nn.Sequential(*layers, _linear(sizes[-1], outputs, gain))


def _linear(before: int, after: int, gain: float) -> nn.Linear:
    layer = nn.Linear(before, after)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


@registry.register(KIND, 'actor_critic')
def actor_critic(
    descriptor: EnvDescriptor, group: str, *, seed: int = 0, **settings: Any
) -> ActorCritic:
    """Factory. Raises ConfigError for wrong settings."""
    return ActorCritic(descriptor, group, checked('policy', ActorCriticSettings, settings), seed)
