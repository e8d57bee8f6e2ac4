"""Training in one process: sample a batch, learn from it, and so on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opentinker.config import ConfigError, JobConfig
from opentinker.data.segment import Segment
from opentinker.lifecycle import Lifecycle
from opentinker.policies.policy import make_policy
from opentinker.training.callback import Callback
from opentinker.training.collector import segment_length
from opentinker.training.evaluation import Evaluation
from opentinker.training.learner import CheckpointError
from opentinker.training.overlap import OverlappedCollection
from opentinker.training.parts import make_collector, make_learner, make_vector_env
from opentinker.training.run_directory import RunDirectory
from opentinker.training.statistics import JobStatistics
from opentinker.training.stop_rule import stop_reason

SAMPLER = 'local'


class LocalTrainer:
    """The learner of a job and one sampler that acts with the learner's own policies.

    The same config trains the same policies bit for bit. Raises ConfigError for a job that needs
    other processes.
    """

    def __init__(self, config: JobConfig) -> None:
        if config.graph is not None:
            raise ConfigError('graph: a graph has processes of its own; use `opentinker up`')
        self._config = config
        self.learner = make_learner(config)
        self._check_lag(config)
        self._life = Lifecycle()
        try:
            self._prepare(config)
        except BaseException:
            self._life.close()
            raise
        self._next_evaluation = 0
        self._statistics = JobStatistics(config.stop.episodes)
        self._updates = 0
        self._reason = ''
        self.seconds = 0.0
        """For how long the job has been training."""

    def _check_lag(self, config: JobConfig) -> None:
        samplers = config.samplers
        key = 'overlap' if samplers.overlap else 'mode' if samplers.mode != 'sync' else None
        if key and not self.learner.tolerates_lag:
            raise ConfigError(
                f'samplers.{key}: this optimizer needs data of the newest policy; '
                'estimator v_trace makes up for the lag'
            )

    def _prepare(self, config: JobConfig) -> None:
        self._env = self._life.keep(make_vector_env(config, config.seed))
        self._env.rewards = self.learner.rewards
        length = segment_length(self._env, self.learner.batch_size, samplers=1)
        acting = self.learner.policies
        if config.samplers.overlap:
            acting = {
                group: make_policy(config.policy, self._env.descriptor, group, config.seed)
                for group in acting
            }
        self._collector = make_collector(
            config, self._env, acting, length, SAMPLER, config.seed + 1
        )
        self._overlapped = None
        if config.samplers.overlap:
            batch_size = self.learner.batch_size
            self._overlapped = self._life.keep(OverlappedCollection(self._collector, batch_size))
        self._evaluation = None
        if config.evaluation.every is not None:
            self._evaluation = self._life.keep(Evaluation(config))

    def begin_with(self, checkpoint: Path) -> None:
        """Take over what the policies of such a job, and their optimizers, have learnt.

        Raises CheckpointError for a checkpoint of another job.
        """
        self._restore(checkpoint)
        self._env.rewards = self.learner.rewards
        self._collector.versions.update(self.learner.versions)

    def resume(self, run: RunDirectory) -> None:
        """Go on where the run's last checkpoint was written.

        Where the environment can save its state, the run becomes bit for bit what it would have
        been without the interruption; else new episodes begin, and the log says so. Raises
        CheckpointError for a checkpoint of another job.
        """
        path = run.checkpoint('latest')
        try:
            state = self._restore(path)['trainer']
            self._collector.load_state_dict(state['collector'])
            self._statistics.load_state_dict(state['statistics'])
        except (LookupError, ValueError) as error:
            raise CheckpointError(f'{path}: cannot go on from it: {error}') from None
        self._env.rewards = self.learner.rewards
        self._next_evaluation, self._updates = state['next_evaluation'], state['updates']
        self.seconds = state['seconds']
        if self._evaluation:
            self._evaluation.best, self._evaluation.without_progress = state['evaluation']
        run.forget_metrics_after(self.seconds)

    def _restore(self, checkpoint: Path) -> dict[str, Any]:
        try:
            return self.learner.restore(checkpoint.read_bytes())
        except (CheckpointError, OSError) as error:
            raise CheckpointError(f'{checkpoint}: {error}') from None

    def run(self, run: RunDirectory, life: Lifecycle, callbacks: Sequence[Callback] = ()) -> str:
        """Train until the stop rule, a callback or a signal; returns which.

        Raises UnfitSegmentError for values that are not finite, naming key and step; the last
        checkpoint stays.
        """
        started = saved = time.monotonic()
        before = self.seconds
        while not (reason := self._stop_reason(life)):
            if self._overlapped:
                self._overlapped.begin(self.learner.policies, self.learner.versions, life)
            else:
                self._take(self._collector.step())
            self.seconds = before + time.monotonic() - started
            if self.learner.ready():
                self._update(run, callbacks)
                self._evaluate_now_and_then(run, callbacks)
            if self._overlapped:
                self._take(self._overlapped.finish())
            if time.monotonic() - saved > self._config.log.checkpoint_every_s:
                saved = time.monotonic()
                self._save(run)
        self._save(run)
        run.append_metrics({**self._metrics(), 'stopped': reason})
        return reason

    def _take(self, segments: list[Segment]) -> None:
        for segment in segments:
            self.learner.add(segment)
            self._statistics.add(segment)

    def _stop_reason(self, life: Lifecycle) -> str:
        if life.stopping:
            return f'stopped by {life.stopping}'
        if self._reason:
            return self._reason
        return stop_reason(self._config.stop, self._statistics, self.seconds)

    def _update(self, run: RunDirectory, callbacks: Sequence[Callback]) -> None:
        result = self.learner.update()
        if not self._overlapped:
            self._collector.versions.update(self.learner.versions)
        metrics = {**self._metrics(), **result}
        if self._updates % self._config.log.update_every == 0:
            run.append_metrics(metrics)
        self._updates += 1
        self._tell([callback.on_update for callback in callbacks], metrics)

    def _evaluate_now_and_then(self, run: RunDirectory, callbacks: Sequence[Callback]) -> None:
        evaluation, done = self._evaluation, self._statistics.all.transitions
        if evaluation is None or done < self._next_evaluation:
            return
        assert self._config.evaluation.every is not None
        self._next_evaluation = done + self._config.evaluation.every
        stats = evaluation.run(self.learner.policies, self.learner.rewards)
        self._statistics.evaluated(stats.episodes, stats.steps)
        if not evaluation.without_progress:
            run.write_checkpoint('best', self.learner.checkpoint())
        self._reason = self._reason or evaluation.stop_reason
        self._tell([callback.on_evaluation for callback in callbacks], self._metrics())

    def _tell(
        self, listeners: list[Callable[[Mapping[str, Any]], str | None]], metrics: dict[str, Any]
    ) -> None:
        reasons = [listener(metrics) for listener in listeners]
        self._reason = next((reason for reason in reasons if reason), self._reason)

    def _metrics(self) -> dict[str, Any]:
        return {
            'seconds': round(self.seconds, 3),
            'version': max(self.learner.versions.values()),
            'revision': self.learner.rewards.revision,
            **self._statistics.flat(),
        }

    def _save(self, run: RunDirectory) -> None:
        best = self._evaluation
        run.write_checkpoint(
            'latest',
            self.learner.checkpoint(
                trainer={
                    'collector': self._collector.state_dict(),
                    'statistics': self._statistics.state_dict(),
                    'next_evaluation': self._next_evaluation,
                    'evaluation': best and [best.best, best.without_progress],
                    'updates': self._updates,
                    'seconds': self.seconds,
                }
            ),
        )

    def close(self) -> None:
        """Close the environments."""
        self._life.close()
