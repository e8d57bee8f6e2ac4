"""What an environment of named agents implements, to be vectorised and trained on here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import Space


@dataclass
class AgentStep:
    """What one step gave, by agent.

    The agents that have an observation, and neither terminated nor were truncated, take part in
    the next step. The episode ends where none are left.
    """

    observation: Mapping[str, Any]
    """Values of the agents' observation spaces; those that leave in this step among them."""
    reward: Mapping[str, float]
    terminated: Mapping[str, bool] = field(default_factory=dict)
    """The agent reached its end; false where it is not named."""
    truncated: Mapping[str, bool] = field(default_factory=dict)
    """The agent was cut short by a time limit or a fault; false where it is not named."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Of the episode; ``success`` (a bool) is reported where its end tells it."""


class EnvInterface(ABC):
    """One environment. Observations and actions are values of the spaces of gymnasium.

    Conversion is automatic: agents whose spaces are equal and whose names differ by their number
    alone (``arm_0``, ``arm_1``) become a group, arrays are cast and checked, bounded actions come
    scaled from -1 to 1, ended episodes start anew.
    """

    observation_spaces: Mapping[str, Space]
    """By agent, of all that may ever take part. ``Dict`` and ``Tuple`` may nest; in a ``Dict`` the
    key ``action_mask``, one number a choice, closes those that are 0."""
    action_spaces: Mapping[str, Space]
    """By agent."""
    name: str = ''
    """Empty: that of the class."""
    control_period: float = 1.0
    """Seconds between two actions."""
    step_limit: int | None = None
    """Steps after which an episode is truncated, by the environment itself."""

    @abstractmethod
    def reset(self, seed: int | None = None) -> Mapping[str, Any]:
        """Begin an episode; returns the observations of the agents that take part."""

    @abstractmethod
    def step(self, actions: Mapping[str, Any]) -> AgentStep:
        """Apply one action for each agent that takes part."""

    def render(self) -> np.ndarray:
        """A picture ``[height, width, 3]``, uint8."""
        raise NotImplementedError(f'{self.name or type(self).__name__} has no picture')

    def state_dict(self) -> dict[str, Any] | None:
        """What :meth:`load_state_dict` goes on from, bit for bit; None where that cannot be."""
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        raise NotImplementedError(f'{self.name or type(self).__name__} cannot save its state')

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Release what the environment holds."""
