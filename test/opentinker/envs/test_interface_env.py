"""Environments of named agents: groups, conversion, agents that leave, errors that name them."""

import numpy as np
import pytest
from gymnasium import spaces

from opentinker.envs.interface import AgentStep, EnvInterface
from opentinker.envs.interface_env import InterfaceVectorEnv
from opentinker.envs.spaces import SpaceError

SIGHT = spaces.Box(0, 100, (1,), np.float32)
GRIP = spaces.Box(np.float32(0), np.float32(10), (1,), np.float32)


class Leaving(EnvInterface):
    """Agents see their age and leave when ``leave[agent]`` says so, as ``how`` says."""

    def __init__(self, leave, how='terminated'):
        self.leave, self.how = leave, how
        self.observation_spaces = dict.fromkeys(leave, SIGHT)
        self.action_spaces = dict.fromkeys(leave, GRIP)

    def reset(self, seed=None):
        self.age, self.seed = 0, seed
        self.agents = list(self.leave)
        return {agent: np.zeros(1) for agent in self.agents}

    def step(self, actions):
        self.actions = dict(actions)
        self.age += 1
        over = {agent: self.age >= self.leave[agent] for agent in self.agents}
        step = AgentStep(
            {agent: np.full(1, self.age) for agent in self.agents},
            dict.fromkeys(self.agents, 1.0),
            **{self.how: over},
            info={'success': self.age >= 3},
        )
        self.agents = [agent for agent in self.agents if not over[agent]]
        return step

    def state_dict(self):
        return {'age': self.age, 'agents': self.agents}

    def load_state_dict(self, state):
        self.age, self.agents = state['age'], list(state['agents'])


def acts(env, value=0.0):
    return {
        name: np.full((env.num_envs, len(group.agents), 1), value, np.float32)
        for name, group in env.descriptor.groups.items()
    }


def test_equal_agents_whose_names_differ_by_a_number_are_one_group():
    env = InterfaceVectorEnv([Leaving({'arm_0': 1, 'arm_1': 1, 'camera': 1})])
    groups = {name: info.agents for name, info in env.descriptor.groups.items()}
    assert groups == {'arm': ('arm_0', 'arm_1'), 'camera': ('camera',)}


def test_agents_of_other_spaces_are_a_group_of_their_own_whatever_their_name():
    inner = Leaving({'arm_0': 1, 'arm_1': 1})
    inner.action_spaces['arm_1'] = spaces.Discrete(3)
    groups = InterfaceVectorEnv([inner]).descriptor.groups
    assert groups['arm'].agents == ('arm_0',)
    assert groups['arm_1'].action.categories == (3,)


def test_actions_come_scaled_to_the_agents_own_bounds():
    inner = Leaving({'arm_0': 5})
    env = InterfaceVectorEnv([inner])
    env.reset()
    env.step(acts(env, 0.5))
    np.testing.assert_allclose(inner.actions['arm_0'], [7.5])


def test_an_agent_that_left_is_inactive_and_does_not_act_until_the_next_episode():
    inner = Leaving({'arm_0': 1, 'arm_1': 3})
    env = InterfaceVectorEnv([inner])
    env.reset()
    steps, acted = [], []
    for _ in range(4):
        steps.append(env.step(acts(env)))
        acted.append(list(inner.actions))
    active = [step.active['arm'][0].tolist() for step in steps]
    assert active == [[True, True], [False, True], [False, True], [True, True]]
    assert acted == [['arm_0', 'arm_1'], ['arm_1'], ['arm_1'], ['arm_0', 'arm_1']]
    assert [step.terminated.tolist() for step in steps] == [[False], [False], [True], [False]]


def test_an_episode_is_reported_once_with_the_true_last_observation():
    env = InterfaceVectorEnv([Leaving({'arm_0': 2}), Leaving({'arm_0': 3})])
    env.reset()
    assert env.step(acts(env)).final_observation is None
    second, third = env.step(acts(env)), env.step(acts(env))
    np.testing.assert_array_equal(second.ended, [0])
    np.testing.assert_array_equal(second.final_observation['arm']['observation'], [[[2]]])
    np.testing.assert_array_equal(second.observation['arm']['observation'][:, 0, 0], [0, 2])
    np.testing.assert_array_equal(third.ended, [1])
    assert {key: values.tolist() for key, values in third.episode.items()} == {
        'return': [3.0],
        'length': [3],
        'success': [1.0],
    }


def test_a_time_limit_is_no_terminal_state():
    env = InterfaceVectorEnv([Leaving({'arm_0': 1}, how='truncated')])
    env.reset()
    step = env.step(acts(env))
    assert step.truncated.all()
    assert not step.terminated.any()


def test_a_saved_state_goes_on_in_the_middle_of_an_episode():
    env = InterfaceVectorEnv([Leaving({'arm_0': 1, 'arm_1': 3})])
    env.reset()
    env.step(acts(env))
    again = InterfaceVectorEnv([Leaving({'arm_0': 1, 'arm_1': 3})])
    again.reset()
    again.load_state_dict(env.state_dict())
    for _ in range(3):
        left, right = env.step(acts(env)), again.step(acts(env))
        np.testing.assert_array_equal(left.active['arm'], right.active['arm'])
        np.testing.assert_array_equal(left.ended, right.ended)
        assert {k: v.tolist() for k, v in left.episode.items()} == {
            k: v.tolist() for k, v in right.episode.items()
        }


def test_an_observation_of_another_shape_is_refused_with_agent_key_and_shapes():
    inner = Leaving({'arm_0': 2})
    inner.observation_spaces = {'arm_0': spaces.Dict(sight=spaces.Box(0, 1, (2,)))}
    inner.reset = lambda seed=None: {'arm_0': {'sight': np.zeros(3)}}
    message = r"agent 'arm_0', observation 'sight': shape \(3,\), its space has \(2,\)"
    with pytest.raises(ValueError, match=message):
        InterfaceVectorEnv([inner]).reset()


def test_an_observation_without_a_key_of_its_space_is_refused_with_the_agent():
    inner = Leaving({'arm_0': 2})
    inner.observation_spaces = {'arm_0': spaces.Dict(sight=SIGHT)}
    inner.reset = lambda seed=None: {'arm_0': {}}
    with pytest.raises(ValueError, match=r"agent 'arm_0': .*KeyError: 'sight'"):
        InterfaceVectorEnv([inner]).reset()


def test_an_agent_without_spaces_is_refused_by_name():
    inner = Leaving({'arm_0': 2})
    inner.reset = lambda seed=None: {'leg_0': np.zeros(1)}
    with pytest.raises(ValueError, match="agent 'leg_0' has no space; those that have: arm_0"):
        InterfaceVectorEnv([inner]).reset()


def test_an_agent_without_an_action_space_is_refused_by_name():
    inner = Leaving({'arm_0': 2})
    inner.action_spaces = {}
    with pytest.raises(SpaceError, match="agent 'arm_0' has an observation space but no action"):
        InterfaceVectorEnv([inner])
