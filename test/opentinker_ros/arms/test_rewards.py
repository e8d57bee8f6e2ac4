import numpy as np
import pytest

from opentinker.envs.rewards import RewardSpec
from opentinker_ros.arms.tasks.reach import Reach

SIGNALS = {
    'distance': np.array([[0.2, 0.04]], np.float32),
    'contact': np.array([[1, 0]], np.float32),
    'action_change': np.array([[3, 0]], np.float32),
    'limit_margin': np.array([[0.025, 1]], np.float32),
}


def test_terms_of_reach_by_hand():
    terms, total = RewardSpec.of(Reach.reward_terms).evaluate(SIGNALS)
    np.testing.assert_allclose(
        terms['distance'], [[np.exp(-2) - 0.2, np.exp(-0.4) - 0.04]], rtol=1e-6
    )
    np.testing.assert_array_equal(terms['reached'], [[0, 1]])
    np.testing.assert_array_equal(terms['collision'], [[-1, 0]])
    np.testing.assert_array_equal(terms['action_rate'], [[-3, 0]])
    np.testing.assert_allclose(terms['joint_limit'], [[-0.75, 0]])
    expected = [[np.exp(-2) - 0.2 - 0.5 - 0.03 - 0.075, np.exp(-0.4) - 0.04 + 1]]
    np.testing.assert_allclose(total, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ('change', 'term', 'expected'),
    [
        ({'reached.radius': 0.25}, 'reached', [[1, 1]]),
        ({'distance.scale': 0.4}, 'distance', [[np.exp(-0.5) - 0.2, np.exp(-0.1) - 0.04]]),
        ({'joint_limit.margin': 0.05}, 'joint_limit', [[-0.5, 0]]),
    ],
)
def test_a_terms_own_parameter_changes_that_term(change, term, expected):
    terms, _ = RewardSpec.of(Reach.reward_terms).changed(change).evaluate(SIGNALS)
    np.testing.assert_allclose(terms[term], expected, rtol=1e-5)
