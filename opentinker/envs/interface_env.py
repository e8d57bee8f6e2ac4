"""Environments of named agents, several at a time in this process, as groups of equal agents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from opentinker import registry
from opentinker.envs.action_scaling import ActionScaling
from opentinker.envs.adapt import Adapter
from opentinker.envs.descriptor import EnvDescriptor, GroupInfo
from opentinker.envs.episodes import EpisodeStatistics, env_seeds
from opentinker.envs.interface import AgentStep, EnvInterface
from opentinker.envs.rewards import OWN_REWARD, RewardSpec
from opentinker.envs.spaces import SpaceError, flatten, to_infos
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step

_NUMBER = re.compile(r'[_-]?\d+$')
Arrays = dict[str, np.ndarray]


class _Group:
    """Equal agents."""

    def __init__(self, name: str, agent: str, observation: Space, action: Space) -> None:
        self.name = name
        self.agents = [agent]
        self.space, self.action_space = observation, action
        try:
            self.action = ActionScaling(action)
            self.observation = to_infos(observation)
        except SpaceError as error:
            raise SpaceError(f'agent {agent!r}: {error}') from None

    def info(self) -> GroupInfo:
        return GroupInfo(
            agents=tuple(self.agents),
            observation=self.observation,
            action=self.action.info,
            signals=(OWN_REWARD,),
        )

    def allocate(self, rows: int) -> Arrays:
        lead = (rows, len(self.agents))
        return {k: np.zeros((*lead, *i.shape), i.dtype) for k, i in self.observation.items()}

    def write(self, arrays: Arrays, row: int, column: int, value: Any) -> None:
        """Raises ValueError that names agent, key and both shapes where a value does not fit."""
        agent = self.agents[column]
        try:
            leaves = flatten(self.space, value)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            problem = f'{type(error).__name__}: {error}'
            raise ValueError(
                f'agent {agent!r}: the observation is no value of {self.space} ({problem})'
            ) from None
        for key, leaf in leaves.items():
            expected = self.observation[key].shape
            if leaf.shape != expected:
                raise ValueError(
                    f'agent {agent!r}, observation {key!r}: shape {leaf.shape}, '
                    f'its space has {expected}'
                )
            arrays[key][row, column] = leaf

    def native(self, values: np.ndarray) -> Any:
        """One agent's action as its space has it."""
        return int(values) if isinstance(self.action_space, spaces.Discrete) else values


