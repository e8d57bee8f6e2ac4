"""Every recipe and part on an environment whose best policy is known."""

import numpy as np
import pytest
from probe_envs import Partner, trained

FAST = {'learning_rate': 3e-3, 'final_learning_rate': 1e-3, 'minibatch_size': 128}


@pytest.mark.parametrize(
    ('updates', 'settings'),
    [
        (40, {'name': 'ppo', 'estimator': 'td_lambda', **FAST}),
        (40, {'name': 'ppo', 'estimator': 'n_step', **FAST}),
        (40, {'name': 'ppo', 'estimator': 'v_trace', **FAST}),
        (400, {'name': 'a2c', 'learning_rate': 3e-3}),
        (40, {'name': 'ppo', 'optimizer': 'trust_region', 'max_kl': 0.05}),
        (40, {'name': 'trpo', 'max_kl': 0.05}),
        (40, {'name': 'npg', 'max_kl': 0.05}),
    ],
    ids=lambda value: '-'.join(map(str, value.values())) if isinstance(value, dict) else '',
)
def test_agents_learn_to_act_by_what_they_see(updates, settings):
    learner = trained(Partner(32, 2, length=1), updates, gamma=0.0, **settings)
    seen = np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    action = learner.policies['all'].get_action({'seen': seen}, deterministic=True).action
    np.testing.assert_allclose(action, seen, atol=0.2)
