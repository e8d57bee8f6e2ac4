"""RosWorld from a program of one's own, with the sim node in another process."""

import subprocess
import sys

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
from geometry_msgs.msg import Point, Pose
from opentinker_ros.msg import ObjectStates
from opentinker_ros.srv import ResetWorld
from rclpy.node import Node
from sensor_msgs.msg import JointState

from opentinker_ros import qos
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


def test_a_reset_is_complete_only_with_the_objects_of_the_new_episode(graph):
    cell = make_cell(SETTINGS)
    joints = [name for arm in cell.joint_names for name in arm]
    sim = graph.add(Node('sim'))
    states = sim.create_publisher(JointState, 'joint_states', qos.STEP)
    objects = sim.create_publisher(ObjectStates, 'objects', qos.LATCHED)

    def publish_objects(step):
        poses = [Pose(position=Point(x=float(step))) for _ in cell.object_names]
        message = ObjectStates(names=list(cell.object_names), poses=poses)
        message.header.stamp.sec = step
        objects.publish(message)

    def reset(request, response):
        response.success, response.stamp.sec = True, 5
        state = JointState(name=joints, position=[0.0] * len(joints))
        state.header.stamp.sec = 5
        states.publish(state)
        return response

    publish_objects(1)
    sim.create_service(ResetWorld, 'reset_world', reset)
    settings = RosWorldSettings(cell.joint_names, cell.object_names, SETTINGS.control_period)
    arrived = []
    world = RosWorld(sim, settings, on_state=lambda: arrived.append(world.read().objects[0, 0, 0]))
    graph.until(lambda: world.connected and np.isfinite(world.read().objects).all())
    world.reset(np.array([0]), cell.home())
    graph.until(lambda: world.read().time[0] == 5)
    assert not arrived
    publish_objects(5)
    graph.until(lambda: arrived)
    assert arrived == [5.0]


def test_without_a_simulator_the_error_says_what_is_missing(node):
    env = ros_env(node, timeout=0.5)
    with pytest.raises(WorldError, match=r'waited 0.5 s for .*reset_world'):
        env.reset()
