"""Actor and critic: two perceptrons over what the encoder and a memory make of observations."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from torch import Tensor, nn

from opentinker import registry
from opentinker.config import checked
from opentinker.data.batch import Batch
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor
from opentinker.policies.distributions import (
    Categorical,
    Distribution,
    Gaussian,
    SquashedGaussian,
)
from opentinker.policies.encoder import MASK, Encoder
from opentinker.policies.fast import FastPerceptron, draw_choice, draw_gaussian
from opentinker.policies.networks import Activation, Memory, perceptron
from opentinker.policies.policy import (
    KIND,
    STATE,
    ActionOutput,
    Arrays,
    Policy,
    PolicyMismatchError,
)

FIRST = 'first'
"""Key of inputs in sequences: marks the row at which each begins."""


class ActorCriticSettings(BaseModel):
    """Settings of policy ``actor_critic``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    hidden: list[PositiveInt] = Field([128, 128], min_length=1)
    """Units of each hidden layer, of actor and critic alike."""
    activation: Activation = 'tanh'
    distribution: Literal['gaussian', 'squashed_gaussian'] = 'gaussian'
    """Of actions that are no choices; the environment clips what a gaussian draws out of bounds."""
    std: float = Field(0.5, gt=0)
    """Standard deviation of the actions at first (of those that are no choices); it is learnt."""
    min_std: float = Field(0.05, gt=0)
    """It is not learnt below this."""
    memory: PositiveInt | None = None
    """Units of a recurrent layer before actor and critic; null: none."""
    sequence: PositiveInt = 16
    """Steps through which the memory's gradient goes back."""


