"""A training job with a ROS 2 graph: learner, samplers and nodes, from one config file."""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from launch import LaunchDescription

ARGUMENTS = {
    'config': ('demo', 'job file (YAML or JSON), or the name of one that comes with the package'),
    'arms': ('', 'number of arms; empty: as the job file says'),
    'minutes': ('', 'longest training time; empty: as the job file says'),
}


def start(context):
    """Workers and nodes of the job."""
    from opentinker_ros.launching import job_actions

    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    return job_actions(
        value['config'],
        arms=int(value['arms']) if value['arms'] else None,
        minutes=float(value['minutes']) if value['minutes'] else None,
    )


def generate_launch_description():
    """Arguments, and the job that follows from them."""
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, (default, description) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])
