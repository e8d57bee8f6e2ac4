from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opentinker.algorithms.gae import Gae, gae
from opentinker.data.batch import Batch
from opentinker.data.segment import Segment

SHAPE = (6, 2, 3)
NUMBERS = arrays(np.float32, SHAPE, elements=st.floats(-10, 10, width=32))
FLAGS = arrays(bool, SHAPE)
UNIT = st.floats(0, 1)


def column(*values, dtype=np.float32):
    return np.array(values, dtype)[:, None, None]


class Oracle:
    """A critic whose value of an observation is the observation."""

    device = torch.device('cpu')
    state = ()

    def inputs(self, observation):
        return Batch(vector=torch.from_numpy(np.array(observation['worth'])))

    def value(self, inputs):
        return inputs['vector'][..., 0]


class Recorder(Gae):
    """Keeps what it was given."""

    def advantages(self, steps):
        self.steps = steps
        return super().advantages(steps)


def segment(worth, last, **changes):
    """Steps of one environment with one agent, which see ``worth`` and get a reward of 1."""
    steps = len(worth)
    plain = Segment(
        group='arm',
        observation={'worth': column(*worth)[..., None]},
        last_observation={'worth': np.full((1, 1, 1), last, np.float32)},
        action=np.zeros((steps, 1, 1, 1), np.float32),
        log_prob=np.zeros((steps, 1, 1), np.float32),
        reward=np.ones((steps, 1, 1), np.float32),
        signals={},
        active=np.ones((steps, 1, 1), bool),
        terminated=np.zeros((steps, 1), bool),
        truncated=np.zeros((steps, 1), bool),
        final_index=np.zeros((0, 2), np.int64),
        final_observation={'worth': np.zeros((0, 1, 1), np.float32)},
        policy_version=np.zeros(steps, np.int64),
        reward_revision=np.zeros(steps, np.int64),
        step=np.arange(steps),
    )
    return replace(plain, **changes)


def ending(at, final, **flag):
    """Changes to a segment whose episode ends at step ``at`` with the value ``final``."""
    ((name, length),) = flag.items()
    over = np.zeros((length, 1), bool)
    over[at] = True
    return {
        name: over,
        'final_index': np.array([[at, 0]]),
        'final_observation': {'worth': np.full((1, 1, 1), final, np.float32)},
    }


def following(own):
    recorder = Recorder()
    recorder.estimate(Oracle(), [own])
    return recorder.steps.next_value[:, 0, 0]


def test_advantages_worked_out_by_hand():
    # delta = 1 + 0.5 * next - value: 1.5, 2.5, 1; gamma * lam = 0.25
    result = gae(
        column(1, 1, 1), column(1, 1, 5), column(3, 5, 10), column(0, 0, 0, dtype=bool), 0.5, 0.5
    )
    np.testing.assert_allclose(result[:, 0, 0], [1.5 + 0.25 * 2.75, 2.5 + 0.25 * 1.0, 1.0])
    assert result.dtype == np.float32


def test_the_recursion_stops_at_the_end_of_an_episode():
    result = gae(
        column(1, 1, 9), column(0, 0, 0), column(0, 4, 0), column(0, 1, 0, dtype=bool), 0.5, 1.0
    )
    # the truncated step keeps its own advantage, with its bootstrapped value
    np.testing.assert_allclose(result[:, 0, 0], [1 + 0.5 * 3, 3, 9])


@given(NUMBERS, NUMBERS, NUMBERS, FLAGS, UNIT, UNIT)
def test_advantages_are_the_sum_of_their_definition(reward, value, following, ended, gamma, lam):
    result = gae(reward, value, following, ended, gamma, lam)
    for step, env, agent in np.ndindex(SHAPE):
        expected, weight = 0.0, 1.0
        for later in range(step, SHAPE[0]):
            at = (later, env, agent)
            expected += weight * (float(reward[at]) + gamma * float(following[at]) - value[at])
            weight *= gamma * lam
            if ended[at]:
                break
        np.testing.assert_allclose(result[step, env, agent], expected, rtol=1e-4, atol=1e-3)


def test_what_follows_a_step_is_the_next_observation_and_in_the_end_the_last_one():
    np.testing.assert_array_equal(following(segment([1, 2, 3], last=7)), [2, 3, 7])


def test_a_time_limit_is_bootstrapped_from_the_true_last_observation():
    own = segment([1, 2, 3], last=7, **ending(1, 40, truncated=3))
    np.testing.assert_array_equal(following(own), [2, 40, 7])
    own = segment([1, 2, 3], last=7, **ending(2, 40, truncated=3))
    np.testing.assert_array_equal(following(own), [2, 3, 40])


def test_nothing_follows_a_terminal_state():
    own = segment([1, 2, 3], last=7, **ending(1, 40, terminated=3))
    np.testing.assert_array_equal(following(own), [2, 0, 7])


def test_nothing_follows_for_an_agent_that_leaves_a_running_episode():
    own = segment([1, 2, 30], last=7, active=column(1, 1, 0, dtype=bool))
    np.testing.assert_array_equal(following(own)[:2], [2, 0])
    rollout = Gae(gamma=1.0, lam=1.0).estimate(Oracle(), [own])
    # rewards 1 and 1, values 1 and 2: what the absent agent got is nowhere in it
    np.testing.assert_allclose(rollout.advantage, [1 + 1 - 1, 1 - 2])


def test_only_active_agents_become_rows():
    own = segment([1, 2, 3], last=7, active=column(0, 1, 1, dtype=bool))
    rollout = Gae().estimate(Oracle(), [own, own])
    np.testing.assert_array_equal(rollout.observation['vector'][:, 0], [2, 3, 2, 3])
    assert len(rollout) == 4


def test_value_targets_are_value_plus_advantage():
    rollout = Gae(gamma=0.5, lam=1.0).estimate(Oracle(), [segment([1, 2], last=4)])
    np.testing.assert_allclose(rollout.value_target, [1 + 0.5 * (1 + 0.5 * 4), 1 + 0.5 * 4])
    np.testing.assert_allclose(rollout.advantage, rollout.value_target - torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize('dtype', [np.float64, np.int32])
def test_rows_are_of_single_precision_whatever_came_in(dtype):
    own = segment([1, 2], last=4, reward=np.ones((2, 1, 1), dtype))
    own.reward.flags.writeable = False
    rollout = Gae().estimate(Oracle(), [own])
    columns = [value for value in vars(rollout).values() if isinstance(value, torch.Tensor)]
    assert {value.dtype for value in columns} == {torch.float32}
    assert len(columns) == 5


@pytest.mark.parametrize('size', [1, 2, 7, 100])
def test_values_in_pieces_are_those_of_all_rows_at_once(size):
    own = segment([1, 2, 30, 4], last=7, **ending(1, 40, truncated=4))
    whole = Gae().estimate(Oracle(), [own])
    pieces = Gae(max_batch_size=size).estimate(Oracle(), [own])
    for name in ('value', 'advantage', 'value_target'):
        assert torch.equal(getattr(pieces, name), getattr(whole, name)), name
