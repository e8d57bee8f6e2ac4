import pytest

from opentinker import registry
from opentinker.algorithms import ppo  # noqa: F401  (registers)
from opentinker.algorithms.algorithm import build
from opentinker.algorithms.clipped_surrogate import ClippedSurrogate, ClippedSurrogateSettings
from opentinker.algorithms.gae import Gae
from opentinker.algorithms.on_policy import OnPolicySampler, OnPolicySettings
from opentinker.config import ConfigError


@registry.register('sampler', 'test_replay', override=True)
class ReplaySampler(OnPolicySampler):
    settings = OnPolicySettings
    family = 'replay'


@registry.register('optimizer', 'test_q', override=True)
class QOptimizer(ClippedSurrogate):
    settings = ClippedSurrogateSettings
    needs = 'action values'


def test_a_recipe_names_its_parts():
    algorithm = build({'name': 'ppo'})
    assert type(algorithm.sampler) is OnPolicySampler
    assert type(algorithm.estimator) is Gae
    assert type(algorithm.optimizer) is ClippedSurrogate


def test_settings_go_to_the_part_that_has_them():
    algorithm = build({'name': 'ppo', 'batch_size': 7, 'gamma': 0.5, 'epochs': 2})
    assert algorithm.sampler.batch_size == 7


@pytest.mark.parametrize(
    ('settings', 'says'),
    [
        ({'gama': 0.9}, r'algorithm\.gama: unknown key.*gamma'),
        ({'gamma': 1.5}, r'algorithm\.gamma: .*1\.5'),
        ({'gamma': 'high'}, r"algorithm\.gamma: .*'high'"),
        ({'epochs': True}, r'algorithm\.epochs: .*True'),
        ({'batch_size': 0}, r'algorithm\.batch_size'),
        ({'learning_rate': float('inf')}, r'algorithm\.learning_rate'),
        ({'total_transitions': 2.5}, r'algorithm\.total_transitions'),
    ],
)
def test_a_wrong_setting_is_named_with_its_path(settings, says):
    with pytest.raises(ConfigError, match=says):
        build({'name': 'ppo', **settings})


def test_an_unknown_part_is_refused_with_the_known_ones():
    with pytest.raises(registry.UnknownNameError, match=r'unknown estimator.*gae'):
        build({'name': 'ppo', 'estimator': 'guess'})
    with pytest.raises(registry.UnknownNameError, match=r'unknown algorithm.*ppo'):
        build({'name': 'magic'})


def test_a_mix_that_cannot_work_is_refused_with_its_reason():
    with pytest.raises(ConfigError, match=r'estimator: works on on-policy .* gives replay data'):
        build({'name': 'ppo', 'sampler': 'test_replay'})
    with pytest.raises(ConfigError, match=r'optimizer: needs action values.*gives advantages'):
        build({'name': 'ppo', 'optimizer': 'test_q'})


def test_on_policy_data_are_handed_out_once():
    class Fragment:
        transitions = 3

    sampler = build({'name': 'ppo', 'batch_size': 6}).sampler
    first, second = Fragment(), Fragment()
    sampler.add(first)
    assert not sampler.ready()
    sampler.add(second)
    assert sampler.ready()
    assert sampler.take() == [first, second]
    assert not sampler.ready()
    assert sampler.take() == []


def test_the_settings_of_a_recipe_are_those_of_its_own_parts():
    assert build({'name': 'a2c'}).sampler.batch_size == 40
    assert build({'name': 'a2c', 'batch_size': 8}).sampler.batch_size == 8


@pytest.mark.parametrize('estimator', ['gae', 'n_step', 'td_lambda', 'v_trace'])
@pytest.mark.parametrize('optimizer', ['clipped_surrogate', 'policy_gradient', 'trust_region'])
def test_one_line_swaps_an_estimator_or_an_optimizer(estimator, optimizer):
    algorithm = build({'name': 'ppo', 'estimator': estimator, 'optimizer': optimizer})
    assert type(algorithm.estimator) is registry.get('estimator', estimator)
    assert type(algorithm.optimizer) is registry.get('optimizer', optimizer)
