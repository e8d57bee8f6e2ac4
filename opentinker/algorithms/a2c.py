"""Advantage actor-critic, the synchronous form of A3C: on-policy sampler, n-step returns, policy
gradient. Mnih et al. 2016, https://arxiv.org/abs/1602.01783.
"""

from opentinker import registry
from opentinker.algorithms import n_step, on_policy, policy_gradient  # noqa: F401  (register)
from opentinker.algorithms.algorithm import ALGORITHM, Recipe

A2C = registry.register(ALGORITHM, 'a2c')(
    Recipe(
        sampler='on_policy',
        estimator='n_step',
        optimizer='policy_gradient',
        settings={'batch_size': 40},
    )
)
