from dataclasses import replace

import numpy as np
import pytest
import torch
from point_env import PointEnv

from opentinker.algorithms import ppo  # noqa: F401  (registers)
from opentinker.config import ConfigError
from opentinker.data.archive import pack, unpack
from opentinker.policies.weights import save_weights
from opentinker.training.collector import Collector
from opentinker.training.learner import CheckpointError, Learner
from opentinker.training.segment_check import UnfitSegmentError

ENVS, STEPS = 8, 12
BATCH = ENVS * STEPS * 2


def learner(seed=0, hidden=8, env_steps=10, **algorithm):
    env = PointEnv(1, 0, env_steps)
    settings = {'name': 'ppo', 'batch_size': BATCH, 'minibatch_size': 64, **algorithm}
    policy = {'name': 'actor_critic', 'hidden': [hidden]}
    return Learner(env.descriptor, policy, settings, env.rewards, seed)


def collected(policies, count, seed=1):
    collector = Collector(PointEnv(ENVS, 0), policies, STEPS, 'sampler_0', seed)
    segments = []
    while len(segments) < count:
        segments += collector.step()
    return segments


def weights(learner):
    return save_weights(learner.policies['point'])


def test_points_learn_to_go_to_their_targets():
    learning = learner(learning_rate=3e-3, hidden=32)
    collector = Collector(PointEnv(ENVS, 0), learning.policies, STEPS, 'sampler_0', 1)
    rewards = []
    while learning.versions['point'] < 30:
        for segment in collector.step():
            learning.add(segment)
            rewards.append(learning.update()['reward'])
    assert np.mean(rewards[:3]) < -0.4
    assert np.mean(rewards[-3:]) > -0.25


def test_an_update_waits_for_a_batch_uses_it_once_and_makes_a_version():
    learning = learner(batch_size=2 * BATCH)
    first, second = collected(learning.policies, 2)
    learning.add(first)
    assert not learning.ready()
    learning.add(second)
    assert learning.ready()
    assert learning.update()['transitions'] == learning.transitions == 2 * BATCH
    assert learning.versions == {'point': 1}
    assert not learning.ready()


def test_an_unfit_segment_is_refused_and_nothing_of_it_is_kept():
    learning = learner()
    (good,) = collected(learning.policies, 1)
    with pytest.raises(UnfitSegmentError, match="'reward' is not finite at step 0"):
        learning.add(replace(good, reward=np.full_like(good.reward, np.nan)))
    assert not learning.ready()
    learning.add(good)
    assert learning.ready()


def test_old_data_are_scored_under_the_newest_rewards():
    learning = learner()
    (segment,) = collected(learning.policies, 1)
    learning.rewards = learning.rewards.changed({'closeness': 3, 'closeness.power': 2})
    learning.add(segment)
    expected = -3 * np.square(segment.signals['distance']).mean()
    np.testing.assert_allclose(learning.update()['reward'], expected, rtol=1e-4)


def test_the_same_data_train_alike_whatever_rewards_they_came_with():
    """Scored anew, stored rewards leave no trace."""
    results = []
    for stale in (False, True):
        learning = learner()
        (segment,) = collected(learning.policies, 1)
        learning.rewards = spec = learning.rewards.changed({'closeness': 2})
        fresh = spec.evaluate(segment.signals)[1]
        fields = {'reward': segment.reward * 50, 'reward_revision': np.zeros(STEPS, int)}
        if not stale:
            fields = {'reward': fresh, 'reward_revision': np.full(STEPS, spec.revision)}
        learning.add(replace(segment, **fields))
        learning.update()
        results.append(weights(learning))
    assert results[0] == results[1]


