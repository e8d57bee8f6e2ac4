"""The command gate: the one place through which every command passes before it reaches a driver."""

from __future__ import annotations

import numpy as np

from opentinker_ros.arms.robot_model import RobotModel

LEAD = 0.35
"""How far (rad or m) a command may be from the measured position: this bounds the motion that is
still to come should no further command follow."""

NON_FINITE, UNMEASURED, POSITION, LEADING, VELOCITY = (
    'non_finite',
    'unmeasured',
    'position',
    'lead',
    'velocity',
)
REASONS = (NON_FINITE, UNMEASURED, POSITION, LEADING, VELOCITY)


class CommandGate:
    """Bounds absolute targets ``[env, arm, joint + 1]``, the gripper in the last column.

    A target inside all bounds passes bit for bit. From a state outside some bound the command comes
    back towards it at no more than the velocity limit, so that the violation never grows.
    """

    def __init__(self, robot: RobotModel, arms: int, period: float) -> None:
        self._lower = np.append(robot.lower, 0.0)
        self._upper = np.append(robot.upper, 1.0)
        self._step = np.append(robot.velocity * period, np.inf)
        self.changes = {reason: np.zeros((arms, len(self._lower)), np.int64) for reason in REASONS}
        """How often a command was changed, by reason: ``[arm, joint + 1]``, over all cells."""

    def __call__(self, targets: np.ndarray, last: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """What may be sent in place of ``targets``.

        ``last`` is what was sent before, same shape; ``measured`` is ``[env, arm, joint]``. An arm
        with a non-finite target or measurement keeps its last command.
        """
        targets = np.asarray(targets, np.float64)
        targets = self._hold(NON_FINITE, np.isfinite(targets), targets, last)
        targets = self._clip(POSITION, targets, self._lower, self._upper)
        known = np.isfinite(measured)
        joints = slice(None, -1)
        centre = measured if known.all() else np.where(known, measured, last[..., joints])
        lead = targets.copy()
        lead[..., joints] = np.clip(targets[..., joints], centre - LEAD, centre + LEAD)
        self._count(LEADING, lead != targets)
        targets = self._clip(VELOCITY, lead, last - self._step, last + self._step)
        return self._hold(UNMEASURED, known, targets, last)

    def _clip(
        self, reason: str, targets: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        clipped = np.clip(targets, low, high)
        self._count(reason, clipped != targets)
        return clipped

    def _hold(
        self, reason: str, good: np.ndarray, targets: np.ndarray, last: np.ndarray
    ) -> np.ndarray:
        if good.all():
            return targets
        self.changes[reason][:, : good.shape[-1]] += (~good).sum(axis=0)
        return np.where(good.all(axis=-1, keepdims=True), targets, last)

    def _count(self, reason: str, changed: np.ndarray) -> None:
        if changed.any():
            self.changes[reason] += changed.sum(axis=0)