class ActorCritic(Policy):
    """Draws actions from a normal distribution whose deviation does not depend on the state, or
    makes choices; an observation ``action_mask`` closes some of them.
    """

    def __init__(
        self, descriptor: EnvDescriptor, group: str, settings: ActorCriticSettings, seed: int
    ) -> None:
        super().__init__(descriptor, group, seed)
        choices = self.info.action.categories
        mask = self.info.observation.get(MASK)
        if mask is not None and mask.size != sum(choices or ()):
            raise PolicyMismatchError(
                f'observation {MASK!r} has {mask.size} values; the choices of the action are '
                f'{sum(choices or ())}'
            )
        self.settings = settings
        outputs = sum(choices) if choices else self.info.action.size
        self._min_log_std = math.log(settings.min_std)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = Encoder(self.info.observation)
            size = self.encoder.outputs
            self.memory: Memory | None = None
            if settings.memory:
                self.memory = Memory(size, settings.memory)
                self.state = {STATE: ArrayInfo(shape=(settings.memory,))}
                size = settings.memory
            hidden, activation = settings.hidden, settings.activation
            self.actor = perceptron(size, hidden, outputs, 0.01, activation)
            self.critic = perceptron(size, hidden, 1, 1.0, activation)
        self.log_std: nn.Parameter | None = None
        if choices is None:
            self.log_std = nn.Parameter(torch.full((outputs,), math.log(settings.std)))
        self._fast_actor = FastPerceptron(self.actor)
        gaussian = settings.distribution == 'gaussian'
        self._draws_fast = gaussian if choices is None else len(choices) == 1

    @torch.inference_mode()
    def get_action(self, observation: Arrays, deterministic: bool = False) -> ActionOutput:
        """Draw actions; the likeliest where ``deterministic``."""
        self.check(observation)
        if self._is_small:
            output = self._fast_output(observation)
            if not deterministic and self._draws_fast:
                return self._fast_draw(output, observation.get(MASK))
            mask = torch.from_numpy(observation[MASK]) if MASK in self.info.observation else None
            chances, state = self._chances(torch.from_numpy(output), mask), {}
        else:
            inputs = self.inputs(observation)
            features = self._features(inputs)
            state = {} if self.memory is None else {STATE: features.cpu().numpy()}
            chances = self._chances(self.actor(features), inputs.get(MASK))
        if deterministic:
            action = chances.mode
            log_prob = chances.log_prob(action)
        else:
            action, log_prob = chances.draw(self.generator)
        return ActionOutput(action.cpu().numpy(), log_prob.cpu().numpy(), state)

    def _fast_output(self, observation: Arrays) -> np.ndarray:
        vector = self.encoder.vector(observation)
        return self._fast_actor(self.encoder.normalizer.fast(vector))

    def _fast_draw(self, output: np.ndarray, mask: np.ndarray | None) -> ActionOutput:
        shape = (*output.shape[:-1], *self.info.action.shape)
        if self.log_std is None:
            action, log_prob = draw_choice(output, mask, self.generator)
        else:
            action, log_prob = draw_gaussian(output, self.log_std.detach().numpy(), self.generator)
        return ActionOutput(action.reshape(shape), log_prob)

    @property
    def _is_small(self) -> bool:
        return self.device.type == 'cpu' and not (self.settings.memory or self.encoder.has_images)

    def inputs(self, observation: Arrays) -> Batch:
        """Observations as tensors: what the other methods take, and an algorithm keeps as rows."""
        self.check(observation)
        inputs = self.encoder.inputs(observation)
        if self.memory is not None:
            lead = inputs['vector'].shape[:-1]
            before = observation.get(STATE)
            if before is None:
                before = np.zeros((*lead, self.memory.units), np.float32)
            inputs = inputs.with_(**{STATE: torch.from_numpy(np.array(before))})
        return inputs.to(self.device)

    def forward(self, inputs: Batch) -> tuple[Distribution, Tensor]:
        """:meth:`distribution` and :meth:`value` at once."""
        features = self._features(inputs)
        value = self.critic(features).squeeze(-1)
        return self._chances(self.actor(features), inputs.get(MASK)), value

    def distribution(self, inputs: Batch) -> Distribution:
        """Of the actions."""
        return self._chances(self.actor(self._features(inputs)), inputs.get(MASK))

    def value(self, inputs: Batch) -> Tensor:
        """``[...]``: what the critic expects."""
        return self.critic(self._features(inputs)).squeeze(-1)

    def learn_statistics(self, inputs: Batch) -> None:
        """Take observations ``[n, ...]`` into the normalisation."""
        self.encoder.normalizer.update(inputs['vector'])

    def actor_parameters(self) -> list[nn.Parameter]:
        """Those on which the actions depend."""
        own = [] if self.log_std is None else [self.log_std]
        return [*self.shared_parameters(), *self.actor.parameters(), *own]

    def shared_parameters(self) -> list[nn.Parameter]:
        """Those on which both actions and values depend."""
        memory = [] if self.memory is None else list(self.memory.parameters())
        return [*self.encoder.parameters(), *memory]

    def _chances(self, output: Tensor, mask: Tensor | None) -> Distribution:
        action = self.info.action
        if self.log_std is None:
            return Categorical(output, action.categories or (), action.shape, mask)
        kind = Gaussian if self.settings.distribution == 'gaussian' else SquashedGaussian
        return kind(output, self.log_std, action.shape)

    def _features(self, inputs: Batch) -> Tensor:
        features = self.encoder(inputs)
        if self.memory is None:
            return features
        if FIRST in inputs:
            return self.memory.unroll(features, inputs[STATE], inputs[FIRST])
        return self.memory.step(features, inputs[STATE])

    @torch.no_grad()
    def constrain(self) -> None:
        """Put parameters back within their bounds; for after an optimizer's step.

        A bound inside the forward pass would cut the gradient of what is below it, for good.
        """
        if self.log_std is not None:
            self.log_std.clamp_(min=self._min_log_std)


@registry.register(KIND, 'actor_critic')
def actor_critic(
    descriptor: EnvDescriptor, group: str, *, seed: int = 0, **settings: Any
) -> ActorCritic:
    """Factory. Raises ConfigError for wrong settings."""
    return ActorCritic(descriptor, group, checked('policy', ActorCriticSettings, settings), seed)
