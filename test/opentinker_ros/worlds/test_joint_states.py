import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip('sensor_msgs', reason='needs the ROS messages')
from sensor_msgs.msg import JointState

from opentinker_ros.worlds.joint_states import JointStateReader

JOINTS = ['a_1', 'a_2', 'b_1']


def state(names, positions, velocities=(), seconds=1):
    message = JointState(name=list(names), position=list(positions), velocity=list(velocities))
    message.header.stamp.sec = seconds
    return message


@pytest.fixture
def counts():
    return Counter()


@pytest.fixture
def reader(counts):
    return JointStateReader(JOINTS, lambda what: counts.update([what]))


@given(st.permutations([*JOINTS, 'stranger']))
def test_joints_are_matched_by_name_in_any_order_and_strangers_are_ignored(names):
    reader = JointStateReader(JOINTS)
    value = {'a_1': 1.0, 'a_2': 2.0, 'b_1': 3.0, 'stranger': 9.0}
    assert reader.update(state(names, [value[n] for n in names], [-value[n] for n in names]))
    assert reader.positions.tolist() == [1, 2, 3]
    assert reader.velocities.tolist() == [-1, -2, -3]


def test_joints_spread_over_several_messages_are_collected(reader):
    reader.update(state(['a_1', 'a_2'], [1, 2], seconds=5))
    assert reader.missing() == ['b_1']
    assert not reader.complete_at(5 * 10**9)
    reader.update(state(['b_1'], [3], seconds=5))
    assert reader.complete_at(5 * 10**9)
    assert not reader.complete_at(6 * 10**9)


@pytest.mark.parametrize('bad', [math.nan, math.inf])
def test_a_non_finite_position_changes_no_joint_and_is_counted_with_its_name(reader, counts, bad):
    reader.update(state(JOINTS, [1, 2, 3]))
    assert not reader.update(state(JOINTS, [4, bad, 6]))
    assert reader.positions.tolist() == [1, 2, 3]
    assert counts['joint state with a non-finite position of a_2'] == 1


def test_a_duplicated_joint_is_refused_and_counted(reader, counts):
    assert not reader.update(state(['a_1', 'a_1', 'b_1'], [1, 2, 3]))
    assert reader.missing() == JOINTS
    assert counts == {'joint state that names a_1 twice': 1}


def test_positions_that_do_not_match_the_names_are_refused(reader, counts):
    assert not reader.update(state(JOINTS, [1, 2]))
    assert counts == {'joint state with 2 positions for 3 names': 1}


def test_empty_velocities_are_zero_and_nothing_to_report(reader, counts):
    assert reader.update(state(JOINTS, [1, 2, 3]))
    assert reader.velocities.tolist() == [0, 0, 0]
    assert not counts


def test_non_finite_velocities_are_zero_and_counted(reader, counts):
    assert reader.update(state(JOINTS, [1, 2, 3], [math.nan, 1, math.inf]))
    assert np.isfinite(reader.velocities).all()
    assert counts == {'joint state with a non-finite velocity': 1}


def test_a_message_of_strangers_only_is_no_news(reader):
    assert not reader.update(state(['x'], [1]))
