"""Joint states by name, never by position in the message, and never from what is no number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sensor_msgs.msg import JointState

from opentinker_ros.conversions import from_stamp

_MAX_LAYOUTS = 64


class JointStateReader:
    """Collects the wanted joints of one or several joint-state streams.

    Joints may come in any order and number; strangers are ignored. A message with a duplicated
    wanted joint, a short position field or a non-finite position is refused whole, with a count
    that names the joint, so a wrong number never reaches a joint. Missing or non-finite velocities
    are read as zero and counted.
    """

    def __init__(
        self, joints: Sequence[str], count: Callable[[str], None] = lambda what: None
    ) -> None:
        self._joints = list(joints)
        self._row = {name: index for index, name in enumerate(joints)}
        self._count = count
        self._layouts: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]] = {}
        self.positions = np.full(len(self._joints), np.nan)
        """``[joint]`` rad or m; NaN until first seen."""
        self.velocities = np.zeros(len(self._joints))
        """``[joint]`` rad/s or m/s."""
        self._stamps = np.full(len(self._joints), -1, np.int64)

    def update(self, message: JointState) -> bool:
        """Take the wanted joints of a message; False where it was refused or holds none of them."""
        layout = self._layout(tuple(message.name))
        if layout is None:
            return False
        source, rows = layout
        positions = np.asarray(message.position, np.float64)
        if positions.size != len(message.name):
            self._count(
                f'joint state with {positions.size} positions for {len(message.name)} names'
            )
            return False
        values = positions[source]
        if not np.isfinite(values).all():
            bad = self._joints[rows[~np.isfinite(values)][0]]
            self._count(f'joint state with a non-finite position of {bad}')
            return False
        self.positions[rows] = values
        self.velocities[rows] = self._velocities(message, source)
        self._stamps[rows] = from_stamp(message.header.stamp)
        return bool(rows.size)

    def _velocities(self, message: JointState, source: np.ndarray) -> np.ndarray:
        velocities = np.asarray(message.velocity, np.float64)
        if velocities.size != len(message.name):
            if velocities.size:
                self._count(
                    f'joint state with {velocities.size} velocities for {len(message.name)} names'
                )
            return np.zeros(source.size)
        values = velocities[source]
        if not np.isfinite(values).all():
            self._count('joint state with a non-finite velocity')
            return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        return values

    def _layout(self, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray] | None:
        """Where the wanted joints stand in a message with these names, and which rows they are."""
        layout = self._layouts.get(names)
        if layout is not None:
            return layout
        wanted = [name for name in names if name in self._row]
        twice = next((name for name in wanted if wanted.count(name) > 1), None)
        if twice is not None:
            self._count(f'joint state that names {twice} twice')
            return None
        if len(self._layouts) >= _MAX_LAYOUTS:
            self._layouts.clear()
        layout = self._layouts[names] = (
            np.array([index for index, name in enumerate(names) if name in self._row], int),
            np.array([self._row[name] for name in wanted], int),
        )
        return layout

    def complete_at(self, stamp: int) -> bool:
        """Every wanted joint was measured at this stamp (nanoseconds) or later."""
        return bool((self._stamps >= stamp).all())

    def missing(self) -> list[str]:
        """Wanted joints that no message has brought yet."""
        return [
            name
            for name, value in zip(self._joints, self.positions, strict=True)
            if np.isnan(value)
        ]
