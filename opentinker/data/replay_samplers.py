"""Which slots of a replay buffer are drawn: all alike, or by priority."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class ReplaySampler(ABC):
    """Draws slots. A slot is ``row * environments + environment``."""

    def allocate(self, slots: int) -> None:
        """Serve a buffer of so many slots."""
        self._written = np.zeros(slots, np.int64)

    def added(self, slots: np.ndarray) -> None:
        """These slots hold new steps."""
        self._written[slots] += 1

    def tickets(self, slots: np.ndarray) -> np.ndarray:
        """``[n, 2]``: slots, and how often they had been written, so that a late answer about a
        step that was replaced since is not taken for one about its successor.
        """
        return np.stack([slots, self._written[slots]], axis=1)

    @abstractmethod
    def draw(
        self, size: int, random: np.random.Generator, stored: np.ndarray, num_envs: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Slots ``[size]`` and their weights, where each environment has ``stored`` rows."""

    def update(self, tickets: np.ndarray, error: np.ndarray) -> None:  # noqa: B027
        """Learn how surprising steps were."""

    def state_dict(self) -> dict[str, Any]:
        """What goes on changing."""
        return {'written': self._written.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._written = state['written'].copy()


class UniformSampler(ReplaySampler):
    """Every stored step is as likely as any other."""

    def draw(
        self, size: int, random: np.random.Generator, stored: np.ndarray, num_envs: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Drawn with replacement; all weights are 1."""
        ends = np.cumsum(stored)
        numbers = random.integers(ends[-1], size=size)
        envs = np.searchsorted(ends, numbers, side='right')
        rows = numbers - (ends - stored)[envs]
        return rows * num_envs + envs, np.ones(size)


class PrioritizedSampler(ReplaySampler):
    """Proportional prioritization, Schaul et al. 2016, https://arxiv.org/abs/1511.05952.

    ``alpha``: 0 draws uniformly, 1 in proportion to the error. ``beta`` corrects for it: it rises
    from its first value to 1 over ``anneal`` draws. New steps get the highest priority yet seen.
    """

    def __init__(
        self, alpha: float = 0.6, beta: float = 0.4, anneal: int = 100_000, epsilon: float = 1e-6
    ) -> None:
        self._alpha, self._beta, self._anneal, self._epsilon = alpha, beta, anneal, epsilon
        self._draws = 0
        self._highest = 1.0

    def allocate(self, slots: int) -> None:
        """A sum tree whose leaves are the slots."""
        super().allocate(slots)
        self._leaves = 1 << max(slots - 1, 0).bit_length()
        self._tree = np.zeros(2 * self._leaves)

    def added(self, slots: np.ndarray) -> None:
        """New steps have the highest priority until they were drawn once."""
        super().added(slots)
        self._set(slots, np.full(len(slots), self._highest**self._alpha))

    def priority(self, slots: np.ndarray) -> np.ndarray:
        """Shares of all draws, unnormalised."""
        return self._tree[self._leaves + slots]

    @property
    def beta(self) -> float:
        """Now."""
        return self._beta + (1 - self._beta) * min(self._draws / self._anneal, 1.0)

    def draw(
        self, size: int, random: np.random.Generator, stored: np.ndarray, num_envs: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """One from each of ``size`` equal strata, in random order."""
        total = self._tree[1]
        wanted = (random.permutation(size) + random.random(size)) * total / size
        node = np.ones(size, np.int64)
        while node[0] < self._leaves:
            left = self._tree[2 * node]
            # never into a branch that weighs nothing, whatever rounding says
            right = (wanted >= left) & (self._tree[2 * node + 1] > 0)
            wanted = np.where(right, wanted - left, wanted)
            node = 2 * node + right
        slots = node - self._leaves
        chance = self._tree[node] / total
        weight = (stored.sum() * chance) ** -self.beta
        self._draws += 1
        return slots, weight

    def update(self, tickets: np.ndarray, error: np.ndarray) -> None:
        """Set priorities by absolute errors ``[n]``; of a slot named twice the last one counts."""
        slots, written = np.asarray(tickets).T
        current = self._written[slots] == written
        size = np.abs(np.asarray(error, np.float64)) + self._epsilon
        if not np.isfinite(size).all():
            raise ValueError('an error that is not finite is no priority')
        if current.any():
            self._highest = max(self._highest, float(size[current].max()))
            self._set(slots[current], size[current] ** self._alpha)

    def _set(self, slots: np.ndarray, priority: np.ndarray) -> None:
        node = self._leaves + slots
        self._tree[node] = priority
        while node.size and node[0] > 1:
            node = np.unique(node // 2)
            self._tree[node] = self._tree[2 * node] + self._tree[2 * node + 1]

    def state_dict(self) -> dict[str, Any]:
        """Priorities and how far ``beta`` has come."""
        own = {'tree': self._tree.copy(), 'draws': self._draws, 'highest': self._highest}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        super().load_state_dict(state)
        self._tree = state['tree'].copy()
        self._draws, self._highest = state['draws'], state['highest']
