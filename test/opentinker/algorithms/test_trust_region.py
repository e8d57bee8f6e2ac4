import numpy as np
import torch
from test_clipped_surrogate import DESCRIPTOR, gained, optimize, rollout

from opentinker.algorithms.trust_region import (
    NaturalGradient,
    TrustRegion,
    conjugate_gradient,
    fisher_product,
    flat_gradient,
)
from opentinker.config import TrainingConfig
from opentinker.policies.actor_critic import actor_critic


def attached(kind, **settings):
    policy = actor_critic(DESCRIPTOR, 'arm', hidden=[8])
    optimizer = kind(**settings)
    optimizer.attach(policy, TrainingConfig())
    return policy, optimizer


def test_conjugate_gradients_solve_a_linear_system():
    random = np.random.default_rng(0)
    root = random.normal(size=(6, 6))
    matrix = torch.from_numpy(root @ root.T + np.eye(6))
    target = torch.from_numpy(random.normal(size=6))
    solution = conjugate_gradient(lambda vector: matrix @ vector, target, steps=20)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, target), rtol=1e-4)


def test_the_fisher_product_is_the_mean_of_squared_scores():
    policy, _ = attached(NaturalGradient)
    data = rollout(policy, 5)
    with torch.no_grad():
        before = policy.distribution(data.observation)
        before.log_std = before.log_std.clone()
    parameters = [policy.log_std]
    product = fisher_product(
        lambda: before.kl(policy.distribution(data.observation)).mean(), parameters, damping=0.5
    )
    # the Fisher information of log std is 2 in each dimension, whatever the deviation
    np.testing.assert_allclose(product(torch.ones(2)).detach(), [2.5, 2.5], rtol=1e-5)


def test_the_gradient_is_one_vector():
    values = [torch.nn.Parameter(torch.tensor([2.0, 3.0])), torch.nn.Parameter(torch.tensor(5.0))]
    np.testing.assert_allclose(flat_gradient(values[0].prod() * values[1], values), [15, 10, 6])


def test_a_step_gains_and_stays_within_its_bound():
    policy, optimizer = attached(TrustRegion, max_kl=0.005, damping=0.01)
    data = rollout(policy, 256)
    metrics = optimize(optimizer, data)
    assert 0 < metrics['approx_kl'] <= 0.005
    assert metrics['gain'] > 0
    gain = gained(policy, data)
    assert gain[data.advantage > 0].mean() > gain[data.advantage < 0].mean()


def test_a_natural_step_changes_the_policy_by_about_its_bound():
    policy, optimizer = attached(NaturalGradient, max_kl=0.001, damping=1e-4)
    metrics = optimize(optimizer, rollout(policy, 512))
    np.testing.assert_allclose(metrics['approx_kl'], 0.001, rtol=0.3)


def test_an_update_without_gain_is_given_up():
    policy, optimizer = attached(TrustRegion)
    before = [tensor.clone() for tensor in policy.actor_parameters()]
    data = rollout(policy, 16, advantage=np.zeros(16, np.float32))
    assert optimize(optimizer, data)['step_length'] == 0
    for tensor, old in zip(policy.actor_parameters(), before, strict=True):
        assert torch.equal(tensor, old)


def test_a_target_that_is_not_finite_leaves_the_critic_alone():
    policy, optimizer = attached(TrustRegion, critic_epochs=1)
    before = [tensor.clone() for tensor in policy.critic.parameters()]
    optimize(optimizer, rollout(policy, 4, value_target=np.array([0, np.inf, 0, 0], np.float32)))
    for tensor, old in zip(policy.critic.parameters(), before, strict=True):
        assert torch.equal(tensor, old)
