"""RosWorld from a program of one's own, with the sim node in another process."""

import subprocess
import sys

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
from rclpy.node import Node

from opentinker_ros.arms.arms_env import ArmsEnv, ArmsSettings, make_cell, make_env
from opentinker_ros.worlds.ros import RosWorld, RosWorldSettings
from opentinker_ros.worlds.world import WorldError

SETTINGS = ArmsSettings(arms=2, step_limit=15)


@pytest.fixture
def node(domain):
    rclpy.init()
    node = Node('my_program')
    yield node
    node.destroy_node()
    rclpy.try_shutdown()


@pytest.fixture
def sim(domain):
    command = [sys.executable, '-m', 'opentinker_ros.nodes.host', 'sim', 'lifecycle_manager']
    command += ['--ros-args', '-p', 'sim:arms:=2', '-p', 'lifecycle_manager:nodes:=[sim]']
    process = subprocess.Popen(command)
    yield process
    process.terminate()
    assert process.wait(20) == 0


def ros_env(node, timeout):
    cell = make_cell(SETTINGS)
    settings = RosWorldSettings(
        cell.joint_names, cell.object_names, SETTINGS.control_period, timeout=timeout
    )
    return ArmsEnv(RosWorld(node, settings), cell, SETTINGS, seed=3)


def test_an_environment_over_topics_steps_like_one_in_process(node, sim):
    env, twin = ros_env(node, timeout=30.0), make_env(1, 3, **SETTINGS.model_dump())
    observation, expected = env.reset(), twin.reset()
    actions = np.random.default_rng(0).uniform(-1, 1, (20, 1, 2, 7)).astype(np.float32)
    for action in actions:
        for key, values in expected['arm'].items():
            assert np.array_equal(observation['arm'][key], values), key
        observation = env.step({'arm': action}).observation
        expected = twin.step({'arm': action}).observation


def test_without_a_simulator_the_error_says_what_is_missing(node):
    env = ros_env(node, timeout=0.5)
    with pytest.raises(WorldError, match=r'waited 0.5 s for .*reset_world'):
        env.reset()
