"""How much memory processes have, and have had at most."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import psutil

_PEAK = re.compile(r'^VmHWM:\s*(\d+) kB', re.MULTILINE)


def mebibytes(number: float) -> str:
    """A number of bytes to be read by people."""
    return f'{number / 2**20:,.0f} MiB'


class PeakMemory:
    """The most that this process has had since this was made, and those below it, as far as they
    were looked at. Pages that several share count in each.
    """

    def __init__(self) -> None:
        self.bytes = 0
        # proc(5): begin the record of this process anew
        with suppress(OSError):
            Path('/proc/self/clear_refs').write_text('5')

    def look(self) -> int:
        """Look now; the peak in bytes."""
        own = psutil.Process()
        pids = [own.pid, *(child.pid for child in own.children(recursive=True))]
        self.bytes = max(self.bytes, sum(map(_peak, pids)))
        return self.bytes


def _peak(pid: int) -> int:
    """0 for a process that is gone. Where the system keeps no record, what it has now."""
    try:
        status = Path(f'/proc/{pid}/status').read_text()
    except OSError:
        return _now(pid)
    found = _PEAK.search(status)
    return int(found[1]) * 1024 if found else _now(pid)


def _now(pid: int) -> int:
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def resident() -> int:
    """Bytes that this process has now."""
    return psutil.Process(os.getpid()).memory_info().rss
