"""An environment that is filmed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opentinker.envs.rewards import RewardSpec
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step


class FilmedEnv(MultiAgentVectorEnv):
    """Gives a frame ``[height, width, 3]`` uint8 to ``film`` at every reset and step, and one of
    the end of an episode before the next one begins.
    """

    def __init__(self, env: MultiAgentVectorEnv, film: Callable[[np.ndarray], object]) -> None:
        self._env, self._film = env, film
        self.descriptor, self.num_envs = env.descriptor, env.num_envs
        env.on_end = self._film_it

    @property
    def rewards(self) -> RewardSpec:
        """Those of the environment."""
        return self._env.rewards

    @rewards.setter
    def rewards(self, rewards: RewardSpec) -> None:
        self._env.rewards = rewards

    def reset(self, seed: int | None = None) -> Observations:
        """Reset it."""
        observation = self._env.reset(seed)
        self._film_it()
        return observation

    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """Step it."""
        step = self._env.step(actions)
        self._film_it()
        return step

    def _film_it(self) -> None:
        self._film(self._env.render())

    def close(self) -> None:
        """Close it."""
        self._env.close()
