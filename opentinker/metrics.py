"""Small running statistics that several parts keep."""

from __future__ import annotations

import time
from collections import deque


class Rate:
    """Events a second over the last ``window_s`` seconds."""

    def __init__(self, window_s: float = 10.0) -> None:
        self._window_s = window_s
        self._started = time.monotonic()
        self._events: deque[tuple[float, int]] = deque()

    def add(self, count: int) -> None:
        """Note ``count`` events that happened now."""
        self._events.append((time.monotonic(), count))
        self._forget()

    @property
    def per_second(self) -> float:
        """The rate; over the time since the start while that is shorter than the window."""
        self._forget()
        elapsed = min(self._window_s, time.monotonic() - self._started)
        return sum(count for _, count in self._events) / max(elapsed, 1e-3)

    def _forget(self) -> None:
        oldest = time.monotonic() - self._window_s
        while self._events and self._events[0][0] < oldest:
            self._events.popleft()
