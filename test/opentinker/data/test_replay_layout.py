import numpy as np
import pytest

from opentinker.data.replay_buffer import ReplayBuffer
from opentinker.data.replay_layout import ReplayError, ReplayLayout
from opentinker.data.segment import Segment
from opentinker.envs.descriptor import ArrayInfo, GroupInfo

GROUP = GroupInfo(
    agents=('a', 'b'),
    observation={
        'seen': ArrayInfo(shape=(10,)),
        'frames': ArrayInfo(shape=(4, 5, 5), dtype='uint8'),
    },
    action=ArrayInfo(shape=(3,), low=-1, high=1),
    signals=('distance',),
)
LAYOUT = ReplayLayout(capacity=100, num_envs=2, frames={'frames': 4})
WHOLE = 2 * (10 * 4 + 25 + 3 * 4 + 4 + 4 + 1 + 4) + 18
HALF = WHOLE - 2 * 10 * 2


def test_a_layout_that_fits_stays():
    assert LAYOUT.row_bytes(GROUP) == WHOLE
    assert LAYOUT.fitted(GROUP, 100 * WHOLE) is LAYOUT


def test_float16_comes_before_fewer_steps():
    fitted = LAYOUT.fitted(GROUP, 100 * WHOLE - 1)
    assert (fitted.half, fitted.capacity) == (True, 100)
    fitted = LAYOUT.fitted(GROUP, 100 * HALF - 1)
    assert (fitted.half, fitted.capacity) == (True, 98)


def test_less_than_a_step_is_refused_with_what_it_takes():
    with pytest.raises(ReplayError, match=f'takes {2 * HALF} bytes, there are {2 * HALF - 1}'):
        LAYOUT.fitted(GROUP, 2 * HALF - 1)


def test_the_plan_is_what_a_full_buffer_takes():
    steps = 50
    lead = (steps, 2, 2)
    observation = {
        key: np.zeros((*lead, *info.shape), info.dtype) for key, info in GROUP.observation.items()
    }
    own = ReplayBuffer(LAYOUT)
    own.add(
        Segment(
            group='g',
            observation=observation,
            last_observation={key: values[0] for key, values in observation.items()},
            action=np.zeros((*lead, 3), np.float32),
            log_prob=np.zeros(lead, np.float32),
            reward=np.zeros(lead, np.float32),
            signals={'distance': np.zeros(lead, np.float32)},
            active=np.ones(lead, bool),
            terminated=np.zeros((steps, 2), bool),
            truncated=np.zeros((steps, 2), bool),
            final_index=np.zeros((0, 2), np.int64),
            final_observation={key: values[0, :0] for key, values in observation.items()},
            policy_version=np.zeros(steps, np.int64),
            reward_revision=np.zeros(steps, np.int64),
            step=np.arange(steps),
        )
    )
    assert own.storage.nbytes == 100 * WHOLE
