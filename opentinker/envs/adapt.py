"""Environments of other libraries as ours, by what they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opentinker import registry
from opentinker.envs.vector import MultiAgentVectorEnv


@dataclass(frozen=True)
class Adapter:
    """How environments of a ``kind`` become one of ours; register it as an ``adapter``."""

    kind: type
    vectorise: Callable[[list[Any]], MultiAgentVectorEnv]


def adapt(env: Any, num_envs: int = 1) -> MultiAgentVectorEnv:
    """An environment, or ``num_envs`` of them that the callable ``env`` makes, as one of ours.

    Takes environments of gymnasium, PettingZoo (parallel and turn-taking), those that implement
    :class:`~opentinker.envs.interface.EnvInterface`, and whatever a plug-in registers an
    :class:`Adapter` for. Raises TypeError for anything else.
    """
    if isinstance(env, MultiAgentVectorEnv):
        return env
    adapters: list[Adapter] = [registry.get('adapter', n) for n in registry.names('adapter')]
    kinds = tuple(adapter.kind for adapter in adapters)
    if callable(env) and not isinstance(env, kinds):
        envs = [env() for _ in range(num_envs)]
    elif num_envs == 1:
        envs = [env]
    else:
        raise TypeError(f'{num_envs} environments need a callable that makes one, not {env!r}')
    for adapter in adapters:
        if isinstance(envs[0], adapter.kind):
            return adapter.vectorise(envs)
    known = ', '.join(f'{kind.__module__}.{kind.__name__}' for kind in kinds)
    raise TypeError(f'{type(envs[0]).__name__} is none of the environments known here: {known}')
