"""The one place where the normalised actions of policies become those of an environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from opentinker.envs.descriptor import ArrayInfo
from opentinker.envs.spaces import SpaceError, to_info


class ActionScaling:
    """Between the normalised actions of policies and those of a space.

    Bounded boxes take -1 to 1, whatever their bounds; unbounded ones take actions as they are;
    choices count from 0. Raises :class:`SpaceError` for spaces that no array describes.
    """

    def __init__(self, space: gymnasium.Space) -> None:
        self.info = to_info(space)
        self._start = getattr(space, 'start', 0)
        self._bounded: np.ndarray | None = None
        if not isinstance(space, Box):
            return
        if not np.issubdtype(space.dtype, np.floating):
            raise SpaceError(f'actions of dtype {space.dtype} in a Box; use MultiDiscrete')
        bounded = np.isfinite(space.low) & np.isfinite(space.high)
        self._bounded = bounded
        self._dtype = space.dtype
        self._low, self._high = space.low, space.high
        with np.errstate(invalid='ignore'):
            self._middle = np.where(bounded, (space.low + space.high) / 2, 0)
            self._half = np.where(bounded, (space.high - space.low) / 2, 1)
        limits = np.where(bounded, 1.0, np.nan).ravel().tolist()
        high = tuple(value if value == 1.0 else None for value in limits)
        low = tuple(None if value is None else -value for value in high)
        self.info = ArrayInfo(shape=self.info.shape, low=low, high=high)

    def native(self, action: np.ndarray) -> Any:
        """``[..., *action]`` as the space has it; what is out of bounds is put on them."""
        if self._bounded is None:
            return action + self._start if np.any(self._start) else action
        scaled = self._middle + self._half * action
        # np.clip takes twice as long
        np.maximum(scaled, self._low, out=scaled)
        return np.minimum(scaled, self._high, out=scaled).astype(self._dtype, copy=False)
