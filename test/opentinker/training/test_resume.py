"""A run that was interrupted and resumed equals the one that was not, bit for bit."""

import logging

import numpy as np
import pytest
import yaml

from opentinker.config import JobConfig
from opentinker.data.archive import pack, unpack
from opentinker.lifecycle import Lifecycle
from opentinker.training.callback import Callback
from opentinker.training.learner import CheckpointError
from opentinker.training.local_trainer import LocalTrainer
from opentinker.training.run_directory import RunDirectory

POINT = {
    'job': 'resumed',
    'plugins': ['point_env'],
    'env': {'name': 'point', 'steps': 7},
    'policy': {'name': 'actor_critic', 'hidden': [16]},
    'algorithm': {'name': 'ppo', 'batch_size': 64, 'minibatch_size': 32, 'normalize_return': True},
    'samplers': {'envs': 4},
    'evaluation': {'every': 100, 'episodes': 3},
    'stop': {'transitions': 640, 'episodes': 5},
}
CARTPOLE = {**POINT, 'plugins': [], 'env': {'name': 'gymnasium', 'id': 'CartPole-v1'}}
ARMS = {**POINT, 'plugins': [], 'env': {'name': 'arms', 'arms': 2, 'task': 'reach'}}
OVERLAP = {**POINT, 'samplers': {**POINT['samplers'], 'overlap': True}}
WORKERS = {**POINT, 'samplers': {**POINT['samplers'], 'workers': 1}}


class Interruption(Callback):
    """Lets a signal come some steps after an update."""

    def __init__(self, trainer, life, updates, steps):
        self._left, self._life = updates, life
        self._collector, self._steps = trainer._collector, steps

    def on_update(self, metrics):
        self._left -= 1
        if self._left == 0:
            step, left = self._collector.step, iter(range(self._steps))

            def counted():
                if next(left, None) is None:
                    self._life.stopping = 'SIGTERM'
                    return []
                return step()

            self._collector.step = counted


def train(config, folder, interrupted=None, resumed=None):
    """The run directory of a job that went to its end or to its interruption."""
    with Lifecycle() as life:
        job = JobConfig(**config)
        job.import_plugins()
        trainer = life.keep(LocalTrainer(job))
        if resumed:
            trainer.resume(resumed)
        run = resumed or RunDirectory.create(job, folder)
        callbacks = [Interruption(trainer, life, *interrupted)] if interrupted else []
        trainer.run(run, life, callbacks)
    return run


def learnt(run, name='latest'):
    return pack(unpack(run.checkpoint(name).read_bytes())['groups'])


def told(run):
    """The metrics without what depends on the clock, and without the lines of the ends."""
    lines = [line for line in run.metrics() if 'stopped' not in line]
    return [{k: v for k, v in line.items() if 'seconds' not in k and '_per_s' not in k}
            for line in lines]  # fmt: skip


@pytest.mark.parametrize('config', [POINT, ARMS, WORKERS], ids=['point', 'arms', 'workers'])
@pytest.mark.parametrize('steps', [0, 3], ids=['between updates', 'within a segment'])
def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(tmp_path, config, steps):
    whole = train(config, tmp_path / 'whole')
    parts = train(config, tmp_path / 'parts', interrupted=(4, steps))
    assert len(told(parts)) == 4
    assert train(config, tmp_path, resumed=parts) == parts
    assert learnt(parts) == learnt(whole)
    assert learnt(parts, 'best') == learnt(whole, 'best')
    assert told(parts) == told(whole)


class Stop(Callback):
    """Lets a signal come at an update."""

    def __init__(self, life, updates):
        self._life, self._left = life, updates

    def on_update(self, metrics):
        self._left -= 1
        if not self._left:
            self._life.stopping = 'SIGTERM'


def test_a_run_that_collects_beside_its_updates_resumes_bit_for_bit(tmp_path):
    whole = train(OVERLAP, tmp_path / 'whole')
    with Lifecycle() as life:
        job = JobConfig(**OVERLAP)
        parts = RunDirectory.create(job, tmp_path / 'parts')
        life.keep(LocalTrainer(job)).run(parts, life, [Stop(life, 3)])
    assert len(told(parts)) == 3
    train(OVERLAP, tmp_path, resumed=parts)
    assert learnt(parts) == learnt(whole)
    assert told(parts) == told(whole)


