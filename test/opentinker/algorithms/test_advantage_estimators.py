"""The estimators on numbers worked out by hand, and against their definitions, step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opentinker.algorithms.advantage_estimator import Steps
from opentinker.algorithms.gae import Gae
from opentinker.algorithms.n_step import NStep
from opentinker.algorithms.td_lambda import TdLambda
from opentinker.algorithms.v_trace import VTrace

SHAPE = (6, 2, 1)
NUMBERS = arrays(np.float32, SHAPE, elements=st.floats(-10, 10, width=32))
LOGS = arrays(np.float32, SHAPE, elements=st.floats(-2, 2, width=32))
FLAGS = arrays(bool, SHAPE)
UNIT = st.floats(0, 1)
CLOSE = {'rtol': 1e-3, 'atol': 1e-3}


def steps(reward, value, following, ended, log_ratio=None):
    columns = [np.array(each, np.float32)[:, None, None] for each in (reward, value, following)]
    logs = np.zeros_like(columns[0]) if log_ratio is None else np.log(log_ratio)[:, None, None]
    return Steps(*columns, np.array(ended, bool)[:, None, None], logs.astype(np.float32))


def flat(arrays):
    return [values[:, 0, 0] for values in arrays]


def definition_of_n_step(each, n, gamma, t, env):
    """Sum rewards from step t until n are summed or nothing follows; then bootstrap."""
    total, weight = 0.0, 1.0
    for later in range(t, SHAPE[0]):
        at = (later, env, 0)
        total += weight * float(each.reward[at])
        weight *= gamma
        if each.ended[at] or later - t + 1 == n or later == SHAPE[0] - 1:
            return total + weight * float(each.next_value[at])


def test_n_step_returns_worked_out_by_hand():
    each = steps([1, 2, 4, 8], [1, 1, 1, 1], [10, 20, 40, 80], [0, 0, 0, 0])
    advantage, target = flat(NStep(gamma=0.5, n=2).advantages(each))
    # 1 + 2/2 + 20/4, 2 + 4/2 + 40/4, 4 + 8/2 + 80/4, and the last one has one step only
    np.testing.assert_allclose(target, [7, 14, 28, 48])
    np.testing.assert_allclose(advantage, target - 1)


def test_n_step_returns_stop_at_the_end_of_an_episode():
    each = steps([1, 2, 4], [0, 0, 0], [10, 0, 40], [0, 1, 0])
    np.testing.assert_allclose(
        flat(NStep(gamma=0.5, n=3).advantages(each))[1], [1 + 2 / 2, 2, 4 + 20]
    )


@given(NUMBERS, NUMBERS, NUMBERS, FLAGS, UNIT, st.integers(1, 9))
def test_n_step_returns_are_the_sum_of_their_definition(reward, value, following, ended, gamma, n):
    each = Steps(reward, value, following, ended)
    target = NStep(gamma=gamma, n=n).advantages(each)[1]
    for t, env, _ in np.ndindex(SHAPE):
        expected = definition_of_n_step(each, n, gamma, t, env)
        np.testing.assert_allclose(target[t, env, 0], expected, **CLOSE)


@given(NUMBERS, NUMBERS, FLAGS, UNIT, UNIT)
def test_lambda_returns_are_the_weighted_mean_of_n_step_returns(reward, value, ended, gamma, lam):
    following = np.concatenate([value[1:], value[:1]])
    each = Steps(reward, value, following, ended)
    target = TdLambda(gamma=gamma, lam=lam).advantages(each)[1]
    for t, env, _ in np.ndindex(SHAPE):
        steps_left = 1
        while t + steps_left < SHAPE[0] and not ended[t + steps_left - 1, env, 0]:
            steps_left += 1
        returns = [definition_of_n_step(each, n + 1, gamma, t, env) for n in range(steps_left)]
        weights = [(1 - lam) * lam**n for n in range(steps_left - 1)] + [lam ** (steps_left - 1)]
        np.testing.assert_allclose(target[t, env, 0], np.dot(weights, returns), **CLOSE)


@given(NUMBERS, NUMBERS, FLAGS, UNIT, UNIT)
def test_lambda_returns_are_the_value_targets_of_gae(reward, value, ended, gamma, lam):
    following = np.concatenate([value[1:], value[:1]])
    each = Steps(reward, value, following, ended)
    np.testing.assert_allclose(
        TdLambda(gamma=gamma, lam=lam).advantages(each)[1],
        Gae(gamma=gamma, lam=lam).advantages(each)[1],
        **CLOSE,
    )


def test_the_advantage_of_td_lambda_is_the_td_error():
    each = steps([1, 2], [3, 4], [4, 0], [0, 1])
    np.testing.assert_allclose(flat(TdLambda(gamma=0.5).advantages(each))[0], [0, -2])


def test_v_trace_worked_out_by_hand():
    # ratios 2 and 1/2 with bounds 1: rho = c = 1, 1/2
    each = steps([1, 2], [1, 2], [2, 4], [0, 0], log_ratio=[2.0, 0.5])
    advantage, target = flat(VTrace(gamma=0.5).advantages(each))
    last = 2 + 0.5 * (2 + 0.5 * 4 - 2)
    first = 1 + (1 + 0.5 * 2 - 1) + 0.5 * 1 * (last - 2)
    np.testing.assert_allclose(target, [first, last], rtol=1e-6)
    np.testing.assert_allclose(advantage, [1 + 0.5 * last - 1, 0.5 * (2 + 0.5 * 4 - 2)], rtol=1e-6)


@given(NUMBERS, NUMBERS, NUMBERS, FLAGS, LOGS, UNIT, UNIT, st.floats(0.5, 2), st.floats(0.5, 2))
def test_v_trace_is_the_sum_of_its_definition(
    reward, value, following, ended, logs, gamma, lam, max_rho, max_c
):
    each = Steps(reward, value, following, ended, logs)
    estimator = VTrace(gamma=gamma, lam=lam, max_rho=max_rho, max_c=max_c)
    target = estimator.advantages(each)[1]
    ratio = np.exp(logs.astype(np.float64))
    for t, env, _ in np.ndindex(SHAPE):
        expected, weight = float(value[t, env, 0]), 1.0
        for later in range(t, SHAPE[0]):
            at = (later, env, 0)
            error = float(reward[at]) + gamma * float(following[at]) - float(value[at])
            expected += weight * min(ratio[at], max_rho) * error
            weight *= gamma * lam * min(ratio[at], max_c)
            if ended[at]:
                break
        np.testing.assert_allclose(target[t, env, 0], expected, rtol=2e-3, atol=2e-3)


@given(NUMBERS, NUMBERS, FLAGS, UNIT)
def test_v_trace_of_the_policy_that_acted_is_the_return_to_the_end(reward, value, ended, gamma):
    following = np.concatenate([value[1:], value[:1]])
    each = Steps(reward, value, following, ended, np.zeros(SHAPE, np.float32))
    np.testing.assert_allclose(
        VTrace(gamma=gamma).advantages(each)[1],
        NStep(gamma=gamma, n=SHAPE[0]).advantages(each)[1],
        **CLOSE,
    )


@pytest.mark.parametrize(
    'estimator', [Gae(gamma=0.5), TdLambda(gamma=0.5), NStep(gamma=0.5), VTrace(gamma=0.5)]
)
def test_an_episode_of_one_step_is_its_reward_and_what_follows(estimator):
    for following in (0.0, 6.0):
        advantage, target = flat(estimator.advantages(steps([1], [3], [following], [1])))
        np.testing.assert_allclose(target, [1 + following / 2])
        np.testing.assert_allclose(advantage, target - 3)


@pytest.mark.parametrize('estimator', [Gae, TdLambda, NStep, VTrace])
def test_nothing_crosses_the_border_of_an_episode(estimator):
    results = [
        flat(estimator().advantages(steps([1, 2, last], [1, 1, last], [1, 7, 2], [0, 1, 0])))
        for last in (3, 1000)
    ]
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first[:2], second[:2])
