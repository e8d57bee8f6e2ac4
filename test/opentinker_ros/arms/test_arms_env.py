import numpy as np
import pytest
from pydantic import ValidationError

from opentinker import registry
from opentinker.envs.rewards import RewardError, reward_term
from opentinker_ros.arms.actions import to_targets
from opentinker_ros.arms.arms_env import GROUP, make_env
from opentinker_ros.arms.cell import ArmsSettings, make_cell
from opentinker_ros.arms.robot_model import RobotModelError

ENVS, ARMS = 3, 2
SHAPE = (ENVS, ARMS, 7)


@pytest.fixture
def env():
    return make_env(ENVS, 0, arms=ARMS, step_limit=15)


def actions(steps, seed=0, shape=SHAPE):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, *shape)).astype(np.float32)


def run(env, moves, seed=0):
    """First observation and all steps."""
    return env.reset(seed=seed), [env.step({GROUP: move}) for move in moves]


def assert_same(first, second):
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


def solve(env):
    """Joint solutions [env, arm, joint] of the targets that the next reset will draw."""
    return np.stack([env.task.draw(rng)[1] for rng in env._rngs])


def towards(env, goal, observation):
    """The action that moves the joints straight to the goal."""
    way = goal - observation[GROUP]['last_command'][..., :-1]
    return np.concatenate([np.clip(way / 0.1, -1, 1), -np.ones((*way.shape[:2], 1))], axis=-1)


@pytest.mark.parametrize('arms', [1, 2, 5])
def test_observations_have_the_described_shapes_and_are_finite(arms):
    env = make_env(2, 0, arms=arms)
    observation = env.reset()
    step = env.step({GROUP: np.zeros((2, arms, 7))})
    info = env.descriptor.groups[GROUP]
    assert info.agents == tuple(f'arm_{index}' for index in range(arms))
    for keys in (observation[GROUP], step.observation[GROUP]):
        assert set(keys) == set(info.observation)
        for name, array in info.observation.items():
            assert keys[name].shape == (2, arms, *array.shape)
            assert keys[name].dtype == array.dtype
            assert np.isfinite(keys[name]).all()
    assert set(step.signals[GROUP]) == set(info.signals)


def test_the_same_seed_and_actions_give_the_same_trajectory_bit_for_bit(env):
    moves = actions(40)
    first, steps = run(env, moves)
    again, others = run(make_env(ENVS, 7, arms=ARMS, step_limit=15, threads=2), moves)
    assert_same(first[GROUP], again[GROUP])
    for step, other in zip(steps, others, strict=True):
        assert_same(step.observation[GROUP], other.observation[GROUP])
        np.testing.assert_array_equal(step.reward[GROUP], other.reward[GROUP])


def test_an_environment_alone_lives_as_the_first_of_many(env):
    moves = actions(40)
    _, steps = run(env, moves)
    _, alone = run(make_env(1, 0, arms=ARMS, step_limit=15), moves[:, :1])
    for step, single in zip(steps, alone, strict=True):
        for key, values in single.observation[GROUP].items():
            np.testing.assert_array_equal(values[0], step.observation[GROUP][key][0])


def test_the_parts_driven_by_events_agree_with_step(env):
    moves = actions(20)
    _, steps = run(env, moves)
    parts = make_env(ENVS, 0, arms=ARMS, step_limit=15)
    everywhere = np.arange(ENVS)
    parts.begin_reset(everywhere)
    observation = parts.finish_reset(everywhere)
    for move, expected in zip(moves, steps, strict=True):
        targets = to_targets(observation[GROUP]['last_command'], move)
        parts.act_targets({GROUP: targets}, {GROUP: move})
        parts.world.advance(0.04)
        step = parts.observe()
        observation = step.observation
        np.testing.assert_array_equal(step.reward[GROUP], expected.reward[GROUP])
        if step.ended.size:
            assert_same(step.final_observation[GROUP], expected.final_observation[GROUP])
            parts.begin_reset(step.ended)
            observation = parts.finish_reset(step.ended)
        assert_same(observation[GROUP], expected.observation[GROUP])


def test_the_time_limit_truncates_keeps_the_true_last_observation_and_counts(env):
    moves = actions(15)
    _, steps = run(env, moves)
    assert not any(step.ended.size for step in steps[:-1])
    last = steps[-1]
    assert last.ended.tolist() == [0, 1, 2]
    assert last.truncated.all()
    assert not last.terminated.any()
    assert last.episode['length'].tolist() == [15, 15, 15]
    total = sum(step.reward[GROUP].mean(axis=1) for step in steps)
    np.testing.assert_allclose(last.episode['return'], total, rtol=1e-5)
    final, first = last.final_observation[GROUP], last.observation[GROUP]
    np.testing.assert_array_equal(final['target'], steps[-2].observation[GROUP]['target'])
    assert (final['target'] != first['target']).any(axis=(1, 2)).all()


def test_truncate_ends_all_episodes_at_the_next_step_only(env):
    env.reset(seed=0)
    env.truncate()
    assert env.step({GROUP: np.zeros(SHAPE)}).truncated.all()
    assert not env.step({GROUP: np.zeros(SHAPE)}).truncated.any()


