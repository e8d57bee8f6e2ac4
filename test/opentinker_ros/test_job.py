"""A training job with a ROS graph, as `opentinker up` runs it."""

import signal
import subprocess
import sys

import psutil
import pytest
import yaml

pytest.importorskip('rclpy', reason='needs ROS 2')
from opentinker_ros.msg import Transition
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray

from opentinker.bus.messages import METRICS, Metrics
from opentinker.bus.worker import WorkerBus
from opentinker.training.run_directory import RunDirectory

DEADLINE = 90.0
CONFIG = {
    'job': 'cell',
    'env': {'name': 'arms', 'task': 'reach', 'arms': 2, 'step_limit': 25},
    'policy': {'name': 'actor_critic', 'hidden': [16]},
    'algorithm': {'name': 'ppo', 'batch_size': 512, 'epochs': 1},
    'samplers': {'count': 1, 'envs': 4},
    'graph': {'name': 'ros', 'segment_steps': 16},
}


PLUGIN = """
from opentinker.envs.rewards import reward_term

@reward_term('stillness', needs=('action_change',), weight=0.5)
def stillness(signals):
    '''Minus the change of the action.'''
    return -signals['action_change']
"""


@pytest.fixture
def job(domain, tmp_path, monkeypatch):
    """A running job with a plug-in; everything it started is gone afterwards."""
    (tmp_path / 'stillness_plugin.py').write_text(PLUGIN)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    config = tmp_path / 'job.yaml'
    config.write_text(yaml.safe_dump({**CONFIG, 'plugins': ['stillness_plugin']}))
    command = [sys.executable, '-m', 'opentinker', 'up', str(config)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    yield process
    if process.poll() is None:
        process.terminate()
        process.communicate(timeout=DEADLINE)


@pytest.fixture
def run(job, tmp_path):
    """The run directory of the job, once its learner listens."""
    run = RunDirectory(tmp_path / 'runs' / 'cell')
    run.wait_for_endpoints(DEADLINE, give_up=lambda: job.poll() is not None)
    return run


def newest_metrics(bus, metrics):
    """A condition for :meth:`Graph.until` that keeps ``metrics`` up to date."""
    for message in bus.poll():
        if isinstance(message, Metrics):
            metrics.update(message.values)
    return metrics


def set_together(graph, **values):
    """Set reward parameters of arms_env atomically."""
    parameters = [
        Parameter(f'reward.{name}', value=value).to_parameter_msg()
        for name, value in values.items()
    ]
    request = SetParametersAtomically.Request(parameters=parameters)
    answer = graph.call(SetParametersAtomically, 'arms_env/set_parameters_atomically', request)
    assert answer.result.successful, answer.result.reason


def test_a_reward_set_as_a_ros_parameter_reaches_every_sampler_of_the_running_job(graph, job, run):
    bus = WorkerBus(run.endpoints(), 'test', topics=(METRICS,))
    bus.join(DEADLINE)
    transitions, metrics = [], {}
    watcher = graph.add(Node('watcher'))
    watcher.create_subscription(Transition, 'transitions', transitions.append, 1000)
    graph.until(lambda: newest_metrics(bus, metrics).get('ros.episodes', 0) >= 2, DEADLINE)
    processes = {child.pid for child in psutil.Process(job.pid).children(recursive=True)}

    set_together(graph, distance=2.5)

    def everybody_applies_it():
        newest_metrics(bus, metrics)
        return metrics['ros.revision'] == metrics['sampler_0.revision'] == 1

    graph.until(everybody_applies_it, DEADLINE)
    version = metrics['version']
    graph.until(lambda: newest_metrics(bus, metrics)['version'] >= version + 2, DEADLINE)
    assert metrics['ros.missing_steps'] == metrics['sampler_0.missing_steps'] == 0
    steps = [each.step for each in transitions]
    assert steps == list(range(steps[0], steps[0] + len(steps)))
    assert transitions[0].reward_revision == 0
    assert transitions[-1].reward_revision == 1
    children = psutil.Process(job.pid).children(recursive=True)
    assert {child.pid for child in children} == processes
    bus.close()


def test_a_term_of_a_plug_in_is_added_while_the_job_runs(graph, job, run):
    transitions = []
    watcher = graph.add(Node('watcher'))
    watcher.create_subscription(Transition, 'transitions', transitions.append, 10)
    graph.until(lambda: transitions, DEADLINE)
    assert 'stillness' not in transitions[-1].terms
    set_together(graph, terms=[*transitions[-1].terms, 'stillness'])
    graph.until(lambda: 'stillness' in transitions[-1].terms, DEADLINE)
    assert transitions[-1].reward_revision == 1
    # its own parameter is there now
    set_together(graph, stillness=0.25)
    graph.until(lambda: transitions[-1].reward_revision == 2, DEADLINE)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_holds_the_arms_and_ends_every_process_with_code_0(graph, job, run, number):
    commands, transitions = [], []
    watcher = graph.add(Node('watcher'))
    watcher.create_subscription(Transition, 'transitions', transitions.append, 10)
    watcher.create_subscription(
        Float64MultiArray, 'forward_position_controller/commands', commands.append, 10
    )
    graph.until(lambda: transitions and commands, DEADLINE)
    children = psutil.Process(job.pid).children(recursive=True)
    job.send_signal(number)
    graph.until(lambda: job.poll() is not None, DEADLINE)
    assert job.returncode == 0, job.communicate()
    assert not [child for child in children if child.is_running()]
    # the last command repeats the one before it: the arms stay where they are; it may be on its way
    graph.until(lambda: commands[-1].data == commands[-2].data, DEADLINE)


def test_the_process_that_died_is_named_and_the_job_ends_with_an_error(job, run):
    cell = next(
        child
        for child in psutil.Process(job.pid).children(recursive=True)
        if 'arms_env' in child.cmdline()
    )
    cell.kill()
    out, _ = job.communicate(timeout=DEADLINE)
    assert job.returncode != 0
    assert 'cell' in out
    assert 'SIGKILL' in out
