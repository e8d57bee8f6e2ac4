import numpy as np
import pytest
import torch

from opentinker.algorithms.clipped_surrogate import (
    ClippedSurrogate,
    clipped_loss,
    critic_loss,
    explained_variance,
    normalized,
)
from opentinker.algorithms.rollout import Rollout
from opentinker.config import TrainingConfig
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.policies.actor_critic import actor_critic

INFO = GroupInfo(
    agents=('a',), observation={'x': ArrayInfo(shape=(3,))}, action=ArrayInfo(shape=(2,))
)
DESCRIPTOR = EnvDescriptor(name='small', groups={'arm': INFO}, control_period=0.1)


def attached(training=None, **settings):
    policy = actor_critic(DESCRIPTOR, 'arm', hidden=[8], **settings.pop('policy', {}))
    optimizer = ClippedSurrogate(**settings)
    optimizer.attach(policy, training or TrainingConfig())
    return policy, optimizer


def rollout(policy, rows, **changes):
    random = np.random.default_rng(0)
    observation = random.normal(size=(rows, 3)).astype(np.float32)
    output = policy.get_action({'x': observation})
    values = {
        'action': output.action,
        'log_prob': output.log_prob,
        'advantage': random.normal(size=rows).astype(np.float32),
        'value_target': random.normal(size=rows).astype(np.float32),
    }
    values |= changes
    values.setdefault('value', values['value_target'] - values['advantage'])
    columns = {key: torch.as_tensor(value) for key, value in values.items()}
    return Rollout(policy.inputs({'x': observation}), **columns)


def optimize(optimizer, data, transitions=0, seed=0, again=None):
    return optimizer.optimize(data, transitions, torch.Generator().manual_seed(seed), again)


def gained(policy, data):
    """How much likelier each action has become, in logarithms."""
    chances = policy.distribution(data.observation)
    return (chances.log_prob(data.action) - data.log_prob).detach()


def test_the_loss_is_the_worse_of_the_plain_and_the_clipped_ratio():
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1])
    advantage = torch.tensor([1.0, -1.0, 1.0, -1.0, 2.0])
    loss, clipped = clipped_loss(ratio.log(), advantage, clip=0.2)
    np.testing.assert_allclose(loss, -np.mean([1.2, -1.5, 0.5, -0.8, 2.2]), rtol=1e-6)
    np.testing.assert_allclose(clipped, 4 / 5)


def test_the_dual_clip_bounds_the_loss_of_a_bad_action_that_became_likelier():
    ratio, advantage = torch.tensor([9.0, 2.0, 9.0]), torch.tensor([-1.0, -1.0, 1.0])
    loss, _ = clipped_loss(ratio.log(), advantage, clip=0.2, dual_clip=3.0)
    np.testing.assert_allclose(loss, -np.mean([-3, -2, 1.2]), rtol=1e-6)


def test_the_value_clip_takes_the_worse_of_both_errors():
    value, target, before = (torch.tensor(each) for each in ([3.0, 0.5], [3.0, 2.0], [0.0, 0.0]))
    np.testing.assert_allclose(critic_loss(value, target, before, None), np.mean([0, 2.25]))
    np.testing.assert_allclose(critic_loss(value, target, before, 1.0), np.mean([4, 2.25]))


def test_epochs_end_when_the_policy_has_gone_far():
    _, optimizer = attached(epochs=10, learning_rate=0.1, target_kl=0.01)
    policy, free = attached(epochs=10, learning_rate=0.1)
    data = rollout(policy, 64)
    assert optimize(optimizer, data)['epochs'] < 10
    assert optimize(free, data)['epochs'] == 10


def test_advantages_can_stay_as_they_are():
    losses = []
    for normalize in (True, False):
        policy, optimizer = attached(epochs=1, normalize_advantage=normalize)
        data = rollout(policy, 8, advantage=np.full(8, 2.0, np.float32))
        losses.append(optimize(optimizer, data)['policy_loss'])
    np.testing.assert_allclose(losses, [0, -2], atol=1e-4)


def test_one_advantage_alone_becomes_zero_and_not_nan():
    assert normalized(torch.tensor([7.0])) == 0
    np.testing.assert_allclose(normalized(torch.tensor([1.0, 3.0])), [-1, 1], rtol=1e-6)


def test_one_sample_trains_without_nan():
    policy, optimizer = attached(epochs=2)
    metrics = optimize(optimizer, rollout(policy, 1))
    assert np.isfinite(list(metrics.values())).all()
    assert all(torch.isfinite(tensor).all() for tensor in policy.parameters())


