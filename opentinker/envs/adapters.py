"""Environments of this project as the environments of gymnasium and PettingZoo."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from pettingzoo import ParallelEnv  # type: ignore[import-untyped]

from opentinker.envs.descriptor import ArrayInfo, GroupInfo
from opentinker.envs.spaces import bounds
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step


def _box(infos: list[ArrayInfo]) -> Box:
    """One flat float32 space for arrays laid end to end."""
    low, high = zip(*(bounds(info) for info in infos), strict=True)
    flat = [np.concatenate([np.ravel(each) for each in side]) for side in (low, high)]
    return Box(flat[0].astype(np.float32), flat[1].astype(np.float32))


class _Episodes:
    """One environment, one episode at a time; each group's observation is ``[agent, size]``."""

    def __init__(self, env: MultiAgentVectorEnv) -> None:
        if env.num_envs != 1:
            raise ValueError(f'an adapter takes one environment, this one is {env.num_envs}')
        self.env = env
        self._next: Observations | None = None

    def reset(self, seed: int | None) -> dict[str, np.ndarray]:
        """Begin an episode; without a seed the one that the environment began by itself."""
        first, self._next = self._next, None
        return self._flat(self.env.reset(seed) if seed is not None or first is None else first)

    def step(self, actions: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], Step]:
        """Act; the observation at the end of an episode is the true last one."""
        step = self.env.step({group: values[None] for group, values in actions.items()})
        if step.final_observation is None:
            return self._flat(step.observation), step
        self._next = step.observation
        return self._flat(step.final_observation), step

    def _flat(self, observation: Observations) -> dict[str, np.ndarray]:
        return {
            group: np.concatenate(
                [
                    observation[group][key][0].reshape(len(info.agents), -1)
                    for key in info.observation
                ],
                axis=1,
                dtype=np.float32,
            )
            for group, info in self.env.descriptor.groups.items()
        }


def _statistics(step: Step) -> dict[str, Any]:
    """The statistics of the episode that ended, if one did."""
    return {name: values[0].item() for name, values in step.episode.items()}


class GymnasiumAdapter(gymnasium.Env):
    """All agents of one environment as a single agent.

    Observation and action are those of all agents laid end to end, float32; the reward is their
    mean. The ``info`` of an episode's last step holds its statistics, ``success`` among them.
    """

    metadata: dict[str, Any] = {'render_modes': []}  # noqa: RUF012  (gymnasium's own form)

    def __init__(self, env: MultiAgentVectorEnv) -> None:
        self._episodes = _Episodes(env)
        self._groups = env.descriptor.groups
        per_agent = [(info, name) for info in self._groups.values() for name in info.agents]
        self.observation_space = _box(
            [i for info, _ in per_agent for i in info.observation.values()]
        )
        self.action_space = _box([info.action for info, _ in per_agent])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; a seed makes all that follow repeatable."""
        super().reset(seed=seed)
        return self._joined(self._episodes.reset(seed)), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Act for all agents."""
        observation, step = self._episodes.step(self._split(np.asarray(action)))
        reward = float(np.mean(np.concatenate([values[0] for values in step.reward.values()])))
        return (
            self._joined(observation),
            reward,
            bool(step.terminated[0]),
            bool(step.truncated[0]),
            _statistics(step),
        )

    def close(self) -> None:
        """Close the environment."""
        self._episodes.env.close()

    def _joined(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        return np.concatenate([values.ravel() for values in observation.values()])

    def _split(self, action: np.ndarray) -> dict[str, np.ndarray]:
        actions, start = {}, 0
        for group, info in self._groups.items():
            size = len(info.agents) * info.action.size
            actions[group] = action[start : start + size].reshape(
                len(info.agents), *info.action.shape
            )
            start += size
        return actions


class ParallelAdapter(ParallelEnv):
    """One environment as a PettingZoo parallel environment; observations are flat, float32.

    The ``infos`` of an episode's last step hold its statistics, ``success`` among them.
    """

    metadata: dict[str, Any] = {'name': 'opentinker', 'render_modes': []}  # noqa: RUF012  (PettingZoo's own form)

    def __init__(self, env: MultiAgentVectorEnv) -> None:
        self._episodes = _Episodes(env)
        self._groups = env.descriptor.groups
        self._info = {name: info for info in self._groups.values() for name in info.agents}
        self.possible_agents = list(self._info)
        self.agents: list[str] = []
        self._spaces = {
            name: (_box(list(info.observation.values())), _box([info.action]))
            for name, info in self._info.items()
        }

    def observation_space(self, agent: str) -> Box:
        """The space of an agent's flat observation."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> Box:
        """The space of an agent's action."""
        return self._spaces[agent][1]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict, dict]:
        """Begin an episode with all agents; a seed makes all that follow repeatable."""
        self.agents = list(self.possible_agents)
        return self._by_agent(self._episodes.reset(seed)), {name: {} for name in self.agents}

    def step(self, actions: dict[str, np.ndarray]) -> tuple[dict, dict, dict, dict, dict]:
        """Act for every agent. Raises KeyError for an agent without an action."""
        observation, step = self._episodes.step(
            {
                group: np.stack([self._shaped(actions[name], info) for name in info.agents])
                for group, info in self._groups.items()
            }
        )
        agents = self.agents
        rewards = self._by_agent({group: values[0] for group, values in step.reward.items()})
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        if terminated or truncated:
            self.agents = []
        return (
            self._by_agent(observation),
            {name: float(value) for name, value in rewards.items()},
            dict.fromkeys(agents, terminated),
            dict.fromkeys(agents, truncated),
            {name: _statistics(step) for name in agents},
        )

    def close(self) -> None:
        """Close the environment."""
        self._episodes.env.close()

    def _shaped(self, action: np.ndarray, info: GroupInfo) -> np.ndarray:
        return np.asarray(action).reshape(info.action.shape)

    def _by_agent(self, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {
            name: rows[group][row]
            for group, info in self._groups.items()
            for row, name in enumerate(info.agents)
        }
