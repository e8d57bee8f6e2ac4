import numpy as np
import pytest
import torch
from test_clipped_surrogate import DESCRIPTOR, gained, optimize, rollout

from opentinker.algorithms.policy_gradient import PolicyGradient
from opentinker.config import TrainingConfig
from opentinker.policies.actor_critic import actor_critic


def attached(**settings):
    policy = actor_critic(DESCRIPTOR, 'arm', hidden=[8])
    optimizer = PolicyGradient(**settings)
    optimizer.attach(policy, TrainingConfig())
    return policy, optimizer


def test_the_loss_is_minus_log_probability_times_advantage():
    policy, optimizer = attached()
    data = rollout(policy, 8)
    metrics = optimize(optimizer, data)
    expected = -np.mean(data.log_prob.numpy() * data.advantage.numpy())
    np.testing.assert_allclose(metrics['policy_loss'], expected, rtol=1e-4)


def test_actions_of_positive_advantage_become_likelier():
    policy, optimizer = attached()
    data = rollout(policy, 64)
    for _ in range(20):
        optimize(optimizer, data)
    gain = gained(policy, data)
    assert gain[data.advantage > 0].mean() > gain[data.advantage < 0].mean() + 0.01


@pytest.mark.parametrize('normalize', [False, True])
def test_one_sample_trains_without_nan(normalize):
    policy, optimizer = attached(normalize_advantage=normalize)
    assert np.isfinite(list(optimize(optimizer, rollout(policy, 1)).values())).all()
    assert all(torch.isfinite(tensor).all() for tensor in policy.parameters())


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted():
    policy, optimizer = attached()
    before = [tensor.clone() for tensor in policy.parameters()]
    broken = rollout(policy, 4, value_target=np.array([0, np.inf, 0, 0], np.float32))
    assert optimize(optimizer, broken)['skipped_steps'] == 1
    for tensor, old in zip(policy.parameters(), before, strict=True):
        assert torch.equal(tensor, old)
