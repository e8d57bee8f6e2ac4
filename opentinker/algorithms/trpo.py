"""Trust region policy optimization and its elder, the natural policy gradient: PPO's sampler and
estimator with another optimizer.
"""

from opentinker import registry
from opentinker.algorithms import gae, on_policy, trust_region  # noqa: F401  (register)
from opentinker.algorithms.algorithm import ALGORITHM, Recipe

TRPO = registry.register(ALGORITHM, 'trpo')(
    Recipe(sampler='on_policy', estimator='gae', optimizer='trust_region')
)
NPG = registry.register(ALGORITHM, 'npg')(
    Recipe(sampler='on_policy', estimator='gae', optimizer='natural_gradient')
)
