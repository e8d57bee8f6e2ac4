from dataclasses import replace

import numpy as np
import pytest
from point_env import PointEnv

from opentinker.policies.actor_critic import actor_critic
from opentinker.training.collector import Collector
from opentinker.training.segment_check import UnfitSegmentError, check

ENV = PointEnv(num_envs=3, seed=0, steps=4)


@pytest.fixture(scope='module')
def good():
    """Six steps of three environments; an episode ends in each."""
    policy = actor_critic(ENV.descriptor, 'point', hidden=[8])
    collector = Collector(ENV, {'point': policy}, 6, 'sampler_0', seed=1)
    segments = []
    while not segments:
        segments = collector.step()
    return segments[0]


def refused(segment, says):
    with pytest.raises(UnfitSegmentError, match=says):
        check(segment, ENV.descriptor)


def broken(values, at, value):
    values = values.copy()
    values[at] = value
    return values


def test_a_collected_segment_is_fit(good):
    check(good, ENV.descriptor)


def test_another_group_is_refused_with_the_known_ones(good):
    refused(replace(good, group='leg'), "unknown group 'leg'; groups: point")


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize('name', ['action', 'log_prob', 'reward'])
def test_a_value_that_is_not_finite_is_named_with_its_step(good, name, value):
    late = replace(good, step=good.step + 100)
    wrong = broken(getattr(late, name), (4, 1), value)
    refused(replace(late, **{name: wrong}), f"'{name}' is not finite at step 104")


def test_observations_and_signals_that_are_not_finite_are_named(good):
    offset = good.observation['offset']
    refused(
        replace(good, observation={'offset': broken(offset, (2, 0, 1), np.nan)}),
        "'offset' is not finite at step 2",
    )
    distance = broken(good.signals['distance'], (5, 2, 0), np.inf)
    refused(replace(good, signals={'distance': distance}), "'distance' is not finite at step 5")
    for name in ('last_observation', 'final_observation'):
        wrong = {'offset': broken(getattr(good, name)['offset'], (0, 0), np.nan)}
        refused(replace(good, **{name: wrong}), f"{name} 'offset' is not finite")


@pytest.mark.parametrize('name', ['observation', 'last_observation', 'final_observation'])
def test_an_observation_of_another_shape_or_a_missing_one_is_named(good, name):
    own = getattr(good, name)['offset']
    refused(replace(good, **{name: {}}), f"{name} 'offset' is missing")
    wide = {'offset': np.concatenate([own, own], axis=-1)}
    refused(replace(good, **{name: wide}), rf"{name} 'offset' has shape \(2,\).*\(1,\)")


def test_actions_that_would_broadcast_are_refused(good):
    wide = np.concatenate([good.action, good.action], axis=-1)
    refused(replace(good, action=wide), r"'action' has shape \(2,\).*\(1,\)")
    refused(replace(good, action=good.action[..., 0]), r"'action' has shape \(\).*\(1,\)")


def test_another_number_of_agents_is_refused(good):
    refused(replace(good, active=good.active[:, :, :1]), '1 agents, expected 2')


def test_a_missing_signal_is_refused_since_rewards_may_need_it(good):
    refused(replace(good, signals={}), r"signals \['distance'\] are missing")


def test_every_end_of_an_episode_needs_its_true_last_observation(good):
    ends = len(good.final_index)
    assert ends == 3
    refused(replace(good, final_index=good.final_index[:-1]), f'{ends} episodes ended.* {ends - 1}')
    refused(replace(good, final_index=good.final_index + np.array([1, 0])), 'or other ones')
    twice = np.concatenate([good.final_index[:-1], good.final_index[:1]])
    refused(replace(good, final_index=twice), 'or other ones')
    refused(replace(good, truncated=np.zeros_like(good.truncated)), '0 episodes ended')


def test_whole_numbers_and_images_are_fit(good):
    seen = {'offset': (100 * good.observation['offset']).astype(np.uint8)}
    check(replace(good, observation=seen), ENV.descriptor)
