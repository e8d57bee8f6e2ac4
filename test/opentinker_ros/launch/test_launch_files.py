"""The launch files, started by launch itself."""

from pathlib import Path

import launch_pytest
import pytest
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_pytest.actions import ReadyToTest
from lifecycle_msgs.srv import GetState
from opentinker_ros.msg import Transition
from rclpy.node import Node

from launch import LaunchDescription

LAUNCH = Path(__file__).parents[3] / 'launch'
pytestmark = [pytest.mark.launch, pytest.mark.usefixtures('domain')]


def included(name, **arguments):
    source = PythonLaunchDescriptionSource(str(LAUNCH / name))
    return IncludeLaunchDescription(source, launch_arguments=arguments.items())


@launch_pytest.fixture
def simulated_cell(domain):
    return LaunchDescription([included('sim.launch.py', arms='2'), ReadyToTest()])


@launch_pytest.fixture
def training_job(domain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return LaunchDescription(
        [included('train.launch.py', config='demo', arms='2', minutes='1.0'), ReadyToTest()]
    )


@pytest.mark.launch(fixture=simulated_cell)
def test_sim_launch_brings_up_an_active_cell_that_steps(graph):
    transitions = watch_transitions(graph)
    graph.until(lambda: transitions and transitions[-1].step > 20, deadline=60)
    state = graph.call(GetState, 'arms_env/get_state', GetState.Request())
    assert state.current_state.label == 'active'


@pytest.mark.launch(fixture=training_job)
def test_train_launch_brings_policy_versions_of_the_learner_into_the_graph(graph):
    transitions = watch_transitions(graph)
    graph.until(lambda: transitions and transitions[-1].policy_version >= 2, deadline=90)


def watch_transitions(graph):
    transitions = []
    watcher = graph.add(Node('watcher'))
    watcher.create_subscription(Transition, 'transitions', transitions.append, 10)
    return transitions
