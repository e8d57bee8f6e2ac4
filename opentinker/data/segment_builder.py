"""Segments from single transitions of one environment, as a robot or a recording gives them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opentinker.data.segment import Segment


@dataclass
class Transition:
    """One step of one environment's group; arrays begin with the agent axis."""

    step: int
    episode: int
    observation: dict[str, np.ndarray]
    action: np.ndarray
    log_prob: np.ndarray
    reward: np.ndarray
    signals: dict[str, np.ndarray]
    active: np.ndarray
    terminated: bool
    truncated: bool
    policy_version: int
    reward_revision: int
    final_observation: dict[str, np.ndarray] | None = None
    """The true last observation, where the episode ended."""
    statistics: dict[str, float] = field(default_factory=dict)
    """Of the episode, where it ended."""


class SegmentBuilder:
    """Collects transitions into segments of ``length`` steps.

    A transition is complete when the observation after it is known, so the newest one waits for its
    successor. Where an episode breaks off without an end, the step before the break becomes a
    truncation that is bootstrapped from the last observation seen, and the unfinished one is
    dropped and counted.
    """

    def __init__(self, group: str, length: int, sampler: str) -> None:
        self._group = group
        self._length = length
        self._sampler = sampler
        self._steps: list[Transition] = []
        self.dropped = 0

    def add(self, transition: Transition) -> Segment | None:
        """Take the next transition; a segment when one is full."""
        if self._steps and self._breaks(self._steps[-1], transition):
            self._cut()
        full = len(self._steps) >= self._length
        segment = self._build(transition.observation) if full else None
        if full:
            self._steps.clear()
        self._steps.append(transition)
        return segment

    @staticmethod
    def _breaks(last: Transition, following: Transition) -> bool:
        ended = last.terminated or last.truncated
        return not ended and (following.episode != last.episode or following.step != last.step + 1)

    def _cut(self) -> None:
        lost = self._steps.pop()
        self.dropped += 1
        if self._steps and not (self._steps[-1].terminated or self._steps[-1].truncated):
            self._steps[-1].truncated = True
            self._steps[-1].final_observation = lost.observation

    def _build(self, last_observation: dict[str, np.ndarray]) -> Segment:
        steps = self._steps
        ends = [index for index, step in enumerate(steps) if step.terminated or step.truncated]
        finals = [steps[index].final_observation or {} for index in ends]
        keys = steps[0].observation

        def column(name: str, dtype: Any = None) -> np.ndarray:
            return np.array([getattr(step, name) for step in steps], dtype)

        return Segment(
            group=self._group,
            observation={
                key: np.stack([step.observation[key] for step in steps])[:, None] for key in keys
            },
            last_observation={key: np.array(last_observation[key])[None] for key in keys},
            action=column('action')[:, None],
            log_prob=column('log_prob')[:, None],
            reward=column('reward')[:, None],
            active=column('active', bool)[:, None],
            signals={
                key: np.stack([step.signals[key] for step in steps])[:, None]
                for key in steps[0].signals
            },
            terminated=column('terminated', bool)[:, None],
            truncated=column('truncated', bool)[:, None],
            final_index=np.array([(index, 0) for index in ends], np.int64).reshape(-1, 2),
            final_observation={
                key: np.array([final[key] for final in finals], keys[key].dtype).reshape(
                    -1, *keys[key].shape
                )
                for key in keys
            },
            policy_version=column('policy_version', np.int64),
            reward_revision=column('reward_revision', np.int64),
            step=column('step', np.int64),
            episodes=_statistics(steps),
            sampler=self._sampler,
        )


def _statistics(steps: list[Transition]) -> dict[str, np.ndarray]:
    rows = [step.statistics for step in steps if step.statistics]
    return {key: np.array([row[key] for row in rows]) for key in rows[0]} if rows else {}
