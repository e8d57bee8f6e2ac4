"""The command ``opentinker train`` as a user runs it: interrupted, resumed, mistaken."""

import signal
import subprocess
import sys
import time

import pytest
import yaml

from opentinker.training.run_directory import RunDirectory

DEADLINE_S = 60.0
CONFIG = {
    'job': 'points',
    'plugins': ['point_env'],
    'env': {'name': 'point'},
    'policy': {'name': 'actor_critic', 'hidden': [8]},
    'algorithm': {'name': 'ppo', 'batch_size': 64, 'minibatch_size': 64, 'epochs': 1},
    'samplers': {'envs': 4},
    'log': {'tensorboard': False},
}


def command(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, '-m', 'opentinker', 'train', *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write(folder, **changes):
    path = folder / 'job.yaml'
    path.write_text(yaml.safe_dump({**CONFIG, **changes}))
    return str(path)


def await_updates(process, run, number):
    until = time.monotonic() + DEADLINE_S
    while not run.metrics_path.exists() or len(run.metrics()) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_ends_in_good_order_and_goes_on_when_it_is_named(tmp_path, number):
    run = RunDirectory(tmp_path / 'runs' / 'points')
    process = command(tmp_path, write(tmp_path))
    await_updates(process, run, 3)
    process.send_signal(number)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    assert f'Result     stopped by {number.name}' in out
    before = run.metrics()[-1]
    settings = yaml.safe_load((run.path / 'config.yaml').read_text())
    settings['stop']['transitions'] = before['all.transitions'] + 300
    (run.path / 'config.yaml').write_text(yaml.safe_dump(settings))
    process = command(tmp_path, str(run.path))
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    assert 'transitions were sampled' in out
    after = run.metrics()[-1]
    assert after['all.transitions'] >= before['all.transitions'] + 300
    assert after['version'] > before['version']
    assert after['local.missing_steps'] == 0
    assert [path.name for path in (tmp_path / 'runs').iterdir()] == ['points']


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'callbacks': [{'name': 'nobody'}]}, "unknown callback 'nobody'"),
        ({'callbacks': [{'name': 'tensorboard', 'loud': 1}]}, 'callbacks (tensorboard): .*loud'),
        ({'callbacks': [{'loud': 1}]}, "callbacks.0: needs a 'name'"),
        ({'policy': {'name': 'q_network'}}, 'policy q_network takes a single choice'),
        ({'graph': {'name': 'ros'}}, 'graph: a graph has processes of its own'),
        ({'samplers': {'evns': 3}}, 'did you mean envs'),
    ],
)
def test_a_mistake_is_told_in_a_line_and_nothing_is_left_behind(tmp_path, changes, message):
    process = command(tmp_path, write(tmp_path, **changes))
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert 'Traceback' not in err
    assert err.startswith('opentinker: ')
    for part in message.split('.*'):
        assert part in err
    assert [path.name for path in tmp_path.iterdir()] == ['job.yaml']


def test_a_directory_without_a_run_is_named(tmp_path):
    process = command(tmp_path, str(tmp_path))
    _, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, 'config.yaml' in err) == (2, True)
