"""Our side: `opentinker train` of the task's job file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from race import Race

from opentinker.config import JobConfig, load_config
from opentinker.lifecycle import Lifecycle
from opentinker.training.callback import Callback
from opentinker.training.evaluation import evaluate
from opentinker.training.local_trainer import LocalTrainer
from opentinker.training.machine import UsedMachine
from opentinker.training.parts import make_env
from opentinker.training.run_directory import RunDirectory

CONFIGS = Path(__file__).parents[2] / 'config'
EVALUATION_SEED = 10_000


class RaceCallback(Callback):
    """Ends the job when the race is over."""

    def __init__(self, race: Race, trainer: LocalTrainer, config: JobConfig) -> None:
        self._race, self._trainer = race, trainer
        self._key = 'success' if config.stop.success else 'return'
        self._env = make_env(config, race.task.episodes, EVALUATION_SEED)

    def on_update(self, metrics: Mapping[str, Any]) -> str | None:
        """Count this update."""
        return 'over' if self._race.over(metrics['all.transitions'], self._score) else None

    def _score(self) -> float:
        learner = self._trainer.learner
        stats = evaluate(self._env, learner.policies, self._race.task.episodes, EVALUATION_SEED)
        mean = stats.mean(self._key)
        assert mean is not None
        return mean

    def close(self) -> None:
        """Close its environments."""
        self._env.close()


def learn(task: str, race: Race, seed: int, config: str | None = None) -> Race:
    """Train the job of ``config/<task>.yaml``."""
    job = load_config(config or CONFIGS / f'{task.removesuffix("_ppo")}.yaml')
    job.import_plugins()
    job.seed = seed
    job.log.tensorboard = False
    with tempfile.TemporaryDirectory() as root, Lifecycle() as life:
        life.keep(UsedMachine(job))
        trainer = life.keep(LocalTrainer(job))
        looking_on = life.keep(RaceCallback(race, trainer, job))
        # the race alone ends the job
        job.stop.mean_return = job.stop.success = job.stop.minutes = None
        trainer.run(RunDirectory.create(job, root), life, [looking_on])
    return race
