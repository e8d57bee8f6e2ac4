"""One training run against the clock: when does the mean of evaluations reach a threshold?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """What is learnt, and when it counts as learnt."""

    env: str
    threshold: float | None
    """Mean over the evaluation's episodes; None: train to the limit."""
    every: int
    """Agent transitions between two evaluations."""
    limit: int
    """Agent transitions after which a run is over."""
    episodes: int = 20
    peers: tuple[str, ...] = ('stable_baselines3', 'tianshou')


TASKS = {
    'cartpole_ppo': Task('CartPole-v1', 475, 1_000, 100_000),
    'cartpole_a2c': Task('CartPole-v1', 475, 1_000, 200_000),
    'inverted_pendulum': Task('InvertedPendulum-v5', 950, 1_000, 200_000),
    'halfcheetah': Task('HalfCheetah-v5', None, 20_000, 300_000, episodes=10),
    # tianshou's collector cannot take the arms of one world as rows of a batch
    'reach': Task('reach', 0.9, 8_192, 1_000_000, peers=('stable_baselines3',)),
}


class Race:
    """Counts transitions and seconds of one side; evaluations do not count."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.curve: list[tuple[int, float, float]] = []
        """Transitions, seconds and mean of every evaluation."""
        self._next = task.every
        self._paused = 0.0
        self._started = time.perf_counter()

    def over(self, transitions: int, evaluate: Callable[[], float]) -> bool:
        """Whether the run is over; asked after every update."""
        at_the_limit = transitions >= self.task.limit
        if transitions < self._next and not at_the_limit:
            return False
        self._next = transitions + self.task.every
        now = time.perf_counter()
        seconds = now - self._started - self._paused
        self.curve.append((transitions, seconds, evaluate()))
        self._paused += time.perf_counter() - now
        threshold = self.task.threshold
        return at_the_limit or (threshold is not None and self.curve[-1][2] >= threshold)
