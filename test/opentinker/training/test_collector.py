import numpy as np
import pytest
from point_env import PointEnv

from opentinker.bus.segments import decode_segment, encode_segment
from opentinker.policies.policy import STATE, ActionOutput
from opentinker.training.collector import Collector


class Homing:
    """Acts with minus the offset, and says the offset as log-probability."""

    def initial_state(self, lead):
        return {}

    def get_action(self, observation, deterministic=False):
        offset = observation['offset']
        return ActionOutput(-offset, offset[..., 0])


class Counting(Homing):
    """Remembers how often it has acted in this episode."""

    def initial_state(self, lead):
        return {STATE: np.zeros((*lead, 1), np.float32)}

    def get_action(self, observation, deterministic=False):
        output = super().get_action(observation)
        output.state = {STATE: observation[STATE] + 1}
        return output


def collector(length: int, steps: int = 4, envs: int = 3) -> Collector:
    return Collector(PointEnv(envs, 0, steps), {'point': Homing()}, length, 'sampler_0', seed=5)


def collect(collector: Collector, count: int) -> list:
    segments = []
    while len(segments) < count:
        segments += collector.step()
    return segments


def test_a_segment_holds_what_was_seen_done_and_given():
    (segment,) = collect(collector(length=3), 1)
    offset = segment.observation['offset']
    assert offset.shape == (3, 3, 2, 1)
    np.testing.assert_array_equal(segment.action, -offset)
    np.testing.assert_array_equal(segment.log_prob, offset[..., 0])
    # 0.2 times the action is the movement, so four fifths of the offset remain
    np.testing.assert_allclose(offset[1], 0.8 * offset[0], rtol=1e-5)
    np.testing.assert_allclose(segment.last_observation['offset'], 0.8 * offset[2], rtol=1e-5)
    np.testing.assert_allclose(segment.signals['distance'], 0.8 * abs(offset[..., 0]), rtol=1e-5)
    np.testing.assert_array_equal(segment.reward, -segment.signals['distance'])
    assert segment.final_index.shape == (0, 2)
    assert segment.final_observation['offset'].shape == (0, 2, 1)


def test_an_episode_that_ends_keeps_its_true_last_observation():
    (segment,) = collect(collector(length=6, steps=4), 1)
    offset = segment.observation['offset']
    np.testing.assert_array_equal(segment.final_index, [[3, 0], [3, 1], [3, 2]])
    np.testing.assert_array_equal(segment.truncated.nonzero()[0], [3, 3, 3])
    final = segment.final_observation['offset']
    np.testing.assert_allclose(final, 0.8 * offset[3], rtol=1e-5)
    assert not np.allclose(final, offset[4])
    np.testing.assert_array_equal(segment.episodes['length'], [4, 4, 4])


def test_segments_follow_each_other_without_gaps_and_are_not_overwritten():
    collecting = collector(length=3, steps=100)
    first, second = collect(collecting, 2)
    np.testing.assert_array_equal(np.concatenate([first.step, second.step]), range(6))
    np.testing.assert_array_equal(first.last_observation['offset'], second.observation['offset'][0])
    kept = first.observation['offset'].copy()
    collect(collecting, 2)
    np.testing.assert_array_equal(first.observation['offset'], kept)


def test_versions_and_revisions_are_those_of_each_step():
    collecting = collector(length=4)
    collecting.step()
    collecting.versions['point'] = 7
    collecting.step()
    collecting.env.rewards = collecting.env.rewards.changed({'closeness': 2})
    (segment,) = collect(collecting, 1)
    assert segment.policy_version.tolist() == [0, 7, 7, 7]
    assert segment.reward_revision.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(segment.reward[2], -2 * segment.signals['distance'][2])


def test_a_collected_segment_fits_the_wire():
    (segment,) = collect(collector(length=6), 1)
    again = decode_segment([bytes(frame) for frame in encode_segment(segment)])
    assert again.sampler == 'sampler_0'
    assert again.transitions == 6 * 3 * 2


@pytest.mark.parametrize('length', [1, 7])
def test_any_length_is_collected(length):
    for segment in collect(collector(length, steps=2), 3):
        assert segment.reward.shape == (length, 3, 2)


def test_what_a_policy_remembers_goes_from_step_to_step_and_ends_with_the_episode():
    env = PointEnv(3, 0, 4)
    remembering = Collector(env, {'point': Counting()}, 6, 'sampler_0', seed=5)
    first, second = collect(remembering, 2)
    for env in range(3):
        seen = np.concatenate([each.observation[STATE][:, env, 0, 0] for each in (first, second)])
        ended = np.concatenate([each.truncated[:, env] for each in (first, second)])
        expected, age = [], 0
        for over in ended:
            expected.append(age)
            age = 0 if over else age + 1
        np.testing.assert_array_equal(seen, expected)
        assert ended.any()
    assert first.last_observation[STATE].shape == (3, 2, 1)
    for (step, env), final in zip(second.final_index, second.final_observation[STATE], strict=True):
        # of the state after acting, from which the end is valued
        np.testing.assert_array_equal(final, second.observation[STATE][step, env] + 1)
    again = decode_segment(encode_segment(first))
    np.testing.assert_array_equal(again.observation[STATE], first.observation[STATE])


class Uneven(PointEnv):
    """Environment 0 has episodes of one step, the others of ten."""

    def step(self, actions):
        self._age[0] = self._steps - 1
        return super().step(actions)


def test_collecting_by_episodes_does_not_favour_the_short_ones():
    collecting = Collector(Uneven(3, 0, 10), {'point': Homing()}, 4, 'sampler_0', seed=5)
    stats = collecting.collect(n_episode=5)
    # the first three that run and the two that began next, in environment 0
    assert sorted(stats.episodes['length']) == [10, 10, 10, 10, 10]
    assert stats.steps == 30


def test_collecting_by_steps_counts_all_environments_and_hands_out_full_segments():
    collecting, segments = collector(length=4, steps=4), []
    stats = collecting.collect(n_step=30, take=segments.append)
    assert stats.steps == 30
    assert [segment.step[0] for segment in segments] == [0, 4]
    np.testing.assert_array_equal(stats.episodes['length'], [4] * 6)
    assert stats.mean('length') == 4
    assert collecting.collect(n_step=3).mean('length') is None


@pytest.mark.parametrize('amount', [{}, {'n_step': 1, 'n_episode': 1}])
def test_either_steps_or_episodes_are_collected(amount):
    with pytest.raises(ValueError, match='either n_step or n_episode'):
        collector(length=4).collect(**amount)
