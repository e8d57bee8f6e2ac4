"""The steps of one group on their way into a segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker.data.segment import Segment
from opentinker.envs.vector import Step
from opentinker.policies.policy import ActionOutput

Arrays = dict[str, np.ndarray]


class Recording:
    """What happened to one group since the last segment, in arrays ``[T, ...]``."""

    def __init__(self, group: str, length: int) -> None:
        self.group = group
        self._length = length
        self._begin()

    def _begin(self) -> None:
        self._rows: dict[str, Any] = {}
        self._leaves: list[np.ndarray] = []
        self._final_index: list[np.ndarray] = []
        self._final_observation: list[Arrays] = []
        self._episodes: list[Arrays] = []

    def write(
        self, row: int, observation: Arrays, output: ActionOutput, version: int, step: Step
    ) -> None:
        """Copy what led to a step and what came of it."""
        group = self.group
        if not self._rows:
            self._allocate(observation, output, step)
        values = (
            *observation.values(),
            *step.signals[group].values(),
            output.action,
            output.log_prob,
            step.reward[group],
            step.active[group],
            step.terminated,
            step.truncated,
            version,
            step.reward_revision,
        )
        for leaf, value in zip(self._leaves, values, strict=True):
            leaf[row] = value
        if step.ended.size and step.final_observation is not None:
            index = np.stack([np.full_like(step.ended, row), step.ended], axis=1)
            self._final_index.append(index)
            self._final_observation.append(step.final_observation[group])
            self._episodes.append(step.episode)

    def _allocate(self, observation: Arrays, output: ActionOutput, step: Step) -> None:
        self._rows = {
            'observation': {key: self._empty(value) for key, value in observation.items()},
            'signals': {key: self._empty(value) for key, value in step.signals[self.group].items()},
            'action': self._empty(output.action),
            'log_prob': self._empty(output.log_prob),
            'reward': self._empty(step.reward[self.group]),
            'active': self._empty(step.active[self.group]),
            'terminated': self._empty(step.terminated),
            'truncated': self._empty(step.truncated),
            'policy_version': np.empty(self._length, np.int64),
            'reward_revision': np.empty(self._length, np.int64),
        }
        self._leaves = _leaves(self._rows)

    def _empty(self, value: np.ndarray) -> np.ndarray:
        return np.empty((self._length, *value.shape), value.dtype)

    def segment(self, last_observation: Arrays, sampler: str, first_step: int) -> Segment:
        """The finished segment; the next one begins."""
        observation: Arrays = self._rows['observation']
        segment = Segment(
            group=self.group,
            last_observation={key: array.copy() for key, array in last_observation.items()},
            final_index=np.concatenate([np.zeros((0, 2), np.int64), *self._final_index]),
            final_observation={
                key: np.concatenate(
                    [array[0, :0], *(final[key] for final in self._final_observation)]
                )
                for key, array in observation.items()
            },
            episodes={
                key: np.concatenate([episode[key] for episode in self._episodes])
                for key in (self._episodes[0] if self._episodes else {})
            },
            step=np.arange(first_step, first_step + self._length),
            sampler=sampler,
            **self._rows,
        )
        self._begin()
        return segment

    def state_dict(self) -> dict[str, Any]:
        """The rows so far."""
        return {
            'rows': self._rows,
            'final_index': self._final_index,
            'final_observation': self._final_observation,
            'episodes': self._episodes,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._rows = state['rows']
        self._leaves = _leaves(self._rows)
        self._final_index = list(state['final_index'])
        self._final_observation = list(state['final_observation'])
        self._episodes = list(state['episodes'])


def _leaves(rows: dict[str, Any]) -> list[np.ndarray]:
    """The arrays in the order in which they are written."""
    trees = (value.values() if isinstance(value, dict) else [value] for value in rows.values())
    return [leaf for tree in trees for leaf in tree]
