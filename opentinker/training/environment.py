"""The environment of a job, made from what its config names."""

from __future__ import annotations

import inspect

from opentinker import registry
from opentinker.config import ConfigError, JobConfig
from opentinker.envs.vector import MultiAgentVectorEnv


def make_env(config: JobConfig, num_envs: int, seed: int) -> MultiAgentVectorEnv:
    """``num_envs`` environments in one. Raises ConfigError for settings that do not fit."""
    settings = {key: value for key, value in config.env.items() if key != 'name'}
    factory = registry.get('env', config.env['name'])
    try:
        inspect.signature(factory).bind(num_envs=num_envs, seed=seed, **settings)
    except TypeError as error:
        raise ConfigError(f'env ({config.env["name"]}): {error}') from None
    return factory(num_envs=num_envs, seed=seed, **settings)
