import math

import numpy as np
import pytest

from opentinker import registry
from opentinker.envs.rewards import KIND, Parameter, RewardError, RewardSpec, reward_term


@pytest.fixture(autouse=True)
def terms(monkeypatch):
    """Two terms of this test alone: speed * gain, and a cost for heat."""
    monkeypatch.setitem(registry._implementations, KIND, {})

    @reward_term(
        'speed',
        needs=('velocity',),
        weight=2.0,
        weight_range=(0, 10),
        gain=Parameter(1.0, 0.5, 4.0, 'gain'),
    )
    def speed(signals, gain):
        """How fast."""
        return signals['velocity'] * gain

    @reward_term('heat', needs=('temperature',), weight=1.0)
    def heat(signals):
        """How hot."""
        return -signals['temperature']


SIGNALS = {
    'velocity': np.array([[1.0, 3.0]], np.float32),
    'temperature': np.array([[0.5, 0.0]], np.float32),
}


@pytest.fixture
def spec():
    return RewardSpec.of(['speed', 'heat'])


def test_the_reward_is_the_weighted_sum_of_the_terms(spec):
    values, total = spec.evaluate(SIGNALS)
    np.testing.assert_array_equal(values['speed'], [[1, 3]])
    np.testing.assert_array_equal(values['heat'], [[-0.5, 0]])
    np.testing.assert_array_equal(total, [[1.5, 6]])


def test_a_change_gives_the_next_revision_and_leaves_the_old_one(spec):
    changed = spec.changed({'speed': 1, 'speed.gain': 2.0, 'heat.enabled': False})
    assert (spec.revision, changed.revision) == (0, 1)
    assert spec.terms['speed'].weight == 2.0
    values, total = changed.evaluate(SIGNALS)
    assert list(values) == ['speed']
    np.testing.assert_array_equal(total, [[2, 6]])


def test_with_every_term_off_the_reward_is_zero_of_the_same_shape(spec):
    _, total = spec.changed({'speed.enabled': False, 'heat.enabled': False}).evaluate(SIGNALS)
    np.testing.assert_array_equal(total, [[0, 0]])


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'speed': math.nan}, r'speed: nan is outside \[0, 10\]'),
        ({'speed': 11}, r'speed: 11 is outside \[0, 10\]'),
        ({'speed': '3'}, "speed: expected a number, got '3'"),
        ({'speed': True}, 'speed: expected a number, got True'),
        ({'speed.gain': 0.1}, r'speed.gain: 0.1 is outside \[0.5, 4.0\]'),
        ({'speed.slope': 1.0}, "no parameter 'slope'; it has"),
        ({'heat.enabled': 1}, 'expected true or false, got 1'),
        ({'glory': 1.0}, 'glory: no such term in this job; terms: speed, heat'),
        ({'terms': ['speed', 'glory']}, "unknown reward_term 'glory'"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(spec, change, message):
    with pytest.raises(RewardError, match=message):
        spec.changed(change)


def test_several_wrong_settings_are_all_named_and_none_applies(spec):
    with pytest.raises(RewardError, match=r'speed: .*heat\.enabled: '):
        spec.changed({'speed': math.inf, 'heat.enabled': 'no', 'speed.gain': 2.0})
    assert spec == RewardSpec.of(['speed', 'heat'])


def test_the_set_of_terms_can_change_and_kept_terms_keep_their_settings(spec):
    spec = spec.changed({'speed': 5.0}).changed({'terms': ['speed']})
    assert list(spec.terms) == ['speed']
    assert spec.terms['speed'].weight == 5.0
    assert spec.changed({'terms': ['heat', 'speed'], 'heat': 3.0}).terms['heat'].weight == 3.0


def test_flat_settings_give_the_same_rewards_again(spec):
    changed = spec.changed({'speed': 3.0, 'speed.gain': 2.5, 'heat.enabled': False})
    assert RewardSpec.of(list(changed.terms), changed.flat()).terms == changed.terms


def test_a_term_whose_signal_is_missing_is_named(spec):
    with pytest.raises(
        RewardError, match=r"'heat' needs signals \['temperature'\]; there are \['velocity'\]"
    ):
        spec.check_signals(('velocity',))
