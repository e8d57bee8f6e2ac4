"""The learner process: takes segments, updates policies, decides on rewards, tells everybody."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from opentinker import registry
from opentinker.bus.coordinator import CoordinatorBus
from opentinker.bus.messages import (
    JOIN,
    METRICS,
    POLICY,
    REWARDS,
    STOP,
    PolicyUpdate,
    Request,
    Welcome,
)
from opentinker.config import JobConfig
from opentinker.data.segment import Segment
from opentinker.envs.rewards import RewardError
from opentinker.lifecycle import Lifecycle
from opentinker.policies.weights import save_weights
from opentinker.training.learner import Learner
from opentinker.training.machine import UsedMachine
from opentinker.training.parts import make_learner
from opentinker.training.run_directory import RunDirectory
from opentinker.training.statistics import JobStatistics
from opentinker.training.stop_rule import stop_reason

_log = logging.getLogger(__name__)
_POLL_S = 0.1
_STATUS_EVERY_S = 1.0


def run_learner(path: Path) -> None:
    """Learn for the job in a run directory until its stop rule or a signal ends it."""
    run = RunDirectory(path)
    config = run.config()
    config.import_plugins()
    with Lifecycle() as life:
        life.keep(UsedMachine(config))
        learner = make_learner(config)
        coordinator = registry.get('bus', config.bus.name).coordinator
        bus = life.keep(coordinator(config.bus.base_port))
        run.write_endpoints(bus.endpoints)
        LearnerProcess(config, run, bus, learner).run(life)


class LearnerProcess:
    """Serves the bus between two updates of the learner. The one authority on the job's rewards."""

    def __init__(
        self, config: JobConfig, run: RunDirectory, bus: CoordinatorBus, learner: Learner
    ) -> None:
        self._config = config
        self._run = run
        self._bus = bus
        self._learner = learner
        self._statistics = JobStatistics(config.stop.episodes)
        self._started = self._told = self._saved = time.monotonic()

    def run(self, life: Lifecycle) -> None:
        """Learn until the stop rule or a signal; then save a checkpoint and tell everybody."""
        while not (reason := self._stop_reason(life)):
            for item in self._bus.poll(0 if self._learner.ready() else _POLL_S):
                if isinstance(item, Request):
                    self._answer(item)
                else:
                    self._add(item)
            if self._learner.ready():
                self._update()
            self._tell_and_save_now_and_then()
        self._run.append_metrics({**self._metrics(), 'stopped': reason})
        self._bus.publish(STOP, {'reason': reason})
        self._save()

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _stop_reason(self, life: Lifecycle) -> str:
        if life.stopping:
            return f'stopped by {life.stopping}'
        return stop_reason(self._config.stop, self._statistics, self._seconds)

    def _add(self, segment: Segment) -> None:
        try:
            self._learner.add(segment)
        except ValueError as error:
            self._bus.refused.note('unfit segment', f'{segment.sampler}: {error}')
            return
        self._statistics.add(segment)

    def _update(self) -> None:
        result = self._learner.update()
        for group in self._learner.policies:
            update = self._policy_update(group)
            self._bus.publish(POLICY, update.body(), update.weights)
        metrics = {**self._metrics(), **result}
        self._run.append_metrics(metrics)
        self._publish_metrics(metrics)

    def _policy_update(self, group: str) -> PolicyUpdate:
        return PolicyUpdate(
            group,
            self._learner.versions[group],
            self._config.policy,
            self._learner.descriptor.crc(),
            save_weights(self._learner.policies[group]),
        )

    # requests

    def _answer(self, request: Request) -> None:
        if request.kind == JOIN:
            self._bus.welcome(request, self._welcome())
        elif request.kind == 'rewards':
            request.reply(self._change_rewards(request))
        else:
            request.reply({'ok': False, 'error': f'unknown kind of request {request.kind!r}'})

    def _welcome(self) -> Welcome:
        config, batch_size = self._config.model_dump(), self._learner.batch_size
        return Welcome(
            rewards=self._learner.rewards,
            policies={group: self._policy_update(group) for group in self._learner.policies},
            descriptor=self._learner.descriptor,
            config={**config, 'algorithm': {**config['algorithm'], 'batch_size': batch_size}},
        )

    def _change_rewards(self, request: Request) -> dict[str, Any]:
        settings = request.body.get('settings')
        try:
            if not isinstance(settings, dict):
                raise RewardError("a request for rewards needs 'settings', an object")
            spec = self._learner.rewards.changed(settings)
            for group in self._learner.descriptor.groups.values():
                spec.check_signals(group.signals)
        except RewardError as error:
            return {'ok': False, 'error': str(error)}
        self._learner.rewards = spec
        self._bus.publish(REWARDS, spec.model_dump())
        _log.info('rewards #%d, asked for by %s: %s', spec.revision, request.origin, settings)
        return {'ok': True, 'revision': spec.revision}

    # what everybody may know

    def _metrics(self) -> dict[str, Any]:
        return {
            'seconds': round(self._seconds, 3),
            'version': max(self._learner.versions.values()),
            'revision': self._learner.rewards.revision,
            'refused': self._bus.refused.total(),
            **self._statistics.flat(),
        }

    def _publish_metrics(self, metrics: dict[str, Any]) -> None:
        self._told = time.monotonic()
        self._bus.publish(METRICS, metrics)

    def _tell_and_save_now_and_then(self) -> None:
        now = time.monotonic()
        if now - self._told >= _STATUS_EVERY_S:
            self._publish_metrics(self._metrics())
        if now - self._saved >= self._config.log.checkpoint_every_s:
            self._save()

    def _save(self) -> None:
        self._run.write_checkpoint('latest', self._learner.checkpoint())
        self._saved = time.monotonic()
