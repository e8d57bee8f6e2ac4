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
    config: JobConfig, run: RunDirectory, watch: Callable[[Mapping[str, str]], None]
) -> Ending:
    """Run a job to its end and stop all its processes.

    ``watch`` is called a few times a second with the state of each process. SIGINT and SIGTERM end
    the job in good order, with exit code 0.
    """
    supervisor = Supervisor(job_processes(config, run.path), run.logs)
    with Lifecycle() as life:
        life.keep(supervisor)
        supervisor.start()
        while True:
            ending = supervisor.check()
            watch(supervisor.states())
            if ending is not None:
                return ending
            if life.stopping:
                return Ending(f'stopped by {life.stopping}', 0)
            time.sleep(_PERIOD_S)