def test_actions_of_positive_advantage_become_likelier():
    policy, optimizer = attached(learning_rate=1e-2)
    data = rollout(policy, 64)
    optimize(optimizer, data)
    gain = gained(policy, data)
    assert gain[data.advantage > 0].mean() > gain[data.advantage < 0].mean() + 0.05


@pytest.mark.parametrize(
    ('rows', 'sizes'), [(10, [4, 3, 3]), (8, [4, 4]), (9, [3, 3, 3]), (3, [3]), (1, [1])]
)
def test_no_short_last_minibatch_weighs_as_much_as_a_whole_one(rows, sizes, monkeypatch):
    policy, optimizer = attached(epochs=1, minibatch_size=4)
    data = rollout(policy, rows)
    seen = []
    forward = policy.forward

    def spy(inputs):
        seen.append(inputs['vector'])
        return forward(inputs)

    monkeypatch.setattr(policy, 'forward', spy)
    optimize(optimizer, data)
    assert [len(each) for each in seen] == sizes
    # every row once
    np.testing.assert_array_equal(
        np.sort(torch.cat(seen)[:, 0]), np.sort(data.observation['vector'][:, 0].numpy())
    )


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted():
    policy, optimizer = attached(epochs=2)
    before = [tensor.clone() for tensor in policy.parameters()]
    broken = rollout(policy, 4, value_target=np.array([0, np.inf, 0, 0], np.float32))
    assert optimize(optimizer, broken)['skipped_steps'] == 1
    for tensor, old in zip(policy.parameters(), before, strict=True):
        assert torch.equal(tensor, old)
    assert optimize(optimizer, rollout(policy, 4))['skipped_steps'] == 0


def test_the_learning_rate_falls_on_a_line_and_stays():
    policy, optimizer = attached(
        learning_rate=1e-2, final_learning_rate=2e-3, total_transitions=1000, epochs=1
    )
    rates = [
        optimize(optimizer, rollout(policy, 4), transitions)['learning_rate']
        for transitions in (0, 500, 1000, 5000)
    ]
    np.testing.assert_allclose(rates, [1e-2, 6e-3, 2e-3, 2e-3])


def test_the_action_noise_stays_above_its_bound():
    policy, optimizer = attached(
        policy={'min_std': 0.4, 'std': 0.41}, entropy_coefficient=-1.0, learning_rate=0.1
    )
    std = optimize(optimizer, rollout(policy, 64))['std']
    np.testing.assert_allclose(std, 0.4, rtol=1e-5)


def test_a_seed_makes_training_repeatable():
    results = []
    for seed in (0, 0, 1):
        policy, optimizer = attached(minibatch_size=8)
        optimize(optimizer, rollout(policy, 64), seed=seed)
        results.append(policy.actor[0].weight.detach())
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_explained_variance_is_one_for_a_perfect_critic_and_zero_for_a_constant_one():
    policy, _ = attached()
    targets = np.array([1, 2, 3, 4], np.float32)
    perfect = rollout(policy, 4, value_target=targets, advantage=np.zeros(4, np.float32))
    constant = rollout(policy, 4, value_target=targets, advantage=targets - 9)
    same = rollout(policy, 4, value_target=np.ones(4, np.float32))
    assert [explained_variance(each) for each in (perfect, constant, same)] == [1, 0, 0]


def test_advantages_can_be_estimated_anew_before_each_further_epoch():
    policy, optimizer = attached(epochs=3, recompute_advantage=True, normalize_advantage=False)
    data = rollout(policy, 16)
    asked = []

    def again():
        asked.append(1)
        return rollout(policy, 16, advantage=np.full(16, 6.0, np.float32))

    first = optimize(attached(epochs=1, normalize_advantage=False)[1], data)['policy_loss']
    mean = optimize(optimizer, data, again=again)['policy_loss']
    assert len(asked) == 2
    assert mean < (first - 6 - 6) / 3 + 0.5


def test_the_clip_falls_with_the_transitions_until_nothing_may_change_at_its_end():
    shares = []
    for transitions in (0, 100):
        policy, optimizer = attached(
            clip=0.5, final_clip=0.0, total_transitions=100, epochs=3, minibatch_size=16
        )
        shares.append(optimize(optimizer, rollout(policy, 32), transitions)['clip_fraction'])
    # with a clip of 0 every ratio but 1 is out of it
    assert shares[0] < 0.2 < 0.5 < shares[1]
