"""An algorithm is a sampler, an estimator and an optimizer; a recipe names the three.

Registry kinds: ``algorithm`` holds recipes (:class:`Recipe`), the other three kinds hold factories
``factory(**settings)``. A config may name other parts than the recipe's; a mix that cannot work is
refused with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from opentinker import registry
from opentinker.config import ConfigError
from opentinker.data.segment import Segment
from opentinker.policies.actor_critic import ActorCritic

ALGORITHM, SAMPLER, ESTIMATOR, OPTIMIZER = 'algorithm', 'sampler', 'estimator', 'optimizer'
PARTS = (SAMPLER, ESTIMATOR, OPTIMIZER)


@dataclass
class Rollout:
    """Agent transitions as rows, ready to train on."""

    observation: Tensor
    """``[n, size]``."""
    action: Tensor
    """``[n, action]``."""
    log_prob: Tensor
    """``[n]`` under the policy that acted."""
    advantage: Tensor
    """``[n]``."""
    value_target: Tensor
    """``[n]``."""


class Sampler(Protocol):
    """Decides which segments an update trains on."""

    family: str
    batch_size: int
    """Agent transitions that make an update."""

    def add(self, segment: Segment) -> None: ...

    def ready(self) -> bool: ...

    def take(self) -> list[Segment]: ...


class Estimator(Protocol):
    """Turns segments into advantages and value targets."""

    families: tuple[str, ...]
    gives: str

    def estimate(self, policy: ActorCritic, segments: list[Segment]) -> Rollout: ...


class Optimizer(Protocol):
    """Improves a policy."""

    needs: str

    def attach(self, policy: ActorCritic) -> None: ...

    def optimize(self, rollout: Rollout, progress: float) -> dict[str, float]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Recipe:
    """The parts of an algorithm by name, and its settings that differ from theirs."""

    sampler: str
    estimator: str
    optimizer: str


@dataclass
class Algorithm:
    """Three parts that fit."""

    name: str
    sampler: Sampler
    estimator: Estimator
    optimizer: Optimizer


def build(config: Mapping[str, Any]) -> Algorithm:
    """The algorithm of a config: ``name``, other parts where it names some, and their settings.

    Every setting goes to the part that has it. Raises ConfigError for a setting that none has and
    for parts that do not fit.
    """
    settings = dict(config)
    name = settings.pop('name')
    recipe: Recipe = registry.get(ALGORITHM, name)
    factories = {part: registry.get(part, settings.pop(part, getattr(recipe, part))) for part in PARTS}
    known = {part: factory.settings.model_fields for part, factory in factories.items()}
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
