"""Rewards as terms: pure functions of stored signals, whose weights and parameters may change at
any step.

An environment stores *signals* (a distance, a contact flag). A term maps signals and its own
parameters to one number an agent; the reward is ``sum(weight * term)``. Since signals are stored
with transitions, old data can be re-scored under the rewards of the day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from opentinker import registry

KIND = 'reward_term'


class RewardError(ValueError):
    """A change of rewards that is refused; nothing was changed."""


@dataclass(frozen=True)
class Parameter:
    """A number that a user may tune: default, range (inclusive), unit and description."""

    default: float
    low: float
    high: float
    description: str
    unit: str = ''

    def check(self, key: str, value: Any) -> float:
        """The value as a float. Raises :class:`RewardError` naming key, value and range."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RewardError(f'{key}: expected a number, got {value!r}')
        if not math.isfinite(value) or not self.low <= value <= self.high:
            raise RewardError(f'{key}: {value} is outside [{self.low}, {self.high}]')
        return float(value)


@dataclass(frozen=True)
class RewardTerm:
    """A registered term. ``function(signals, **parameters)`` returns ``[..., agent]``."""

    name: str
    function: Callable[..., np.ndarray]
    needs: tuple[str, ...]
    weight: Parameter
    parameters: Mapping[str, Parameter]
    description: str


def reward_term(
    name: str,
    *,
    needs: tuple[str, ...],
    weight: float,
    weight_range: tuple[float, float] = (-100, 100),
    **parameters: Parameter,
) -> Callable[[Callable[..., np.ndarray]], RewardTerm]:
    """Decorator that makes a function of signals a reward term, described by its docstring."""

    def keep(function: Callable[..., np.ndarray]) -> RewardTerm:
        description = (function.__doc__ or name).strip().splitlines()[0]
        term = RewardTerm(
            name,
            function,
            needs,
            Parameter(weight, *weight_range, f'weight of: {description}'),
            parameters,
            description,
        )
        return registry.register(KIND, name)(term)

    return keep


class TermSettings(BaseModel):
    """Weight, switch and parameters of one term."""

    model_config = ConfigDict(extra='forbid', frozen=True)
    weight: float
    enabled: bool = True
    parameters: dict[str, float] = {}


class RewardSpec(BaseModel):
    """All terms of a job at one revision. Immutable: :meth:`changed` gives the next one."""

    model_config = ConfigDict(extra='forbid', frozen=True)
    revision: int = 0
    terms: dict[str, TermSettings]

    @classmethod
    def of(cls, names: list[str], settings: Mapping[str, Any] | None = None) -> RewardSpec:
        """The named terms with their defaults, changed by flat ``settings``."""
        spec = cls(terms={name: default_settings(name) for name in names})
        return spec.changed(settings or {}).model_copy(update={'revision': 0})

    def changed(self, settings: Mapping[str, Any]) -> RewardSpec:
        """The next revision with all settings applied together.

        Keys are ``term`` (its weight), ``term.enabled``, ``term.parameter``, and ``terms`` (the
        list of term names: new ones come with their defaults). Raises :class:`RewardError` listing
        everything wrong.
        """
        settings = dict(settings)
        terms = dict(self.terms)
        errors = []
        if 'terms' in settings:
            try:
                terms = {
                    name: terms.get(name) or default_settings(name)
                    for name in settings.pop('terms')
                }
            except registry.UnknownNameError as error:
                raise RewardError(str(error)) from None
        for key, value in settings.items():
            try:
                name, _, field = key.partition('.')
                if name not in terms:
                    raise RewardError(f'{key}: no such term in this job; terms: {", ".join(terms)}')
                terms[name] = _with(name, terms[name], key, field, value)
            except RewardError as error:
                errors.append(str(error))
        if errors:
            raise RewardError('; '.join(errors))
        return RewardSpec(revision=self.revision + 1, terms=terms)

    def flat(self) -> dict[str, float | bool]:
        """Every setting under the key that :meth:`changed` takes."""
        flat: dict[str, float | bool] = {}
        for name, term in self.terms.items():
            flat[name] = term.weight
            flat[f'{name}.enabled'] = term.enabled
            flat.update({f'{name}.{key}': value for key, value in term.parameters.items()})
        return flat

    def evaluate(
        self, signals: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Unweighted terms and their weighted sum; every signal and result is ``[..., agent]``."""
        values: dict[str, np.ndarray] = {}
        total: np.ndarray | float = 0.0
        for name, term in self.terms.items():
            if term.enabled:
                values[name] = registry.get(KIND, name).function(signals, **term.parameters)
                total = total + term.weight * values[name]
        shape = next(iter(signals.values())).shape
        scored = np.asarray(total, np.float32)
        return values, scored if scored.shape == shape else np.broadcast_to(scored, shape)

    def check_signals(self, signals: tuple[str, ...]) -> None:
        """Raise :class:`RewardError` where a term needs a signal that is not there."""
        for name in self.terms:
            missing = set(registry.get(KIND, name).needs) - set(signals)
            if missing:
                raise RewardError(
                    f'term {name!r} needs signals {sorted(missing)}; there are {sorted(signals)}'
                )


def default_settings(name: str) -> TermSettings:
    """The registered defaults of a term."""
    term: RewardTerm = registry.get(KIND, name)
    return TermSettings(
        weight=term.weight.default,
        parameters={key: p.default for key, p in term.parameters.items()},
    )


def _with(name: str, term: TermSettings, key: str, field: str, value: Any) -> TermSettings:
    known: RewardTerm = registry.get(KIND, name)
    if not field:
        return term.model_copy(update={'weight': known.weight.check(key, value)})
    if field == 'enabled':
        if not isinstance(value, bool):
            raise RewardError(f'{key}: expected true or false, got {value!r}')
        return term.model_copy(update={'enabled': value})
    if field not in known.parameters:
        raise RewardError(
            f'{key}: term {name!r} has no parameter {field!r}; it has {sorted(known.parameters)}'
        )
    value = known.parameters[field].check(key, value)
    return term.model_copy(update={'parameters': {**term.parameters, field: value}})


OWN_REWARD = 'reward'
"""The signal in which environments that know nothing of terms give their reward."""


@reward_term('environment', needs=(OWN_REWARD,), weight=1.0)
def environment(signals: Mapping[str, np.ndarray]) -> np.ndarray:
    """The reward that the environment itself gives."""
    return signals[OWN_REWARD]
