"""A simulated cell of arms in a ROS 2 graph, with a freshly initialised policy: ``arms:=4``."""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from launch import LaunchDescription

ARGUMENTS = {
    'arms': ('2', 'number of arms around the workspace'),
    'task': ('reach', 'what the arms have to do'),
    'urdf': ('', "your robot's URDF file; empty for the built-in 6-joint arm"),
    'namespace': ('', 'namespace of all nodes'),
    'lockstep': (
        'true',
        'true: the simulator moves one control period a command; false: time flows',
    ),
    'per_arm_topics': ('false', 'one joint-state and command topic an arm, as real drivers have'),
    'policy': ('{"name": "actor_critic"}', 'policy to start with, as JSON; empty for none'),
}


def start(context):
    """The nodes of the graph for the arguments given."""
    from opentinker_ros.arms.arms_env import ArmsSettings
    from opentinker_ros.bringup import GraphSettings, graph
    from opentinker_ros.launching import node_actions

    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    settings = GraphSettings(
        namespace=value['namespace'],
        lockstep=value['lockstep'],
        per_arm_topics=value['per_arm_topics'],
    )
    arms = ArmsSettings(arms=int(value['arms']), task=value['task'], urdf=value['urdf'])
    return node_actions(graph(arms, settings, policy=value['policy']))


def generate_launch_description():
    """Arguments, and the graph that follows from them."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
