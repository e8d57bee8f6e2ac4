import numpy as np
import pytest
import torch

from opentinker import registry
from opentinker.config import ConfigError
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.policies.actor_critic import actor_critic
from opentinker.policies.policy import PolicyMismatchError

INFO = GroupInfo(
    agents=('a', 'b'),
    observation={
        'position': ArrayInfo(shape=(3,)),
        'camera': ArrayInfo(shape=(2, 2), dtype='uint8'),
        'time': ArrayInfo(shape=()),
    },
    action=ArrayInfo(shape=(2,), low=-1, high=1),
)
DESCRIPTOR = EnvDescriptor(name='small', groups={'arm': INFO}, control_period=0.1)


def policy(seed=0, **settings):
    return actor_critic(DESCRIPTOR, 'arm', seed=seed, **{'hidden': [8], **settings})


def observation(*lead, seed=0):
    random = np.random.default_rng(seed)
    return {
        'time': random.normal(size=lead).astype(np.float32),
        'camera': random.integers(0, 255, (*lead, 2, 2), np.uint8),
        'position': random.normal(size=(*lead, 3)).astype(np.float32),
    }


def test_it_is_found_by_name():
    assert registry.get('policy', 'actor_critic') is actor_critic


@pytest.mark.parametrize('lead', [(), (4,), (3, 2), (0, 2)])
def test_any_leading_axes_are_kept(lead):
    output = policy().get_action(observation(*lead))
    assert output.action.shape == (*lead, 2)
    assert output.log_prob.shape == lead
    assert output.action.dtype == output.log_prob.dtype == np.float32


def test_keys_are_flattened_in_the_order_of_the_descriptor():
    seen = observation(5)
    flat = policy().inputs(seen)['vector'].numpy()
    np.testing.assert_array_equal(flat[:, :3], seen['position'])
    np.testing.assert_array_equal(flat[:, 3:7], seen['camera'].reshape(5, 4))
    np.testing.assert_array_equal(flat[:, 7], seen['time'])


def test_a_row_alone_gets_the_action_it_gets_in_a_batch():
    acting, seen = policy(), observation(6)
    batch = acting.get_action(seen, deterministic=True).action
    alone = acting.get_action({key: v[2] for key, v in seen.items()}, deterministic=True).action
    np.testing.assert_allclose(alone, batch[2], atol=1e-6)


def test_log_probabilities_are_those_of_a_normal_distribution():
    acting, seen = policy(std=0.3), observation(4)
    output = acting.get_action(seen)
    mean = acting.get_action(seen, deterministic=True).action
    expected = torch.distributions.Normal(torch.from_numpy(mean), 0.3)
    np.testing.assert_allclose(
        output.log_prob, expected.log_prob(torch.from_numpy(output.action)).sum(-1), rtol=1e-4
    )
    chances, _ = acting(acting.inputs(seen))
    log_prob = chances.log_prob(torch.from_numpy(output.action)).detach()
    np.testing.assert_allclose(log_prob, output.log_prob, rtol=1e-5)
    np.testing.assert_allclose(chances.entropy().detach(), expected.entropy().sum(-1), rtol=1e-5)


def test_a_seed_makes_weights_and_actions_repeatable():
    seen = observation(4)
    first, again, other = policy(seed=1), policy(seed=1), policy(seed=2)
    for _ in range(2):
        np.testing.assert_array_equal(first.get_action(seen).action, again.get_action(seen).action)
    assert not np.allclose(first.get_action(seen).action, other.get_action(seen).action)


def test_other_randomness_is_neither_used_nor_moved():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    policy().get_action(observation(4))
    assert torch.rand(1) == expected


def test_acting_and_evaluating_never_move_the_normalisation():
    acting = policy()
    acting.learn_statistics(acting.inputs(observation(20)))
    before = {key: value.clone() for key, value in acting.state_dict().items()}
    acting.get_action(observation(20, seed=1))
    acting(acting.inputs(observation(20, seed=1)))
    for key, value in acting.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_actions_beyond_the_bounds_are_kept_raw():
    output = policy(std=5.0).get_action(observation(100))
    assert np.abs(output.action).max() > 1


@pytest.mark.parametrize(
    ('key', 'value', 'says'),
    [
        ('position', None, r"observation 'position' is missing"),
        ('position', np.zeros((4, 5), np.float32), r"'position' has shape \(4, 5\).*\(3,\)"),
        ('camera', np.zeros((2,), np.uint8), r"'camera' has shape \(2,\).*\(2, 2\)"),
    ],
)
def test_an_observation_that_does_not_fit_is_named_with_both_shapes(key, value, says):
    wrong = observation(4)
    wrong.pop(key)
    if value is not None:
        wrong[key] = value
    with pytest.raises(PolicyMismatchError, match=says):
        policy().get_action(wrong)


def test_an_unknown_group_is_refused_with_the_known_ones():
    with pytest.raises(PolicyMismatchError, match=r"no group 'leg'.*'small'; groups: arm"):
        actor_critic(DESCRIPTOR, 'leg')


@pytest.mark.parametrize(
    ('settings', 'says'),
    [
        ({'hiden': [8]}, r'policy\.hiden: unknown key; did you mean hidden'),
        ({'hidden': 'wide'}, r'policy\.hidden'),
        ({'hidden': []}, r'policy\.hidden'),
        ({'hidden': [8, 0]}, r'policy\.hidden\.1'),
        ({'std': 0}, r'policy\.std'),
        ({'std': True}, r'policy\.std'),
        ({'min_std': float('nan')}, r'policy\.min_std'),
    ],
)
def test_wrong_settings_are_named_with_their_path(settings, says):
    with pytest.raises(ConfigError, match=says):
        policy(**settings)


def test_a_deviation_below_its_bound_is_put_back_and_can_be_learnt_again():
    acting = policy(min_std=0.1)
    torch.nn.init.constant_(acting.log_std, -9)
    acting.constrain()
    np.testing.assert_allclose(acting.log_std.detach().exp(), 0.1, rtol=1e-5)
    acting.distribution(acting.inputs(observation(1))).entropy().sum().backward()
    assert (acting.log_std.grad == 1).all()


def test_a_policy_that_only_acts_says_that_nothing_trains_it():
    with pytest.raises(RuntimeError, match='no algorithm trains this policy'):
        policy().update([])


def test_images_and_vectors_act_together_and_every_network_gets_a_gradient():
    info = GroupInfo(
        agents=('a',),
        observation={
            'wrist.camera': ArrayInfo(shape=(36, 36, 3), dtype='uint8'),
            'position': ArrayInfo(shape=(3,)),
        },
        action=ArrayInfo(shape=(2,)),
    )
    descriptor = EnvDescriptor(name='seeing', groups={'arm': info}, control_period=0.1)
    acting = actor_critic(descriptor, 'arm', hidden=[8], distribution='squashed_gaussian')
    random = np.random.default_rng(0)
    seen = {
        'position': random.normal(size=(4, 3)).astype(np.float32),
        'wrist.camera': random.integers(0, 255, (4, 36, 36, 3), np.uint8),
    }
    output = acting.get_action(seen)
    assert np.abs(output.action).max() < 1
    chances, value = acting(acting.inputs(seen))
    log_prob = chances.log_prob(torch.from_numpy(output.action))
    np.testing.assert_allclose(log_prob.detach(), output.log_prob, rtol=1e-4)
    (log_prob.sum() + value.sum()).backward()
    assert all(parameter.grad.any() for parameter in acting.parameters())
