"""Q network: the value of every choice; it acts by the best one, and explores."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from torch import Tensor, nn

from opentinker import registry
from opentinker.config import checked
from opentinker.data.batch import Batch
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.policies.encoder import MASK, Encoder
from opentinker.policies.networks import Activation, perceptron
from opentinker.policies.noisy import NoisyLinear
from opentinker.policies.policy import KIND, ActionOutput, Arrays, Policy, PolicyMismatchError
from opentinker.policies.q_heads import CategoricalHead, QHead, QuantileHead


class QNetworkSettings(BaseModel):
    """Settings of policy ``q_network``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    hidden: list[PositiveInt] = Field([128, 128], min_length=1)
    """Units of each hidden layer."""
    activation: Activation = 'relu'
    dueling: bool = False
    """A stream for the state and one for what an action adds."""
    distribution: Literal['none', 'categorical', 'quantile'] = 'none'
    """Of returns: none, only their mean; probabilities of fixed returns; or quantiles."""
    atoms: int = Field(51, ge=2)
    """Returns of the categorical distribution."""
    value_range: tuple[float, float] = Field((-100.0, 100.0), strict=False)
    """Least and largest of them."""
    quantiles: PositiveInt = 50
    noisy: bool = False
    """Explore by noise in the weights, and not by epsilon."""
    epsilon_start: float = Field(1.0, ge=0, le=1)
    """Share of random actions at first."""
    epsilon_end: float = Field(0.05, ge=0, le=1)
    epsilon_steps: PositiveInt = 10_000
    """Agent transitions over which it falls."""

    @model_validator(mode='after')
    def _in_order(self) -> QNetworkSettings:
        if self.value_range[0] >= self.value_range[1]:
            raise ValueError(f'value_range: {self.value_range[0]:g} is not below the other end')
        return self


class QNetwork(Policy):
    """For groups whose agents make a single choice; an observation ``action_mask`` closes some."""

    seen: Tensor
    """Agent transitions so far, int64: where epsilon is on its way down. What trains sets it."""

    def __init__(
        self, descriptor: EnvDescriptor, group: str, settings: QNetworkSettings, seed: int
    ) -> None:
        super().__init__(descriptor, group, seed)
        self.settings = settings
        action = self.info.action
        if action.categories is None or len(action.categories) != 1:
            raise PolicyMismatchError(
                f'policy q_network takes a single choice, the action of {group!r} in '
                f'{descriptor.name!r} is of shape {action.shape} with choices {action.categories}'
            )
        (choices,) = action.categories
        mask = self.info.observation.get(MASK)
        if mask is not None and mask.size != choices:
            raise PolicyMismatchError(
                f'observation {MASK!r} has {mask.size} values; there are {choices} choices'
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = Encoder(self.info.observation)
            self.head = self._head(choices)
        self._noisy = [each for each in self.modules() if isinstance(each, NoisyLinear)]
        self.register_buffer('seen', torch.zeros((), dtype=torch.int64))

    def _head(self, choices: int) -> QHead:
        chosen = self.settings
        layers = partial(_layers, chosen, self.encoder.outputs)
        if chosen.distribution == 'categorical':
            return CategoricalHead(
                layers, choices, chosen.dueling, chosen.atoms, chosen.value_range
            )
        if chosen.distribution == 'quantile':
            return QuantileHead(layers, choices, chosen.dueling, chosen.quantiles)
        return QHead(layers, choices, chosen.dueling)

    @property
    def epsilon(self) -> float:
        """The share of random actions now."""
        chosen = self.settings
        if chosen.noisy:
            return 0.0
        done = min(int(self.seen) / chosen.epsilon_steps, 1.0)
        return chosen.epsilon_start + (chosen.epsilon_end - chosen.epsilon_start) * done

    @torch.inference_mode()
    def get_action(self, observation: Arrays, deterministic: bool = False) -> ActionOutput:
        """The best choices, or now and then any open one; never that where ``deterministic``."""
        inputs = self.inputs(observation)
        self.use_noise(not deterministic)
        values = self.values(inputs).cpu()
        epsilon = 0.0 if deterministic else self.epsilon
        mask = inputs.get(MASK)
        action, log_prob = _epsilon_greedy(
            values, None if mask is None else mask.cpu(), epsilon, self.generator
        )
        shape = (*action.shape, *self.info.action.shape)
        return ActionOutput(action.reshape(shape).numpy(), log_prob.numpy())

    def use_noise(self, noisy: bool) -> None:
        """Draw new weights for the forward passes to come, or use what is learnt."""
        for layer in self._noisy:
            layer.noisy = noisy
            if noisy:
                layer.resample(self.generator)

    def inputs(self, observation: Arrays) -> Batch:
        """Observations as tensors: what the other methods take."""
        self.check(observation)
        return self.encoder.inputs(observation).to(self.device)

    def forward(self, inputs: Batch) -> Tensor:
        """``[..., choices, atoms]``: what the head says of returns, see q_heads."""
        return self.head(self.encoder(inputs))

    def values(self, inputs: Batch) -> Tensor:
        """``[..., choices]``: expected returns; -inf for choices that the mask closes."""
        values = self.head.values(self(inputs))
        mask = inputs.get(MASK)
        return values if mask is None else values.masked_fill(mask == 0, -torch.inf)

    def learn_statistics(self, inputs: Batch) -> None:
        """Take observations ``[n, ...]`` into the normalisation."""
        self.encoder.normalizer.update(inputs['vector'])


def _layers(settings: QNetworkSettings, inputs: int, outputs: int) -> nn.Sequential:
    layers = perceptron(inputs, settings.hidden, outputs, 1.0, settings.activation)
    if settings.noisy:
        for number, layer in enumerate(layers):
            if isinstance(layer, nn.Linear):
                layers[number] = NoisyLinear(layer.in_features, layer.out_features)
    return layers


def _epsilon_greedy(
    values: Tensor, mask: Tensor | None, epsilon: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Choices ``[...]`` int64 and their log-probabilities."""
    open_ = torch.ones(values.shape) if mask is None else (mask != 0).float()
    best = values.argmax(-1)
    if not epsilon:
        return best, torch.zeros(best.shape)
    # the quickest of exponential clocks, of which the closed choices have none
    clocks = torch.empty(values.shape).exponential_(generator=generator)
    any_open = (open_ / clocks).argmax(-1)
    explores = torch.rand(best.shape, generator=generator) < epsilon
    action = torch.where(explores, any_open, best)
    # an agent that is absent has no open choice at all
    chance = epsilon / open_.sum(-1).clamp(min=1) + (1 - epsilon) * (action == best)
    return action, chance.log()


@registry.register(KIND, 'q_network')
def q_network(descriptor: EnvDescriptor, group: str, *, seed: int = 0, **settings: Any) -> QNetwork:
    """Factory. Raises ConfigError for wrong settings."""
    return QNetwork(descriptor, group, checked('policy', QNetworkSettings, settings), seed)
