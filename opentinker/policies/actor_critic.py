"""Actor and critic as two multi-layer perceptrons over all observation keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from torch import Tensor, nn

from opentinker import registry
from opentinker.config import checked
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor
from opentinker.policies.distributions import Categorical, Distribution, Gaussian
from opentinker.policies.normalizer import RunningNormalizer
from opentinker.policies.policy import KIND, ActionOutput, Arrays, Policy, PolicyMismatchError

MASK = 'action_mask'


class ActorCriticSettings(BaseModel):
    """Settings of policy ``actor_critic``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    hidden: list[PositiveInt] = Field([128, 128], min_length=1)
    """Units of each hidden layer, of actor and critic alike."""
    std: float = Field(0.5, gt=0)
    """Standard deviation of the actions at first (of those that are no choices); it is learnt."""
    min_std: float = Field(0.05, gt=0)
    """It is not learnt below this."""


class ActorCritic(Policy):
    """Draws actions from a normal distribution whose deviation does not depend on the state, or
    makes choices; an observation ``action_mask`` closes some of them.
    """

    def __init__(
        self, descriptor: EnvDescriptor, group: str, settings: ActorCriticSettings, seed: int
    ) -> None:
        super().__init__(descriptor, group)
        choices = self.info.action.categories
        mask = self.info.observation.get(MASK)
        if mask is not None and mask.size != sum(choices or ()):
            raise PolicyMismatchError(
                f'observation {MASK!r} has {mask.size} values; the choices of the action are '
                f'{sum(choices or ())}'
            )
        self._keys = sorted(self.info.observation, key=lambda key: key == MASK)
        widths = {key: _width(info) for key, info in self.info.observation.items()}
        self._size = sum(width for key, width in widths.items() if key != MASK)
        outputs = sum(choices) if choices else self.info.action.size
        self._min_log_std = math.log(settings.min_std)
        self._generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = perceptron(self._size, settings.hidden, outputs, gain=0.01)
            self.critic = perceptron(self._size, settings.hidden, 1, gain=1.0)
        self.log_std: nn.Parameter | None = None
        if choices is None:
            self.log_std = nn.Parameter(torch.full((outputs,), math.log(settings.std)))
        self.normalizer = RunningNormalizer(self._size)

    @torch.inference_mode()
    def get_action(self, observation: Arrays, deterministic: bool = False) -> ActionOutput:
        """Draw actions; the likeliest where ``deterministic``."""
        chances = self.distribution(self.flat(observation))
        action = chances.mode if deterministic else chances.sample(self._generator)
        log_prob = chances.log_prob(action).numpy()
        return ActionOutput(self._shaped(action).numpy(), log_prob)

    def _shaped(self, action: Tensor) -> Tensor:
        if self.info.action.discrete:
            return action
        return action.reshape(*action.shape[:-1], *self.info.action.shape)

    def flat(self, observation: Arrays) -> Tensor:
        """``[..., size]`` float32: all keys in descriptor order, choices as one-hot vectors; the
        mask comes last.
        """
        self.check(observation)
        parts = []
        for key in self._keys:
            info, values = self.info.observation[key], observation[key]
            lead = values.shape[: values.ndim - len(info.shape)]
            if key == MASK:
                parts.append(values.reshape(*lead, info.size))
            else:
                parts.append(_one_hot(values, info).reshape(*lead, _width(info)))
        return torch.from_numpy(np.concatenate(parts, axis=-1, dtype=np.float32))

    def distribution(self, flat: Tensor) -> Distribution:
        """Of the actions, given observations ``[..., size]``."""
        output = self.actor(self._features(flat))
        if self.log_std is not None:
            return Gaussian(output, self.log_std)
        mask = flat[..., self._size :] if MASK in self.info.observation else None
        choices = self.info.action.categories or ()
        return Categorical(output, choices, self.info.action.shape, mask)

    def evaluate(self, flat: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability ``[...]`` of actions under this policy, and its mean entropy (scalar)."""
        chances = self.distribution(flat)
        if self.log_std is not None:
            action = action.reshape(*flat.shape[:-1], -1)
        return chances.log_prob(action), chances.entropy().mean()

    def value(self, flat: Tensor) -> Tensor:
        """``[...]``: what the critic expects from observations ``[..., size]``."""
        return self.critic(self._features(flat)).squeeze(-1)

    def learn_statistics(self, flat: Tensor) -> None:
        """Take observations ``[n, size]`` into the normalisation."""
        self.normalizer.update(flat[..., : self._size])

    def actor_parameters(self) -> list[nn.Parameter]:
        """Those on which the actions depend."""
        own = [] if self.log_std is None else [self.log_std]
        return [*self.actor.parameters(), *own]

    def _features(self, flat: Tensor) -> Tensor:
        return self.normalizer(flat[..., : self._size])

    @torch.no_grad()
    def constrain(self) -> None:
        """Put parameters back within their bounds; for after an optimizer's step.

        A bound inside the forward pass would cut the gradient of what is below it, for good.
        """
        if self.log_std is not None:
            self.log_std.clamp_(min=self._min_log_std)


def _width(info: ArrayInfo) -> int:
    return sum(info.categories) if info.categories else info.size


def _one_hot(values: np.ndarray, info: ArrayInfo) -> np.ndarray:
    if info.categories is None:
        return values
    columns = values.reshape(-1, info.size).T
    parts = [
        np.eye(number, dtype=np.float32)[column]
        for number, column in zip(info.categories, columns, strict=True)
    ]
    return np.concatenate(parts, axis=-1)


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