def test_arms_that_move_to_their_solution_succeed_and_stay_a_success():
    env = make_env(4, 3, arms=4, step_limit=100)
    goal = solve(env)
    env.seed(3)
    observation = env.reset()
    for _ in range(100):
        step = env.step({GROUP: towards(env, goal, observation)})
        observation = step.observation
    np.testing.assert_allclose(
        step.signals[GROUP]['distance'][step.episode['contact'] == 0], 0, atol=0.02
    )
    assert (step.episode['success'] >= 1 - step.episode['contact']).all()
    assert step.episode['success'].any()


def test_a_goal_that_is_not_held_for_ten_steps_is_no_success(env, monkeypatch):
    held = iter([True] * 9 + [False] + [True] * 5)
    monkeypatch.setattr(env.task, 'achieved', lambda signals: np.full(ENVS, next(held)))
    assert run(env, actions(15))[1][-1].episode['success'].tolist() == [0, 0, 0]
    held = iter([True] * 10 + [False] * 5)
    assert run(env, actions(15))[1][-1].episode['success'].tolist() == [1, 1, 1]


def test_points_are_in_the_base_frame_and_the_errors_agree(env):
    keys = env.reset(seed=0)[GROUP]
    error = keys['target'] - keys['tool_position']
    np.testing.assert_allclose(keys['target_error'][:, :, 0], error, atol=1e-6)
    length = np.linalg.norm(error, axis=-1)
    for frame in (1, 2):
        np.testing.assert_allclose(
            np.linalg.norm(keys['target_error'][:, :, frame], axis=-1), length, rtol=1e-5
        )
    # the first joint turns about z: its frame is the base frame turned by its position
    pan = keys['joint_positions'][..., 0]
    ahead = np.cos(pan) * error[..., 0] + np.sin(pan) * error[..., 1]
    np.testing.assert_allclose(keys['target_error'][:, :, 1, 0], ahead, atol=1e-6)
    # two bases that face each other 1.1 m apart
    other = keys['other_tools'][:, 0, 0]
    np.testing.assert_allclose(other[:, :2], [1.1, 0] - keys['tool_position'][:, 1, :2], atol=1e-6)


def test_observations_handed_out_are_not_overwritten(env):
    env.reset(seed=0)
    first = env.step({GROUP: np.zeros(SHAPE)})
    kept = {key: values.copy() for key, values in first.observation[GROUP].items()}
    for move in actions(20):
        env.step({GROUP: move})
    assert_same(first.observation[GROUP], kept)


def test_a_non_finite_action_holds_the_arm_and_leaves_everything_finite(env):
    before = env.reset(seed=0)[GROUP]['last_command']
    move = np.ones(SHAPE)
    move[1, 0] = np.nan
    step = env.step({GROUP: move})
    after = step.observation[GROUP]['last_command']
    np.testing.assert_array_equal(after[1, 0], before[1, 0])
    assert (after[1, 1] != before[1, 1]).all()
    assert np.isfinite(step.reward[GROUP]).all()
    assert env.gate.changes['non_finite'].sum() == 7


def test_new_rewards_apply_at_the_next_step_with_their_revision(env):
    env.reset(seed=0)
    env.rewards = env.rewards.changed({'terms': ['collision'], 'collision': 0.0})
    step = env.step({GROUP: np.zeros(SHAPE)})
    assert step.reward_revision == 1
    assert list(step.reward_terms[GROUP]) == ['collision']
    assert (step.reward[GROUP] == 0).all()


def test_rewards_that_need_an_unknown_signal_are_refused(env, monkeypatch):
    known = dict(registry._implementations['reward_term'])
    monkeypatch.setitem(registry._implementations, 'reward_term', known)
    reward_term('glory', needs=('fame',), weight=1.0)(lambda signals: signals['fame'])
    old = env.rewards
    with pytest.raises(RewardError, match=r"'glory' needs signals \['fame'\]"):
        env.rewards = old.changed({'terms': ['glory']})
    assert env.rewards is old


def test_actions_of_a_wrong_shape_are_named(env):
    env.reset()
    with pytest.raises(ValueError, match=r"group 'arm'.*\(3, 2, 6\), expected \(3, 2, 7\)"):
        env.step({GROUP: np.zeros((ENVS, ARMS, 6))})


@pytest.mark.parametrize(
    ('settings', 'error', 'message'),
    [
        ({'task': 'juggle'}, registry.UnknownNameError, "unknown task 'juggle'; known: .*reach"),
        ({'urdf': '/nowhere.urdf'}, RobotModelError, 'cannot read the robot description'),
        ({'spacing': 0.05}, ValueError, 'touch; put the arms further apart'),
        ({'arms': 0}, ValidationError, 'arms'),
        ({'control_period': 0.003}, ValidationError, 'multiple of the physics step'),
        ({'colour': 'red'}, ValidationError, 'colour'),
    ],
)
def test_wrong_settings_are_named(settings, error, message):
    with pytest.raises(error, match=message):
        make_cell(ArmsSettings(**settings))


def test_targets_come_from_the_whole_workspace():
    cell = make_cell(ArmsSettings(arms=1))
    rng = np.random.default_rng(0)
    targets = np.stack([cell.task.start(rng)[1][0, :3] for _ in range(300)])
    radius = np.linalg.norm(targets[:, :2] - cell.scene.base_position[0, :2], axis=1)
    assert targets[:, 2].min() < 0.1
    assert targets[:, 2].max() > 0.75
    assert radius.max() > 0.65
    assert {tuple(signs) for signs in np.sign(targets[:, :2]).astype(int)} >= {
        (1, 1),
        (-1, 1),
        (1, -1),
        (-1, -1),
    }