def test_the_age_of_data_is_measured_in_versions():
    learning = learner()
    first, second = collected(learning.policies, 2)
    learning.add(first)
    assert learning.update()['max_lag'] == 0
    versions = np.where(np.arange(STEPS) < STEPS // 2, 0, 1)
    learning.add(replace(second, policy_version=versions))
    metrics = learning.update()
    assert (metrics['lag'], metrics['max_lag']) == (0.5, 1)


def test_every_update_moves_the_normalisation_by_active_agents_only():
    learning = learner()
    (segment,) = collected(learning.policies, 1)
    active = segment.active.copy()
    active[:, :, 1] = False
    strange = {'offset': np.where(active[..., None], segment.observation['offset'], 1e6)}
    learning.add(replace(segment, active=active, observation=strange))
    learning.add(replace(segment, active=active, observation=strange))
    learning.update()
    normalizer = learning.policies['point'].encoder.normalizer
    assert normalizer.count == BATCH
    seen = segment.observation['offset'][:, :, 0]
    np.testing.assert_allclose(normalizer.mean, seen.mean(), rtol=1e-4, atol=1e-6)


def test_what_absent_agents_did_changes_nothing():
    results = []
    for noise in (0, 7):
        learning = learner(batch_size=BATCH // 2)
        (segment,) = collected(learning.policies, 1)
        active = segment.active.copy()
        active[:, :, 1] = False
        changes = {
            name: np.where(active.reshape(*active.shape, *[1] * (values.ndim - 3)), values, noise)
            for name in ('action', 'log_prob', 'reward')
            for values in [getattr(segment, name)]
        }
        learning.add(replace(segment, active=active, **changes))
        learning.update()
        results.append(weights(learning))
    assert results[0] == results[1]


def test_metrics_are_finite_numbers():
    learning = learner()
    learning.add(*collected(learning.policies, 1))
    metrics = learning.update()
    assert {
        'approx_kl', 'clip_fraction', 'entropy', 'explained_variance', 'learning_rate',
        'policy_loss', 'std', 'value_loss',
    } <= metrics.keys()  # fmt: skip
    assert np.isfinite(list(metrics.values())).all()


def test_a_seed_makes_learning_repeatable():
    results = []
    for _ in range(2):
        torch.rand(3)
        learning = learner(seed=4)
        learning.add(*collected(learning.policies, 1))
        learning.update()
        results.append(weights(learning))
    assert results[0] == results[1]


def test_learning_goes_on_from_a_checkpoint_as_if_it_had_never_stopped():
    learning = learner()
    first, second, third = collected(learning.policies, 3)
    learning.add(first)
    learning.update()
    learning.rewards = learning.rewards.changed({'closeness': 2})
    data = learning.checkpoint()
    resumed = learner(seed=9)
    resumed.restore(data)
    assert resumed.versions == {'point': 1}
    assert resumed.transitions == BATCH
    assert resumed.rewards == learning.rewards
    for segment in (second, third):
        for each in (learning, resumed):
            each.add(segment)
            each.update()
    assert weights(learning) == weights(resumed)


def test_a_checkpoint_is_loaded_twice_and_into_a_second_object():
    learning = learner()
    first, second = collected(learning.policies, 2)
    learning.add(first)
    learning.update()
    data = learning.checkpoint()
    results = []
    for again in (learning, learning, learner(seed=3)):
        again.restore(data)
        again.add(second)
        again.update()
        results.append(weights(again))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ('other', 'says'),
    [
        (lambda: learner(env_steps=99), 'another environment'),
        (lambda: learner(hidden=9), r'does not fit this job: .*weight'),
    ],
)
def test_a_checkpoint_of_another_job_is_refused_and_changes_nothing(other, says):
    data, own = other().checkpoint(), learner(seed=2)
    before = own.checkpoint()
    with pytest.raises(CheckpointError, match=says):
        own.restore(data)
    assert own.checkpoint() == before


def test_a_checkpoint_of_another_version_is_refused_and_changes_nothing():
    own = learner()
    before = own.checkpoint()
    with pytest.raises(CheckpointError, match='of format 99, this version reads 1'):
        own.restore(pack({**unpack(before), 'format': 99}))
    assert own.checkpoint() == before


def test_a_checkpoint_that_breaks_off_is_refused():
    own = learner()
    with pytest.raises(CheckpointError, match='not an archive'):
        own.restore(own.checkpoint()[:-8])


def test_a_wrong_setting_is_refused_at_once():
    with pytest.raises(ConfigError, match=r'algorithm\.epoch: unknown key'):
        learner(epoch=3)
