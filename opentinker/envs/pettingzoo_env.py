"""Environments of PettingZoo, parallel and turn-taking, as environments of named agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pettingzoo import (  # type: ignore[import-untyped]
    AECEnv,
    ParallelEnv,
    aec_registry,
    make,
    parallel_registry,
)
from pettingzoo.env_registry.exceptions import (  # type: ignore[import-untyped]
    PettingZooRegistryError,
)
from pettingzoo.utils.conversions import aec_to_parallel  # type: ignore[import-untyped]

from opentinker import registry
from opentinker.config import ConfigError
from opentinker.envs.adapt import Adapter
from opentinker.envs.interface import AgentStep, EnvInterface
from opentinker.envs.interface_env import InterfaceVectorEnv
from opentinker.envs.spaces import SpaceError

_MASK = 'action_mask'


class _PettingZoo(EnvInterface):
    def __init__(self, env: ParallelEnv | AECEnv) -> None:
        self._env = env
        agents = env.possible_agents
        self.observation_spaces = {agent: env.observation_space(agent) for agent in agents}
        self.action_spaces = {agent: env.action_space(agent) for agent in agents}
        self.name = env.metadata.get('name', '')
        rate = env.metadata.get('render_fps')
        self.control_period = 1 / rate if rate else 1.0

    def render(self) -> np.ndarray:
        frame = self._env.render()
        if not isinstance(frame, np.ndarray):
            raise ConfigError(f'env.id: {self.name} has no pictures to film')
        return frame

    def close(self) -> None:
        self._env.close()


class _Parallel(_PettingZoo):
    """All agents act at once."""

    def reset(self, seed: int | None = None) -> Mapping[str, Any]:
        return self._env.reset(seed=seed)[0]

    def step(self, actions: Mapping[str, Any]) -> AgentStep:
        observation, reward, terminated, truncated, infos = self._env.step(dict(actions))
        return AgentStep(observation, reward, terminated, truncated, _success(infos))


class _TurnTaking(_PettingZoo):
    """One agent acts in a step; those that wait take part, for what they are rewarded meanwhile.

    The action mask, where there is one, leaves those that wait choice 0 alone, so that no policy
    learns from choices that went nowhere.
    """

    def reset(self, seed: int | None = None) -> Mapping[str, Any]:
        self._env.reset(seed=seed)
        return self._masked({agent: self._env.observe(agent) for agent in self._env.agents})

    def step(self, actions: Mapping[str, Any]) -> AgentStep:
        env = self._env
        env.step(actions[env.agent_selection])
        step = AgentStep(
            {agent: env.observe(agent) for agent in env.agents},
            dict(env.rewards),
            dict(env.terminations),
            dict(env.truncations),
            _success(env.infos),
        )
        while env.agents and self._is_over(env.agent_selection):
            env.step(None)
        step.observation = self._masked(step.observation)
        return step

    def _is_over(self, agent: str) -> bool:
        return self._env.terminations[agent] or self._env.truncations[agent]

    def _masked(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        turn = self._env.agent_selection if self._env.agents else None
        return {
            agent: value if agent == turn else _only_choice_0(value)
            for agent, value in observation.items()
        }


def _only_choice_0(observation: Any) -> Any:
    if not isinstance(observation, Mapping) or _MASK not in observation:
        return observation
    mask = np.zeros_like(observation[_MASK])
    mask[0] = 1
    return {**observation, _MASK: mask}


def _success(infos: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Success of the team: that of all agents, where all tell it."""
    for key in ('success', 'is_success'):
        if infos and all(key in info for info in infos.values()):
            return {'success': all(info[key] for info in infos.values())}
    return {}


def _parallel(envs: list[ParallelEnv], name: str = '') -> InterfaceVectorEnv:
    return InterfaceVectorEnv([_Parallel(env) for env in envs], name)


def _turn_taking(envs: list[AECEnv], name: str = '') -> InterfaceVectorEnv:
    if all(env.metadata.get('is_parallelizable') for env in envs):
        return _parallel([aec_to_parallel(env) for env in envs], name)
    return InterfaceVectorEnv([_TurnTaking(env) for env in envs], name)


registry.register('adapter', 'pettingzoo')(Adapter(ParallelEnv, _parallel))
registry.register('adapter', 'pettingzoo_aec')(Adapter(AECEnv, _turn_taking))


@registry.register('env', 'pettingzoo')
def make_env(
    num_envs: int,
    seed: int,
    id: str,
    settings: dict[str, Any] | None = None,
    render: bool = False,
) -> InterfaceVectorEnv:
    """Environments that PettingZoo knows by an id. Raises ConfigError where it does not.

    ``settings`` are what ``pettingzoo.make`` passes on; seeds come with ``reset``.
    """
    settings = dict(settings or {})
    if render:
        settings['render_mode'] = 'rgb_array'
    if id not in aec_registry:
        raise ConfigError(f'env.id: PettingZoo knows no {id!r}; known: {", ".join(aec_registry)}')
    kind, vectorise = ('parallel', _parallel) if id in parallel_registry else ('aec', _turn_taking)
    try:
        return vectorise([make(kind, id, **settings) for _ in range(num_envs)], id)
    except (PettingZooRegistryError, SpaceError, TypeError, ImportError) as error:
        raise ConfigError(f'env.id: {id}: {error}') from None
