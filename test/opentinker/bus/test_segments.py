from dataclasses import fields, replace

import numpy as np
import pytest

from opentinker.bus.segments import decode_segment, encode_segment
from opentinker.data.segment import Segment
from opentinker.protocol.arrays import FrameError, encode


def segment(steps: int = 3, envs: int = 2, agents: int = 2) -> Segment:
    shape = (steps, envs, agents)
    return Segment(
        group='arm',
        observation={
            'q': np.arange(steps * envs * agents * 4, dtype=np.float32).reshape(*shape, 4)
        },
        last_observation={'q': np.ones((envs, agents, 4), np.float32)},
        action=np.ones((*shape, 3), np.float32),
        log_prob=np.zeros(shape, np.float32),
        reward=np.ones(shape, np.float32),
        signals={'d': np.ones(shape)},
        active=np.ones(shape, bool),
        terminated=np.zeros(shape[:2], bool),
        truncated=np.zeros(shape[:2], bool),
        final_index=np.array([[1, 0]]),
        final_observation={'q': np.zeros((1, agents, 4), np.float32)},
        policy_version=np.full(steps, 7),
        reward_revision=np.arange(steps),
        step=np.arange(steps) + 40,
        episodes={'return': np.array([2.5])},
        sampler='sampler_0',
    )


def damaged(**changes) -> list[bytes]:
    return [bytes(frame) for frame in encode_segment(replace(segment(), **changes))]


def test_a_segment_survives_the_wire():
    before = segment()
    after = decode_segment([bytes(frame) for frame in encode_segment(before)])
    for field in fields(Segment):
        np.testing.assert_equal(getattr(after, field.name), getattr(before, field.name))


def test_a_segment_without_ended_episodes_survives():
    before = replace(
        segment(),
        final_index=np.zeros((0, 2), np.int64),
        episodes={},
        final_observation={'q': np.zeros((0, 2, 4), np.float32)},
    )
    after = decode_segment([bytes(frame) for frame in encode_segment(before)])
    assert after.episodes == {}
    assert after.final_observation['q'].shape == (0, 2, 4)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'reward': np.zeros((4, 2, 2), np.float32)}, 'reward: axis T is 4, expected 3'),
        ({'reward': np.zeros((3, 2), np.float32)}, 'reward: shape'),
        ({'active': np.ones((3, 2, 2))}, 'active: dtype'),
        ({'signals': {'d': np.ones((3, 2, 3))}}, 'signals/d: axis A'),
        ({'signals': 3}, 'signals: expected arrays by key'),
        ({'signals': {'d': 3.0}}, 'signals/d: expected an array'),
        ({'step': 3}, 'step: expected an array'),
        ({'step': np.arange(3.0)}, 'step: dtype'),
        ({'group': 4}, 'group: expected text'),
        ({'final_index': np.array([[3, 0]])}, 'final_index: outside'),
        ({'final_index': np.array([[-1, 0]])}, 'final_index: outside'),
        ({'final_index': np.array([[1, 0, 0]])}, 'final_index: axis 2 is 3, expected 2'),
        (
            {'final_observation': {'q': np.zeros((2, 2, 4), np.float32)}},
            'final_observation/q: axis K',
        ),
    ],
)
def test_a_segment_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(FrameError, match=message):
        decode_segment(damaged(**changes))


def test_an_array_frame_that_is_no_segment_is_refused():
    with pytest.raises(FrameError, match=r"missing .*'action'"):
        decode_segment(encode({'x': np.zeros(2)}))
