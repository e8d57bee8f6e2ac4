"""The contract of every environment: groups of agents, many at once, ``[env, agent, ...]``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.rewards import RewardSpec

Observations = dict[str, dict[str, np.ndarray]]
"""Group, then key: arrays ``[env, agent, *shape]``."""


@dataclass
class Step:
    """What one step of all environments gave.

    ``observation`` is what the next action is chosen from: for an environment that ended it is the
    first observation of its next episode, and the true last one is in ``final_observation``.
    """

    observation: Observations
    reward: dict[str, np.ndarray]
    """``[env, agent]``, weights times terms."""
    reward_terms: dict[str, dict[str, np.ndarray]]
    """Unweighted terms by group and name, ``[env, agent]``."""
    signals: dict[str, dict[str, np.ndarray]]
    """What the terms were computed from, by group and name, ``[env, agent]``."""
    reward_revision: int
    active: dict[str, np.ndarray]
    """``[env, agent]`` bool: the agent took part in this step."""
    terminated: np.ndarray
    """``[env]`` bool: a terminal state, nothing is to be expected after it."""
    truncated: np.ndarray
    """``[env]`` bool: cut by a time limit or a fault; the final observation still has its value."""
    ended: np.ndarray
    """``[k]`` int: the environments whose episode ended in this step."""
    final_observation: Observations | None = None
    """Rows ``[k, agent, ...]`` for ``ended``; None where no episode ended."""
    episode: dict[str, np.ndarray] = field(default_factory=dict)
    """Statistics of ``ended``, ``[k]``: ``return`` (mean over agents), ``length``, ``success``."""

    @classmethod
    def scored(
        cls,
        rewards: RewardSpec,
        *,
        observation: Observations,
        signals: dict[str, dict[str, np.ndarray]],
        active: dict[str, np.ndarray],
        terminated: np.ndarray,
        truncated: np.ndarray,
    ) -> Step:
        """The step with what follows from its signals and endings; without what ended, yet."""
        scores = {group: rewards.evaluate(own) for group, own in signals.items()}
        return cls(
            observation=observation,
            reward={group: total for group, (_, total) in scores.items()},
            reward_terms={group: terms for group, (terms, _) in scores.items()},
            signals=signals,
            reward_revision=rewards.revision,
            active=active,
            terminated=terminated,
            truncated=truncated,
            ended=np.nonzero(terminated | truncated)[0],
        )


class MultiAgentVectorEnv(ABC):
    """Several environments stepped together; a single agent is one group of one agent."""

    descriptor: EnvDescriptor
    num_envs: int
    rewards: RewardSpec
    """The rewards of the next step; assign a newer one at any time between two steps."""

    on_end: Callable[[], object] = staticmethod(lambda: None)
    """Called where the first environment has ended an episode, before it begins the next."""

    @abstractmethod
    def reset(self, seed: int | None = None) -> Observations:
        """Start a new episode everywhere; a seed makes everything that follows repeatable."""

    @abstractmethod
    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """Apply actions ``[env, agent, action]`` of every group; ended episodes restart."""

    def stagger(self) -> None:  # noqa: B027 (those without a common step limit need not)
        """Cut the running episodes short by different amounts.

        Else environments that began together reach their step limit together, for ever, and every
        batch of data holds one age of episode alone.
        """

    def render(self) -> np.ndarray:
        """The first environment as a picture ``[height, width, 3]``, uint8.

        For one that was made to be rendered. Raises NotImplementedError where it has no picture.
        """
        raise NotImplementedError(f'{self.descriptor.name} has no picture')

    def state_dict(self) -> dict[str, Any] | None:
        """What :meth:`load_state_dict` goes on from, bit for bit; None where it has no such thing.

        Nested dicts and lists of arrays and plain values. Rewards are not part of it.
        """
        return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        raise NotImplementedError(f'{self.descriptor.name} cannot save its state')

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Release what the environment holds."""
