"""How much memory processes have had at most, and what a policy keeps for its gradients."""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from opentinker.policies.actor_critic import ActorCritic

_PEAK = re.compile(r'^VmHWM:\s*(\d+) kB', re.MULTILINE)
_ROWS = 8
_M_MMAP_THRESHOLD = -3
_LARGE = 2**20


def mebibytes(number: float) -> str:
    """A number of bytes to be read by people."""
    return f'{number / 2**20:,.0f} MiB'


class PeakMemory:
    """The most that this process and those below it have had, as far as it was looked at.

    Each process counts with the most it ever had; pages that several share count in each.
    """

    def __init__(self) -> None:
        self.bytes = 0

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
    return int(found[1]) * 1024 if found else 0


def _now(pid: int) -> int:
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def return_large_blocks() -> None:
    """Let freed arrays go back to the system, so that memory does not depend on their order.

    The GNU C library otherwise learns to keep blocks of up to 32 MiB, and its heap gets holes.
    """
    # mallopt(3); other C libraries have no such thing
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def resident() -> int:
    """Bytes that this process has now."""
    return psutil.Process(os.getpid()).memory_info().rss


def kept_for_gradients(policy: ActorCritic) -> int:
    """Bytes that each row of a forward pass keeps until its backward pass."""
    few, more = (_kept(policy, rows) for rows in (_ROWS, 2 * _ROWS))
    return -(-(more - few) // _ROWS)


def _kept(policy: ActorCritic, rows: int) -> int:
    sizes: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    observation = policy.info.zeros(rows)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        kept = policy(policy.inputs(observation))
    del kept
    return sum(sizes.values())
