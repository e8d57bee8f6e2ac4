"""What a replay buffer hands out, beside a plain list of the steps that were put in."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opentinker.data.archive import pack, unpack
from opentinker.data.replay_buffer import ReplayBuffer, ReplayError, ReplayLayout
from opentinker.data.replay_samplers import PrioritizedSampler
from opentinker.data.segment import Segment
from opentinker.envs.rewards import RewardSpec, reward_term


@reward_term('replay_signal', needs=('signal',), weight=1.0)
def replay_signal(signals):
    """The signal itself."""
    return signals['signal']


class Stream:
    """Steps of one environment whose observation is ``100 * episode + age``, in segments."""

    def __init__(self, ends, terminal=True, name='s', stack=0):
        self.ends, self.terminal, self.name, self.stack = ends, terminal, name, stack
        self.episode, self.age, self.step, self.past = 1, 0, 0, []

    def see(self):
        number = (50 if self.stack else 100) * self.episode + self.age
        begun = self.past if self.age else [number] * max(self.stack, 1)
        self.past = [*begun[1:], number]
        return np.array([self.past] if self.stack else [number], np.uint8 if self.stack else int)

    def segment(self, steps):
        seen, finals, index = [], [], []
        over = np.zeros((steps, 1), bool)
        current = self.see() if not self.step else self.last
        for t in range(steps):
            seen.append(current)
            self.age += 1
            current = self.see()
            if self.step in self.ends:
                finals.append(current)
                index.append((t, 0))
                over[t] = True
                self.episode, self.age = self.episode + 1, 0
                current = self.see()
            self.step += 1
        self.last = current
        numbers = np.arange(self.step - steps, self.step)
        reward = numbers.astype(np.float32)[:, None, None]
        shape = seen[0].shape
        return Segment(
            group='g',
            observation={'seen': np.array(seen)[:, None]},
            last_observation={'seen': current[None]},
            action=reward[..., None],
            log_prob=np.zeros((steps, 1, 1), np.float32),
            reward=reward,
            signals={'signal': reward},
            active=np.ones((steps, 1, 1), bool),
            terminated=over & self.terminal,
            truncated=over & (not self.terminal),
            final_index=np.array(index, np.int64).reshape(-1, 2),
            final_observation={'seen': np.array(finals, seen[0].dtype).reshape(-1, *shape)},
            policy_version=np.zeros(steps, np.int64),
            reward_revision=np.zeros(steps, np.int64),
            step=numbers,
            sampler=self.name,
        )


def buffer(capacity=100, **layout):
    sampler = layout.pop('sampler', None)
    return ReplayBuffer(ReplayLayout(capacity, **{'num_envs': 1, **layout}), sampler)


def drawn(own, number=400):
    """Every transition that is drawn, by its action, which is the number of its step."""
    random = np.random.default_rng(0)
    size = len(own)
    batches = [own.sample(size, random) for _ in range(-(-number // size))]
    return {int(batch.action[row, 0, 0]): batch[row] for batch in batches for row in range(size)}


def test_what_follows_a_step_is_the_next_observation_or_the_true_last_one():
    own = buffer()
    own.add(Stream(ends=[2, 5]).segment(8))
    got = {step: int(each.next_observation.seen[0]) for step, each in drawn(own).items()}
    assert got == {0: 101, 1: 102, 2: 103, 3: 201, 4: 202, 5: 203, 6: 301, 7: 302}


def test_a_terminal_state_is_worth_nothing_and_a_time_limit_is_not_terminal():
    for terminal, worth in ((True, 0), (False, 0.5)):
        own = buffer(gamma=0.5)
        own.add(Stream(ends=[2], terminal=terminal).segment(4))
        assert [drawn(own)[step].discount[0] for step in range(4)] == [0.5, 0.5, worth, 0.5]


@settings(deadline=None, max_examples=50)
@given(
    st.sets(st.integers(0, 40)), st.lists(st.integers(1, 6), min_size=1, max_size=8),
    st.integers(6, 20), st.integers(1, 4), st.booleans(),
)  # fmt: skip
def test_n_step_transitions_are_those_of_a_plain_list(ends, lengths, capacity, n, terminal):
    own, stream = buffer(capacity, n_step=n, gamma=0.5), Stream(ends, terminal)
    for length in lengths:
        own.add(stream.segment(length))
    total = stream.step
    assert len(own) == min(total, capacity)
    plain = Stream(ends, terminal).segment(total)
    finals = {int(t): plain.final_observation['seen'][k] for k, (t, _) in
              enumerate(plain.final_index)}  # fmt: skip
    for step, each in drawn(own).items():
        assert total - capacity <= step < total
        last, reward = step, float(step)
        while last - step + 1 < n and last not in ends and last + 1 < total:
            last += 1
            reward += 0.5 ** (last - step) * last
        following = finals.get(last)
        if following is None:
            following = plain.observation['seen'][last + 1, 0] if last + 1 < total else stream.last
        discount = 0 if terminal and last in ends else 0.5 ** (last - step + 1)
        np.testing.assert_allclose(each.reward, [reward])
        np.testing.assert_array_equal(each.next_observation.seen, following)
        np.testing.assert_allclose(each.discount, [discount])


@pytest.mark.parametrize('capacity', [40, 7])
def test_stacks_are_rebuilt_from_single_frames_and_never_mix_episodes(capacity):
    own, stream = buffer(capacity, frames={'seen': 3}), Stream({3, 9}, stack=3)
    parts = [stream.segment(4) for _ in range(3)]
    for each in parts:
        own.add(each)
    seen = np.concatenate([each.observation['seen'] for each in parts])[:, 0]
    got = drawn(own)
    for step, each in got.items():
        np.testing.assert_array_equal(each.observation.seen, seen[step])
        assert each.observation.seen.dtype == np.uint8
    if capacity == 7:
        # steps 5 and 6 are stored, but no longer all the frames before them
        assert set(got) == {7, 8, 9, 10, 11}


def test_a_stack_takes_the_memory_of_a_frame():
    single, stacked = buffer(), buffer(frames={'seen': 4})
    single.add(Stream([]).segment(8))
    stacked.add(Stream([], stack=4).segment(8))
    assert stacked.storage.nbytes < single.storage.nbytes


def test_where_steps_are_missing_an_episode_ends_as_by_a_time_limit():
    own, stream = buffer(n_step=3, gamma=0.5), Stream([])
    own.add(stream.segment(3))
    stream.segment(2)
    own.add(stream.segment(3))
    got = drawn(own)
    assert got[2].next_observation.seen == 103
    assert (got[2].reward, got[2].discount) == (2, 0.5)
    assert (got[5].reward, got[5].next_observation.seen) == (5 + 6 / 2 + 7 / 4, 108)


def test_samplers_have_rings_of_their_own():
    own = buffer(num_envs=2)
    first, second = Stream([], name='a'), Stream([], name='b')
    for _ in range(3):
        own.add(first.segment(2))
        own.add(second.segment(3))
    assert len(own) == 15
    assert {int(each.next_observation.seen[0]) - step for step, each in drawn(own).items()} == {101}
    with pytest.raises(ReplayError, match='c/0 is one environment more than the 2'):
        own.add(Stream([], name='c').segment(1))


def test_an_agent_that_left_has_no_future():
    own = buffer(gamma=0.5, n_step=2)
    part = Stream([]).segment(4)
    part.active[2:] = False
    own.add(part)
    got = drawn(own)
    assert [float(got[step].discount[0]) for step in (0, 1)] == [0, 0]
    assert [float(got[step].reward[0]) for step in (0, 1)] == [0.5, 1]


def test_changed_rewards_re_score_all_that_is_stored():
    own = buffer()
    own.add(Stream([]).segment(5))
    own.rescore(RewardSpec.of(['replay_signal']).changed({'replay_signal': 3.0}))
    assert all(each.reward == 3 * step for step, each in drawn(own).items())
    assert own.revision == 1


def test_a_saved_buffer_goes_on_as_the_same_one():
    first, second = (buffer(10, n_step=2, sampler=PrioritizedSampler()) for _ in range(2))
    stream = Stream([3])
    first.add(stream.segment(7))
    first.reprioritize(first.sample(4, np.random.default_rng(1)).index, np.arange(4))
    data = pack(first.state_dict())
    for _ in range(2):
        second.load_state_dict(unpack(data))
    part = stream.segment(6)
    for own in (first, second):
        own.add(replace(part))
    one, other = (own.sample(10, np.random.default_rng(2)) for own in (first, second))
    for path, array in one.leaves():
        np.testing.assert_array_equal(array, dict(other.leaves())[path])


@pytest.mark.parametrize(
    ('other', 'says'),
    [
        ({'capacity': 30}, 'has rows 10, this one 30'),
        ({'num_envs': 2}, 'has rows 10, this one 5'),
        ({'frames': {'seen': 4}}, r"has frames \{\}, this one \{'seen': 4\}"),
        ({'half': True}, 'has half False, this one True'),
        ({'sampler': PrioritizedSampler()}, 'drawn by UniformSampler, this one by Prioritized'),
    ],
)
def test_a_buffer_of_another_form_is_refused_and_changes_nothing(other, says):
    saved, own = buffer(10), buffer(**{'capacity': 10, **other})
    saved.add(Stream([]).segment(7))
    with pytest.raises(ReplayError, match=says):
        own.load_state_dict(unpack(pack(saved.state_dict())))
    assert len(own) == 0


def test_what_float16_cannot_hold_is_refused():
    own, part = buffer(half=True), Stream([]).segment(4)
    part.observation['seen'] = np.full_like(part.observation['seen'], 7e4, np.float32)
    with pytest.raises(ReplayError, match="observation 'seen' is beyond 65504"):
        own.add(part)
    assert len(own) == 0


def test_a_buffer_is_kept_in_a_file(tmp_path):
    first, second = buffer(10), buffer(10)
    first.add(Stream([3]).segment(7))
    first.save(tmp_path / 'replay')
    second.load(tmp_path / 'replay')
    one, other = (own.sample(7, np.random.default_rng(2)) for own in (first, second))
    np.testing.assert_array_equal(one.observation.seen, other.observation.seen)
    assert [path.name for path in tmp_path.iterdir()] == ['replay']


@pytest.mark.parametrize('content', [None, b'', b'garbage', pack({'a': 1}), pack({'kind': 'x'})])
def test_a_file_that_is_no_buffer_is_named_and_changes_nothing(tmp_path, content):
    own = buffer(10)
    own.add(Stream([3]).segment(7))
    path = tmp_path / 'other'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReplayError, match='other: '):
        own.load(path)
    assert len(own) == 7


def test_signals_and_what_the_policy_said_are_kept_with_every_step():
    own, part = buffer(), Stream([]).segment(6)
    part.policy_version[3:] = 5
    part.log_prob += part.reward / 10
    own.add(part)
    for step, each in drawn(own).items():
        assert each.info.signal == step
        assert each.policy.version == (5 if step >= 3 else 0)
        np.testing.assert_allclose(each.policy.log_prob, step / 10, rtol=1e-6)


def test_observations_in_float16_come_back_in_their_own_type():
    part = Stream([]).segment(4)
    for values in (part.observation, part.last_observation, part.final_observation):
        values['seen'] = (values['seen'] / 3).astype(np.float32)
    half, whole = buffer(half=True), buffer()
    for own in (half, whole):
        own.add(part)
    expected = {step: each.observation.seen for step, each in drawn(whole).items()}
    for step, each in drawn(half).items():
        assert each.observation.seen.dtype == np.float32
        np.testing.assert_allclose(each.observation.seen, expected[step], rtol=1e-3)
    assert half.storage.nbytes < whole.storage.nbytes


@pytest.mark.parametrize('filled', [0, 3])
def test_a_batch_larger_than_the_data_is_refused(filled):
    own = buffer()
    if filled:
        own.add(Stream([]).segment(filled))
    with pytest.raises(ReplayError, match=f'a batch of 4 where {filled} steps are stored'):
        own.sample(4, np.random.default_rng(0))


def test_a_segment_longer_than_a_ring_is_refused():
    with pytest.raises(ReplayError, match='11 steps; an environment has 10 rows'):
        buffer(10).add(Stream([]).segment(11))


def test_draws_are_in_proportion_to_priorities_and_weights_make_up_for_it():
    sampler = PrioritizedSampler(alpha=1.0, beta=1.0)
    own = buffer(sampler=sampler)
    own.add(Stream([]).segment(4))
    tickets = sampler.tickets(np.arange(4))
    own.reprioritize(tickets, np.array([1.0, 2.0, 3.0, 4.0]))
    random, counts = np.random.default_rng(0), np.zeros(4)
    for _ in range(5000):
        batch = own.sample(4, random)
        np.add.at(counts, batch.index[:, 0], 1)
        evened = batch.weight * (1 + batch.index[:, 0])
        np.testing.assert_allclose(evened / evened[0], 1, rtol=1e-4)
    np.testing.assert_allclose(counts / counts.sum(), [0.1, 0.2, 0.3, 0.4], atol=0.01)


def test_new_steps_have_the_highest_priority_and_late_errors_pass_by():
    sampler = PrioritizedSampler(alpha=1.0)
    own, stream = buffer(4, sampler=sampler), Stream([])
    own.add(stream.segment(4))
    tickets = sampler.tickets(np.arange(4))
    own.reprioritize(tickets, np.array([5.0, 1, 1, 1]))
    own.add(stream.segment(2))
    np.testing.assert_allclose(sampler.priority(np.arange(4)), [5, 5, 1, 1], rtol=1e-5)
    # slots 0 and 1 hold other steps by now
    own.reprioritize(tickets, np.array([0.1, 0.1, 0.1, 0.1]))
    np.testing.assert_allclose(sampler.priority(np.arange(4)), [5, 5, 0.1, 0.1], rtol=1e-4)


def test_the_correction_is_annealed_to_the_full_one():
    sampler = PrioritizedSampler(beta=0.4, anneal=2)
    own = buffer(sampler=sampler)
    own.add(Stream([]).segment(4))
    betas = [sampler.beta]
    for _ in range(3):
        own.sample(2, np.random.default_rng(0))
        betas.append(sampler.beta)
    np.testing.assert_allclose(betas, [0.4, 0.7, 1.0, 1.0])


def test_an_error_that_is_not_finite_is_refused_as_a_priority():
    own = buffer(sampler=PrioritizedSampler())
    own.add(Stream([]).segment(4))
    with pytest.raises(ValueError, match='not finite'):
        own.reprioritize(own.sample(1, np.random.default_rng(0)).index, np.array([np.nan]))
