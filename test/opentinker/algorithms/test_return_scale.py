import numpy as np
from test_gae import column, segment

from opentinker.algorithms.gae import Gae
from opentinker.algorithms.return_scale import ReturnScale
from opentinker.data.archive import pack, unpack


def rewards(*values, ends=(), **changes):
    over = column(*[step in ends for step in range(len(values))], dtype=bool)[..., 0]
    own = segment(values, last=0, reward=column(*values), terminated=over, **changes)
    return own


def test_rewards_are_divided_by_the_deviation_of_their_discounted_sums():
    scale = ReturnScale(gamma=0.5)
    scale.learn([rewards(4, 2, 8, 6, ends=[1])])
    # the sums are 4, 2 + 4/2, then from nothing 8 and 6 + 8/2
    expected = np.array([6.0, 3.0]) / np.std([4, 4, 8, 10])
    np.testing.assert_allclose(scale.scaled(np.array([6.0, 3.0])), expected, rtol=1e-6)


def test_sums_go_on_from_segment_to_segment_of_a_sampler():
    whole, parts = ReturnScale(gamma=0.9), ReturnScale(gamma=0.9)
    values = np.random.default_rng(0).normal(size=8)
    whole.learn([rewards(*values, sampler='a')])
    parts.learn([rewards(*values[:5], sampler='a')])
    parts.learn([rewards(*values[5:], sampler='a')])
    one = np.ones(1)
    np.testing.assert_allclose(parts.scaled(one), whole.scaled(one), rtol=1e-6)


def test_absent_agents_count_for_nothing():
    scale = ReturnScale(gamma=0.0)
    scale.learn([rewards(1, 3, 900, active=column(1, 1, 0, dtype=bool))])
    np.testing.assert_allclose(scale.scaled(np.ones(1)), [1.0], rtol=1e-6)


def test_before_anything_was_learnt_rewards_stay():
    np.testing.assert_allclose(ReturnScale(0.9).scaled(np.array([3.0])), [3.0], rtol=1e-6)


def test_a_restored_estimator_scales_and_goes_on_as_before():
    first, second = (Gae(normalize_return=True) for _ in range(2))
    data = rewards(4, 2, 8, 6, sampler='a')
    first.learn_statistics([data])
    second.load_state_dict(unpack(pack(first.state_dict())))
    for each in (first, second):
        each.learn_statistics([data])
    assert repr(first.state_dict()) == repr(second.state_dict())


def test_a_checkpoint_without_normalisation_is_gone_on_from():
    estimator = Gae(normalize_return=True)
    estimator.load_state_dict(Gae().state_dict())
    estimator.learn_statistics([rewards(1, 2)])
