"""An algorithm is a sampler, an estimator and an optimizer; a recipe names the three.

Registry kinds: ``algorithm`` holds recipes (:class:`Recipe`), the other three kinds hold factories
``factory(**settings)``. A config may name other parts than the recipe's; a mix that cannot work is
refused with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from opentinker import registry
from opentinker.algorithms.rollout import Rollout
from opentinker.config import ConfigError, TrainingConfig
from opentinker.data.segment import Segment
from opentinker.policies.actor_critic import ActorCritic

ALGORITHM, SAMPLER, ESTIMATOR, OPTIMIZER = 'algorithm', 'sampler', 'estimator', 'optimizer'
PARTS = (SAMPLER, ESTIMATOR, OPTIMIZER)


class Sampler(Protocol):
    """Decides which segments an update trains on."""

    family: str
    batch_size: int
    """Agent transitions that make an update."""

    def add(self, segment: Segment) -> None: ...

    def ready(self) -> bool: ...

    def take(self) -> list[Segment]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Estimator(Protocol):
    """Turns segments into advantages and value targets."""

    families: tuple[str, ...]
    gives: str
    corrects_lag: bool
    """It does so itself."""

    def learn_statistics(self, segments: list[Segment]) -> None: ...

    def estimate(self, policy: ActorCritic, segments: list[Segment]) -> Rollout: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Optimizer(Protocol):
    """Improves a policy."""

    needs: str
    tolerates_lag: bool
    """It weighs steps by how much likelier they have become since a policy chose them."""
    minibatch_size: int | None
    """Rows of a gradient step; None: all of a rollout."""

    def attach(self, policy: ActorCritic, training: TrainingConfig) -> None: ...

    def optimize(
        self,
        rollout: Rollout,
        transitions: int,
        generator: torch.Generator,
        again: Callable[[], Rollout],
    ) -> dict[str, float]:
        """Improve the policy. ``transitions`` before this rollout place a learning rate; ``again``
        gives the same rows by the policy as it has become.
        """
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Recipe:
    """The parts of an algorithm by name, and its settings that differ from theirs."""

    sampler: str
    estimator: str
    optimizer: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Algorithm:
    """Three parts that fit, and what they need to train one policy."""

    name: str
    sampler: Sampler
    estimator: Estimator
    optimizer: Optimizer
    transitions: int = 0
    """Agent transitions trained on."""

    def train(self, policy: ActorCritic, seed: int, training: TrainingConfig | None = None) -> None:
        """Be what :meth:`Policy.update` delegates to. Raises ConfigError for an unfit policy."""
        missing = [need for need in ('distribution', 'value') if not hasattr(policy, need)]
        if missing:
            raise ConfigError(
                f'algorithm.name: {self.name} trains policies with an actor and a critic; '
                f'{type(policy).__name__} has no {missing[0]}()'
            )
        self._policy = policy
        self._generator = torch.Generator().manual_seed(seed)
        self.optimizer.attach(policy, training or TrainingConfig())
        policy.trainer = self

    def update(self, batch: list[Segment]) -> dict[str, float]:
        """Improve the policy by segments; metrics."""
        self.estimator.learn_statistics(batch)
        rollout = self.estimator.estimate(self._policy, batch)
        metrics = self.optimizer.optimize(
            rollout,
            self.transitions,
            self._generator,
            lambda: self.estimator.estimate(self._policy, batch),
        )
        # after the update: the ratios of this rollout belong to the old statistics
        self._policy.learn_statistics(rollout.observation)
        self.transitions += len(rollout)
        return metrics

    @property
    def tolerates_lag(self) -> bool:
        """Whether it may train on what a somewhat older policy did."""
        return self.estimator.corrects_lag or self.optimizer.tolerates_lag

    def takes(self, key: str) -> bool:
        """Whether one of the parts has such a setting."""
        parts = (self.sampler, self.estimator, self.optimizer)
        return any(key in type(part).settings.model_fields for part in parts)  # type: ignore[union-attr]

    def state_dict(self) -> dict[str, Any]:
        """What goes on changing: counts, random state, data, the optimizer's state."""
        return {
            'name': self.name,
            'transitions': self.transitions,
            'generator': self._generator.get_state(),
            'sampler': self.sampler.state_dict(),
            'estimator': self.estimator.state_dict(),
            'optimizer': self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self.transitions = state['transitions']
        self._generator.set_state(state['generator'])
        self.sampler.load_state_dict(state['sampler'])
        self.estimator.load_state_dict(state['estimator'])
        self.optimizer.load_state_dict(state['optimizer'])


def build(config: Mapping[str, Any]) -> Algorithm:
    """The algorithm of a config: ``name``, other parts where it names some, and their settings.

    Every setting goes to the part that has it. Raises ConfigError for a setting that none has and
    for parts that do not fit.
    """
    settings = dict(config)
    name = settings.pop('name')
    recipe: Recipe = registry.get(ALGORITHM, name)
    chosen = {part: settings.pop(part, getattr(recipe, part)) for part in PARTS}
    factories = {part: registry.get(part, chosen[part]) for part in PARTS}
    known = {part: factory.settings.model_fields for part, factory in factories.items()}
    # the recipe's own settings count for the parts that are still its own
    own = {key for part in PARTS if chosen[part] == getattr(recipe, part) for key in known[part]}
    settings = {key: value for key, value in recipe.settings.items() if key in own} | settings
    strangers = [key for key in settings if not any(key in fields for fields in known.values())]
    if strangers:
        every = sorted({key for fields in known.values() for key in fields})
        raise ConfigError(
            f'algorithm.{strangers[0]}: unknown key; {name} takes {", ".join([*PARTS, *every])}'
        )
    parts = {
        part: factory(**{key: value for key, value in settings.items() if key in known[part]})
        for part, factory in factories.items()
    }
    _check_mix(**parts)
    return Algorithm(name, **parts)


def _check_mix(sampler: Sampler, estimator: Estimator, optimizer: Optimizer) -> None:
    if sampler.family not in estimator.families:
        raise ConfigError(
            f'algorithm.estimator: works on {", ".join(estimator.families)} data, '
            f'the sampler gives {sampler.family} data'
        )
    if optimizer.needs != estimator.gives:
        raise ConfigError(
            f'algorithm.optimizer: needs {optimizer.needs}, the estimator gives {estimator.gives}'
        )
