"""Steps a second of one library's collector, printed as a number; run by that library's Python."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import gymnasium
import torch

LENGTH = 256
"""Steps of each environment between two deliveries of data."""
HIDDEN = (64, 64)


def ours(env_id: str, envs: int, workers: int) -> Callable[[], None]:
    """What collects ``LENGTH`` steps of every environment into a segment."""
    from opentinker.config import JobConfig
    from opentinker.policies.actor_critic import actor_critic
    from opentinker.training.collector import Collector
    from opentinker.training.parts import make_vector_env

    samplers = {'envs': envs, 'workers': workers}
    settings = {'job': 'collect', 'env': {'name': 'gymnasium', 'id': env_id}, 'samplers': samplers}
    env = make_vector_env(JobConfig.model_validate(settings), seed=0)
    policies = {
        group: actor_critic(env.descriptor, group, hidden=list(HIDDEN))
        for group in env.descriptor.groups
    }
    collector = Collector(env, policies, LENGTH, 'benchmark', seed=0)

    def collect() -> None:
        while not collector.step():
            pass

    return collect


def stable_baselines3(env_id: str, envs: int, workers: int) -> Callable[[], None]:
    """The same by ``PPO.collect_rollouts``."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    kind = SubprocVecEnv if workers else DummyVecEnv
    vector = make_vec_env(env_id, envs, seed=0, vec_env_cls=kind)
    net = {'net_arch': list(HIDDEN)}
    ppo = PPO('MlpPolicy', vector, n_steps=LENGTH, device='cpu', policy_kwargs=net)
    _, callback = ppo._setup_learn(10**9)

    def collect() -> None:
        ppo.collect_rollouts(ppo.env, callback, ppo.rollout_buffer, LENGTH)

    return collect


def tianshou(env_id: str, envs: int, workers: int) -> Callable[[], None]:
    """The same by its ``Collector`` and ``VectorReplayBuffer``."""
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv, ShmemVectorEnv

    policy = _tianshou_policy(gymnasium.make(env_id))
    kind = ShmemVectorEnv if workers else DummyVectorEnv
    vector = kind([lambda: gymnasium.make(env_id) for _ in range(envs)])
    collector = Collector(policy, vector, VectorReplayBuffer(LENGTH * envs, envs))
    collector.reset()

    def collect() -> None:
        collector.collect(n_step=LENGTH * envs)

    return collect


def _tianshou_policy(env: gymnasium.Env):
    from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy, ProbabilisticActorPolicy
    from tianshou.utils.net.common import Net
    from tianshou.utils.net.continuous import ContinuousActorProbabilistic
    from tianshou.utils.net.discrete import DiscreteActor

    space = env.action_space
    body = Net(
        state_shape=env.observation_space.shape, hidden_sizes=HIDDEN, activation=torch.nn.Tanh
    )
    if isinstance(space, gymnasium.spaces.Discrete):
        actor = DiscreteActor(preprocess_net=body, action_shape=space.n)
        return DiscreteActorPolicy(actor=actor, action_space=space)

    def normal(location_and_scale):
        return torch.distributions.Independent(torch.distributions.Normal(*location_and_scale), 1)

    actor = ContinuousActorProbabilistic(
        preprocess_net=body, action_shape=space.shape, unbounded=True
    )
    return ProbabilisticActorPolicy(
        actor=actor, dist_fn=normal, action_space=space, action_bound_method='clip'
    )


SIDES = {'ours': ours, 'stable_baselines3': stable_baselines3, 'tianshou': tianshou}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('side', choices=SIDES)
    parser.add_argument('env')
    parser.add_argument('envs', type=int)
    parser.add_argument('--workers', type=int, default=0, help='processes beside this one')
    parser.add_argument('--seconds', type=float, default=2.0, help='of each of the three rounds')
    options = parser.parse_args()
    torch.set_num_threads(1)
    collect = SIDES[options.side](options.env, options.envs, options.workers)
    collect()
    rates = []
    for _ in range(3):
        started, steps = time.perf_counter(), 0
        while time.perf_counter() - started < options.seconds:
            collect()
            steps += LENGTH * options.envs
        rates.append(steps / (time.perf_counter() - started))
    print(max(rates))


if __name__ == '__main__':
    main()
