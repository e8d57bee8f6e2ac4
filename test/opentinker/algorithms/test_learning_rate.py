import numpy as np
import torch

from opentinker.algorithms.learning_rate import LearningRateSettings, set_rate


def rates(*at, **settings):
    chosen = LearningRateSettings(learning_rate=1.0, total_transitions=100, **settings)
    return [chosen.rate(transitions) for transitions in at]


def test_a_rate_falls_on_a_line_or_half_a_wave_and_stays():
    np.testing.assert_allclose(rates(0, 25, 100, 900, final_learning_rate=0.2), [1, 0.8, 0.2, 0.2])
    wave = rates(0, 25, 50, 100, 900, final_learning_rate=0.0, schedule='cosine')
    np.testing.assert_allclose(wave, [1, (1 + 0.5**0.5) / 2, 0.5, 0, 0], atol=1e-12)


def test_a_rate_without_an_end_does_not_fall():
    assert rates(0, 50, 1000) == [1.0, 1.0, 1.0]


def test_every_group_keeps_its_factor():
    groups = [{'params': [torch.zeros(1)], 'factor': 5.0}, {'params': [torch.zeros(1)]}]
    adam = torch.optim.Adam(groups)
    set_rate(adam, 0.5)
    assert [group['lr'] for group in adam.param_groups] == [2.5, 0.5]
