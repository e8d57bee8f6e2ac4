"""The environment and the learner of a job, made from what its config names."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from functools import partial

from pydantic import ValidationError

from opentinker import registry
from opentinker.config import ConfigError, JobConfig, settings_error
from opentinker.envs.rewards import RewardError
from opentinker.envs.vector import MultiAgentVectorEnv
from opentinker.envs.worker_env import WorkerVectorEnv
from opentinker.envs.worker_pool import WorkerPool
from opentinker.policies.policy import Policy
from opentinker.training.async_collector import AsyncCollector
from opentinker.training.collector import Collector
from opentinker.training.learner import Learner


def make_env(
    config: JobConfig, num_envs: int, seed: int, render: bool = False
) -> MultiAgentVectorEnv:
    """``num_envs`` environments in one. Raises ConfigError for settings that do not fit.

    Only a factory that takes ``render`` makes environments whose pictures are to be had.
    """
    settings = {key: value for key, value in config.env.items() if key != 'name'}
    factory = registry.get('env', config.env['name'])
    if render:
        if 'render' not in inspect.signature(factory).parameters:
            raise ConfigError(f'env ({config.env["name"]}): has no pictures to film')
        settings['render'] = True
    try:
        inspect.signature(factory).bind(num_envs=num_envs, seed=seed, **settings)
    except TypeError as error:
        raise ConfigError(f'env ({config.env["name"]}): {error}') from None
    try:
        return factory(num_envs=num_envs, seed=seed, **settings)
    except ValidationError as error:
        raise settings_error('env', error) from None
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f'env ({config.env["name"]}): {error}') from None


def make_collector(
    config: JobConfig,
    env: MultiAgentVectorEnv | WorkerPool,
    policies: Mapping[str, Policy],
    length: int,
    sampler: str,
    seed: int,
) -> Collector | AsyncCollector:
    """What collects from the environments of :func:`make_vector_env`."""
    if not isinstance(env, WorkerPool):
        return Collector(env, policies, length, sampler, seed)
    timeout_s = config.samplers.timeout_s if config.samplers.mode == 'timeout' else 0.0
    return AsyncCollector(env, policies, length, sampler, seed, timeout_s)


def make_vector_env(config: JobConfig, seed: int) -> MultiAgentVectorEnv | WorkerPool:
    """The environments that a sampler of the job steps, in its worker processes where it has some.

    Raises ConfigError.
    """
    envs, workers = config.samplers.envs, config.samplers.workers
    make = partial(_make_worker_env, config)
    if config.samplers.mode != 'sync':
        _check_workers(config, 1, envs, 'in which all environments are')
        return WorkerPool(make, envs, workers, seed)
    _check_workers(config, 0, envs - 1, 'beside the sampler itself')
    if not workers:
        return make_env(config, envs, seed)
    return WorkerVectorEnv(make, envs, workers, seed, spins=_has_processors(config))


def _has_processors(config: JobConfig) -> bool:
    """Whether each process, and a thread that trains beside, has a processor of its own."""
    samplers = config.samplers
    wanted = samplers.count * (1 + samplers.workers) + samplers.overlap
    return wanted <= len(os.sched_getaffinity(0))


def _check_workers(config: JobConfig, least: int, most: int, which: str) -> None:
    workers = config.samplers.workers
    if not least <= workers <= most:
        raise ConfigError(
            f'samplers.workers: {workers}, {which} in mode {config.samplers.mode}, for '
            f'samplers.envs: {config.samplers.envs}; at least {least} and at most {most}'
        )


def _make_worker_env(config: JobConfig, num_envs: int, seed: int) -> MultiAgentVectorEnv:
    config.import_plugins()
    return make_env(config, num_envs, seed)


def make_learner(config: JobConfig) -> Learner:
    """The learner, with the rewards that the job starts with as revision 0. Raises ConfigError."""
    env = make_env(config, 1, config.seed)
    env.close()
    try:
        rewards = env.rewards.changed(config.rewards)
        for group in env.descriptor.groups.values():
            rewards.check_signals(group.signals)
    except RewardError as error:
        raise ConfigError(f'rewards: {error}') from None
    rewards = rewards.model_copy(update={'revision': 0})
    return Learner(
        env.descriptor, config.policy, config.algorithm, rewards, config.seed, config.training
    )
