"""What the core itself registers."""

from opentinker import registry

_ALGORITHMS = 'opentinker.algorithms'
_MODULES = {
    ('adapter', 'gymnasium'): 'opentinker.envs.gymnasium_env',
    ('adapter', 'interface'): 'opentinker.envs.interface_env',
    ('adapter', 'pettingzoo'): 'opentinker.envs.pettingzoo_env',
    ('adapter', 'pettingzoo_aec'): 'opentinker.envs.pettingzoo_env',
    ('env', 'gymnasium'): 'opentinker.envs.gymnasium_env',
    ('env', 'pettingzoo'): 'opentinker.envs.pettingzoo_env',
    ('policy', 'actor_critic'): 'opentinker.policies.actor_critic',
    ('policy', 'q_network'): 'opentinker.policies.q_network',
    ('algorithm', 'a2c'): f'{_ALGORITHMS}.a2c',
    ('algorithm', 'npg'): f'{_ALGORITHMS}.trpo',
    ('algorithm', 'ppo'): f'{_ALGORITHMS}.ppo',
    ('algorithm', 'trpo'): f'{_ALGORITHMS}.trpo',
    ('callback', 'tensorboard'): 'opentinker.training.tensorboard_log',
    ('sampler', 'on_policy'): f'{_ALGORITHMS}.on_policy',
    ('estimator', 'gae'): f'{_ALGORITHMS}.gae',
    ('estimator', 'n_step'): f'{_ALGORITHMS}.n_step',
    ('estimator', 'td_lambda'): f'{_ALGORITHMS}.td_lambda',
    ('estimator', 'v_trace'): f'{_ALGORITHMS}.v_trace',
    ('optimizer', 'clipped_surrogate'): f'{_ALGORITHMS}.clipped_surrogate',
    ('optimizer', 'natural_gradient'): f'{_ALGORITHMS}.trust_region',
    ('optimizer', 'policy_gradient'): f'{_ALGORITHMS}.policy_gradient',
    ('optimizer', 'trust_region'): f'{_ALGORITHMS}.trust_region',
}
"""Modules that load torch or gymnasium, which not every process needs."""


def register() -> None:
    """Entry point ``core`` of the group ``opentinker.plugins``."""
    from opentinker.bus import zmq_bus  # noqa: F401

    for (kind, name), module in _MODULES.items():
        registry.register_module(kind, name, module)
