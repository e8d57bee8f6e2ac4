"""Reward terms of the arms tasks: costs are negative numbers with positive weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from opentinker.envs.rewards import Parameter, reward_term

Signals = Mapping[str, np.ndarray]


@reward_term(
    'distance',
    needs=('distance',),
    weight=1.0,
    scale=Parameter(0.1, 0.001, 10.0, 'distance at which the last stretch begins to pay', 'm'),
)
def distance(signals: Signals, scale: float) -> np.ndarray:
    """Nearness of the tool to its target: -d + exp(-d / scale)."""
    return np.exp(-signals['distance'] / scale) - signals['distance']


@reward_term(
    'reached',
    needs=('distance',),
    weight=1.0,
    radius=Parameter(0.05, 0.001, 1.0, 'distance within which the target counts as reached', 'm'),
)
def reached(signals: Signals, radius: float) -> np.ndarray:
    """1 while the tool is within a radius of its target."""
    return (signals['distance'] < radius).astype(np.float32)


@reward_term('collision', needs=('contact',), weight=0.5)
def collision(signals: Signals) -> np.ndarray:
    """-1 while the arm touches another arm, itself or the floor."""
    return -signals['contact']


@reward_term('action_rate', needs=('action_change',), weight=0.01)
def action_rate(signals: Signals) -> np.ndarray:
    """Minus the squared change between two actions, summed over joints."""
    return -signals['action_change']


@reward_term(
    'joint_limit',
    needs=('limit_margin',),
    weight=0.1,
    margin=Parameter(0.1, 0.001, 3.2, 'distance to a limit below which it costs', 'rad'),
)
def joint_limit(signals: Signals, margin: float) -> np.ndarray:
    """From 0 at a margin before the nearest joint limit to -1 at the limit."""
    return -np.clip(1 - signals['limit_margin'] / margin, 0, 1)
