"""Acting by numpy gives what the torch modules give."""

import numpy as np
import pytest
import torch

from opentinker.policies.distributions import Categorical, Gaussian
from opentinker.policies.fast import draw_choice, draw_gaussian


def generator():
    return torch.Generator().manual_seed(3)


@pytest.mark.parametrize('lead', [(), (4,), (3, 2), (0, 2)])
def test_draws_and_log_probabilities_of_a_gaussian(lead):
    mean = torch.randn((*lead, 5), generator=generator())
    log_std = torch.linspace(-1, 1, 5)
    expected = Gaussian(mean, log_std, (5,)).draw(generator())
    drawn = draw_gaussian(mean.numpy(), log_std.numpy(), generator())
    for own, other in zip(drawn, expected, strict=True):
        np.testing.assert_allclose(own, other.numpy(), rtol=1e-5, atol=1e-5)
        assert np.asarray(own).dtype == np.float32


@pytest.mark.parametrize('lead', [(), (4,), (3, 2), (0, 2)])
@pytest.mark.parametrize('masked', [False, True])
def test_draws_and_log_probabilities_of_a_choice(lead, masked):
    logits = 3 * torch.randn((*lead, 6), generator=generator())
    mask = torch.tensor([1, 0, 1, 1, 0, 1]).expand(*lead, 6) if masked else None
    expected = Categorical(logits, (6,), (), mask).draw(generator())
    action, log_prob = draw_choice(
        logits.numpy(), None if mask is None else mask.numpy(), generator()
    )
    np.testing.assert_array_equal(action, expected[0].numpy())
    np.testing.assert_allclose(log_prob, expected[1].numpy(), rtol=1e-5, atol=1e-5)
    assert np.asarray(action).dtype == np.int64
