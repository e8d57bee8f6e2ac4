"""Collects from environments that go on at their own pace."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opentinker.data.segment import Segment
from opentinker.envs.episodes import env_seeds
from opentinker.envs.worker_pool import Lane, WorkerPool
from opentinker.policies.policy import ActionOutput, Policy
from opentinker.training.track import Outputs, Track

_log = logging.getLogger(__name__)


@dataclass
class _Way:
    """A lane, its track, and what it is doing."""

    lane: Lane
    track: Track
    outputs: Outputs = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    busy: bool = False


class AsyncCollector:
    """Steps whichever environments are ready, after waiting ``timeout_s`` for the others.

    The environments of each worker have segments of their own, of ``length`` steps, whose sampler
    is called ``<sampler>/<number>``. A late step is used when it comes. Else like Collector; which
    environments are ready is up to the machine.
    """

    repeatable = False

    def __init__(
        self,
        env: WorkerPool,
        policies: Mapping[str, Policy],
        length: int,
        sampler: str,
        seed: int,
        timeout_s: float,
    ) -> None:
        self.env = env
        self.policies = policies
        self.versions = dict.fromkeys(policies, 0)
        self._timeout_s = timeout_s
        self._ways = [
            _Way(lane, Track(policies, length, f'{sampler}/{number}', lane.begin(own, True)))
            for number, (lane, own) in enumerate(
                zip(env.lanes, env_seeds(seed, len(env.lanes)), strict=True)
            )
        ]

    def step(self) -> list[Segment]:
        """Let all that wait for actions go on; the full segments of those that are done."""
        self._act([way for way in self._ways if not way.busy])
        busy = {id(way.lane): way for way in self._ways if way.busy}
        done = self.env.wait([way.lane for way in busy.values()], self._timeout_s)
        return [segment for lane in done for segment in self._finish(busy[id(lane)])]

    def _act(self, ways: list[_Way]) -> None:
        """Choose for all of them at once."""
        if not ways:
            return
        edges = np.cumsum([way.lane.num_envs for way in ways])[:-1]
        for group, policy in self.policies.items():
            seen = [way.track.observation[group] for way in ways]
            joined = {key: np.concatenate([own[key] for own in seen]) for key in seen[0]}
            pieces = _split(policy.get_action(joined), edges)
            for way, output in zip(ways, pieces, strict=True):
                way.outputs[group] = output
        for way in ways:
            way.versions = dict(self.versions)
            actions = {group: output.action for group, output in way.outputs.items()}
            way.lane.send(actions, self.env.rewards)
            way.busy = True

    def _finish(self, way: _Way) -> list[Segment]:
        way.busy = False
        return way.track.add(way.outputs, way.versions, way.lane.receive())

    def state_dict(self) -> dict[str, Any]:
        """Counts; what is on its way cannot be saved."""
        return {
            'steps_done': [way.track.steps_done for way in self._ways],
            'versions': self.versions,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`, with new episodes. Raises ValueError for other workers."""
        written, workers = len(state['steps_done']), len(self._ways)
        if written != workers:
            raise ValueError(f'it was written with {written} workers, now there are {workers}')
        self.versions = dict(state['versions'])
        for way, steps_done in zip(self._ways, state['steps_done'], strict=True):
            way.track.skip(steps_done)
        _log.warning('environments that go on at their own pace begin new episodes')


def _split(output: ActionOutput, edges: np.ndarray) -> list[ActionOutput]:
    state = {key: np.split(values, edges) for key, values in output.state.items()}
    return [
        ActionOutput(action, log_prob, {key: pieces[number] for key, pieces in state.items()})
        for number, (action, log_prob) in enumerate(
            zip(np.split(output.action, edges), np.split(output.log_prob, edges), strict=True)
        )
    ]
