"""Runs a job in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opentinker.config import JobConfig
from opentinker.experiments.summary import write_summary
from opentinker.lifecycle import Lifecycle
from opentinker.training.callback import Callback, check_callbacks, make_callbacks
from opentinker.training.local_trainer import LocalTrainer
from opentinker.training.machine import UsedMachine
from opentinker.training.memory import PeakMemory
from opentinker.training.resources import beside_plan, plan
from opentinker.training.run_directory import RunDirectory


@dataclass(frozen=True)
class Trained:
    """What came of a job."""

    run: RunDirectory
    reason: str
    """What ended it."""
    summary: str
    """A page about it."""


def train(
    job: JobConfig,
    *,
    root: Path | str = 'runs',
    resumed: RunDirectory | None = None,
    checkpoint: Path | None = None,
    callbacks: Sequence[Callback] = (),
    say: Callable[[str], object] = lambda text: None,
) -> Trained:
    """Train a job to its end, in a new directory below ``root`` or where a ``resumed`` run stopped.

    ``checkpoint`` is what to begin with, ``callbacks`` look on beside those of the config and are
    closed, and ``say`` is told what a user would like to know. SIGINT and SIGTERM end it in good
    order. Raises ConfigError for what cannot be built, and what LocalTrainer raises.
    """
    memory = PeakMemory()
    with Lifecycle() as life:
        looking_on = [life.keep(each) for each in callbacks]
        job.import_plugins()
        life.keep(UsedMachine(job))
        # what was planned for a run stands in its config
        planned = None if resumed else plan(job)
        if planned:
            job = planned.config
            say(f'Memory: {planned}')
        check_callbacks(job)
        trainer = life.keep(LocalTrainer(job))
        if resumed:
            trainer.resume(resumed)
        if checkpoint:
            trainer.begin_with(checkpoint)
        run = resumed or RunDirectory.create(job, root)
        say(f'Job {job.job} runs in {run.path}')
        reason = trainer.run(run, life, [*make_callbacks(job, run, life), *looking_on])
        peak = memory.look()
    summary = write_summary(run, reason, trainer.seconds, beside_plan(peak, planned))
    return Trained(run, reason, summary)
