"""Steps environments with policies and cuts what happens into segments."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opentinker.data.segment import Segment
from opentinker.envs.vector import MultiAgentVectorEnv, Step
from opentinker.envs.worker_pool import WorkerPool
from opentinker.policies.policy import Policy
from opentinker.training.recording import Arrays
from opentinker.training.track import Track

_log = logging.getLogger(__name__)


def segment_length(env: MultiAgentVectorEnv | WorkerPool, batch_size: int, samplers: int) -> int:
    """Steps a segment, so that one segment of every such sampler makes at least a batch."""
    agents = max(len(group.agents) for group in env.descriptor.groups.values())
    return math.ceil(batch_size / (samplers * env.num_envs * agents))


@dataclass
class CollectStats:
    """What one call of :meth:`Collector.collect` came to."""

    steps: int
    """Of all environments together."""
    seconds: float
    episodes: Arrays
    """``[k]`` by name, ``return`` and ``length`` among them: the episodes that ended."""

    def mean(self, key: str) -> float | None:
        """Of a statistic of the episodes; None where none ended."""
        values = self.episodes.get(key, ())
        return float(np.mean(values, dtype=np.float64)) if len(values) else None


class Collector:
    """Collects segments of ``length`` steps, one for every group of agents.

    ``policies`` act; load newer weights into them, and note that in :attr:`versions`, between two
    steps. Rewards change by assignment to ``env.rewards``. An ``evaluating`` one takes the best
    known actions, and whole episodes from their beginning.
    """

    repeatable = True
    """Two runs are the same."""

    def __init__(
        self,
        env: MultiAgentVectorEnv,
        policies: Mapping[str, Policy],
        length: int,
        sampler: str,
        seed: int,
        evaluating: bool = False,
    ) -> None:
        self.env = env
        self.policies = policies
        self.versions = dict.fromkeys(policies, 0)
        self._length = length
        self._evaluating = evaluating
        self._track = Track(policies, length, sampler, env.reset(seed))
        if not evaluating:
            env.stagger()

    def step(self) -> list[Segment]:
        """One step of all environments; the segments of all groups where they are full."""
        outputs = {
            group: policy.get_action(self._track.observation[group], self._evaluating)
            for group, policy in self.policies.items()
        }
        self._last_step = self.env.step({group: output.action for group, output in outputs.items()})
        return self._track.add(outputs, self.versions, self._last_step)

    def collect(
        self,
        *,
        n_step: int | None = None,
        n_episode: int | None = None,
        take: Callable[[Segment], object] = lambda segment: None,
    ) -> CollectStats:
        """Go on for ``n_step`` steps of all environments together, or for ``n_episode`` episodes.

        Of the episodes those count that began first, the running ones before all others: of those
        that end first, short ones would be too many. Full segments go to ``take``.
        """
        if (n_step is None) == (n_episode is None):
            raise ValueError('either n_step or n_episode')
        started, first = time.monotonic(), self._track.steps_done
        counting = _Counting(self.env.num_envs, n_episode)
        while True:
            steps = (self._track.steps_done - first) * self.env.num_envs
            if counting.done if n_step is None else steps >= n_step:
                return CollectStats(steps, time.monotonic() - started, counting.episodes())
            for segment in self.step():
                take(segment)
            counting.add(self._last_step)

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on, but for weights and rewards."""
        return {
            **self._form(),
            'env': self.env.state_dict(),
            'track': self._track.state_dict(),
            'versions': self.versions,
            'generators': {
                group: policy.generator.get_state() for group, policy in self.policies.items()
            },
        }

    def _form(self) -> dict[str, Any]:
        return {
            'groups': list(self.policies),
            'environments': self.env.num_envs,
            'segment length': self._length,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`; with new episodes where the environment has no state.

        Raises ValueError for the state of other environments or segments.
        """
        for key, own in self._form().items():
            if state[key] != own:
                raise ValueError(f'it was written with {key} {state[key]}, now it is {own}')
        for group, generator in state['generators'].items():
            self.policies[group].generator.set_state(generator)
        self.versions = dict(state['versions'])
        if state['env'] is None:
            _log.warning(
                'environment %s cannot save its state: new episodes begin, so that the run is not '
                'what it would have been without the interruption',
                self.env.descriptor.name,
            )
            self._track.skip(state['track']['steps_done'])
            return
        self.env.load_state_dict(state['env'])
        self._track.load_state_dict(state['track'])


class _Counting:
    """Which of the episodes that end are to be counted."""

    def __init__(self, num_envs: int, wanted: int | None) -> None:
        self._wanted = wanted
        self._started = num_envs
        self._counts = np.arange(num_envs) < (num_envs if wanted is None else wanted)
        self._episodes: list[Arrays] = []

    @property
    def done(self) -> bool:
        return not self._counts.any()

    def add(self, step: Step) -> None:
        """Note the episodes that ended, and those that began in their place."""
        if not step.ended.size:
            return
        counted = self._counts[step.ended]
        self._episodes.append({key: values[counted] for key, values in step.episode.items()})
        numbers = self._started + np.arange(len(step.ended))
        self._counts[step.ended] = True if self._wanted is None else numbers < self._wanted
        self._started += len(step.ended)

    def episodes(self) -> Arrays:
        keys = self._episodes[0] if self._episodes else {}
        return {key: np.concatenate([each[key] for each in self._episodes]) for key in keys}
