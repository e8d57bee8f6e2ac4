import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load, save

from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.policies.actor_critic import actor_critic
from opentinker.policies.policy import PolicyMismatchError
from opentinker.policies.weights import load_weights, save_weights

INFO = GroupInfo(
    agents=('a',), observation={'x': ArrayInfo(shape=(3,))}, action=ArrayInfo(shape=(2,))
)
DESCRIPTOR = EnvDescriptor(name='small', groups={'arm': INFO}, control_period=0.1)
SEEN = {'x': np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)}


def policy(seed=0, hidden=8):
    return actor_critic(DESCRIPTOR, 'arm', seed=seed, hidden=[hidden])


def changed(**tensors):
    return save({**load(save_weights(policy(seed=1))), **tensors})


def refused(data, match):
    """Loading raises, and leaves every tensor as it was."""
    own = policy()
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    with pytest.raises(PolicyMismatchError, match=match):
        load_weights(own, data)
    for name, tensor in own.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_loaded_weights_act_alike():
    first, second = policy(seed=1), policy(seed=2)
    load_weights(second, save_weights(first))
    np.testing.assert_array_equal(
        first.get_action(SEEN, deterministic=True).action,
        second.get_action(SEEN, deterministic=True).action,
    )


def test_normalisation_statistics_travel_with_the_weights():
    first, second = policy(), policy()
    first.learn_statistics(first.inputs(SEEN))
    load_weights(second, save_weights(first))
    own, loaded = first.encoder.normalizer, second.encoder.normalizer
    assert torch.equal(own.mean, loaded.mean)
    assert loaded.count == 5


def test_saved_weights_do_not_change_with_the_policy():
    own = policy()
    data = save_weights(own)
    torch.nn.init.zeros_(own.log_std)
    assert load(data)['log_std'][0] != 0


def test_another_architecture_is_refused_with_both_shapes():
    refused(save_weights(policy(hidden=9)), r'actor\.0\.weight: \(9, 3\).*\(8, 3\)')


def test_a_tensor_that_is_not_finite_is_refused_by_name():
    refused(changed(log_std=torch.tensor([0.0, float('nan')])), 'log_std: not all values are fin')


def test_another_precision_is_refused():
    refused(changed(log_std=torch.zeros(2, dtype=torch.float64)), r'log_std: .*float64.*float32')


def test_missing_and_unknown_tensors_are_refused_by_name():
    refused(save({'log_std': torch.zeros(2)}), r"missing tensors \['actor\.0\.bias'")
    refused(changed(more=torch.zeros(2)), r"unknown tensors \['more'\]")


@given(st.binary(max_size=64))
def test_bytes_that_are_not_safetensors_are_refused(data):
    with pytest.raises(PolicyMismatchError):
        load_weights(policy(), data)


@given(st.integers(0, 400))
def test_weights_that_break_off_are_refused(length):
    with pytest.raises(PolicyMismatchError):
        load_weights(policy(), save_weights(policy())[:length])
