"""What the advantage estimators of on-policy algorithms share: values, ends of episodes, rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from opentinker.algorithms.return_scale import ReturnScale
from opentinker.algorithms.rollout import Rollout
from opentinker.algorithms.sequences import ends, leavings, sequence_starts
from opentinker.config import checked
from opentinker.data.batch import Batch, cat
from opentinker.data.segment import Segment
from opentinker.policies.actor_critic import FIRST, ActorCritic

_ACTION = 'action'
"""Key of actions beside the inputs of a policy, where its rows are cut into pieces."""


class AdvantageSettings(BaseModel):
    """What all advantage estimators can be told."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    gamma: float = Field(0.99, ge=0, le=1)
    """Discount of a step."""
    normalize_return: bool = False
    """Divide rewards by the deviation of their discounted sums."""
    max_batch_size: int | None = Field(None, ge=1)
    """Rows that pass through the networks at once; null: all."""


@dataclass
class Steps:
    """Consecutive steps as an estimator sees them; every array is ``[T, E, A]``."""

    reward: np.ndarray
    value: np.ndarray
    next_value: np.ndarray
    """Of what followed: 0 after a terminal state, of the true last observation at a truncation."""
    ended: np.ndarray
    """Nothing after these steps belongs to the same episode."""
    log_ratio: np.ndarray | None = None
    """Log of how much likelier the action has become since it was chosen; where asked for."""


class BaseAdvantageEstimator(ABC):
    """Advantages and value targets of on-policy segments by the critic in training.

    Register a subclass as ``estimator`` and name it in a config; :meth:`advantages` is all that it
    must have, ``settings`` where it takes more than these. Raises ConfigError for wrong ones.
    """

    families: tuple[str, ...] = ('on-policy',)
    gives = 'advantages'
    corrects_lag = False
    """It weighs steps by their ratios itself, so that the optimizer's ratios start at 1."""
    settings: type[AdvantageSettings] = AdvantageSettings

    def __init__(self, **settings: Any) -> None:
        self.chosen: Any = checked('algorithm', self.settings, settings)
        """An instance of ``settings``."""
        self._scale: ReturnScale | None = None
        if self.chosen.normalize_return:
            self._scale = ReturnScale(self.chosen.gamma)

    @abstractmethod
    def advantages(self, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """Advantages and value targets, ``[T, E, A]`` each."""

    def learn_statistics(self, segments: list[Segment]) -> None:
        """Take the rewards of new segments into their normalisation."""
        if self._scale is not None:
            self._scale.learn(segments)

    @torch.no_grad()
    def estimate(self, policy: ActorCritic, segments: list[Segment]) -> Rollout:
        """Rows of all active agents of all segments."""
        parts = [self._rows(policy, segment) for segment in segments]
        if len(parts) == 1:
            return parts[0]
        joined = {
            name: torch.cat([getattr(part, name) for part in parts])
            for name in ('action', 'log_prob', 'advantage', 'value_target', 'value')
        }
        return Rollout(cat([part.observation for part in parts]), **joined)

    def _rows(self, policy: ActorCritic, segment: Segment) -> Rollout:
        inputs = policy.inputs(segment.observation)
        value = self._in_pieces(policy.value, inputs, segment.active.ndim)
        log_prob, reward = segment.log_prob, segment.reward.astype(np.float32)
        steps = Steps(
            reward if self._scale is None else self._scale.scaled(reward),
            value,
            self._next_values(policy, segment, value),
            ends(segment),
        )
        action = segment.action
        if action.dtype.kind == 'f':
            action = action.astype(np.float32, copy=False)
        if self.corrects_lag:
            actions = torch.from_numpy(np.array(action)).to(policy.device)
            chosen = inputs.with_(**{_ACTION: actions})
            now = self._in_pieces(partial(_log_prob, policy), chosen, segment.active.ndim)
            steps.log_ratio, log_prob = now - log_prob, now
        advantage, target = self.advantages(steps)
        picked = _Picked(policy, segment, steps.ended)
        columns = [action, *map(_single, (log_prob, advantage, target, value))]
        rest = [picked.rows(torch.from_numpy(np.array(column))) for column in columns]
        return Rollout(picked.inputs(inputs), *rest)

    def _in_pieces(
        self, function: Callable[[Batch], Tensor], inputs: Batch, axes: int
    ) -> np.ndarray:
        """``function`` of all rows, at most ``max_batch_size`` of them at once."""
        size = self.chosen.max_batch_size
        if size is None:
            return function(inputs).float().cpu().numpy()
        lead = inputs['vector'].shape[:axes]
        flat = inputs.map(lambda tensor: tensor.flatten(0, axes - 1))
        results = [function(piece) for piece in flat.split(size)]
        return torch.cat(results).float().cpu().numpy().reshape(lead)

    def _next_values(self, policy: ActorCritic, segment: Segment, value: np.ndarray) -> np.ndarray:
        """``[T, E, A]``: the value of what followed each step: of the true last observation at an
        episode's end, and 0 after a terminal state or where an agent left the running episode.
        """
        last = self._in_pieces(policy.value, policy.inputs(segment.last_observation), 2)
        following = np.concatenate([value[1:], last[None]])
        following[leavings(segment.active)] = 0
        if len(segment.final_index):
            step, env = segment.final_index.T
            finals = policy.inputs(segment.final_observation)
            following[step, env] = self._in_pieces(policy.value, finals, 2)
        following[segment.terminated] = 0
        return following

    def state_dict(self) -> dict[str, Any]:
        """The normalisation of returns."""
        return {} if self._scale is None else self._scale.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`; where it has no normalisation, that begins anew."""
        if self._scale is not None and state:
            self._scale.load_state_dict(state)


def _log_prob(policy: ActorCritic, inputs: Batch) -> Tensor:
    return policy.distribution(inputs).log_prob(inputs[_ACTION])


class _Picked:
    """Picks the rows of active agents; for a policy with a memory sequence by sequence."""

    def __init__(self, policy: ActorCritic, segment: Segment, ended: np.ndarray) -> None:
        self._device = policy.device
        self._remembers = bool(policy.state)
        active = segment.active
        if self._remembers:
            first = sequence_starts(active, ended, policy.settings.sequence)
            self._first = torch.from_numpy(np.moveaxis(first, 0, 2)[np.moveaxis(active, 0, 2)])
            active = np.moveaxis(active, 0, 2)
        self._active = torch.from_numpy(np.array(active))

    def rows(self, column: Tensor) -> Tensor:
        """``[T, E, A, ...]`` to ``[n, ...]``."""
        if self._remembers:
            column = column.movedim(0, 2)
        return column[self._active.to(column.device)].to(self._device)

    def inputs(self, inputs: Batch) -> Batch:
        """The same of all inputs."""
        rows = inputs.map(self.rows)
        return rows.with_(**{FIRST: self._first.to(self._device)}) if self._remembers else rows


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32, copy=False)
