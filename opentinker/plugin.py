"""What the core itself registers."""

from opentinker import registry

_TORCH = {
    ('policy', 'actor_critic'): 'opentinker.policies.actor_critic',
    ('algorithm', 'ppo'): 'opentinker.algorithms.ppo',
    ('sampler', 'on_policy'): 'opentinker.algorithms.on_policy',
    ('estimator', 'gae'): 'opentinker.algorithms.gae',
    ('optimizer', 'clipped_surrogate'): 'opentinker.algorithms.clipped_surrogate',
}
"""Modules that load torch, which processes without a policy do without."""


def register() -> None:
    """Entry point ``core`` of the group ``opentinker.plugins``."""
    from opentinker.bus import zmq_bus  # noqa: F401

    for (kind, name), module in _TORCH.items():
        registry.register_module(kind, name, module)
