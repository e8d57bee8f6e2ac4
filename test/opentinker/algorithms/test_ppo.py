"""PPO on environments whose best policy and values are known."""

import numpy as np
import pytest
import torch
from probe_envs import Partner, Wage, trained

SETTINGS = {'learning_rate': 3e-3, 'final_learning_rate': 1e-3, 'minibatch_size': 128}


def values(learner, *seen):
    policy = learner.policies['all']
    with torch.no_grad():
        return policy.value(torch.tensor(seen, dtype=torch.float32)[:, None]).numpy()


@pytest.mark.parametrize('agents', [1, 2])
def test_agents_learn_to_act_by_what_they_see(agents):
    learner = trained(Partner(32, agents, length=1), updates=40, gamma=0.0, **SETTINGS)
    seen = np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    action = learner.policies['all'].get_action({'seen': seen}, deterministic=True).action
    np.testing.assert_allclose(action, seen, atol=0.15)


def test_a_reward_in_the_end_is_foreseen_discounted():
    learner = trained(Wage(32, length=2), updates=40, gamma=0.5, lam=1.0, **SETTINGS)
    np.testing.assert_allclose(values(learner, 0, 1), [0.5, 1.0], atol=0.05)


def test_a_terminal_state_is_worth_nothing():
    env = Wage(32, length=1, always=True)
    learner = trained(env, updates=30, gamma=0.9, **SETTINGS)
    np.testing.assert_allclose(values(learner, 0), [1.0], atol=0.1)


def test_a_time_limit_is_not_a_terminal_state():
    env = Wage(32, length=1, truncates=True, always=True)
    learner = trained(env, updates=100, gamma=0.8, **SETTINGS)
    np.testing.assert_allclose(values(learner, 0), [1 / (1 - 0.8)], rtol=0.1)
