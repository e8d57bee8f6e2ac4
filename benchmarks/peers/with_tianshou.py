"""Tianshou's side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import torch
from race import Race
from tianshou.algorithm import A2C, PPO
from tianshou.algorithm.algorithm_base import OnPolicyAlgorithm
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy, ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory, LRSchedulerFactoryLinear
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import BaseVectorEnv, DummyVectorEnv, VectorEnvNormObs
from tianshou.utils.net.common import ActorCritic, Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from tianshou.utils.torch_utils import policy_within_training_step

EVALUATION_SEED = 10_000
HIDDEN = (64, 64)


@dataclass(frozen=True)
class Settings:
    """How a task is trained."""

    envs: int
    steps: int
    """Of all environments, between two updates."""
    epochs: int
    learning_rate: float
    algorithm: type[A2C] = PPO
    orthogonal: bool = True
    arguments: dict[str, Any] = field(default_factory=dict)


_MUJOCO = Settings(
    envs=8, steps=2048, epochs=10, learning_rate=3e-4,
    arguments={
        'gamma': 0.99, 'gae_lambda': 0.95, 'max_grad_norm': 0.5, 'vf_coef': 0.25, 'ent_coef': 0.0,
        'return_scaling': True, 'eps_clip': 0.2, 'value_clip': True,
        'advantage_normalization': False, 'recompute_advantage': True,
    },
)  # fmt: skip
SETTINGS = {
    'cartpole_ppo': Settings(
        envs=20, steps=2000, epochs=10, learning_rate=3e-4,
        arguments={
            'gamma': 0.99, 'max_grad_norm': 0.5, 'eps_clip': 0.2, 'vf_coef': 0.5, 'ent_coef': 0.0,
            'gae_lambda': 0.95, 'return_scaling': False, 'value_clip': False,
            'advantage_normalization': False, 'recompute_advantage': False,
        },
    ),
    'cartpole_a2c': Settings(
        envs=16, steps=16, epochs=1, learning_rate=1e-3, algorithm=A2C, orthogonal=False,
        arguments={
            'gamma': 0.9, 'gae_lambda': 1.0, 'vf_coef': 0.5, 'ent_coef': 0.0,
            'max_grad_norm': None, 'return_scaling': False,
        },
    ),
    'inverted_pendulum': _MUJOCO,
    'halfcheetah': _MUJOCO,
}  # fmt: skip
BATCH_SIZE = 64


def learn(task: str, race: Race, seed: int) -> Race:
    """Train with the settings of the task."""
    np.random.seed(seed)
    torch.manual_seed(seed)
    settings = SETTINGS[task]
    normalized = settings is _MUJOCO
    vector = _make(race.task.env, settings.envs, seed, normalized)
    trial = _make(race.task.env, race.task.episodes, EVALUATION_SEED, normalized)
    algorithm = _algorithm(gymnasium.make(race.task.env), settings)
    buffer = VectorReplayBuffer(20_000, settings.envs)
    collector, evaluator = Collector(algorithm, vector, buffer), Collector(algorithm, trial)
    collector.reset()

    def score() -> float:
        if isinstance(trial, VectorEnvNormObs):
            trial.set_obs_rms(vector.get_obs_rms())
        evaluator.reset()
        return float(evaluator.collect(n_episode=race.task.episodes).returns.mean())

    transitions = 0
    while not race.over(transitions, score):
        with policy_within_training_step(algorithm.policy):
            transitions += collector.collect(n_step=settings.steps).n_collected_steps
            algorithm.update(buffer, BATCH_SIZE, settings.epochs)
        collector.reset_buffer(keep_statistics=True)
    return race


def _make(env: str, envs: int, seed: int, normalized: bool) -> BaseVectorEnv:
    vector: BaseVectorEnv = DummyVectorEnv([lambda: gymnasium.make(env)] * envs)
    vector.seed(seed)
    if normalized:
        vector = VectorEnvNormObs(vector, update_obs_rms=seed != EVALUATION_SEED)
    return vector


def _algorithm(env: gymnasium.Env, settings: Settings) -> OnPolicyAlgorithm:
    discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
    policy, critic = (_discrete if discrete else _continuous)(env, settings.orthogonal)
    optim = AdamOptimizerFactory(lr=settings.learning_rate)
    if settings is _MUJOCO:
        optim.with_lr_scheduler_factory(LRSchedulerFactoryLinear(100, 30_000, settings.steps))
    return settings.algorithm(policy=policy, critic=critic, optim=optim, **settings.arguments)


def _discrete(env: gymnasium.Env, orthogonal: bool) -> tuple[ProbabilisticActorPolicy, Any]:
    body = Net(state_shape=env.observation_space.shape, hidden_sizes=HIDDEN)
    actor = DiscreteActor(preprocess_net=body, action_shape=env.action_space.n)
    critic = DiscreteCritic(preprocess_net=body)
    if orthogonal:
        _initialize(ActorCritic(actor, critic), gain=1.0)
    return DiscreteActorPolicy(
        actor=actor, action_space=env.action_space, deterministic_eval=True
    ), critic


def _continuous(env: gymnasium.Env, orthogonal: bool) -> tuple[ProbabilisticActorPolicy, Any]:
    bodies = [
        Net(state_shape=env.observation_space.shape, hidden_sizes=HIDDEN, activation=torch.nn.Tanh)
        for _ in range(2)
    ]
    actor = ContinuousActorProbabilistic(
        preprocess_net=bodies[0], action_shape=env.action_space.shape, unbounded=True
    )
    critic = ContinuousCritic(preprocess_net=bodies[1])
    torch.nn.init.constant_(actor.sigma_param, -0.5)
    _initialize(ActorCritic(actor, critic), gain=np.sqrt(2))
    for module in actor.mu.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight.data.mul_(0.01)

    def normal(location_and_scale):
        return torch.distributions.Independent(torch.distributions.Normal(*location_and_scale), 1)

    policy = ProbabilisticActorPolicy(
        actor=actor, dist_fn=normal, action_scaling=True, action_bound_method='clip',
        action_space=env.action_space, deterministic_eval=True,
    )  # fmt: skip
    return policy, critic


def _initialize(module: torch.nn.Module, gain: float) -> None:
    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.orthogonal_(layer.weight, gain=gain)
            torch.nn.init.zeros_(layer.bias)
