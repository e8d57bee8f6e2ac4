import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from opentinker.config import ConfigError, JobConfig, load_config
from opentinker.data.archive import pack, unpack
from opentinker.lifecycle import Lifecycle
from opentinker.training.callback import Callback
from opentinker.training.learner import CheckpointError
from opentinker.training.local_trainer import LocalTrainer
from opentinker.training.memory import resident
from opentinker.training.run_directory import RunDirectory
from opentinker.training.segment_check import UnfitSegmentError

CARTPOLE = {
    'job': 'cartpole',
    'env': {'name': 'gymnasium', 'id': 'CartPole-v1'},
    'policy': {'name': 'actor_critic', 'hidden': [32]},
    'algorithm': {'name': 'ppo', 'batch_size': 64, 'minibatch_size': 64},
    'samplers': {'envs': 4},
    'stop': {'transitions': 256},
}


def trained(folder, checkpoint=None, **changes):
    """The run directory of a job that was trained to its end, and what ended it."""
    config = JobConfig(**{**CARTPOLE, **changes})
    run = RunDirectory.create(config, folder)
    with Lifecycle() as life:
        trainer = life.keep(LocalTrainer(config))
        if checkpoint:
            trainer.begin_with(checkpoint)
        reason = trainer.run(run, life)
    return run, reason


def weights(run):
    """What the latest checkpoint holds of the groups; not the seconds that they took."""
    return pack(unpack(run.checkpoint('latest').read_bytes())['groups'])


def test_a_job_trains_to_its_end_and_leaves_metrics_and_a_checkpoint(tmp_path):
    run, reason = trained(tmp_path)
    assert reason == '256 transitions were sampled'
    assert [line['version'] for line in run.metrics()] == [1, 2, 3, 4, 4]
    assert run.stop_reason() == reason
    assert run.metrics()[-1]['local.missing_steps'] == 0


def test_the_same_config_trains_the_same_policy_bit_for_bit(tmp_path):
    first, second, other = (trained(tmp_path, seed=seed)[0] for seed in (0, 0, 1))
    assert weights(first) == weights(second) != weights(other)


def test_collection_beside_the_update_lags_by_one_version_and_repeats_bit_for_bit(tmp_path):
    samplers = {'envs': 4, 'overlap': True}
    first, second = (trained(tmp_path, samplers=samplers)[0] for _ in range(2))
    assert weights(first) == weights(second)
    lines = first.metrics()[:-1]
    assert [line['max_lag'] for line in lines] == [0, 1, 1]
    assert first.metrics()[-1]['local.missing_steps'] == 0


def test_memory_does_not_grow_over_a_long_run(tmp_path):
    class Watch(Callback):
        def __init__(self):
            self.after = []

        def on_update(self, metrics):
            self.after.append(resident())

    config = JobConfig(**{**CARTPOLE, 'stop': {'transitions': 300 * 64}})
    watch = Watch()
    with Lifecycle() as life:
        trainer = life.keep(LocalTrainer(config))
        trainer.run(RunDirectory.create(config, tmp_path), life, [watch])
    assert len(watch.after) == 300
    assert watch.after[-1] - watch.after[99] < 2 * 2**20


def test_an_optimizer_that_takes_no_older_data_has_no_collection_beside_it(tmp_path):
    samplers = {'envs': 4, 'overlap': True}
    with pytest.raises(ConfigError, match=r'samplers\.overlap: .* v_trace makes up'):
        trained(tmp_path, samplers=samplers, algorithm={'name': 'a2c'})
    algorithm = {'name': 'a2c', 'estimator': 'v_trace', 'batch_size': 64}
    run, _ = trained(tmp_path, samplers=samplers, algorithm=algorithm)
    assert run.metrics()[-1]['version'] == 3


def test_what_an_environment_raises_beside_an_update_ends_the_job(tmp_path, monkeypatch):
    def fail(self):
        raise UnfitSegmentError('no such thing')

    monkeypatch.setattr('opentinker.training.collector.Collector.step', fail)
    with pytest.raises(UnfitSegmentError, match='no such thing'):
        trained(tmp_path, samplers={'envs': 4, 'overlap': True})


@pytest.mark.parametrize('algorithm', ['a2c', 'trpo', 'npg'])
def test_another_algorithm_is_one_name(tmp_path, algorithm):
    run, _ = trained(tmp_path, algorithm={'name': algorithm, 'batch_size': 64})
    assert run.metrics()[-1]['version'] == 4


def test_training_goes_on_from_a_checkpoint_and_leaves_it_as_it_is(tmp_path):
    first, _ = trained(tmp_path)
    before = weights(first)
    second, _ = trained(tmp_path, first.checkpoints / 'latest.safetensors')
    assert second.metrics()[0]['version'] == 5
    assert weights(first) == before


def test_a_checkpoint_of_another_algorithm_is_refused_by_name(tmp_path):
    first, _ = trained(tmp_path)
    path = first.checkpoints / 'latest.safetensors'
    trainer = LocalTrainer(JobConfig(**{**CARTPOLE, 'algorithm': {'name': 'a2c'}}))
    with pytest.raises(CheckpointError, match=r'latest\.safetensors: .*algorithm ppo, not a2c'):
        trainer.begin_with(path)


def test_a_job_with_a_graph_is_sent_to_up():
    with pytest.raises(ConfigError, match=r'graph: .*opentinker up'):
        LocalTrainer(JobConfig(**CARTPOLE, graph={'name': 'ros'}))


def test_a_reward_that_is_no_number_stops_training_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    config = JobConfig(**{**CARTPOLE, 'stop': {'transitions': 10_000}})
    run = RunDirectory.create(config, tmp_path)
    with Lifecycle() as life:
        trainer = life.keep(LocalTrainer(config))
        trainer._save(run)
        before, step = weights(run), trainer._env.step

        def broken(actions):
            taken = step(actions)
            if trainer._collector._track.steps_done == 37:
                taken.reward['agent'] = taken.reward['agent'].copy()
                taken.reward['agent'][2] = np.nan
            return taken

        monkeypatch.setattr(trainer._env, 'step', broken)
        with pytest.raises(UnfitSegmentError, match=r"'reward' .* step 37 of environment 2"):
            trainer.run(run, life)
    assert weights(run) == before


def test_cartpole_is_solved(tmp_path):
    root = Path(__file__).parents[3]
    config = load_config(root / 'config/cartpole.yaml').model_dump()
    config['stop'] = {'mean_return': 475.0, 'episodes': 20, 'transitions': 100_000}
    assert trained(tmp_path, **config)[1].startswith('return 4')


def test_worker_processes_of_a_trainer_that_could_not_be_made_are_gone(monkeypatch):
    def fail(*arguments):
        raise ConfigError('evaluation: no such thing')

    monkeypatch.setattr('opentinker.training.local_trainer.Evaluation', fail)
    workers = {'samplers': {'envs': 2, 'workers': 1}, 'evaluation': {'every': 100}}
    with pytest.raises(ConfigError, match='no such thing'):
        LocalTrainer(JobConfig(**{**CARTPOLE, **workers}))
    assert not multiprocessing.active_children()
