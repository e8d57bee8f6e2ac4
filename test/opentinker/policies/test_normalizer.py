import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opentinker.policies.normalizer import RunningNormalizer

VALUES = arrays(np.float32, (12, 2), elements=st.floats(-100, 100, width=32))


@given(VALUES, st.lists(st.integers(0, 12), max_size=4))
def test_however_the_data_are_cut_the_statistics_are_those_of_all(values, cuts):
    normalizer = RunningNormalizer(2)
    for part in np.split(values, sorted(cuts)):
        normalizer.update(torch.from_numpy(part))
    assert normalizer.count == 12
    exact = values.astype(np.float64)
    np.testing.assert_allclose(normalizer.mean, exact.mean(0), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(normalizer.variance, exact.var(0), rtol=1e-3, atol=1e-2)


def test_values_come_out_standardised_and_clipped():
    normalizer = RunningNormalizer(1, clip=3)
    normalizer.update(torch.tensor([[1.0], [3.0]]))
    out = normalizer(torch.tensor([[2.0], [3.0], [1.0], [1e9]]))
    np.testing.assert_allclose(out[:, 0], [0, 1, -1, 3], atol=1e-5)


def test_before_any_data_values_pass_unchanged():
    values = torch.tensor([[0.5, -2.0]])
    np.testing.assert_allclose(RunningNormalizer(2)(values), values, rtol=1e-6)


def test_a_value_that_never_changes_stays_finite():
    normalizer = RunningNormalizer(1)
    normalizer.update(torch.full((5, 1), 7.0))
    assert normalizer(torch.tensor([[7.0]])) == 0
    assert normalizer(torch.tensor([[8.0]])).isfinite()
