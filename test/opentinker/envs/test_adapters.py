import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from opentinker.envs.adapters import GymnasiumAdapter, ParallelAdapter
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.envs.rewards import RewardSpec
from opentinker.envs.vector import MultiAgentVectorEnv, Step

LIMIT = 3


class CountingEnv(MultiAgentVectorEnv):
    """Two groups; agents observe step and number of their episode; the reward is the action."""

    def __init__(self, num_envs=1):
        def group(*agents):
            return GroupInfo(
                agents=agents,
                action=ArrayInfo(shape=(1,), low=-1, high=1),
                observation={
                    'step': ArrayInfo(shape=()),
                    'episode': ArrayInfo(shape=(2,), low=(0, 0), high=(9, 9)),
                },
            )

        self.num_envs = num_envs
        self.rewards = RewardSpec(terms={})
        self.descriptor = EnvDescriptor(
            name='counting',
            groups={'arm': group('a', 'b'), 'cart': group('c')},
            control_period=1,
            step_limit=LIMIT,
        )
        self.time = self.episode = 0

    def look(self):
        return {
            name: {
                'episode': np.full((1, len(info.agents), 2), self.episode),
                'step': np.full((1, len(info.agents)), self.time),
            }
            for name, info in self.descriptor.groups.items()
        }

    def reset(self, seed=None):
        self.time = 0
        self.episode = 1 if seed is not None else self.episode + 1
        return self.look()

    def step(self, actions):
        self.time += 1
        last, over = self.look(), self.time == LIMIT
        if over:
            self.reset()
        reward = {name: values[..., 0] for name, values in actions.items()}
        return Step(
            observation=self.look(),
            reward=reward,
            reward_terms={},
            signals={},
            reward_revision=0,
            active={},
            terminated=np.zeros(1, bool),
            truncated=np.array([over]),
            ended=np.arange(int(over)),
            final_observation=last if over else None,
            episode={'success': np.ones(1)} if over else {},
        )


def test_gymnasium_check_env_passes():
    with warnings.catch_warnings():
        warnings.filterwarnings(
            'ignore', '.*Box observation space'
        )  # unbounded keys are allowed here
        check_env(GymnasiumAdapter(CountingEnv()))


def test_pettingzoo_parallel_api_test_passes():
    parallel_api_test(ParallelAdapter(CountingEnv()), num_cycles=20)


def test_gymnasium_lays_agents_end_to_end():
    env = GymnasiumAdapter(CountingEnv())
    assert env.observation_space.shape == (9,)
    assert env.observation_space.high[1:3].tolist() == [9, 9]
    observation, _ = env.reset(seed=0)
    assert observation.tolist() == [0, 1, 1] * 3
    observation, reward, *_ = env.step(np.array([0.3, 0.6, 0.9], np.float32))
    assert observation.tolist() == [1, 1, 1] * 3
    assert reward == pytest.approx(0.6)


def test_the_last_observation_of_an_episode_is_its_own_and_reset_continues():
    env = GymnasiumAdapter(CountingEnv())
    env.reset(seed=0)
    for _ in range(LIMIT):
        observation, _, terminated, truncated, info = env.step(np.zeros(3, np.float32))
    assert observation.tolist() == [LIMIT, 1, 1] * 3
    assert (terminated, truncated) == (False, True)
    assert info == {'success': 1.0}
    assert env.reset()[0].tolist() == [0, 2, 2] * 3
    assert env.reset()[0].tolist() == [0, 3, 3] * 3


def test_parallel_actions_and_rewards_go_by_name():
    env = ParallelAdapter(CountingEnv())
    env.reset(seed=0)
    actions = {'c': np.array([0.3]), 'a': np.array([0.1]), 'b': np.array([0.2])}
    _, rewards, _, truncations, infos = env.step(actions)
    assert rewards == {'a': 0.1, 'b': 0.2, 'c': 0.3}
    assert truncations == dict.fromkeys('abc', False)
    assert infos == {'a': {}, 'b': {}, 'c': {}}
    env.step(actions)
    _, _, _, truncations, infos = env.step(actions)
    assert truncations == dict.fromkeys('abc', True)
    assert infos['b'] == {'success': 1.0}
    assert env.agents == []


@pytest.mark.parametrize('adapter', [GymnasiumAdapter, ParallelAdapter])
def test_more_than_one_environment_is_refused(adapter):
    with pytest.raises(ValueError, match='takes one environment, this one is 2'):
        adapter(CountingEnv(2))
