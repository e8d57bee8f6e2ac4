"""A plug-in for tests: points on a line that learn to go to their targets, in numpy."""

import numpy as np

from opentinker import registry
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.envs.rewards import Parameter, RewardSpec, reward_term
from opentinker.envs.vector import MultiAgentVectorEnv, Step

AGENTS = ('left', 'right')


@reward_term(
    'closeness',
    needs=('distance',),
    weight=1.0,
    power=Parameter(1.0, 0.5, 2.0, 'exponent of the distance'),
)
def closeness(signals, power):
    """Nearer is better."""
    return -(signals['distance'] ** power)


class PointEnv(MultiAgentVectorEnv):
    """Each agent moves a point by up to 0.2 a step; an episode lasts ``steps`` steps."""

    def __init__(self, num_envs: int, seed: int, steps: int = 10) -> None:
        group = GroupInfo(
            agents=AGENTS,
            observation={'offset': ArrayInfo(shape=(1,))},
            action=ArrayInfo(shape=(1,), low=-1, high=1),
            signals=('distance',),
        )
        self.descriptor = EnvDescriptor(
            name='point', groups={'point': group}, control_period=0.1, step_limit=steps
        )
        self.num_envs = num_envs
        self.rewards = RewardSpec.of(['closeness'])
        self._steps = steps
        self.reset(seed)

    def reset(self, seed=None):
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._age = np.zeros(self.num_envs, np.int64)
        self._return = np.zeros(self.num_envs)
        self._offset = self._draw(self.num_envs)
        return self._observe()

    def step(self, actions):
        self._offset = self._offset + 0.2 * np.clip(actions['point'][..., 0], -1, 1)
        self._age += 1
        signals = {'distance': np.abs(self._offset).astype(np.float32)}
        terms, reward = self.rewards.evaluate(signals)
        self._return += reward.mean(1)
        truncated = self._age >= self._steps
        (ended,) = np.nonzero(truncated)
        final = {'point': {'offset': self._offset[ended, :, None].astype(np.float32)}}
        episode = {
            'return': self._return[ended],
            'length': self._age[ended],
            'success': (signals['distance'][ended] < 0.2).all(1).astype(np.float32),
        }
        self._offset[ended] = self._draw(len(ended))
        self._age[ended] = 0
        self._return[ended] = 0
        return Step(
            observation=self._observe(),
            reward={'point': reward},
            reward_terms={'point': terms},
            signals={'point': signals},
            reward_revision=self.rewards.revision,
            active={'point': np.ones((self.num_envs, 2), bool)},
            terminated=np.zeros(self.num_envs, bool),
            truncated=truncated,
            ended=ended,
            final_observation=final if len(ended) else None,
            episode=episode,
        )

    def state_dict(self):
        return {
            'random': self._random.bit_generator.state,
            'age': self._age,
            'return': self._return,
            'offset': self._offset,
        }

    def load_state_dict(self, state):
        self._random.bit_generator.state = state['random']
        self._age, self._return = state['age'], state['return']
        self._offset = state['offset']

    def _draw(self, count):
        return self._random.uniform(-1, 1, (count, 2))

    def _observe(self):
        return {'point': {'offset': self._offset[..., None].astype(np.float32)}}


@registry.register('env', 'point')
def point(num_envs: int, seed: int, steps: int = 10) -> PointEnv:
    return PointEnv(num_envs, seed, steps)
