"""Proximal policy optimization: on-policy sampler, GAE, clipped surrogate."""

from opentinker import registry
from opentinker.algorithms import clipped_surrogate, gae, on_policy  # noqa: F401  (register)
from opentinker.algorithms.algorithm import ALGORITHM, Recipe

PPO = registry.register(ALGORITHM, 'ppo')(
    Recipe(sampler='on_policy', estimator='gae', optimizer='clipped_surrogate')
)
