"""The command ``opentinker up`` on a small job without a graph, as a user runs it."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from opentinker.bus.messages import METRICS, Endpoints, Metrics
from opentinker.bus.worker import WorkerBus
from opentinker.training.run_directory import RunDirectory

DEADLINE_S = 60.0
CONFIG = {
    'job': 'points',
    'plugins': ['point_env'],
    'env': {'name': 'point', 'steps': 10},
    'policy': {'name': 'actor_critic', 'hidden': [8]},
    'algorithm': {'name': 'ppo', 'batch_size': 256, 'minibatch_size': 128, 'epochs': 1},
    'samplers': {'count': 1, 'envs': 4, 'ahead': 0},
}


class Job:
    """A running ``opentinker up``."""

    def __init__(self, folder: Path, **changes) -> None:
        config = folder / 'job.yaml'
        config.write_text(yaml.safe_dump({**CONFIG, **changes}))
        self.run = RunDirectory(folder / 'runs' / 'points')
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'opentinker', 'up', str(config)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children: list[psutil.Process] = []

    def endpoints(self) -> Endpoints:
        self.wait_for(lambda: self.run.endpoints() is not None)
        self.children = psutil.Process(self.process.pid).children(recursive=True)
        return self.run.endpoints()

    def wait_for(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.02)

    def finish(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=DEADLINE_S)
        for child in self.children:
            assert not child.is_running()
        return self.process.returncode, out, err

    def logs(self) -> str:
        return '\n'.join(f'{path.name}:\n{path.read_text()}' for path in self.run.logs.glob('*'))


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., Job]]:
    jobs = []

    def start(**changes) -> Job:
        jobs.append(Job(tmp_path, **changes))
        return jobs[-1]

    yield start
    for job in jobs:
        if job.process.poll() is None:
            job.process.terminate()
            job.process.communicate(timeout=DEADLINE_S)


def wait_for_metrics(bus: WorkerBus, condition: Callable[[dict], bool]) -> dict:
    deadline = time.monotonic() + DEADLINE_S
    metrics: dict = {}
    while not (metrics and condition(metrics)):
        assert time.monotonic() < deadline, metrics
        for message in bus.wait(1.0):
            if isinstance(message, Metrics):
                metrics = message.values
    return metrics


def test_rewards_change_while_the_job_runs_and_a_signal_ends_it_in_good_order(start):
    job = start(samplers={'count': 2, 'envs': 4})
    bus = WorkerBus(job.endpoints(), 'test', topics=(METRICS,))
    welcome = bus.join(DEADLINE_S)
    assert welcome.rewards.revision == 0
    assert welcome.descriptor.name == 'point'
    wait_for_metrics(bus, lambda metrics: metrics['version'] >= 1)

    refused = bus.request('rewards', {'settings': {'closeness': 'much'}}, DEADLINE_S)
    assert refused == {'ok': False, 'error': "closeness: expected a number, got 'much'"}
    changes = {'settings': {'closeness': 2.0, 'closeness.power': 1.5}}
    assert bus.request('rewards', changes, DEADLINE_S) == {'ok': True, 'revision': 1}
    metrics = wait_for_metrics(
        bus, lambda seen: all(seen.get(f'sampler_{index}.revision') == 1 for index in range(2))
    )
    assert metrics['revision'] == 1
    later = wait_for_metrics(bus, lambda later: later['version'] >= metrics['version'] + 3)
    assert later['sampler_0.missing_steps'] == later['sampler_1.missing_steps'] == 0
    assert later['refused'] == 0
    bus.close()

    job.process.send_signal(signal.SIGTERM)
    code, out, err = job.finish()
    assert code == 0, err
    assert 'Result     stopped by SIGTERM' in out
    assert (job.run.path / 'summary.txt').exists()
    assert (job.run.path / 'learning_curve.png').exists()
    versions = [line['version'] for line in job.run.metrics()]
    assert versions == sorted(versions)


def test_a_job_ends_by_its_stop_rule(start):
    job = start(stop={'success': 0.0, 'of': 'sampler_0', 'episodes': 20})
    job.endpoints()
    code, out, err = job.finish()
    assert code == 0, err
    assert 'over the last 20 episodes of sampler_0 reached 0' in out
    assert err == ''


def test_samplers_may_have_environments_that_go_on_at_their_own_pace(start):
    samplers = {'count': 1, 'envs': 4, 'ahead': 0, 'workers': 2, 'mode': 'async'}
    job = start(samplers=samplers, stop={'transitions': 2_000})
    job.endpoints()
    code, out, err = job.finish()
    assert code == 0, err
    assert 'transitions were sampled' in out
    assert job.run.metrics()[-1]['sampler_0.missing_steps'] == 0


def test_ctrl_c_ends_a_job_that_has_hardly_begun(start):
    job = start()
    job.wait_for(job.run.logs.exists)
    job.process.send_signal(signal.SIGINT)
    code, out, err = job.finish()
    assert code == 0, err
    assert 'Result     stopped by SIGINT' in out


def test_a_process_that_died_is_named(start):
    job = start()
    job.endpoints()
    for child in job.children:
        if 'sampler' in child.cmdline():
            child.kill()
    code, out, err = job.finish()
    assert code == 1
    assert 'sampler_0 died: killed by SIGKILL' in err
    assert 'Result     sampler_0 died' in out


def test_a_port_in_use_is_named(start):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = start(bus={'base_port': port}).finish()
    assert code == 1
    assert 'learner died: exit code 2' in err
    assert f'port {port} of 127.0.0.1 (bus channel control) is in use' in err
    assert 'Traceback' not in err


def test_samplers_end_in_good_order_though_their_learner_is_gone(start):
    job = start()
    job.endpoints()
    for child in job.children:
        if 'learner' in child.cmdline():
            child.kill()
    code, _, err = job.finish()
    assert code == 1
    assert 'learner died: killed by SIGKILL' in err
    assert 'did not end' not in err


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'smaplers': {}}, 'smaplers: unknown key; did you mean samplers?'),
        ({'samplers': {'count': 0}}, 'samplers.count: 0'),
        ({'graph': {'name': 'spring'}}, "unknown graph 'spring'"),
        ({'plugins': ['no_such_plugin']}, 'plugins: no_such_plugin'),
        ({'env': {'name': 'pont'}}, "unknown env 'pont'"),
        ({'env': {'name': 'point', 'stepz': 3}}, "unexpected keyword argument 'stepz'"),
        ({'rewards': {'closness': 1}}, 'closness: no such term'),
    ],
)
def test_a_mistake_in_the_config_is_named_without_a_traceback(start, changes, message):
    job = start(**changes)
    code, _, err = job.finish()
    assert code == 2
    assert message in err
    assert 'Traceback' not in err
    assert not job.run.path.exists()
