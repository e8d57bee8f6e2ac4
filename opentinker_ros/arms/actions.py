"""From a policy's normalised action to absolute joint targets."""

from __future__ import annotations

import numpy as np

INCREMENT = np.float32(0.1)
"""Rad (or m) that an action of 1 adds to a joint's last command."""


def to_targets(last_command: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Absolute targets ``[..., joint + 1]`` of normalised actions of the same shape, as float32.

    Joints move by ``INCREMENT * action`` from ``last_command``, the command that the gate let
    through last; the last column is the gripper, where -1..1 becomes 0..1. Actions beyond -1..1 are
    clipped. The result depends on nothing else, so whoever holds an observation can compute it.
    """
    action = np.clip(np.asarray(action, np.float32), -1, 1)
    targets = np.asarray(last_command, np.float32) + INCREMENT * action
    targets[..., -1] = (action[..., -1] + 1) / 2
    return targets
