"""Where episodes end in a segment, and the sequences of steps between."""

from __future__ import annotations

import numpy as np

from opentinker.data.segment import Segment


def leavings(active: np.ndarray) -> np.ndarray:
    """``[T, E, A]``: the last step of an agent that takes no part in the next one."""
    leaves = np.zeros_like(active)
    leaves[:-1] = active[:-1] & ~active[1:]
    return leaves


def ends(segment: Segment) -> np.ndarray:
    """``[T, E, A]``: nothing after these steps belongs to the same episode of the agent."""
    return (segment.terminated | segment.truncated)[..., None] | leavings(segment.active)


def sequence_starts(active: np.ndarray, ended: np.ndarray, length: int) -> np.ndarray:
    """``[T, E, A]``: where sequences of at most ``length`` steps of one episode begin."""
    first = np.zeros_like(active)
    age = np.zeros(active.shape[1:], np.int64)
    for step in range(len(active)):
        first[step] = active[step] & (age % length == 0)
        age = np.where(active[step] & ~ended[step], age + 1, 0)
    return first
