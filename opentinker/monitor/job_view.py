"""What a job says about itself over the bus, kept for display."""

from __future__ import annotations

import time
from typing import Any

from opentinker.bus.messages import METRICS, REWARDS, BusError, Metrics
from opentinker.bus.worker import WorkerBus
from opentinker.envs.rewards import RewardSpec
from opentinker.training.run_directory import RunDirectory

_JOIN_S = 0.5


class JobView:
    """Follows the metrics and rewards of the job in a run directory, once its learner is there."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.stop = run.config().stop
        self.metrics: dict[str, Any] = {}
        self.rewards: RewardSpec | None = None
        self._started = time.monotonic()
        self._bus: WorkerBus | None = None

    @property
    def seconds(self) -> float:
        """Since the view began."""
        return time.monotonic() - self._started

    def refresh(self) -> None:
        """Take in what is new. Returns soon, also while the learner is busy or not there yet."""
        if self._bus is None:
            self._connect()
            return
        for message in self._bus.poll():
            if isinstance(message, Metrics):
                self.metrics = message.values
            elif isinstance(message, RewardSpec):
                self.rewards = message

    def close(self) -> None:
        """Leave the job."""
        if self._bus is not None:
            self._bus.close()

    def _connect(self) -> None:
        endpoints = self.run.endpoints()
        if endpoints is None:
            return
        bus = WorkerBus(endpoints, 'monitor', topics=(METRICS, REWARDS))
        try:
            self.rewards = bus.join(_JOIN_S).rewards
        except BusError:
            bus.close()
            return
        self._bus = bus
