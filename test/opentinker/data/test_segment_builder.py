import numpy as np
import pytest

from opentinker.data.segment_builder import SegmentBuilder, Transition

AGENTS = 2


def transition(step, episode=1, **changes):
    values = {
        'step': step,
        'episode': episode,
        'observation': {'x': np.full((AGENTS, 3), step, np.float32)},
        'action': np.full((AGENTS, 1), step, np.float32),
        'log_prob': np.zeros(AGENTS, np.float32),
        'reward': np.full(AGENTS, step, np.float32),
        'signals': {'distance': np.full(AGENTS, step, np.float32)},
        'active': np.ones(AGENTS, bool),
        'terminated': False,
        'truncated': False,
        'policy_version': 7,
        'reward_revision': step // 2,
    }
    return Transition(**{**values, **changes})


def ended(step, **changes):
    final = {'x': np.full((AGENTS, 3), step + 0.5, np.float32)}
    return transition(
        step, final_observation=final, statistics={'success': 1.0, 'length': step}, **changes
    )


def feed(builder, transitions):
    segments = [builder.add(each) for each in transitions]
    return [segment for segment in segments if segment is not None]


def test_a_segment_is_complete_when_the_observation_after_it_is_known():
    builder = SegmentBuilder('arm', 3, 'ros')
    assert feed(builder, [transition(0), transition(1), transition(2)]) == []
    segment = builder.add(transition(3))
    assert segment.step.tolist() == [0, 1, 2]
    assert segment.observation['x'].shape == (3, 1, AGENTS, 3)
    assert segment.last_observation['x'].tolist() == np.full((1, AGENTS, 3), 3).tolist()
    assert segment.reward_revision.tolist() == [0, 0, 1]
    assert segment.transitions == 3 * AGENTS


def test_segments_follow_each_other_without_a_gap():
    segments = feed(SegmentBuilder('arm', 2, 'ros'), [transition(step) for step in range(9)])
    assert np.concatenate([segment.step for segment in segments]).tolist() == list(range(8))


def test_an_episode_end_keeps_its_true_last_observation_and_statistics():
    builder = SegmentBuilder('arm', 3, 'ros')
    (segment,) = feed(
        builder,
        [
            transition(0),
            ended(1, truncated=True),
            transition(2, episode=2),
            transition(3, episode=2),
        ],
    )
    assert segment.final_index.tolist() == [[1, 0]]
    assert segment.final_observation['x'][0, 0, 0] == 1.5
    assert segment.truncated[:, 0].tolist() == [False, True, False]
    assert segment.episodes['length'].tolist() == [1]


def test_an_episode_that_breaks_off_becomes_a_truncation_and_one_transition_is_lost_and_counted():
    builder = SegmentBuilder('arm', 3, 'ros')
    (segment,) = feed(
        builder,
        [
            transition(0),
            transition(1),
            transition(2),
            transition(3, episode=2),
            transition(4, episode=2),
        ],
    )
    assert segment.step.tolist() == [0, 1, 3]
    assert segment.truncated[:, 0].tolist() == [False, True, False]
    assert segment.final_observation['x'][0, 0, 0] == 2
    assert builder.dropped == 1


@pytest.mark.parametrize('missing', [2, 5])
def test_a_lost_message_breaks_the_episode_instead_of_joining_strangers(missing):
    builder = SegmentBuilder('arm', 100, 'ros')
    feed(builder, [transition(step) for step in range(8) if step != missing])
    assert builder.dropped == 1


def test_a_segment_without_an_episode_end_has_no_final_rows():
    (segment,) = feed(SegmentBuilder('arm', 1, 'ros'), [transition(0), transition(1)])
    assert segment.final_index.shape == (0, 2)
    assert segment.final_observation['x'].shape == (0, AGENTS, 3)
    assert segment.episodes == {}
