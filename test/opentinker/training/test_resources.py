import subprocess
import sys

import pytest
import torch
import yaml

from opentinker.config import ConfigError, JobConfig
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.policies.actor_critic import actor_critic
from opentinker.training import resources
from opentinker.training.memory import PeakMemory, resident
from opentinker.training.resources import Needs, Plan, beside_plan, kept_for_gradients, plan

MIB = 2**20
NEEDS = Needs(process=100 * MIB, environment=MIB, transition=1024, row=MIB, policies=3 * MIB)
SPARE = resources._SPARE


def job(memory, **parts):
    return JobConfig.model_validate(
        {
            'job': 'small',
            'env': {'name': 'gymnasium', 'id': 'CartPole-v1'},
            'algorithm': {'name': 'ppo', 'batch_size': 2048, 'minibatch_size': 64},
            'resources': {'memory': memory} if memory else {},
            **parts,
        }
    )


@pytest.fixture
def needs(monkeypatch):
    """Round numbers in the place of measured ones."""
    monkeypatch.setattr(resources, '_needs', lambda environment, learner: NEEDS)


def test_what_fits_stays_as_it_is(needs):
    planned = plan(job('1GiB', samplers={'envs': 8}))
    assert planned.parts == {
        'processes': 100 * MIB + SPARE,
        'environments': 8 * MIB,
        'data': 2 * 1024 * 2048,
        'policies': 3 * MIB,
        'update': 64 * MIB,
    }
    assert planned.config.samplers.envs == 8
    assert planned.config.training.micro_batch is None
    # the critic's estimates need no more rows at once than a gradient
    assert planned.config.algorithm['max_batch_size'] == 64


def test_fewer_rows_at_once_come_before_fewer_environments(needs):
    free = 100 * MIB + SPARE + 7 * MIB
    planned = plan(job(free + 64 * MIB))
    assert (planned.config.training.micro_batch, planned.config.samplers.envs) == (32, 32)
    planned = plan(job(free + 34 * MIB))
    assert (planned.config.training.micro_batch, planned.config.samplers.envs) == (16, 16)


def test_what_the_job_says_is_not_changed_but_refused_with_what_would_fit(needs):
    given = {'samplers': {'envs': 32}, 'training': {'micro_batch': 64}}
    memory = 100 * MIB + SPARE + (3 + 4 + 64 + 20) * MIB
    with pytest.raises(ConfigError) as error:
        plan(job(memory, **given))
    text = str(error.value)
    assert text.startswith('resources.memory: 215 MiB are less than the job needs, processes 124')
    assert 'what would fit: memory: 227MiB, or samplers.envs: 16, or algorithm.batch_size:' in text
    fitting = {**given, 'samplers': {'envs': 16}}
    assert plan(job(memory, **fitting)).total <= memory


def test_processes_beside_the_trainer_count(needs):
    alone = plan(job('4GiB')).parts
    workers = plan(job('4GiB', samplers={'workers': 3})).parts
    apart = plan(job('4GiB', samplers={'count': 2, 'workers': 1}), apart=True).parts
    assert workers['processes'] - alone['processes'] == 300 * MIB
    assert apart['processes'] - alone['processes'] == 500 * MIB
    assert apart['environments'] == 2 * alone['environments']


def test_a_plan_that_was_kept_is_the_same_when_the_run_goes_on(needs):
    planned = plan(job(100 * MIB + SPARE + 41 * MIB))
    again = plan(JobConfig.model_validate(planned.config.model_dump()))
    assert again.config == planned.config


def test_without_a_budget_nothing_is_planned():
    assert plan(job(None)) is None


def test_a_graph_cannot_be_planned():
    with pytest.raises(ConfigError, match='jobs without a graph'):
        plan(job('1GiB', graph={'name': 'ros'}))


def test_the_preset_small_and_sizes_in_words():
    assert job(None, resources='small').resources.cpus == 1
    assert job(None, resources='small').resources.memory == 768 * MIB
    assert job('1.5GiB').resources.memory == 1536 * MIB


@pytest.mark.parametrize('wrong', ['tiny', {'memory': 'much'}, {'memory': 0}, {'cpus': []}])
def test_resources_that_are_none_are_named(wrong):
    with pytest.raises(ValueError, match='resources'):
        job(None, resources=wrong)


def test_what_a_network_keeps_for_its_gradients_is_measured():
    group = GroupInfo(
        agents=('a',),
        observation={'seen': ArrayInfo(shape=(3,))},
        action=ArrayInfo(shape=(2,), low=-1, high=1),
    )
    descriptor = EnvDescriptor(name='small', groups={'all': group}, control_period=0.1)
    kept = kept_for_gradients(actor_critic(descriptor, 'all', hidden=[50, 70]))
    # float32 inputs once or twice, and the outputs of two hidden layers in actor and critic
    layers = 4 * 2 * (50 + 70)
    assert layers <= kept <= layers + 100


def test_the_peak_counts_what_is_gone_and_other_processes():
    peak = PeakMemory()
    before = peak.look()
    assert before >= resident()
    block = torch.ones(64 * MIB // 4)
    del block
    assert peak.look() - before > 32 * MIB
    sleeper = (
        'import sys; x = bytearray(range(256)) * 2**18; print(1, flush=True); sys.stdin.read()'
    )
    with subprocess.Popen(
        [sys.executable, '-c', sleeper], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert peak.look() - before > 90 * MIB
        child.stdin.close()


def test_the_peak_is_told_beside_the_plan():
    planned = Plan(300 * MIB, {'processes': 200 * MIB}, job(None))
    assert beside_plan(190 * MIB, planned) == '190 MiB at most, 200 MiB planned of 300 MiB'
    assert beside_plan(190 * MIB, None) == '190 MiB at most'


def test_a_job_stays_within_its_plan(tmp_path):
    config = job('460MiB').model_dump()
    config['policy'] = {'name': 'actor_critic', 'hidden': [512, 512]}
    config['algorithm'] |= {'batch_size': 16_384, 'minibatch_size': 16_384, 'epochs': 1}
    config['stop'] |= {'transitions': 30_000}
    for part in ('samplers', 'training'):
        del config[part]
    path = tmp_path / 'job.yaml'
    path.write_text(yaml.safe_dump(config))
    command = [sys.executable, '-m', 'opentinker', 'train', str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith('Memory   ')]
    peak, planned, budget = (int(word) for word in line.replace(',', '').split() if word.isdigit())
    assert peak <= planned * 1.05
    assert planned <= budget == 460
    chosen = yaml.safe_load((tmp_path / 'runs' / 'small' / 'config.yaml').read_text())
    assert chosen['training']['micro_batch'] < 16_384
