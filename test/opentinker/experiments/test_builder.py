import os
import re
from pathlib import Path

import pytest
import torch
import yaml

from opentinker.config import ConfigError, load_config
from opentinker.experiments.builder import ExperimentBuilder
from opentinker.training.callback import Callback

FILE = """
job: whole
plugins: [math]
env: {name: gymnasium, id: CartPole-v1}
policy: {name: actor_critic, hidden: [8]}
algorithm: {name: ppo, estimator: n_step, batch_size: 64, minibatch_size: 32}
rewards: {environment: 2.0}
samplers: {envs: 4, workers: 1}
stop: {transitions: 128, mean_return: 400}
evaluation: {every: 64, episodes: 2}
log: {tensorboard: false}
callbacks: [{name: tensorboard}]
training: {threads: 2}
resources: {memory: 1073741824}
seed: 3
"""


def whole():
    return (
        ExperimentBuilder('whole')
        .plugins('math')
        .env('gymnasium', id='CartPole-v1')
        .policy('actor_critic', hidden=[8])
        .algorithm('ppo', estimator='n_step', batch_size=64, minibatch_size=32)
        .rewards({'environment': 2.0})
        .samplers(envs=4, workers=1)
        .stop(transitions=128)
        .stop(mean_return=400)
        .evaluation(every=64, episodes=2)
        .log(tensorboard=False)
        .callback('tensorboard')
        .training(threads=2)
        .resources(memory='1GiB')
        .seed(3)
    )


def test_a_builder_and_a_file_say_the_same(tmp_path):
    path = tmp_path / 'job.yaml'
    path.write_text(FILE)
    assert whole().config() == load_config(path) == ExperimentBuilder.load(path).config()
    whole().save(tmp_path / 'saved.yaml')
    assert load_config(tmp_path / 'saved.yaml') == load_config(path)
    assert yaml.safe_load((tmp_path / 'saved.yaml').read_text()) == {
        **yaml.safe_load(FILE),
        'stop': {'transitions': 128, 'mean_return': 400.0},
    }


def test_variants_do_not_change_what_they_came_from():
    base = whole()
    slow = base.algorithm('trpo').job('slow').policy('actor_critic', hidden=[4])
    assert base.config().algorithm['name'] == 'ppo'
    assert base.config().policy['hidden'] == [8]
    assert (slow.config().job, slow.config().algorithm) == ('slow', {'name': 'trpo'})


def test_a_preset_of_resources_takes_no_other_settings():
    with pytest.raises(ConfigError, match='either the preset small or memory'):
        whole().resources('small', memory='2GiB')
    assert whole().resources('small').resources(cpus=1).config().resources.memory is None
    assert whole().resources(cpus=1).config().resources.memory == 2**30


def test_processors_and_threads_are_those_of_before_when_a_job_is_over(tmp_path):
    before = os.sched_getaffinity(0), torch.get_num_threads()
    # the process that runs all tests is large
    whole().resources(memory='8GiB', cpus=1).samplers(workers=0).train(
        root=tmp_path, progress=False
    )
    assert (os.sched_getaffinity(0), torch.get_num_threads()) == before


def test_a_wrong_key_is_named_as_for_a_file():
    with pytest.raises(ConfigError, match=r'samplers\.evns: unknown key; did you mean envs'):
        whole().samplers(evns=4).config()


class Counting(Callback):
    def __init__(self):
        self.updates, self.closed = 0, False

    def on_update(self, metrics):
        self.updates += 1

    def close(self):
        self.closed = True


def test_it_trains_in_this_process(tmp_path, capsys):
    counting = Counting()
    experiment = whole().resources(memory='8GiB').samplers(workers=0)
    trained = experiment.train(counting, root=tmp_path, progress=False)
    assert trained.reason == '128 transitions were sampled'
    assert trained.run.path == tmp_path / 'whole'
    assert 'MiB planned of 8,192 MiB' in trained.summary
    assert (counting.updates, counting.closed) == (2, True)
    assert capsys.readouterr().out == ''
    again = experiment.stop(transitions=64).train(
        root=tmp_path, checkpoint=trained.run.checkpoint('latest')
    )
    assert again.run.path == tmp_path / 'whole-2'
    assert f'runs in {again.run.path}' in capsys.readouterr().out


def test_the_example_of_the_readme_trains_every_algorithm_it_names(tmp_path, monkeypatch, capsys):
    readme = Path(__file__).parents[3] / 'README.md'
    (code,) = re.findall(r'```python\n(.*?)```', readme.read_text(), re.DOTALL)
    assert '50_000' in code
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace('50_000', '500'), 'README.md', 'exec'), {'__name__': 'example'})
    assert sorted(path.name for path in (tmp_path / 'runs').iterdir()) == ['a2c', 'ppo', 'trpo']
    assert capsys.readouterr().out.count('transitions were sampled') == 3