class InterfaceVectorEnv(MultiAgentVectorEnv):
    """Equal environments stepped one after the other; those that end begin anew at once.

    An agent that leaves before the others is not active any more, and its last step is terminal to
    it. An episode is truncated where one of those that left last was. Raises :class:`SpaceError`
    for spaces that no arrays describe.
    """

    def __init__(self, envs: Sequence[EnvInterface], name: str = '') -> None:
        self._envs = list(envs)
        self.num_envs = len(self._envs)
        first = self._envs[0]
        self._groups = _group(first)
        self._place = {
            agent: (group, column)
            for group in self._groups.values()
            for column, agent in enumerate(group.agents)
        }
        self.descriptor = EnvDescriptor(
            name=name or first.name or type(first).__name__,
            groups={name: group.info() for name, group in self._groups.items()},
            control_period=first.control_period,
            step_limit=first.step_limit,
        )
        self.rewards = RewardSpec.of(['environment'])
        self._present: list[list[str]] = [[] for _ in self._envs]
        self._statistics = EpisodeStatistics(self.num_envs)

    def reset(self, seed: int | None = None) -> Observations:
        """Start a new episode everywhere."""
        observation = self._allocate(self.num_envs)
        seeds = env_seeds(seed, self.num_envs)
        for row, own in enumerate(seeds):
            self._begin(observation, row, own)
        self._statistics.reset()
        return observation

    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """Apply actions ``[env, agent, *action]``; those of absent agents go nowhere."""
        natives = {name: g.action.native(actions[name]) for name, g in self._groups.items()}
        active = self._active()
        observation = self._allocate(self.num_envs)
        reward = {
            name: np.zeros((self.num_envs, len(group.agents)), np.float32)
            for name, group in self._groups.items()
        }
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        last: list[AgentStep] = []
        for row, env in enumerate(self._envs):
            given = env.step(
                {agent: self._action(natives, row, agent) for agent in self._present[row]}
            )
            for agent, value in given.reward.items():
                group, column = self._find(agent)
                reward[group.name][row, column] = value
            self._present[row] = [agent for agent in given.observation if not _left(given, agent)]
            if self._present[row]:
                self._write(observation, row, given.observation)
                continue
            truncated[row] = any(given.truncated.values())
            terminated[row] = not truncated[row]
            last.append(given)
            if len(last) == 1:
                final = self._allocate(self.num_envs)
            # before the reset: some environments go on writing into what they gave
            self._write(final, len(last) - 1, given.observation)
            if row == 0:
                self.on_end()
            self._begin(observation, row, None)
        self._statistics.add(np.concatenate(list(reward.values()), axis=1).mean(axis=1))
        step = Step.scored(
            self.rewards,
            observation=observation,
            signals={name: {OWN_REWARD: values} for name, values in reward.items()},
            active=active,
            terminated=terminated,
            truncated=truncated,
        )
        if last:
            step.final_observation = {
                name: {key: array[: len(last)] for key, array in arrays.items()}
                for name, arrays in final.items()
            }
            infos = [dict(given.info) for given in last]
            step.episode = self._statistics.finish(step.ended, infos)
        return step

    def render(self) -> np.ndarray:
        """The first of them as a picture ``[height, width, 3]``, uint8."""
        return self._envs[0].render()

    def state_dict(self) -> dict[str, Any] | None:
        """None where the environments have no state to save."""
        states = [env.state_dict() for env in self._envs]
        if any(state is None for state in states):
            return None
        return {
            'envs': states,
            'present': self._present,
            'statistics': self._statistics.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        for env, own in zip(self._envs, state['envs'], strict=True):
            env.load_state_dict(own)
        self._present = [list(agents) for agents in state['present']]
        self._statistics.load_state_dict(state['statistics'])

    def close(self) -> None:
        """Close all of them."""
        for env in self._envs:
            env.close()

    def _begin(self, observation: Observations, row: int, seed: int | None) -> None:
        values = self._envs[row].reset(seed)
        if not values:
            raise ValueError(f'{self.descriptor.name}: an episode began without any agent')
        self._write(observation, row, values)
        self._present[row] = list(values)

    def _action(self, natives: Mapping[str, Any], row: int, agent: str) -> Any:
        group, column = self._place[agent]
        return group.native(natives[group.name][row, column])

    def _active(self) -> Arrays:
        return {
            name: np.array([[a in present for a in group.agents] for present in self._present])
            for name, group in self._groups.items()
        }

    def _allocate(self, rows: int) -> Observations:
        # anew at each step: what was handed out is not overwritten by the next one
        return {name: group.allocate(rows) for name, group in self._groups.items()}

    def _write(self, observation: Observations, row: int, values: Mapping[str, Any]) -> None:
        for agent, value in values.items():
            group, column = self._find(agent)
            group.write(observation[group.name], row, column, value)

    def _find(self, agent: str) -> tuple[_Group, int]:
        try:
            return self._place[agent]
        except KeyError:
            raise ValueError(
                f'agent {agent!r} has no space; those that have: {", ".join(self._place)}'
            ) from None


def _left(step: AgentStep, agent: str) -> bool:
    return bool(step.terminated.get(agent, False) or step.truncated.get(agent, False))


def _group(env: EnvInterface) -> dict[str, _Group]:
    """Agents of equal spaces and the same name but for a number at its end, by that name."""
    groups: dict[str, _Group] = {}
    for agent, observation in env.observation_spaces.items():
        if agent not in env.action_spaces:
            raise SpaceError(f'agent {agent!r} has an observation space but no action space')
        action = env.action_spaces[agent]
        stem = _NUMBER.sub('', agent) or agent
        known = groups.get(stem)
        if known and (known.space, known.action_space) == (observation, action):
            known.agents.append(agent)
        else:
            name = agent if known else stem
            groups[name] = _Group(name, agent, observation, action)
    return groups


registry.register('adapter', 'interface')(Adapter(EnvInterface, InterfaceVectorEnv))
