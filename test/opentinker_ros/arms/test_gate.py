import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opentinker_ros.arms.gate import LEAD, CommandGate
from opentinker_ros.arms.robot_model import RobotModel
from opentinker_ros.share import share_file

ROBOT = RobotModel.from_file(share_file('config/arm.urdf'))
ARMS, PERIOD = 2, 0.04
STEP = 3 * PERIOD  # velocity limit of every joint is 3 rad/s
SHAPE = (3, ARMS, 7)
LOWER, UPPER = np.append(ROBOT.lower, 0), np.append(ROBOT.upper, 1)


@pytest.fixture
def gate():
    return CommandGate(ROBOT, ARMS, PERIOD)


@pytest.fixture
def home():
    """Last command [env, arm, 7] and measured positions [env, arm, 6] at home."""
    measured = np.tile(ROBOT.home, (3, ARMS, 1))
    return np.concatenate([measured, np.zeros((3, ARMS, 1))], axis=-1), measured


def total(gate):
    return {reason: int(counts.sum()) for reason, counts in gate.changes.items()}


def test_a_safe_command_passes_bit_for_bit_and_is_not_counted(gate, home):
    last, measured = home
    targets = last + np.random.default_rng(0).uniform(-0.1, 0.1, SHAPE)
    targets[..., -1] = 0.3
    np.testing.assert_array_equal(gate(targets, last, measured), targets)
    assert sum(total(gate).values()) == 0


def test_a_jump_is_cut_to_the_velocity_limit_and_counted_by_joint(gate, home):
    last, measured = home
    targets = last.copy()
    targets[1, 0, 2] += 0.2
    np.testing.assert_allclose(gate(targets, last, measured)[1, 0, 2], last[1, 0, 2] + STEP)
    assert gate.changes['velocity'][0].tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert total(gate)['velocity'] == 1


def test_positions_stop_at_their_limits_and_the_gripper_at_its_own(gate, home):
    last, measured = home
    last[..., 1] = measured[..., 1] = ROBOT.upper[1] - 0.05
    targets = last.copy()
    targets[0, 0, 1] += 0.1
    targets[0, 1, -1] = 1.5
    gated = gate(targets, last, measured)
    assert gated[0, 0, 1] == ROBOT.upper[1]
    assert gated[0, 1, -1] == 1
    assert gate.changes['position'].sum(axis=0).tolist() == [0, 1, 0, 0, 0, 0, 1]


def test_a_command_leads_a_blocked_arm_by_no_more_than_the_bound(gate, home):
    last, measured = home
    for _ in range(10):
        last = gate(last + np.append(np.full(6, 0.1), 0), last, measured)
    np.testing.assert_allclose(last[..., 0], measured[..., 0] + LEAD)
    assert total(gate)['lead'] > 0


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_a_non_finite_target_holds_that_arm_alone(gate, home, bad):
    last, measured = home
    targets = last + 0.01
    targets[2, 1, 3] = bad
    gated = gate(targets, last, measured)
    np.testing.assert_array_equal(gated[2, 1], last[2, 1])
    np.testing.assert_array_equal(gated[2, 0], targets[2, 0])
    assert gate.changes['non_finite'][1].tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_an_arm_that_is_not_measured_holds_its_last_command(gate, home):
    last, measured = home
    measured[0, 1, 5] = np.nan
    gated = gate(last + 0.01, last, measured)
    np.testing.assert_array_equal(gated[0, 1], last[0, 1])
    np.testing.assert_array_equal(gated[0, 0], last[0, 0] + 0.01)
    assert gate.changes['unmeasured'][1].tolist() == [0, 0, 0, 0, 0, 1, 0]


anything = st.floats(allow_nan=True, allow_infinity=True)


@given(
    targets=arrays(float, SHAPE, elements=anything),
    share=arrays(float, SHAPE, elements=st.floats(0, 1)),
    lag=arrays(float, (3, ARMS, 6), elements=st.floats(-LEAD, LEAD)),
)
def test_from_a_viable_state_no_bound_is_crossed(targets, share, lag):
    last = LOWER + share * (UPPER - LOWER)
    measured = last[..., :-1] + lag
    gated = CommandGate(ROBOT, ARMS, PERIOD)(targets, last, measured)
    assert np.isfinite(gated).all()
    assert (gated[..., :-1] >= np.minimum(LOWER, measured.min(initial=9) - LEAD)[:-1] - 1e-9).all()
    inside = (measured > LOWER[:-1] - LEAD) & (measured < UPPER[:-1] + LEAD)
    joints = gated[..., :-1]
    assert ((joints >= LOWER[:-1] - 1e-9) & (joints <= UPPER[:-1] + 1e-9))[inside].all()
    assert (np.abs(joints - last[..., :-1]) <= STEP + 1e-9).all()
    assert (np.abs(joints - measured) <= LEAD + 1e-9).all()


@given(
    targets=arrays(float, SHAPE, elements=st.floats(-9, 9)),
    last=arrays(float, SHAPE, elements=st.floats(-9, 9)),
    measured=arrays(float, (3, ARMS, 6), elements=st.floats(-9, 9)),
)
def test_from_any_state_the_command_moves_no_faster_and_leads_no_further(targets, last, measured):
    gated = CommandGate(ROBOT, ARMS, PERIOD)(targets, last, measured)[..., :-1]
    before = last[..., :-1]
    assert (np.abs(gated - before) <= STEP + 1e-9).all()
    assert (np.abs(gated - measured) <= np.maximum(LEAD, np.abs(before - measured)) + 1e-9).all()
