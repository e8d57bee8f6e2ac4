"""How the samplers of a job are doing: what the panel shows and the stop rule reads."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker.data.segment import Segment
from opentinker.metrics import Rate

EVALUATION = 'evaluation'
"""Who is called so is no sampler: its episodes are those of the last evaluation."""


class SamplerStatistics:
    """Transitions and the last ``window`` episodes of one sampler, or of all together."""

    def __init__(self, window: int) -> None:
        self.transitions = 0
        self.episodes = 0
        self.rate = Rate()
        self._window = window
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=window))

    def add(self, segment: Segment) -> None:
        """Count a segment's agent transitions and ended episodes."""
        self.transitions += segment.transitions
        self.rate.add(segment.transitions)
        for key, values in segment.episodes.items():
            self._recent[key].extend(values.tolist())
        self.episodes += max((len(values) for values in segment.episodes.values()), default=0)

    def state_dict(self) -> dict[str, Any]:
        """Counts and window."""
        recent = {key: list(values) for key, values in self._recent.items()}
        return {'transitions': self.transitions, 'episodes': self.episodes, 'recent': recent}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self.transitions, self.episodes = state['transitions'], state['episodes']
        for key, values in state['recent'].items():
            self._recent[key].extend(values)

    def mean(self, key: str) -> float | None:
        """The mean of an episode statistic over the window; None before any episode."""
        values = self._recent.get(key)
        return float(np.mean(values)) if values else None

    def full(self, key: str) -> bool:
        """Whether the window of an episode statistic is full."""
        return len(self._recent.get(key, ())) == self._window

    def flat(self, prefix: str) -> dict[str, Any]:
        """All of it, keys under a prefix."""
        means = {key: self.mean(key) for key in self._recent}
        counts = {'transitions': self.transitions, 'episodes': self.episodes}
        rate = {'transitions_per_s': round(self.rate.per_second, 1)}
        return {f'{prefix}.{key}': value for key, value in {**means, **counts, **rate}.items()}


class _Stream:
    """The segments of one group from one sampler, one after the other."""

    def __init__(self) -> None:
        self.revision = 0
        """Of the rewards under which its newest step was taken."""
        self.missing_steps = 0
        self._next_step: int | None = None

    def add(self, segment: Segment) -> None:
        """Look for steps that the sampler took and nobody received."""
        first, last = int(segment.step[0]), int(segment.step[-1])
        expected = first if self._next_step is None else self._next_step
        self.missing_steps += last + 1 - expected - len(segment.step)
        self._next_step = last + 1
        self.revision = int(segment.reward_revision[-1])

    def state_dict(self) -> dict[str, Any]:
        return {
            'revision': self.revision,
            'missing_steps': self.missing_steps,
            'next_step': self._next_step,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.revision, self.missing_steps = state['revision'], state['missing_steps']
        self._next_step = state['next_step']


class JobStatistics:
    """The samplers of a job by name, and all of them together as ``all``."""

    def __init__(self, window: int) -> None:
        self.all = SamplerStatistics(window)
        self.samplers: dict[str, SamplerStatistics] = defaultdict(lambda: SamplerStatistics(window))
        self._streams: dict[tuple[str, str], _Stream] = defaultdict(_Stream)

    def add(self, segment: Segment) -> None:
        """Count a segment."""
        self.all.add(segment)
        self.samplers[_whose(segment.sampler)].add(segment)
        self._streams[segment.sampler, segment.group].add(segment)

    def evaluated(self, episodes: Mapping[str, np.ndarray], steps: int) -> None:
        """Let the episodes of an evaluation take the place of those of the one before."""
        before = self.samplers.get(EVALUATION)
        own = self.samplers[EVALUATION] = SamplerStatistics(len(episodes['return']))
        own.load_state_dict(
            {
                'transitions': steps + (before.transitions if before else 0),
                'episodes': len(episodes['return']) + (before.episodes if before else 0),
                'recent': {key: values.tolist() for key, values in episodes.items()},
            }
        )

    def state_dict(self) -> dict[str, Any]:
        """All of it, to go on from."""
        return {
            'all': self.all.state_dict(),
            'samplers': {name: own.state_dict() for name, own in self.samplers.items()},
            'streams': [[*key, own.state_dict()] for key, own in self._streams.items()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self.all.load_state_dict(state['all'])
        for name, own in state['samplers'].items():
            self.samplers[name].load_state_dict(own)
        for sampler, group, own in state['streams']:
            self._streams[sampler, group].load_state_dict(own)

    def of(self, sampler: str | None) -> SamplerStatistics:
        """One sampler's, or everybody's for None."""
        return self.all if sampler is None else self.samplers[sampler]

    def flat(self) -> dict[str, Any]:
        """Flat numbers for the metrics: ``all.*`` and ``<sampler>.*``."""
        metrics = self.all.flat('all')
        for name, statistics in sorted(self.samplers.items()):
            metrics |= statistics.flat(name)
        for (stream_name, _), stream in self._streams.items():
            name = _whose(stream_name)
            metrics[f'{name}.revision'] = stream.revision
            missing = metrics.get(f'{name}.missing_steps', 0)
            metrics[f'{name}.missing_steps'] = missing + stream.missing_steps
        return metrics


def _whose(stream: str) -> str:
    """The sampler of a stream; one has several where its environments go at their own pace."""
    return stream.partition('/')[0]


def sampler_names(metrics: Mapping[str, Any]) -> list[str]:
    """The samplers that flat metrics speak of, without ``all``."""
    suffix = '.transitions'
    names = [key.removesuffix(suffix) for key in metrics if key.endswith(suffix)]
    return sorted(name for name in names if name != 'all')
