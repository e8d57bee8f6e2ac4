"""Plays the policies of a run: how good they are, and how that looks."""

from __future__ import annotations

from pathlib import Path

from opentinker.envs.filmed import FilmedEnv
from opentinker.experiments.video import Video
from opentinker.lifecycle import Lifecycle
from opentinker.training.collector import CollectStats
from opentinker.training.evaluation import evaluate
from opentinker.training.learner import CheckpointError
from opentinker.training.machine import UsedMachine
from opentinker.training.parts import make_env, make_learner
from opentinker.training.run_directory import RunDirectory

_ENVS = 8


def play(
    run: RunDirectory, checkpoint: str, episodes: int, seed: int, video: Path | None = None
) -> CollectStats:
    """Whole episodes with the best known actions, under the rewards of the checkpoint.

    ``checkpoint`` is ``latest`` or ``best``. With a ``video`` one environment plays, and is filmed.
    Raises CheckpointError where there is no such checkpoint, ConfigError for what cannot be filmed.
    """
    config = run.config()
    config.import_plugins()
    with Lifecycle() as life:
        life.keep(UsedMachine(config))
        learner = make_learner(config)
        path = run.checkpoint(checkpoint)
        try:
            learner.restore(path.read_bytes())
        except OSError as error:
            raise CheckpointError(f'{path}: {error.strerror or error}') from None
        except CheckpointError as error:
            raise CheckpointError(f'{path}: {error}') from None
        if video is None:
            env = life.keep(make_env(config, min(episodes, _ENVS), seed))
        else:
            env = life.keep(make_env(config, 1, seed, render=True))
            film = life.keep(Video(video, 1 / env.descriptor.control_period))
            env = FilmedEnv(env, film.add)
        env.rewards = learner.rewards
        return evaluate(env, learner.policies, episodes, seed)


def report(stats: CollectStats) -> str:
    """Mean, deviation and range of every statistic of the episodes, a line each."""
    lines = [f'{len(stats.episodes["return"])} episodes, {stats.steps:,} steps']
    for key, values in stats.episodes.items():
        lines.append(
            f'{key:<10} {values.mean():.2f} +- {values.std():.2f}  '
            f'({values.min():.2f} to {values.max():.2f})'
        )
    return '\n'.join(lines)
