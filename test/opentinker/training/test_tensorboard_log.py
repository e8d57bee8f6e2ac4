from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from opentinker.config import JobConfig
from opentinker.lifecycle import Lifecycle
from opentinker.training.callback import make_callbacks
from opentinker.training.local_trainer import LocalTrainer
from opentinker.training.run_directory import RunDirectory

BATCH = 64
CONFIG = {
    'job': 'curves',
    'env': {'name': 'gymnasium', 'id': 'CartPole-v1'},
    'policy': {'name': 'actor_critic', 'hidden': [8]},
    'algorithm': {'name': 'ppo', 'batch_size': BATCH, 'minibatch_size': 64, 'epochs': 1},
    'samplers': {'envs': 4},
    'stop': {'transitions': 10 * BATCH},
    'evaluation': {'every': 4 * BATCH, 'episodes': 2},
    'log': {'train_every': 3 * BATCH, 'update_every': 2},
}


def trained(folder, **log):
    config = JobConfig.model_validate({**CONFIG, 'log': {**CONFIG['log'], **log}})
    run = RunDirectory.create(config, folder)
    with Lifecycle() as life:
        trainer = life.keep(LocalTrainer(config))
        trainer.run(run, life, make_callbacks(config, run, life))
    return run


def curves(run):
    """Steps of the points of every curve."""
    events = EventAccumulator(str(run.path / 'tensorboard'))
    events.Reload()
    scalars = events.Tags()['scalars']
    return {tag: [point.step for point in events.Scalars(tag)] for tag in scalars}


def test_every_kind_of_curve_has_points_at_its_own_interval(tmp_path):
    run = trained(tmp_path)
    steps = curves(run)
    assert steps['update/policy_loss'] == [BATCH * each for each in (1, 3, 5, 7, 9)]
    assert steps['train/return'] == [BATCH * each for each in (1, 4, 7, 10)]
    assert steps['evaluation/return'] == [BATCH * each for each in (1, 5, 9)]
    updates = [line['all.transitions'] for line in run.metrics() if 'stopped' not in line]
    assert updates == steps['update/policy_loss']


def test_without_it_no_event_file_is_written(tmp_path):
    assert not (trained(tmp_path, tensorboard=False).path / 'tensorboard').exists()
