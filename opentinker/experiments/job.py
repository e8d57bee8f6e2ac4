"""Runs a job: learner, samplers and graph under a supervisor, until something ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from opentinker.config import JobConfig
from opentinker.lifecycle import Lifecycle
from opentinker.training.graph import job_processes
from opentinker.training.run_directory import RunDirectory
from opentinker.training.supervisor import Ending, Supervisor

_PERIOD_S = 0.2


def run_job(
    config: JobConfig,
    run: RunDirectory,
    life: Lifecycle,
    watch: Callable[[Mapping[str, str]], None],
) -> Ending:
    """Run a job until it ends or ``life`` is told to; that one stops all processes.

    ``watch`` is called a few times a second with the state of each process. SIGINT and SIGTERM end
    the job in good order, with exit code 0.
    """
    supervisor = life.keep(Supervisor(job_processes(config, run.path), run.logs))
    supervisor.start()
    while (ending := supervisor.check()) is None and not life.stopping:
        watch(supervisor.states())
        time.sleep(_PERIOD_S)
    watch(supervisor.states())
    if ending is None:
        return Ending(f'stopped by {life.stopping}', 0)
    return ending if ending.exit_code else Ending(run.stop_reason() or ending.reason, 0)
