"""What the core itself registers: importing the modules does it."""


def register() -> None:
    """Entry point ``core`` of the group ``opentinker.plugins``."""
    from opentinker.algorithms import ppo  # noqa: F401
    from opentinker.bus import zmq_bus  # noqa: F401
    from opentinker.policies import actor_critic  # noqa: F401
