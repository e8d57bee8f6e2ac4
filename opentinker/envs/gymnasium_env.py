"""Environments of gymnasium, several at a time in this process, as one group of one agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from opentinker import registry
from opentinker.config import ConfigError
from opentinker.envs.action_scaling import ActionScaling
from opentinker.envs.adapt import Adapter
from opentinker.envs.descriptor import EnvDescriptor, GroupInfo
from opentinker.envs.episodes import EpisodeStatistics, env_seeds
from opentinker.envs.rewards import OWN_REWARD, RewardSpec
from opentinker.envs.spaces import ROOT, SpaceError, flatten, to_infos
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step

GROUP = 'agent'


class GymnasiumVectorEnv(MultiAgentVectorEnv):
    """Equal environments stepped one after the other; those that end begin anew at once.

    Raises :class:`SpaceError` for spaces that no arrays describe.
    """

    def __init__(self, envs: Sequence[gymnasium.Env], name: str = '') -> None:
        self._envs = list(envs)
        self.num_envs = len(self._envs)
        first = self._envs[0]
        self._space = first.observation_space
        self._infos = to_infos(self._space)
        self._is_box = isinstance(self._space, Box)
        self._action = ActionScaling(first.action_space)
        info = GroupInfo(
            agents=(GROUP,),
            observation=self._infos,
            action=self._action.info,
            signals=(OWN_REWARD,),
        )
        spec = first.spec
        self.descriptor = EnvDescriptor(
            name=name or (spec.id if spec else type(first.unwrapped).__name__),
            groups={GROUP: info},
            control_period=_control_period(first),
            step_limit=spec.max_episode_steps if spec else None,
        )
        self.rewards = RewardSpec.of(['environment'])
        self._active = np.ones((self.num_envs, 1), bool)
        self._statistics = EpisodeStatistics(self.num_envs)

    def reset(self, seed: int | None = None) -> Observations:
        """Start a new episode everywhere."""
        seeds = env_seeds(seed, self.num_envs)
        observation = self._allocate(self.num_envs)
        for row, (env, own) in enumerate(zip(self._envs, seeds, strict=True)):
            self._write(observation, row, env.reset(seed=own)[0])
        self._statistics.reset()
        return {GROUP: observation}

    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """Apply actions ``[env, 1, *action]``."""
        natives = self._action.native(actions[GROUP][:, 0])
        observation = self._allocate(self.num_envs)
        reward = np.empty((self.num_envs, 1), np.float32)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        infos: list[dict[str, Any]] = []
        for row, env in enumerate(self._envs):
            seen, reward[row, 0], over, cut, info = env.step(natives[row])
            terminated[row], truncated[row] = over, cut and not over
            if over or cut:
                if not infos:
                    last = self._allocate(self.num_envs)
                # before the reset: some environments go on writing into what they gave
                self._write(last, len(infos), seen)
                infos.append(info)
                if row == 0:
                    self.on_end()
                seen, _ = env.reset()
            self._write(observation, row, seen)
        self._statistics.add(reward[:, 0])
        step = Step.scored(
            self.rewards,
            observation={GROUP: observation},
            signals={GROUP: {OWN_REWARD: reward}},
            active={GROUP: self._active},
            terminated=terminated,
            truncated=truncated,
        )
        if infos:
            step.final_observation = {
                GROUP: {key: array[: len(infos)] for key, array in last.items()}
            }
            step.episode = self._statistics.finish(step.ended, infos)
        return step

    def render(self) -> np.ndarray:
        """The first of them as a picture ``[height, width, 3]``, uint8.

        Raises ConfigError for one without pictures, or where what draws them is not installed.
        """
        try:
            frame = self._envs[0].render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise ConfigError(f'env.id: {self.descriptor.name}: {error}') from None
        if not isinstance(frame, np.ndarray):
            raise ConfigError(f'env.id: {self.descriptor.name} has no pictures to film')
        return frame

    def close(self) -> None:
        """Close all of them."""
        for env in self._envs:
            env.close()

    def _allocate(self, rows: int) -> dict[str, np.ndarray]:
        # anew at each step: what was handed out is not overwritten by the next one
        return {
            key: np.empty((rows, 1, *info.shape), info.dtype) for key, info in self._infos.items()
        }

    def _write(self, observation: dict[str, np.ndarray], row: int, value: Any) -> None:
        if self._is_box:
            observation[ROOT][row, 0] = value
            return
        for key, array in flatten(self._space, value).items():
            observation[key][row, 0] = array


def _control_period(env: gymnasium.Env) -> float:
    period = getattr(env.unwrapped, 'dt', None) or getattr(env.unwrapped, 'tau', None)
    rate = env.metadata.get('render_fps')
    return float(period or (1 / rate if rate else 1.0))


@registry.register('env', 'gymnasium')
def make_env(
    num_envs: int,
    seed: int,
    id: str,
    settings: dict[str, Any] | None = None,
    render: bool = False,
) -> GymnasiumVectorEnv:
    """Environments that gymnasium knows by an id. Raises ConfigError where it does not.

    ``settings`` are what ``gymnasium.make`` passes on; seeds come with ``reset``.
    """
    settings = dict(settings or {})
    if render:
        settings['render_mode'] = 'rgb_array'
    try:
        envs = [gymnasium.make(id, **settings) for _ in range(num_envs)]
        return GymnasiumVectorEnv(envs, id)
    except (gymnasium.error.Error, SpaceError, TypeError, ModuleNotFoundError) as error:
        raise ConfigError(f'env.id: {id}: {error}') from None


registry.register('adapter', 'gymnasium')(Adapter(gymnasium.Env, GymnasiumVectorEnv))
