"""Training in one process: sample a batch, learn from it, and so on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opentinker.config import ConfigError, JobConfig
from opentinker.lifecycle import Lifecycle
from opentinker.training.collector import Collector, segment_length
from opentinker.training.learner import CheckpointError
from opentinker.training.machine import use_machine
from opentinker.training.parts import make_env, make_learner
from opentinker.training.run_directory import RunDirectory, write_atomically
from opentinker.training.statistics import JobStatistics
from opentinker.training.stop_rule import stop_reason

SAMPLER = 'local'
_CHECKPOINT_EVERY_S = 60.0


class LocalTrainer:
    """The learner of a job and one sampler that acts with the learner's own policies.

    The same config trains the same policies bit for bit. Raises ConfigError for a job that needs
    other processes, and CheckpointError for a checkpoint of another job.
    """

    def __init__(self, config: JobConfig, checkpoint: Path | None = None) -> None:
        if config.graph is not None:
            raise ConfigError('graph: a graph has processes of its own; use `opentinker up`')
        use_machine(config.training)
        self._config = config
        self._learner = make_learner(config)
        if checkpoint is not None:
            try:
                self._learner.restore(checkpoint.read_bytes())
            except CheckpointError as error:
                raise CheckpointError(f'{checkpoint}: {error}') from None
        self._env = make_env(config, config.samplers.envs, config.seed)
        self._env.rewards = self._learner.rewards
        length = segment_length(self._env, self._learner.batch_size, samplers=1)
        self._collector = Collector(
            self._env, self._learner.policies, length, SAMPLER, config.seed + 1
        )
        self._collector.versions.update(self._learner.versions)
        self._statistics = JobStatistics(config.stop.episodes)
        self.seconds = 0.0

    def run(
        self,
        run: RunDirectory,
        life: Lifecycle,
        watch: Callable[[Mapping[str, Any]], None] = lambda metrics: None,
    ) -> str:
        """Train until the stop rule or a signal; returns which. ``watch`` sees every update.

        Raises UnfitSegmentError for values that are not finite, naming key and step; the last
        checkpoint stays.
        """
        started = saved = time.monotonic()
        while not (reason := self._reason(life)):
            for segment in self._collector.step():
                self._learner.add(segment)
                self._statistics.add(segment)
            self.seconds = time.monotonic() - started
            if self._learner.ready():
                metrics = self._update()
                run.append_metrics(metrics)
                watch(metrics)
            if time.monotonic() - saved > _CHECKPOINT_EVERY_S:
                saved = time.monotonic()
                self._save(run)
        self._save(run)
        run.append_metrics({**self._metrics(), 'stopped': reason})
        return reason

    def _reason(self, life: Lifecycle) -> str:
        if life.stopping:
            return f'stopped by {life.stopping}'
        return stop_reason(self._config.stop, self._statistics, self.seconds)

    def _update(self) -> dict[str, Any]:
        result = self._learner.update()
        self._collector.versions.update(self._learner.versions)
        return {**self._metrics(), **result}

    def _metrics(self) -> dict[str, Any]:
        return {
            'seconds': round(self.seconds, 3),
            'version': max(self._learner.versions.values()),
            'revision': self._learner.rewards.revision,
            **self._statistics.flat(),
        }

    def _save(self, run: RunDirectory) -> None:
        write_atomically(run.checkpoints / 'latest.safetensors', self._learner.checkpoint())

    def close(self) -> None:
        """Close the environments."""
        self._env.close()
