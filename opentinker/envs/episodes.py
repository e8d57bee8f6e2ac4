"""What environments that give one reward at a time have in common: seeds and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np


class EpisodeStatistics:
    """Returns and lengths of the running episodes, given out once, where an episode ends."""

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)

    def reset(self) -> None:
        """New episodes everywhere."""
        self._return[:] = 0
        self._length[:] = 0

    def add(self, reward: np.ndarray) -> None:
        """One more step: ``[env]``."""
        self._return += reward
        self._length += 1

    def finish(self, ended: np.ndarray, infos: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Of the ended: ``return``, ``length`` and, where all ``infos`` tell it, ``success``."""
        statistics = {'return': self._return[ended], 'length': self._length[ended]}
        for key in ('success', 'is_success'):
            if all(key in info for info in infos):
                values = [float(info[key]) for info in infos]
                statistics['success'] = np.array(values, np.float32)
                break
        self._return[ended] = 0
        self._length[ended] = 0
        return statistics

    def state_dict(self) -> dict[str, np.ndarray]:
        """What :meth:`load_state_dict` goes on from."""
        return {'return': self._return, 'length': self._length}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Go on from :meth:`state_dict`."""
        self._return[:] = state['return']
        self._length[:] = state['length']


def env_seeds(seed: int | None, number: int) -> list[int | None]:
    """A seed for each environment; None for each without one."""
    if seed is None:
        return [None] * number
    return [int(value) for value in np.random.SeedSequence(seed).generate_state(number)]
