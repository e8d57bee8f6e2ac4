import numpy as np

from opentinker_ros.arms.actions import to_targets


def test_an_action_moves_joints_by_a_tenth_and_sets_the_gripper():
    last = np.array([[0.5, -0.5, 0.9]])
    targets = to_targets(last, np.array([[1.0, -0.5, 0.0]]))
    np.testing.assert_allclose(targets, [[0.6, -0.55, 0.5]], rtol=1e-6)
    np.testing.assert_array_equal(to_targets(last, np.array([[0, 0, -1.0]]))[..., -1], 0)
    np.testing.assert_array_equal(to_targets(last, np.array([[0, 0, 1.0]]))[..., -1], 1)


def test_actions_beyond_one_count_as_one_and_inputs_stay_as_they_are():
    last, action = np.zeros((2, 3), np.float32), np.full((2, 3), 7.0, np.float32)
    np.testing.assert_array_equal(to_targets(last, action), to_targets(last, np.ones((2, 3))))
    assert (last == 0).all()
    assert (action == 7).all()


def test_the_same_observation_gives_the_same_bits_alone_and_in_a_batch():
    rng = np.random.default_rng(0)
    last, action = rng.normal(size=(2, 16, 4, 7)).astype(np.float32)
    batch = to_targets(last, action)
    assert batch.dtype == np.float32
    for env in range(16):
        np.testing.assert_array_equal(batch[env], to_targets(last[env], action[env]))


def test_a_non_finite_action_stays_visible_to_the_gate():
    assert np.isnan(to_targets(np.zeros(3), np.array([np.nan, 0, 0]))[0])
