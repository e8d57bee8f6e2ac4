"""What this package adds to OpenTinker. No ROS is needed."""


def register() -> None:
    """Entry point ``arms`` of the group ``opentinker.plugins``: importing the modules registers their parts."""
    from opentinker_ros.arms import arms_env, gym_ids  # noqa: F401

    gym_ids.register()
