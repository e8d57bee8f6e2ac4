"""The arms as stable-baselines3 takes them: agents are rows, so that one policy serves all."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from opentinker.envs.vector import Step
from opentinker_ros.arms.arms_env import GROUP, make_env


class ArmsVecEnv(VecEnv):
    """Worlds of four arms, task ``reach``."""

    def __init__(self, worlds: int, seed: int, training: bool) -> None:
        self._env = make_env(num_envs=worlds, seed=seed, arms=4, task='reach')
        self._seed, self._training = seed, training
        info = self._env.descriptor.groups[GROUP]
        self._agents, self._shape = len(info.agents), info.action.shape
        self._step: Step
        super().__init__(
            worlds * self._agents,
            spaces.Box(-np.inf, np.inf, (sum(a.size for a in info.observation.values()),)),
            spaces.Box(-1, 1, (info.action.size,)),
        )

    def reset(self) -> np.ndarray:
        """Start everywhere; while training, first episodes end at different times."""
        observation = self._env.reset()
        if self._training:
            self._env.stagger()
        return self._rows(observation[GROUP])

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions ``[row, action]``."""
        self._actions = actions.reshape(-1, self._agents, *self._shape).astype(np.float32)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step."""
        step = self._step = self._env.step({GROUP: self._actions})
        done = np.repeat(step.terminated | step.truncated, self._agents)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if step.final_observation:
            last = self._rows(step.final_observation[GROUP])
            for row, observation in zip(np.nonzero(done)[0], last, strict=True):
                infos[row]['terminal_observation'] = observation
                infos[row]['TimeLimit.truncated'] = not step.terminated[row // self._agents]
        return self._rows(step.observation[GROUP]), step.reward[GROUP].ravel(), done, infos

    def _rows(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        arrays = observation.values()
        rows = [array.reshape(array.shape[0] * self._agents, -1) for array in arrays]
        return np.concatenate(rows, -1)

    def success(self, model: BaseAlgorithm, normalized: VecEnv) -> float:
        """Share of successful episodes, one in each world, seen through ``normalized``."""
        self._env.seed(self._seed)
        observation, outcome = normalized.reset(), dict[int, float]()
        while len(outcome) < self._env.num_envs:
            observation = normalized.step(model.predict(observation, deterministic=True)[0])[0]
            ends = zip(self._step.ended, self._step.episode.get('success', ()), strict=True)
            for world, success in ends:
                outcome.setdefault(int(world), float(success))
        return float(np.mean(list(outcome.values())))

    def close(self) -> None:
        """Close the worlds."""
        self._env.close()

    def get_attr(self, attr_name, indices=None):
        """No row has attributes."""
        return [None] * self.num_envs

    def set_attr(self, attr_name, value, indices=None) -> None:
        """No row has attributes."""

    def env_method(self, method_name, *args, indices=None, **kwargs):
        """No row has methods."""
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class, indices=None):
        """No row is wrapped."""
        return [False] * self.num_envs
