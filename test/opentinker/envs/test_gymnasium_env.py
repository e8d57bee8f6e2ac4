"""The vector of gymnasium environments, beside the same environments stepped by hand."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from opentinker.config import ConfigError
from opentinker.envs.episodes import env_seeds
from opentinker.envs.gymnasium_env import GROUP, GymnasiumVectorEnv, make_env


class Counter(gymnasium.Env):
    """Sees its age; ends at ``length``, by a terminal state or by a time limit."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    def __init__(self, length=3, truncates=False, action=None):
        self.length, self.truncates = length, truncates
        self.action_space = action or spaces.Discrete(2)
        self.seen = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen[:] = 0
        return self.seen, {}

    def step(self, action):
        self.action = action
        self.seen += 1
        over = bool(self.seen[0] >= self.length)
        info = {'success': True} if over else {}
        return self.seen, 1.0, over and not self.truncates, over and self.truncates, info


def step(env, *actions, dtype=np.int64):
    return env.step({GROUP: np.array(actions, dtype)[:, None]})


def test_the_last_observation_of_an_episode_is_kept_beside_the_first_of_the_next():
    env = GymnasiumVectorEnv([Counter(2), Counter(3)])
    env.reset(seed=0)
    step(env, 0, 0)
    second = step(env, 0, 0)
    np.testing.assert_array_equal(second.observation[GROUP]['observation'][:, 0, 0], [0, 2])
    np.testing.assert_array_equal(second.final_observation[GROUP]['observation'], [[[2]]])
    np.testing.assert_array_equal(second.ended, [0])
    np.testing.assert_array_equal(second.terminated, [True, False])


def test_a_time_limit_is_no_terminal_state():
    env = GymnasiumVectorEnv([Counter(1, truncates=True)])
    env.reset()
    last = step(env, 0)
    assert last.truncated.all()
    assert not last.terminated.any()


def test_each_episode_is_reported_once_with_its_own_length_and_return():
    env = GymnasiumVectorEnv([Counter(2), Counter(3)])
    env.reset()
    episodes = [step(env, 0, 0).episode for _ in range(6)]
    lengths = [each['length'].tolist() for each in episodes if each]
    assert lengths == [[2], [3], [2], [2, 3]]
    assert all((each['return'] == each['length']).all() for each in episodes if each)
    assert episodes[-1]['success'].tolist() == [1, 1]


def test_observations_handed_out_are_not_overwritten():
    env = GymnasiumVectorEnv([Counter(9)])
    first = env.reset()[GROUP]['observation']
    second = step(env, 0).observation[GROUP]['observation']
    step(env, 0)
    assert first.item() == 0
    assert second.item() == 1


def test_bounded_actions_are_scaled_and_unbounded_ones_are_not():
    low, high = np.array([0, -np.inf, -np.inf]), np.array([10, np.inf, 2])
    inner = Counter(9, action=spaces.Box(low, high, dtype=np.float64))
    env = GymnasiumVectorEnv([inner])
    env.reset()
    step(env, [0.5, 7, 7], dtype=np.float32)
    np.testing.assert_allclose(inner.action, [7.5, 7, 2])
    assert inner.action.dtype == np.float64
    step(env, [-3, -7, 0], dtype=np.float32)
    np.testing.assert_allclose(inner.action, [0, -7, 0])
    assert env.descriptor.groups[GROUP].action.high == (1.0, None, None)


def test_choices_reach_a_space_that_starts_elsewhere():
    inner = Counter(9, action=spaces.Discrete(3, start=-1))
    env = GymnasiumVectorEnv([inner])
    env.reset()
    step(env, 2)
    assert inner.action == 1
    assert inner.action_space.contains(inner.action)


@pytest.mark.parametrize('name', ['CartPole-v1', 'Pendulum-v1', 'HalfCheetah-v5'])
def test_steps_are_those_of_the_environment_itself(name):
    env = make_env(2, 0, name)
    first = env.reset(seed=7)[GROUP]['observation']
    random = np.random.default_rng(0)
    for row, seed in enumerate(env_seeds(7, 2)):
        plain = gymnasium.make(name)
        np.testing.assert_array_equal(first[row, 0], plain.reset(seed=seed)[0])
        plain.close()
    plain = gymnasium.make(name)
    plain.reset(seed=env_seeds(7, 2)[1])
    box = isinstance(plain.action_space, spaces.Box)
    for _ in range(30):
        action = random.uniform(-1, 1, plain.action_space.shape) if box else random.integers(2)
        taken = step(env, action, action, dtype=np.float64 if box else np.int64)
        if box:
            action = (action * plain.action_space.high).astype(np.float32)
        seen, reward, over, cut, _ = plain.step(action)
        assert taken.reward[GROUP][1, 0] == np.float32(reward)
        if over or cut:
            np.testing.assert_array_equal(
                taken.final_observation[GROUP]['observation'][-1, 0], seen.astype(np.float32)
            )
            break
        np.testing.assert_allclose(taken.observation[GROUP]['observation'][1, 0], seen)
    env.close()


def test_an_unknown_id_is_refused():
    with pytest.raises(ConfigError, match=r'env\.id: Nothing-v0: .*Nothing'):
        make_env(1, 0, 'Nothing-v0')


def test_whole_numbers_in_a_box_are_refused_as_actions():
    with pytest.raises(ValueError, match='use MultiDiscrete'):
        GymnasiumVectorEnv([Counter(action=spaces.Box(0, 3, (1,), np.int32))])
