"""Environments in workers that go on at their own pace, one of them late."""

import time
from functools import partial

import numpy as np
import pytest
from late_env import late
from point_env import PointEnv, point

from opentinker.config import ConfigError, JobConfig
from opentinker.envs.episodes import env_seeds
from opentinker.envs.share import WorkerError
from opentinker.envs.worker_pool import WorkerPool
from opentinker.lifecycle import Lifecycle
from opentinker.policies.actor_critic import actor_critic
from opentinker.training.async_collector import AsyncCollector
from opentinker.training.learner import CheckpointError
from opentinker.training.local_trainer import LocalTrainer
from opentinker.training.run_directory import RunDirectory

ENVS = 3
LENGTH = 4
DEADLINE_S = 60.0
FOREVER_S = 10_000.0


@pytest.fixture
def collect(tmp_path):
    """Make a collector from one worker an environment; the first of them is late."""
    with Lifecycle() as life:

        def make(timeout_s, make_env=None):
            make_env = make_env or partial(late, gate=str(tmp_path))
            pool = life.keep(WorkerPool(make_env, ENVS, ENVS, seed=0))
            policy = actor_critic(pool.descriptor, 'point', hidden=[4])
            return AsyncCollector(pool, {'point': policy}, LENGTH, 'here', 3, timeout_s)

        yield make


def collected(collector, enough):
    """Segments until ``enough(segments)``, by sampler."""
    until, segments = time.monotonic() + DEADLINE_S, []
    while not enough(segments):
        assert time.monotonic() < until
        segments += collector.step()
    return segments


def names(segments):
    return {segment.sampler for segment in segments}


def test_the_others_go_on_while_one_is_late_and_its_step_is_used_when_it_comes(collect, tmp_path):
    collector = collect(0.0)
    others = collected(collector, lambda segments: len(segments) >= 6)
    assert len(names(others)) == 2
    collector.versions['point'] = 7
    (tmp_path / 'open').touch()
    every = collected(collector, lambda segments: len(names(segments + others)) == 3)
    (first,) = [each for each in every if each.sampler not in names(others)]
    np.testing.assert_array_equal(first.step, np.arange(LENGTH))
    # what it did while it was late was chosen by the policy of then
    np.testing.assert_array_equal(first.policy_version, [0, 7, 7, 7])


def test_the_steps_of_a_worker_are_those_of_its_environments_alone(collect, tmp_path):
    (tmp_path / 'open').touch()
    collector = collect(0.0)
    segments = collected(collector, lambda segments: len(names(segments)) == ENVS)
    for number, seed in enumerate(env_seeds(3, ENVS)):
        segment = next(each for each in segments if each.sampler == f'here/{number}')
        alone = PointEnv(1, 0)
        np.testing.assert_array_equal(
            segment.observation['offset'][0], alone.reset(seed)['point']['offset']
        )
        for step, action in enumerate(segment.action):
            expected = alone.step({'point': action})
            np.testing.assert_array_equal(segment.reward[step], expected.reward['point'])


def test_within_the_timeout_all_are_waited_for(collect):
    collector = collect(FOREVER_S, make_env=point)
    assert len(names([each for _ in range(LENGTH) for each in collector.step()])) == ENVS


def test_after_the_timeout_those_that_are_ready_go_on(collect):
    collector = collect(0.05)
    assert len(names(collected(collector, lambda segments: len(segments) >= 4))) == 2


def test_where_all_are_late_nothing_comes_and_the_caller_may_look_around(tmp_path):
    pool = WorkerPool(partial(late, gate=str(tmp_path)), 1, 1, seed=0)
    try:
        policy = actor_critic(pool.descriptor, 'point', hidden=[4])
        collector = AsyncCollector(pool, {'point': policy}, LENGTH, 'here', 3, 0.0)
        assert collector.step() == []
    finally:
        (tmp_path / 'open').touch()
        pool.close()


def test_changed_rewards_count_for_steps_that_begin_after_the_change(collect, tmp_path):
    collector = collect(0.0)
    collected(collector, lambda segments: len(segments) >= 2)
    collector.env.rewards = collector.env.rewards.changed({'closeness': 5.0})
    (tmp_path / 'open').touch()
    segments = collected(collector, lambda segments: len(names(segments)) == ENVS)
    for segment in segments:
        weights = np.where(segment.reward_revision == 1, 5.0, 1.0)[:, None, None]
        np.testing.assert_allclose(segment.reward, -weights * segment.signals['distance'], 1e-6)
    revisions = np.concatenate([segment.reward_revision for segment in segments])
    assert set(revisions) == {0, 1}


def test_a_worker_that_is_killed_is_named(collect, tmp_path):
    collector = collect(0.0)
    collector.env.lanes[1].share._process.kill()
    with pytest.raises(WorkerError, match=r'environments 1 to 1 ended with exit code -9'):
        collected(collector, lambda segments: False)


def job(**samplers):
    return JobConfig.model_validate(
        {
            'job': 'ready',
            'plugins': ['point_env'],
            'env': {'name': 'point'},
            'policy': {'name': 'actor_critic', 'hidden': [8]},
            'algorithm': {'name': 'ppo', 'batch_size': 64, 'estimator': 'v_trace'},
            'samplers': samplers,
            'stop': {'transitions': 640},
            'log': {'tensorboard': False},
        }
    )


@pytest.mark.parametrize('mode', ['async', 'timeout'])
def test_a_job_trains_on_whatever_is_ready_and_misses_no_step(tmp_path, mode):
    config = job(envs=4, workers=2, mode=mode)
    run = RunDirectory.create(config, tmp_path)
    with Lifecycle() as life:
        life.keep(LocalTrainer(config)).run(run, life)
    last = run.metrics()[-1]
    assert last['all.transitions'] == last['local.transitions'] >= 640
    assert last['local.missing_steps'] == 0
    assert last['version'] >= 9


def test_a_resumed_job_begins_new_episodes_and_says_so(tmp_path, caplog):
    config = job(envs=2, workers=2, mode='async')
    run = RunDirectory.create(config, tmp_path)
    with Lifecycle() as life:
        life.keep(LocalTrainer(config)).run(run, life)
    config.stop.transitions = 1_000
    with Lifecycle() as life:
        trainer = life.keep(LocalTrainer(config))
        trainer.resume(run)
        trainer.run(run, life)
    assert 'begin new episodes' in caplog.text
    assert run.metrics()[-1]['all.transitions'] >= 1_000
    with Lifecycle() as life, pytest.raises(CheckpointError, match='with 2 workers, now there'):
        life.keep(LocalTrainer(job(envs=2, workers=1, mode='async'))).resume(run)


@pytest.mark.parametrize(
    ('samplers', 'bounds'),
    [
        ({'envs': 4, 'mode': 'async'}, 'at least 1 and at most 4'),
        ({'envs': 4, 'workers': 5, 'mode': 'timeout'}, 'at least 1 and at most 4'),
        ({'envs': 4, 'workers': 4}, 'at least 0 and at most 3'),
    ],
)
def test_a_number_of_workers_that_does_not_fit_is_refused(samplers, bounds):
    with pytest.raises(ConfigError, match=rf'samplers\.workers: .*{bounds}'):
        LocalTrainer(job(**samplers))
