"""Environments in worker processes, which pass arrays through shared memory."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker.envs.episodes import env_seeds
from opentinker.envs.share import (
    Make,
    OwnShare,
    Share,
    SharedArrays,
    WorkerShare,
    example_arrays,
)
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step
from opentinker.lifecycle import Lifecycle

_SPIN_S = 0.001
"""For how long who waits looks again and again before it sleeps: waking up takes a tenth of it."""


class WorkerVectorEnv(MultiAgentVectorEnv):
    """As many environments as asked for, spread over processes that step them side by side.

    This process steps the first share itself, so that it does not idle, and ``workers`` others do
    the rest. ``make(num_envs, seed)`` makes the environments of a share, in the process that steps
    them; it is pickled. Raises ValueError where there are not more environments than workers,
    :class:`WorkerError` where a worker fails.
    """

    def __init__(self, make: Make, num_envs: int, workers: int, seed: int) -> None:
        if not 1 <= workers < num_envs:
            raise ValueError(f'{workers} workers for {num_envs} environments')
        self.num_envs = num_envs
        shares = workers + 1
        edges = [num_envs * index // shares for index in range(shares + 1)]
        seeds = [int(own or 0) for own in env_seeds(seed, shares)]
        self._life = Lifecycle()
        try:
            self._start(make, edges, seeds)
        except BaseException:
            self.close()
            raise

    def _start(self, make: Make, edges: list[int], seeds: list[int]) -> None:
        own = self._life.keep(make(edges[1], seeds[0]))
        self.descriptor, self.rewards = own.descriptor, own.rewards
        self._told = self.rewards
        context = multiprocessing.get_context('spawn')
        memory = SharedArrays(context, example_arrays(own), self.num_envs)
        self._arrays = memory.rows(0, self.num_envs)
        spin_s = _SPIN_S if len(seeds) <= len(os.sched_getaffinity(0)) else 0.0
        first, *others = (
            Share(make, seed, memory, (begin, end), spin_s)
            for seed, begin, end in zip(seeds, edges, edges[1:], strict=False)
        )
        workers = [self._life.keep(WorkerShare(share, context)) for share in others]
        self._shares: list[OwnShare | WorkerShare] = [OwnShare(first, own), *workers]
        self._ask('ready')

    def reset(self, seed: int | None = None) -> Observations:
        """Start a new episode everywhere."""
        seeds = env_seeds(seed, len(self._shares))
        self._ask('reset', *([own] for own in seeds))
        return self._observation()

    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """Apply actions ``[env, agent, *action]``; all workers step at the same time."""
        if self.rewards is not self._told:
            self._told = self.rewards
            self._ask('rewards', *([self.rewards] for _ in self._shares))
        for name, values in actions.items():
            self._arrays['action', name][...] = values
        endings = self._ask('step')
        groups = self.descriptor.groups
        signals = {
            name: {key: self._copy('signals', name, key) for key in group.signals}
            for name, group in groups.items()
        }
        step = Step.scored(
            self.rewards,
            observation=self._observation(),
            signals=signals,
            active={name: self._copy('active', name) for name in groups},
            terminated=self._copy('terminated'),
            truncated=self._copy('truncated'),
        )
        given = [ending for ending in endings if ending is not None]
        if given:
            step.final_observation = {
                name: _joined([final[name] for final, _ in given]) for name in groups
            }
            step.episode = _joined([episode for _, episode in given])
        return step

    def stagger(self) -> None:
        """Let the workers cut the running episodes short by different amounts."""
        self._ask('stagger')

    def render(self) -> np.ndarray:
        """The first environment as a picture ``[height, width, 3]``, uint8."""
        self._shares[0].send('render')
        return self._shares[0].receive()

    def state_dict(self) -> dict[str, Any] | None:
        """None where the environments have no state to save."""
        states = self._ask('state_dict')
        return None if any(state is None for state in states) else {'shares': states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`. Raises ValueError for another number of workers."""
        written, workers = len(state['shares']) - 1, len(self._shares) - 1
        if written != workers:
            raise ValueError(f'it was written with {written} workers, now there are {workers}')
        self._ask('load_state_dict', *([own] for own in state['shares']))

    def close(self) -> None:
        """End the workers; one that does not end by itself is killed."""
        self._life.close()

    def _ask(self, command: str, *arguments: list[Any]) -> list[Any]:
        """What each share answers, all at work at the same time."""
        for share, own in zip(self._shares, arguments or [[]] * len(self._shares), strict=True):
            share.send(command, *own)
        return [share.receive() for share in self._shares]

    def _observation(self) -> Observations:
        return {
            name: {key: self._copy('observation', name, key) for key in group.observation}
            for name, group in self.descriptor.groups.items()
        }

    def _copy(self, *path: str) -> np.ndarray:
        # the workers write into theirs at the next step
        return self._arrays[path].copy()


def _joined(each: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([arrays[key] for arrays in each]) for key in each[0]}
