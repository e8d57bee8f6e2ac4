"""Steps environments with policies and cuts what happens into segments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker.data.segment import Segment
from opentinker.envs.vector import MultiAgentVectorEnv, Step
from opentinker.policies.policy import ActionOutput, Policy

Arrays = dict[str, np.ndarray]


def segment_length(env: MultiAgentVectorEnv, batch_size: int, samplers: int) -> int:
    """Steps a segment, so that one segment of every such sampler makes at least a batch."""
    agents = max(len(group.agents) for group in env.descriptor.groups.values())
    return math.ceil(batch_size / (samplers * env.num_envs * agents))


class Collector:
    """Collects segments of ``length`` steps, one for every group of agents.

    ``policies`` act; load newer weights into them, and note that in :attr:`versions`, between two
    steps. Rewards change by assignment to ``env.rewards``.
    """

    def __init__(
        self,
        env: MultiAgentVectorEnv,
        policies: Mapping[str, Policy],
        length: int,
        sampler: str,
        seed: int,
    ) -> None:
        self.env = env
        self.policies = policies
        self.versions = dict.fromkeys(policies, 0)
        self._length = length
        self._sampler = sampler
        self._steps_done = 0
        self._observation = env.reset(seed)
        for group, policy in policies.items():
            lead = (env.num_envs, len(env.descriptor.groups[group].agents))
            self._observation[group] |= policy.initial_state(lead)
        env.stagger()
        self._recordings = [_Recording(group, length) for group in policies]

    def step(self) -> list[Segment]:
        """One step of all environments; the segments of all groups where they are full."""
        outputs = {
            group: policy.get_action(self._observation[group])
            for group, policy in self.policies.items()
        }
        step = self.env.step({group: output.action for group, output in outputs.items()})
        for group, output in outputs.items():
            if output.state:
                _remember(step, group, output.state)
        row = self._steps_done % self._length
        for recording in self._recordings:
            group = recording.group
            version = self.versions[group]
            recording.write(row, self._observation[group], outputs[group], version, step)
        self._observation = step.observation
        self._steps_done += 1
        if row + 1 < self._length:
            return []
        return self._segments()

    def _segments(self) -> list[Segment]:
        segments = [
            recording.segment(
                self._observation[recording.group], self._sampler, self._steps_done - self._length
            )
            for recording in self._recordings
        ]
        for segment in segments[1:]:
            # episodes belong to all groups and count once
            segment.episodes = {}
        return segments


def _remember(step: Step, group: str, state: Arrays) -> None:
    """Add what a policy remembers to what it sees next; new episodes start with zeros."""
    if step.final_observation is not None:
        step.final_observation[group] |= {key: values[step.ended] for key, values in state.items()}
    for key, values in state.items():
        values = values.copy()
        values[step.ended] = 0
        step.observation[group][key] = values


class _Recording:
    """The steps of one group since the last segment, in arrays ``[T, ...]``."""

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
        """Arrays for all rows, and the list of them in the order in which they are written."""
        rows: dict[str, Any] = {
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
        self._rows = rows
        trees = (value.values() if isinstance(value, dict) else [value] for value in rows.values())
        self._leaves = [leaf for tree in trees for leaf in tree]

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