def test_a_policy_with_a_memory_resumes_with_what_it_remembered(tmp_path):
    config = {**POINT, 'policy': {'name': 'actor_critic', 'hidden': [16], 'memory': 8}}
    whole = train(config, tmp_path / 'whole')
    parts = train(config, tmp_path / 'parts', interrupted=(4, 3))
    train(config, tmp_path, resumed=parts)
    assert learnt(parts) == learnt(whole)


def test_lines_after_the_last_checkpoint_are_written_anew(tmp_path):
    run = train(POINT, tmp_path, interrupted=(4, 0))
    before = run.metrics()
    last = before[-1]
    run.append_metrics({**last, 'seconds': last['seconds'] + 1, 'version': 99})
    with run.metrics_path.open('a') as file:
        file.write('{"half a li')
    train(POINT, tmp_path, resumed=run)
    versions = [line['version'] for line in run.metrics() if 'stopped' not in line]
    assert versions == list(range(1, 11))


def test_an_environment_that_cannot_save_its_state_starts_new_episodes_and_says_so(
    tmp_path, caplog
):
    run = train(CARTPOLE, tmp_path, interrupted=(4, 3))
    with caplog.at_level(logging.WARNING):
        train(CARTPOLE, tmp_path, resumed=run)
    assert 'CartPole-v1 cannot save its state: new episodes begin' in caplog.text
    last = run.metrics()[-1]
    assert last['all.transitions'] >= 640
    assert last['local.missing_steps'] == 0


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'samplers': {'envs': 5}}, 'written with environments 4, now it is 5'),
        ({'env': {'name': 'point', 'steps': 8}}, 'belongs to another environment'),
        ({'algorithm': {'name': 'a2c'}}, 'of algorithm ppo, not a2c'),
        ({'policy': {'name': 'actor_critic', 'hidden': [17]}}, r'\(16, 1\) torch.float32, the pol'),
    ],
)
def test_a_checkpoint_of_another_job_is_refused_and_stays(tmp_path, change, problem):
    run = train(POINT, tmp_path, interrupted=(2, 1))
    config = yaml.safe_load((run.path / 'config.yaml').read_text()) | change
    before = run.checkpoint('latest').read_bytes()
    with pytest.raises(CheckpointError, match=rf'latest\.safetensors: .*{problem}'):
        train(config, tmp_path, resumed=run)
    assert run.checkpoint('latest').read_bytes() == before


def test_a_checkpoint_without_a_trainer_is_refused_by_name(tmp_path):
    run = train(POINT, tmp_path, interrupted=(2, 1))
    state = unpack(run.checkpoint('latest').read_bytes())
    del state['trainer']
    run.write_checkpoint('latest', pack(state))
    with pytest.raises(CheckpointError, match="cannot go on from it: 'trainer'"):
        train(POINT, tmp_path, resumed=run)


def test_a_truncated_checkpoint_is_refused_by_name(tmp_path):
    run = train(POINT, tmp_path, interrupted=(2, 1))
    run.write_checkpoint('latest', run.checkpoint('latest').read_bytes()[:-40])
    with pytest.raises(CheckpointError, match=r'latest\.safetensors'):
        train(POINT, tmp_path, resumed=run)


def test_the_state_of_simulated_arms_goes_on_bit_for_bit():
    from opentinker.training.parts import make_env

    env = make_env(JobConfig(**ARMS), 3, seed=1)
    env.reset(1)
    random = np.random.default_rng(0)
    actions = random.uniform(-1, 1, (40, 3, 2, 7)).astype(np.float32)
    for action in actions[:15]:
        env.step({'arm': action})
    state = unpack(pack(env.state_dict()))
    twin = make_env(JobConfig(**ARMS), 3, seed=9)
    twin.load_state_dict(state)
    for action in actions[15:]:
        ours, theirs = env.step({'arm': action}), twin.step({'arm': action})
        for key, values in ours.observation['arm'].items():
            np.testing.assert_array_equal(values, theirs.observation['arm'][key])
        np.testing.assert_array_equal(ours.reward['arm'], theirs.reward['arm'])
    env.close()
    twin.close()
