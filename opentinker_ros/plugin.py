"""What this package adds to OpenTinker. No ROS is needed."""

from opentinker import registry
from opentinker_ros.share import share_file

CONFIGS = ('demo', 'demo_ros_only')


def register() -> None:
    """Entry point ``arms`` of the group ``opentinker.plugins``."""
    from opentinker_ros import bringup  # noqa: F401
    from opentinker_ros.arms import arms_env  # noqa: F401

    for name in CONFIGS:
        registry.register('config', name)(share_file(f'config/{name}.yaml'))
