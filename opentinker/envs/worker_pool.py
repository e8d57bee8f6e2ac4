"""Environments in worker processes that go on at their own pace: a late one holds up no other."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Collection
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from opentinker.envs.episodes import env_seeds
from opentinker.envs.rewards import RewardSpec
from opentinker.envs.share import (
    Make,
    Share,
    SharedArrays,
    SharedStep,
    WorkerShare,
    example_arrays,
)
from opentinker.envs.vector import Observations, Step
from opentinker.lifecycle import Lifecycle

_PATIENCE_S = 0.5
"""For how long to wait where nothing comes, before the caller may look whether to go on at all."""


class Lane:
    """The environments of one worker, which are stepped together."""

    def __init__(self, share: WorkerShare, shared: SharedStep, num_envs: int) -> None:
        self.num_envs = num_envs
        self.share = share
        self._shared = shared
        self._told: RewardSpec | None = None

    def begin(self, seed: int | None, stagger: bool) -> Observations:
        """Start new episodes; ``stagger`` cuts them short by different amounts."""
        self.share.send('reset', seed)
        self.share.receive()
        if stagger:
            self.share.send('stagger')
            self.share.receive()
        return self._shared.observation()

    def send(self, actions: dict[str, np.ndarray], rewards: RewardSpec) -> None:
        """Let the worker step under these rewards; :meth:`receive` gives what comes of it."""
        self._shared.act(actions)
        self.share.send('step', None if rewards is self._told else rewards)
        self._told = rewards

    def receive(self) -> Step:
        """The step that was sent. Raises WorkerError where the worker failed."""
        ending = self.share.receive()
        assert self._told is not None
        return self._shared.result(self._told, [ending])


class WorkerPool:
    """``num_envs`` environments, spread over ``workers`` processes.

    ``make(num_envs, seed)`` makes those of a worker, in its process; it is pickled. Where a late
    environment should hold up no other at all, there are as many workers as environments. Raises
    ValueError where there are more workers than environments.
    """

    def __init__(self, make: Make, num_envs: int, workers: int, seed: int) -> None:
        if not 1 <= workers <= num_envs:
            raise ValueError(f'{workers} workers for {num_envs} environments')
        self.num_envs = num_envs
        example = make(1, seed)
        try:
            arrays = example_arrays(example)
        finally:
            example.close()
        self.descriptor = example.descriptor
        self.rewards = example.rewards
        """The rewards of the next steps that begin."""
        context = multiprocessing.get_context('spawn')
        memory = SharedArrays(context, arrays, num_envs)
        edges = [num_envs * index // workers for index in range(workers + 1)]
        self._life = Lifecycle()
        self.lanes: list[Lane] = []
        try:
            for begin, end, own in zip(edges, edges[1:], env_seeds(seed, workers), strict=False):
                share = Share(make, int(own or 0), memory, (begin, end), spin_s=0.0)
                worker = self._life.keep(WorkerShare(share, context))
                shared = SharedStep(self.descriptor, memory.rows(begin, end))
                self.lanes.append(Lane(worker, shared, end - begin))
        except BaseException:
            self.close()
            raise

    def wait(self, busy: Collection[Lane], timeout_s: float) -> list[Lane]:
        """Of the lanes that step, those that are done after ``timeout_s``, or sooner all of them.

        Where none is by then, the first that is. Where nothing comes at all, none, after a while.
        """
        by_connection: dict[Any, Lane] = {lane.share.connection: lane for lane in busy}
        began = time.monotonic()
        done: list[Lane] = []
        while by_connection:
            left = began + (timeout_s if done else max(timeout_s, _PATIENCE_S)) - time.monotonic()
            ready = wait(list(by_connection), max(left, 0.0))
            done += [by_connection.pop(connection) for connection in ready]
            if left <= 0:
                break
        return done

    def close(self) -> None:
        """End the workers; one that does not end by itself is killed."""
        self._life.close()
