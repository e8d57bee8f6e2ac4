import numpy as np
import pytest
import torch
from test_clipped_surrogate import attached, optimize, rollout

from opentinker.algorithms.gradient_step import GradientStep
from opentinker.config import TrainingConfig


def weights(policy):
    return torch.cat([parameter.detach().ravel() for parameter in policy.parameters()])


def trained(training, rows=96, **settings):
    policy, optimizer = attached(
        training=training, epochs=3, minibatch_size=32, learning_rate=1e-2, **settings
    )
    metrics = optimize(optimizer, rollout(policy, rows))
    return weights(policy), metrics


def test_accumulated_gradients_train_like_the_large_batch():
    large, expected = trained(TrainingConfig())
    for micro in (7, 16, 31):
        small, metrics = trained(TrainingConfig(micro_batch=micro))
        np.testing.assert_allclose(small, large, rtol=1e-4, atol=1e-5)
        for key, value in expected.items():
            np.testing.assert_allclose(metrics[key], value, rtol=1e-3, atol=1e-5, err_msg=key)


@pytest.mark.parametrize('precision', ['bfloat16', 'float16'])
def test_lower_precision_trains_about_alike_and_keeps_weights_in_float32(precision):
    full, _ = trained(TrainingConfig())
    low, metrics = trained(TrainingConfig(precision=precision))
    assert low.dtype == torch.float32
    assert np.isfinite(list(metrics.values())).all()
    start = weights(attached()[0])
    moved, expected = low - start, full - start
    assert not torch.equal(low, full)
    assert torch.cosine_similarity(moved, expected, dim=0) > 0.8


def test_a_step_that_overflows_float16_is_left_out_and_lowers_the_scale():
    policy, _ = attached()
    adam = torch.optim.Adam(policy.parameters())
    step = GradientStep(policy, adam, TrainingConfig(precision='float16'))
    before, rows = weights(policy), torch.arange(2)
    values = step([rows], lambda _: [policy.log_std.sum() * float('inf')])
    assert values[-1] == 1
    assert torch.equal(weights(policy), before)
    scale = step.state_dict()['scaler']['scale']
    assert scale < 65536
    assert step([rows], lambda _: [policy.log_std.sum()])[-1] == 0
    assert not torch.equal(weights(policy), before)


def test_gradients_are_clipped_by_their_common_norm():
    policy, _ = attached()
    sgd = torch.optim.SGD(policy.parameters(), lr=1.0)
    step = GradientStep(policy, sgd, TrainingConfig(), max_grad_norm=0.5)
    before = policy.log_std.detach().clone()
    step([torch.arange(1)], lambda _: [3 * policy.log_std[0] - 4 * policy.log_std[1]])
    np.testing.assert_allclose(policy.log_std.detach() - before, [-0.3, 0.4], rtol=1e-4)
