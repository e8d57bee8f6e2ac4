"""Hand-overs between two processes without a system call, for as long as both are awake.

A message through a pipe takes as long as a step of a fast environment. So the one that waits looks
at a counter in shared memory. After a while the answerer goes to sleep on the pipe, and the asker
looks less and less often.
"""

from __future__ import annotations

import platform
import time
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext

_ASKED, _ANSWERED, _ASLEEP, _MORE = range(4)
_LOOKS = 64
"""At the counter, between two at the clock."""
_NAP_S = 0.0002
_LONGEST_NAP_S = 0.005


class Handoff:
    """One question at a time, always the same, from an asker to an answerer.

    What the question is about lies in shared memory, written before. Counters suffice only where
    processors let others see writes in their order, as x86 does.
    """

    usable = platform.machine() in ('x86_64', 'AMD64')

    def __init__(self, context: SpawnContext) -> None:
        self._counters = context.RawArray('q', 4)

    def ask(self) -> bool:
        """Ask; False where the answerer is asleep, and a message has to wake it up."""
        if self._counters[_ASLEEP]:
            return False
        self._counters[_ASKED] += 1
        return True

    def await_answer(self, connection: Connection, spin_s: float) -> bool:
        """Wait for it; whether more of it comes, or something else, through the connection."""
        counters = self._counters
        asked, until, nap_s = counters[_ASKED], time.perf_counter() + spin_s, _NAP_S
        while counters[_ANSWERED] != asked:
            for _ in range(_LOOKS):
                if counters[_ANSWERED] == asked:
                    break
            else:
                if time.perf_counter() > until:
                    if connection.poll(nap_s):
                        # an answer with more to it, a failure, or nobody there any more
                        return True
                    nap_s = min(2 * nap_s, _LONGEST_NAP_S)
        return bool(counters[_MORE])

    def await_question(self, connection: Connection, spin_s: float) -> bool:
        """Wait for it; False where a message came through the connection instead."""
        counters = self._counters
        answered, until = counters[_ANSWERED], time.perf_counter() + spin_s
        while counters[_ASKED] == answered:
            for _ in range(_LOOKS):
                if counters[_ASKED] != answered:
                    return True
            if connection.poll():
                return False
            if time.perf_counter() > until:
                counters[_ASLEEP] = 1
                # the asker may have looked just before: look now and then
                while counters[_ASKED] == answered:
                    if connection.poll(4 * _LONGEST_NAP_S):
                        counters[_ASLEEP] = 0
                        return False
                counters[_ASLEEP] = 0
        return True

    def answer(self, more: bool) -> None:
        """It is done; ``more`` comes through the connection."""
        self._counters[_MORE] = more
        self._counters[_ANSWERED] = self._counters[_ASKED]
