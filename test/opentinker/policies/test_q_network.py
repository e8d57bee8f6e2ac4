import math

import numpy as np
import pytest
import torch

from opentinker import registry
from opentinker.algorithms.algorithm import build
from opentinker.config import ConfigError
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.policies.policy import PolicyMismatchError
from opentinker.policies.q_heads import CategoricalHead, QHead, QuantileHead
from opentinker.policies.q_network import q_network
from opentinker.policies.weights import load_weights, save_weights

CHOICE = ArrayInfo(shape=(), dtype='int64', categories=(3,))


def descriptor(action=CHOICE, masked=False):
    observation = {'position': ArrayInfo(shape=(2,))}
    if masked:
        observation['action_mask'] = ArrayInfo(shape=(3,), dtype='bool')
    group = GroupInfo(agents=('a',), observation=observation, action=action)
    return EnvDescriptor(name='small', groups={'all': group}, control_period=0.1)


def policy(masked=False, seed=0, **settings):
    return q_network(descriptor(masked=masked), 'all', seed=seed, **{'hidden': [8], **settings})


def observation(*lead, mask=None):
    seen = {'position': np.random.default_rng(0).normal(size=(*lead, 2)).astype(np.float32)}
    if mask is not None:
        seen['action_mask'] = np.broadcast_to(np.array(mask), (*lead, 3))
    return seen


def identity(outputs):
    """Layers that pass on their inputs."""
    assert outputs
    return torch.nn.Sequential(torch.nn.Identity())


def test_it_is_found_by_name():
    assert registry.get('policy', 'q_network') is q_network


@pytest.mark.parametrize('lead', [(), (4,), (3, 2), (0, 1)])
@pytest.mark.parametrize('distribution', ['none', 'categorical', 'quantile'])
@pytest.mark.parametrize('deterministic', [False, True])
def test_any_leading_axes_are_kept(lead, distribution, deterministic):
    output = policy(distribution=distribution).get_action(observation(*lead), deterministic)
    assert output.action.shape == output.log_prob.shape == lead
    assert output.action.dtype == np.int64


def test_a_single_choice_in_a_vector_keeps_its_axis():
    acting = q_network(
        descriptor(ArrayInfo(shape=(1,), dtype='int64', categories=(3,))), 'all', hidden=[8]
    )
    assert acting.get_action(observation(5)).action.shape == (5, 1)


def test_the_best_choice_is_that_of_the_largest_value():
    acting, seen = policy(), observation(20)
    values = acting.values(acting.inputs(seen)).detach().numpy()
    chosen = acting.get_action(seen, deterministic=True).action
    np.testing.assert_array_equal(chosen, values.argmax(-1))


def test_epsilon_falls_with_the_transitions_seen_and_stays():
    acting = policy(epsilon_start=0.8, epsilon_end=0.2, epsilon_steps=100)
    for seen, epsilon in ((0, 0.8), (50, 0.5), (100, 0.2), (1000, 0.2)):
        acting.seen.fill_(seen)
        assert acting.epsilon == pytest.approx(epsilon)


def test_epsilon_is_saved_with_the_weights():
    trained, acting = policy(), policy(seed=1)
    trained.seen.fill_(5_000)
    load_weights(acting, save_weights(trained))
    assert acting.epsilon == trained.epsilon


def test_random_choices_are_as_frequent_as_their_log_prob_says():
    acting = policy(epsilon_start=0.6)
    seen = {'position': np.ones((30_000, 2), np.float32)}
    output = acting.get_action(seen)
    best = acting.get_action(seen, deterministic=True).action[0]
    for choice in range(3):
        chance = 0.2 + 0.4 * (choice == best)
        drawn = output.action == choice
        assert drawn.mean() == pytest.approx(chance, abs=0.015)
        np.testing.assert_allclose(output.log_prob[drawn], math.log(chance), rtol=1e-5)


def test_closed_choices_are_never_taken():
    acting = policy(masked=True)
    seen = observation(2_000, mask=[True, False, True])
    output = acting.get_action(seen)
    assert set(output.action) == {0, 2}
    np.testing.assert_allclose(np.exp(output.log_prob), 0.5, rtol=1e-5)  # epsilon is still 1
    assert set(acting.get_action(seen, deterministic=True).action) <= {0, 2}
    assert (acting.values(acting.inputs(seen))[:, 1] == -torch.inf).all()


