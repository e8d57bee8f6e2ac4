"""What a vector environment goes through: what its policies see next, and what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentinker.data.segment import Segment
from opentinker.envs.vector import Observations, Step
from opentinker.policies.policy import ActionOutput, Policy
from opentinker.training.recording import Arrays, Recording

Outputs = dict[str, ActionOutput]
"""What the policy of each group chose."""


class Track:
    """Segments of ``length`` steps, one for every group, named after ``sampler``.

    ``observation`` is the first one of the environments; here it gets what policies remember.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        length: int,
        sampler: str,
        observation: Observations,
    ) -> None:
        self.observation = observation
        """What the next actions are chosen from."""
        self.steps_done = 0
        self._length = length
        self._sampler = sampler
        self._recordings = [Recording(group, length) for group in policies]
        for group, policy in policies.items():
            lead = next(iter(observation[group].values())).shape[:2]
            observation[group] |= policy.initial_state(lead)

    def add(self, outputs: Outputs, versions: Mapping[str, int], step: Step) -> list[Segment]:
        """Take what came of the actions of these versions; the segments where they are full."""
        for group, output in outputs.items():
            if output.state:
                _remember(step, group, output.state)
        row = self.steps_done % self._length
        for recording in self._recordings:
            group = recording.group
            recording.write(row, self.observation[group], outputs[group], versions[group], step)
        self.observation = step.observation
        self.steps_done += 1
        return [] if self.steps_done % self._length else self._segments()

    def _segments(self) -> list[Segment]:
        first = self.steps_done - self._length
        segments = [
            recording.segment(self.observation[recording.group], self._sampler, first)
            for recording in self._recordings
        ]
        for segment in segments[1:]:
            # episodes belong to all groups and count once
            segment.episodes = {}
        return segments

    def skip(self, steps_done: int) -> None:
        """Go on after so many steps, with a segment of its own."""
        # a whole number of segments: no step of the next one has been taken
        self.steps_done = steps_done // self._length * self._length

    def state_dict(self) -> dict[str, Any]:
        """What :meth:`load_state_dict` goes on from."""
        return {
            'observation': self.observation,
            'steps_done': self.steps_done,
            'recordings': [recording.state_dict() for recording in self._recordings],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self.observation = state['observation']
        self.steps_done = state['steps_done']
        for recording, own in zip(self._recordings, state['recordings'], strict=True):
            recording.load_state_dict(own)


def _remember(step: Step, group: str, state: Arrays) -> None:
    """Add what a policy remembers to what it sees next; new episodes start with zeros."""
    if step.final_observation is not None:
        step.final_observation[group] |= {key: values[step.ended] for key, values in state.items()}
    for key, values in state.items():
        values = values.copy()
        values[step.ended] = 0
        step.observation[group][key] = values
