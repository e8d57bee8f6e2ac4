"""Environments in worker processes, which pass arrays through shared memory."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker.envs.episodes import env_seeds
from opentinker.envs.share import (
    Make,
    OwnShare,
    Share,
    SharedArrays,
    SharedStep,
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
    them; it is pickled. With ``spins``, who waits looks again and again for a while before it
    sleeps, for which each process needs a processor. Raises ValueError where there are not more
    environments than workers, :class:`WorkerError` where a worker fails.
    """

    def __init__(
        self, make: Make, num_envs: int, workers: int, seed: int, spins: bool = True
    ) -> None:
        if not 1 <= workers < num_envs:
            raise ValueError(f'{workers} workers for {num_envs} environments')
        self.num_envs = num_envs
        shares = workers + 1
        edges = [num_envs * index // shares for index in range(shares + 1)]
        seeds = [int(own or 0) for own in env_seeds(seed, shares)]
        self._life = Lifecycle()
        try:
            self._start(make, edges, seeds, _SPIN_S if spins else 0.0)
        except BaseException:
            self.close()
            raise

    def _start(self, make: Make, edges: list[int], seeds: list[int], spin_s: float) -> None:
        own = self._life.keep(make(edges[1], seeds[0]))
        self.descriptor, self.rewards = own.descriptor, own.rewards
        self._told = self.rewards
        context = multiprocessing.get_context('spawn')
        memory = SharedArrays(context, example_arrays(own), self.num_envs)
        self._shared = SharedStep(self.descriptor, memory.rows(0, self.num_envs))
        # of the job's own seed, after the step that the example took
        own.reset(seeds[0])
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
        return self._shared.observation()

    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """Apply actions ``[env, agent, *action]``; all workers step at the same time."""
        news = None if self.rewards is self._told else self.rewards
        self._told = self.rewards
        self._shared.act(actions)
        endings = self._ask('step', *([news] for _ in self._shares))
        return self._shared.result(self.rewards, endings)

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