def test_an_absent_agent_without_an_open_choice_has_a_finite_probability():
    output = policy(masked=True).get_action(observation(50, mask=[False, False, False]))
    assert np.isfinite(output.log_prob).all()


def test_noise_in_the_weights_explores_and_is_off_for_the_best_choices():
    acting, seen = policy(noisy=True), observation(6)
    assert acting.epsilon == 0
    drawn = []
    for _ in range(2):
        acting.use_noise(True)
        drawn.append(acting.values(acting.inputs(seen)).detach())
    assert not torch.allclose(*drawn)
    best = [acting.get_action(seen, deterministic=True) for _ in range(2)]
    np.testing.assert_array_equal(best[0].action, best[1].action)
    acting.use_noise(False)
    still = [acting.values(acting.inputs(seen)).detach() for _ in range(2)]
    assert torch.equal(*still)


def test_the_noise_of_a_layer_is_the_product_of_two_vectors():
    layer = policy(noisy=True)._noisy[0]
    layer.resample(torch.Generator().manual_seed(3))
    with torch.no_grad():
        layer.weight.zero_(), layer.bias.zero_()
        noise = layer(torch.eye(2))  # rows: noise of each input's weights, plus that of the bias
    std = 0.5 / math.sqrt(2)
    signed_roots = (
        torch.randn(size, generator=random)
        for random in [torch.Generator().manual_seed(3)]
        for size in (2, 8)
    )
    inputs, outputs = (draw.sign() * draw.abs().sqrt() for draw in signed_roots)
    expected = std * (torch.outer(inputs, outputs) + outputs)
    torch.testing.assert_close(noise, expected)


def test_noise_is_learnt_but_not_saved():
    acting = policy(noisy=True)
    assert any('weight_std' in name for name in acting.state_dict())
    assert not any('noise_' in name for name in acting.state_dict())


def test_dueling_adds_what_an_action_has_over_the_mean_to_the_value_of_the_state():
    head = QHead(identity, actions=3, dueling=False)
    features = torch.tensor([[1.0, 2.0, 6.0]])
    torch.testing.assert_close(head.values(head(features)), features)
    dueling = QHead(identity, actions=3, dueling=True)
    dueling.state_value = torch.nn.Linear(3, 1, bias=False)
    torch.nn.init.ones_(dueling.state_value.weight)
    expected = torch.tensor([[9 + 1 - 3.0, 9 + 2 - 3.0, 9 + 6 - 3.0]])
    torch.testing.assert_close(dueling.values(dueling(features)), expected)


def test_quantiles_lie_in_the_middle_of_their_shares():
    head = QuantileHead(identity, actions=1, dueling=False, quantiles=4)
    torch.testing.assert_close(head.shares, torch.tensor([0.125, 0.375, 0.625, 0.875]))
    output = head(torch.tensor([[0.0, 1.0, 2.0, 5.0]]))
    torch.testing.assert_close(head.values(output), torch.tensor([[2.0]]))


def test_a_categorical_value_is_the_expectation_over_its_support():
    head = CategoricalHead(identity, 2, False, atoms=3, value_range=(-1.0, 3.0))
    chances = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
    output = head(chances.log().reshape(1, 6))
    torch.testing.assert_close(head.values(output), torch.tensor([[0.5, 3.0]]))


def test_the_same_seed_gives_the_same_weights_and_choices():
    first, second = (policy(seed=4).get_action(observation(50)) for _ in range(2))
    np.testing.assert_array_equal(first.action, second.action)


@pytest.mark.parametrize(
    'action',
    [
        ArrayInfo(shape=(2,), low=-1, high=1),
        ArrayInfo(shape=(2,), dtype='int64', categories=(3, 4)),
    ],
)
def test_actions_that_are_no_single_choice_are_refused(action):
    with pytest.raises(PolicyMismatchError, match='single choice'):
        q_network(descriptor(action), 'all')


@pytest.mark.parametrize(
    ('settings', 'key'),
    [
        ({'atoms': 1}, r'policy\.atoms'),
        ({'value_range': [1, 1]}, 'value_range'),
        ({'epsilon_start': 2.0}, r'policy\.epsilon_start'),
        ({'duelling': True}, 'did you mean dueling'),
    ],
)
def test_wrong_settings_are_named(settings, key):
    with pytest.raises(ConfigError, match=key):
        policy(**settings)


def test_an_algorithm_for_actor_and_critic_refuses_it():
    with pytest.raises(ConfigError, match='ppo trains policies with an actor and a critic'):
        build({'name': 'ppo'}).train(policy(), seed=0)
