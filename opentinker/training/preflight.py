"""A look at a job before its processes start, so that what is wrong is said at once."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from opentinker import registry
from opentinker.config import JobConfig
from opentinker.training.graph import job_processes
from opentinker.training.parts import make_learner


def check_job(config: JobConfig) -> None:
    """Build once all that a config names.

    Raises ConfigError, or UnknownNameError listing the known names.
    """
    registry.get('bus', config.bus.name)
    make_learner(config)
    with TemporaryDirectory() as folder:
        job_processes(config, Path(folder))
