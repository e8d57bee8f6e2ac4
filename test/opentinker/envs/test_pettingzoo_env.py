"""PettingZoo's environments as ours, beside the same environments stepped by hand."""

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv, make
from pettingzoo.utils import parallel_to_aec

from opentinker.config import ConfigError
from opentinker.envs.adapt import adapt
from opentinker.envs.adapters import ParallelAdapter
from opentinker.envs.pettingzoo_env import make_env

TURNS = [0, 3, 1, 4, 2]
"""Fields of tic-tac-toe by turn: the first player has a row."""


def play(env, field):
    """Both players name the field; only the one whose turn it is has it open."""
    return env.step({'player': np.full((env.num_envs, 2), field)})


def test_a_game_is_played_turn_by_turn_to_its_end_with_the_rewards_of_both():
    env = make_env(1, 0, 'classic/tictactoe-v3')
    env.reset(0)
    steps = [play(env, field) for field in TURNS]
    assert [bool(step.ended.size) for step in steps] == [False] * 4 + [True]
    assert steps[-1].terminated.all()
    np.testing.assert_array_equal(steps[-1].reward['player'], [[1, -1]])
    assert steps[-1].episode['length'].tolist() == [5]


def test_observations_and_masks_are_those_of_the_game_and_who_waits_has_choice_0_alone():
    env = make_env(1, 0, 'classic/tictactoe-v3')
    game = make('aec', 'classic/tictactoe-v3')
    seen = env.reset(0)['player']
    game.reset(0)
    for field in TURNS:
        turn = env.descriptor.groups['player'].agents.index(game.agent_selection)
        expected = game.observe(game.agent_selection)
        np.testing.assert_array_equal(seen['action_mask'][0, turn], expected['action_mask'])
        np.testing.assert_array_equal(seen['observation'][0, turn], expected['observation'])
        assert np.flatnonzero(seen['action_mask'][0, 1 - turn]).tolist() == [0]
        game.step(field)
        seen = play(env, field).observation['player']


def test_agents_that_act_at_once_see_and_earn_what_the_environment_gives():
    env = make_env(2, 0, 'classic/rps-v2', {'max_cycles': 2})
    env.reset(0)
    rock, paper = 0, 1
    step = env.step({'player': np.array([[rock, paper], [paper, rock]])})
    np.testing.assert_array_equal(step.reward['player'], [[-1, 1], [1, -1]])
    np.testing.assert_array_equal(step.observation['player']['observation'], [[1, 0], [0, 1]])
    last = env.step({'player': np.array([[rock, rock], [rock, rock]])})
    assert last.truncated.all()


class Walkers(ParallelEnv):
    """Two agents that walk for two steps."""

    metadata = {'name': 'walkers', 'is_parallelizable': True, 'render_fps': 20}  # noqa: RUF012
    possible_agents = ('walker_0', 'walker_1')
    render_mode = None

    def observation_space(self, agent):
        return spaces.Box(-10, 10, (1,), np.float32)

    def action_space(self, agent):
        return spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.age = 0
        self.place = {agent: np.zeros(1, np.float32) for agent in self.agents}
        return dict(self.place), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.age += 1
        agents, over = self.agents, self.age == 2
        for agent in agents:
            self.place[agent] = self.place[agent] + actions[agent]
        if over:
            self.agents = []
        return (
            dict(self.place),
            {agent: float(self.place[agent][0]) for agent in agents},
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, over),
            {agent: {'success': over} for agent in agents},
        )


@pytest.mark.parametrize('form', [Walkers, lambda: parallel_to_aec(Walkers())])
def test_a_parallel_environment_is_adapted_as_it_is_and_through_turns(form):
    env = adapt(form, num_envs=2)
    assert env.descriptor.control_period == pytest.approx(1 / 20)
    env.reset(0)
    half = {'walker': np.full((2, 2, 1), 0.5, np.float32)}
    env.step(half)
    last = env.step(half)
    np.testing.assert_allclose(last.reward['walker'], 2.0)
    np.testing.assert_allclose(last.final_observation['walker']['observation'], 2.0)
    assert last.truncated.all()
    assert last.episode['success'].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(last.episode['return'], 3.0)


def test_ours_as_a_parallel_environment_and_back_is_the_same():
    env = adapt(ParallelAdapter(adapt(Walkers)))
    env.reset(0)
    # the adapter's own actions are the normalised ones: scaling is done once
    step = env.step({'walker': np.full((1, 2, 1), 0.5, np.float32)})
    np.testing.assert_allclose(step.reward['walker'], 1.0)


def test_an_id_that_nobody_knows_is_refused_with_those_that_are():
    with pytest.raises(ConfigError, match=r"knows no 'classic/chss-v6'; known: .*classic/chess-v6"):
        make_env(1, 0, 'classic/chss-v6')


def test_wrong_settings_are_refused_with_their_name():
    with pytest.raises(ConfigError, match='board'):
        make_env(1, 0, 'classic/rps-v2', {'board': 4})
