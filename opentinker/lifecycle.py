"""Orderly ends: what must be closed is closed, newest first, however a process comes to its end."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Protocol, TypeVar

_log = logging.getLogger(__name__)


class Closable(Protocol):
    """Anything with a ``close``."""

    def close(self) -> None: ...


T = TypeVar('T', bound=Closable)


class Lifecycle:
    """A ``with`` block that asks loops to end on SIGINT and SIGTERM and then closes what was kept.

    Loops look at :attr:`stopping`, so that a signal never lands in the middle of an update or a
    write; a second SIGINT is for the impatient and raises KeyboardInterrupt. Belongs in the main
    thread.
    """

    def __init__(self) -> None:
        self.stopping = ''
        """Why the process should end; empty while it should go on."""
        self._kept: list[Closable] = []
        self._handlers: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def keep(self, thing: T) -> T:
        """Close this one, too. Returns it."""
        self._kept.append(thing)
        return thing

    def __enter__(self) -> Lifecycle:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def close(self) -> None:
        """Close what was kept; also where nobody enters the block."""
        while self._kept:
            thing = self._kept.pop()
            try:
                thing.close()
            except Exception:
                _log.exception('closing %s failed', type(thing).__name__)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.stopping and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.stopping = self.stopping or signal.Signals(number).name
