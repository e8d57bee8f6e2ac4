"""PPO on environments whose best policy and values are known."""

import numpy as np
import pytest
import torch
from probe_envs import Partner, Recall, Wage, trained

SETTINGS = {'learning_rate': 3e-3, 'final_learning_rate': 1e-3, 'minibatch_size': 128}


def values(learner, *seen):
    policy = learner.policies['all']
    with torch.no_grad():
        return policy.value(policy.inputs({'seen': np.array(seen, np.float32)[:, None]})).numpy()


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


def recalled(policy, number, steps=4):
    """What a policy says, step by step, of a number seen in the first one."""
    said, state = [], policy.initial_state((1,))
    for step in range(steps):
        seen = np.full((1, 1), number if step == 0 else 0, np.float32)
        output = policy.get_action({'seen': seen, **state}, deterministic=True)
        state = output.state
        said.append(output.action.item())
    return said


def test_a_policy_with_a_memory_acts_by_what_it_saw_before():
    memory = {'memory': 16, 'sequence': 4}
    learner = trained(Recall(32, length=4), updates=60, gamma=0.0, policy=memory, **SETTINGS)
    for number in (-0.7, 0.7):
        np.testing.assert_allclose(recalled(learner.policies['all'], number), number, atol=0.25)
