"""The sampler process: steps simulated environments and sends what happened to the learner."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opentinker import registry
from opentinker.bus.messages import BusError, PolicyUpdate, Stop, Welcome
from opentinker.bus.worker import WorkerBus
from opentinker.config import JobConfig
from opentinker.data.segment import Segment
from opentinker.envs.rewards import RewardSpec
from opentinker.envs.vector import MultiAgentVectorEnv
from opentinker.envs.worker_pool import WorkerPool
from opentinker.lifecycle import Lifecycle
from opentinker.policies.policy import make_policy
from opentinker.policies.weights import load_weights
from opentinker.training.collector import segment_length
from opentinker.training.machine import UsedMachine
from opentinker.training.parts import make_collector, make_vector_env
from opentinker.training.run_directory import RunDirectory

_START_DEADLINE_S = 60.0
_CATCH_UP_S = 5.0
_WAIT_S = 0.2


def run_sampler(path: Path, index: int) -> None:
    """Sample for the job in a run directory until it stops or a signal comes."""
    run = RunDirectory(path)
    config = run.config()
    config.import_plugins()
    with Lifecycle() as life:
        life.keep(UsedMachine(config, threads=1))
        try:
            _sample(config, run, index, life)
        except (BusError, TimeoutError):
            # who was told to end while it waited for a learner has nothing to complain about
            if not life.stopping:
                raise


def _sample(config: JobConfig, run: RunDirectory, index: int, life: Lifecycle) -> None:
    # the environment may take seconds to make, so does the learner to come up
    env = life.keep(make_vector_env(config, _seed(config, index)))
    endpoints = run.wait_for_endpoints(_START_DEADLINE_S, lambda: life.stopping)
    worker = registry.get('bus', config.bus.name).worker
    bus = life.keep(worker(endpoints, f'sampler_{index}'))
    welcome = bus.join(_START_DEADLINE_S, lambda: life.stopping)
    SamplerProcess(config, bus, env, welcome, index).run(life)


class SamplerProcess:
    """Collects with the newest policy and rewards that the bus told of.

    With one policy version it sends at most ``1 + ahead`` times its part of a batch; then it waits
    for the next, so that the learner's data stay fresh however fast the environments are.
    """

    def __init__(
        self,
        config: JobConfig,
        bus: WorkerBus,
        env: MultiAgentVectorEnv | WorkerPool,
        welcome: Welcome,
        index: int,
    ) -> None:
        self._bus = bus
        self._stopped = False
        seed = _seed(config, index)
        policies = {
            group: make_policy(update.policy, env.descriptor, group, seed)
            for group, update in welcome.policies.items()
        }
        length = segment_length(
            env, welcome.config['algorithm']['batch_size'], config.samplers.count
        )
        self._collector = make_collector(config, env, policies, length, bus.name, seed)
        batch_size = welcome.config['algorithm']['batch_size']
        self._enough = (1 + config.samplers.ahead) * batch_size / config.samplers.count
        """Transitions of a group with one policy version."""
        self._sent = dict.fromkeys(policies, 0)
        for message in (welcome.rewards, *welcome.policies.values()):
            self._apply(message)

    def run(self, life: Lifecycle) -> None:
        """Sample until the job stops or a signal comes."""
        while not (life.stopping or self._stopped):
            for message in self._bus.poll():
                self._apply(message)
            segments = self._collector.step()
            for segment in segments:
                self._send(segment, life)
                self._sent[segment.group] += segment.transitions
            if segments:
                self._wait_for_version(life)

    def _apply(self, message: object) -> None:
        if isinstance(message, PolicyUpdate):
            load_weights(self._collector.policies[message.group], message.weights)
            self._collector.versions[message.group] = message.version
            self._sent[message.group] = 0
        elif isinstance(message, RewardSpec):
            self._collector.env.rewards = message
        elif isinstance(message, Stop):
            self._stopped = True

    def _send(self, segment: Segment, life: Lifecycle) -> None:
        while not self._bus.send(segment, _WAIT_S):
            for message in self._bus.poll():
                self._apply(message)
            if life.stopping or self._stopped:
                return

    def _wait_for_version(self, life: Lifecycle) -> None:
        waited = 0.0
        while min(self._sent.values()) >= self._enough and not (life.stopping or self._stopped):
            for message in self._bus.wait(_WAIT_S):
                self._apply(message)
            waited += _WAIT_S
            if waited >= _CATCH_UP_S:
                waited = 0.0
                self._catch_up(life)

    def _catch_up(self, life: Lifecycle) -> None:
        """Ask, in case an announcement was lost on a full queue; also finds a learner gone."""
        welcome = self._bus.join(_START_DEADLINE_S, lambda: life.stopping)
        self._apply(welcome.rewards)
        for group, update in welcome.policies.items():
            if update.version > self._collector.versions[group]:
                self._apply(update)


def _seed(config: JobConfig, index: int) -> int:
    """A seed of its own for each sampler; the learner has the job's."""
    return int(np.random.SeedSequence([config.seed, index + 1]).generate_state(1)[0])
