import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip('rclpy', reason='needs ROS 2')
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker_ros import conversions


def descriptor(shapes):
    observation = {
        f'key_{i}': ArrayInfo(shape=shape, dtype=dtype) for i, (shape, dtype) in enumerate(shapes)
    }
    group = GroupInfo(
        agents=('arm_0', 'arm_1'), observation=observation, action=ArrayInfo(shape=(1,))
    )
    return EnvDescriptor(name='test', groups={'arm': group}, control_period=0.1)


shapes = st.lists(
    st.tuples(
        st.lists(st.integers(0, 4), max_size=3).map(tuple),
        st.sampled_from(['float32', 'uint8', 'int64', 'bool']),
    ),
    min_size=1,
    max_size=4,
)


@given(shapes, st.integers(0, 2**32 - 1))
def test_observations_survive_the_wire_bit_for_bit(shapes, seed):
    described = descriptor(shapes)
    rng = np.random.default_rng(seed)
    observation = {
        'arm': {
            key: rng.integers(0, 2, (1, 2, *info.shape)).astype(info.dtype)
            for key, info in described.groups['arm'].observation.items()
        }
    }
    codec = conversions.ObservationCodec(described)
    data = conversions.to_bytes(codec.encode(observation))
    decoded = codec.decode(data)
    for key, values in observation['arm'].items():
        assert decoded['arm'][key].dtype == values.dtype
        assert np.array_equal(decoded['arm'][key], values)


def test_an_observation_of_another_size_is_refused():
    codec = conversions.ObservationCodec(descriptor([((3,), 'float32')]))
    with pytest.raises(ValueError, match='observation has 5 bytes, the descriptor says 24'):
        codec.decode(b'12345')


@given(st.integers(0, 2**31 * 10**9 - 1))
def test_stamps_keep_every_nanosecond(nanoseconds):
    assert conversions.from_stamp(conversions.to_stamp(nanoseconds)) == nanoseconds


@given(st.integers(0, 2**40))
def test_a_command_carries_its_step(step):
    assert conversions.labelled_step([conversions.step_dimension(step, 7)]) == step


@pytest.mark.parametrize('label', ['', 'joints', 'step ', 'step x', 'step -1'])
def test_a_command_sent_by_hand_has_no_step(label):
    dimension = conversions.step_dimension(1, 7)
    dimension.label = label
    assert conversions.labelled_step([dimension]) is None


def test_reward_settings_survive_the_wire():
    settings = {
        'terms': ['distance', 'reached'],
        'distance': 2.0,
        'distance.enabled': False,
        'reached.radius': 0.1,
    }
    message = conversions.to_reward_settings(settings, revision=3)
    assert message.revision == 3
    assert conversions.from_reward_settings(message) == settings


def test_poses_survive_the_wire():
    row = np.array([1.0, -2.0, 3.0, math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)])
    assert conversions.from_pose(conversions.to_pose(row)) == row.tolist()
