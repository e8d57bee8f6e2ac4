"""stable-baselines3's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arms_vec_env import ArmsVecEnv
from race import Race, Task
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, sync_envs_normalization
from torch import nn

EVALUATION_SEED = 10_000


def falling(first: float) -> Callable[[float], float]:
    """A schedule that falls linearly to 0."""
    return lambda remaining: first * remaining


SETTINGS: dict[str, dict[str, Any]] = {
    'cartpole_ppo': {
        'algorithm': PPO, 'envs': 8, 'total': 100_000, 'n_steps': 32, 'batch_size': 256,
        'gae_lambda': 0.8, 'gamma': 0.98, 'n_epochs': 20, 'ent_coef': 0.0,
        'learning_rate': falling(0.001), 'clip_range': falling(0.2),
    },
    'cartpole_a2c': {'algorithm': A2C, 'envs': 8, 'total': 500_000, 'ent_coef': 0.0},
    'inverted_pendulum': {
        'algorithm': PPO, 'envs': 1, 'normalize': True, 'total': 1_000_000, 'n_steps': 32,
        'batch_size': 64, 'gamma': 0.999, 'learning_rate': 0.000222425, 'ent_coef': 1.37976e-07,
        'clip_range': 0.4, 'n_epochs': 5, 'gae_lambda': 0.9, 'max_grad_norm': 0.3,
        'vf_coef': 0.19816,
    },
    'halfcheetah': {
        'algorithm': PPO, 'envs': 1, 'normalize': True, 'total': 1_000_000, 'n_steps': 512,
        'batch_size': 64, 'gamma': 0.98, 'learning_rate': 2.0633e-05, 'ent_coef': 0.000401762,
        'clip_range': 0.1, 'n_epochs': 20, 'gae_lambda': 0.92, 'max_grad_norm': 0.8,
        'vf_coef': 0.58096,
        'policy_kwargs': {
            'log_std_init': -2, 'ortho_init': False, 'activation_fn': nn.ReLU,
            'net_arch': {'pi': [256, 256], 'vf': [256, 256]},
        },
    },
    'reach': {
        'algorithm': PPO, 'envs': 32, 'normalize': True, 'norm_reward': False, 'total': 1_000_000,
        'n_steps': 64, 'batch_size': 1024, 'gamma': 0.97, 'gae_lambda': 0.95, 'n_epochs': 6,
        'learning_rate': falling(5e-4),
        'policy_kwargs': {'log_std_init': -0.7, 'net_arch': [128, 128]},
    },
}  # fmt: skip


class RaceCallback(BaseCallback):
    """Ends the training when the race is over."""

    def __init__(self, race: Race, score: Callable[[], float]) -> None:
        super().__init__()
        self._race, self._score = race, score
        self.over = False

    def _on_rollout_start(self) -> None:
        # the update of the rollout before is done
        if self.num_timesteps:
            self.over = self._race.over(self.num_timesteps, self._score)

    def _on_step(self) -> bool:
        return not self.over


def learn(task: str, race: Race, seed: int) -> Race:
    """Train with the settings of the task."""
    settings = dict(SETTINGS[task])
    algorithm, total = settings.pop('algorithm'), settings.pop('total')
    vector = _make(race.task, settings.pop('envs'), seed)
    trial = _make(race.task, race.task.episodes, EVALUATION_SEED)
    normalize, norm_reward = settings.pop('normalize', False), settings.pop('norm_reward', True)
    if normalize:
        vector = VecNormalize(vector, norm_reward=norm_reward, gamma=settings['gamma'])
        trial = VecNormalize(trial, norm_reward=False, training=False)
    model = algorithm('MlpPolicy', vector, seed=seed, device='cpu', **settings)

    def score() -> float:
        if normalize:
            sync_envs_normalization(vector, trial)
        return _score(model, trial, race.task.episodes)

    looking_on = RaceCallback(race, score)
    model.learn(total, callback=looking_on)
    if not looking_on.over:
        # it has returned after its last update, of which nobody has asked
        race.over(model.num_timesteps, score)
    return race


def _make(task: Task, envs: int, seed: int) -> VecEnv:
    if task.env == 'reach':
        return ArmsVecEnv(envs, seed, training=seed != EVALUATION_SEED)
    return make_vec_env(task.env, envs, seed=seed)


def _score(model: BaseAlgorithm, trial: VecEnv, episodes: int) -> float:
    if isinstance(trial.unwrapped, ArmsVecEnv):
        return trial.unwrapped.success(model, trial)
    return float(evaluate_policy(model, trial, episodes, warn=False)[0])
