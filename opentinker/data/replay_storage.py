"""The storage of a replay buffer: a ring of steps for every environment.

An observation is stored once: what followed a step is the next row, or, where an episode ended, its
true last observation, which is kept aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker.data.replay_layout import ReplayError, ReplayLayout
from opentinker.data.segment import Segment

Arrays = dict[str, np.ndarray]
_SEGMENT = ('action', 'log_prob', 'reward', 'active')
_STEP = ('terminated', 'truncated')


class ReplayStorage:
    """Rows ``[length, env]`` of the steps of one group."""

    def __init__(self, layout: ReplayLayout) -> None:
        self.layout = layout
        self._columns: dict[str, int] = {}
        """Number of an environment by ``sampler/row``."""
        self._rows: dict[str, Arrays | np.ndarray] = {}
        self._count = np.zeros(layout.num_envs, np.int64)
        """Steps ever written."""
        self._step = np.full(layout.num_envs, -1, np.int64)
        """The sampler's own number of the newest step."""
        self._finals: dict[tuple[int, int], Arrays] = {}
        self._following: dict[int, Arrays] = {}
        self._dtypes: dict[str, np.dtype] = {}
        """Of the observations as they came."""

    @property
    def stored(self) -> np.ndarray:
        """``[env]``: rows that hold a step."""
        return np.minimum(self._count, self.layout.length)

    @property
    def nbytes(self) -> int:
        """Memory of what is stored."""
        row = sum(array[0, 0].nbytes for array in _leaves(self._rows))
        finals = sum(array.nbytes for each in self._finals.values() for array in each.values())
        return row * int(self.stored.sum()) + finals

    def newest(self, columns: np.ndarray) -> np.ndarray:
        """The rows of the newest steps."""
        return (self._count[columns] - 1) % self.layout.length

    def add(self, segment: Segment) -> np.ndarray:
        """Write a segment; its slots, ``row * environments + environment``.

        Raises :class:`ReplayError` for one that there is no room for.
        """
        steps, envs = segment.terminated.shape
        if steps > self.layout.length:
            raise ReplayError(
                f'a segment of {steps} steps; an environment has {self.layout.length} rows'
            )
        self._check_range(segment)
        columns = self._columns_of(segment.sampler, envs)
        if not self._rows:
            self._allocate(segment)
        self._close_gaps(segment, columns)
        rows = (self._count[columns] + np.arange(steps)[:, None]) % self.layout.length
        for row, column in zip(rows.ravel(), np.tile(columns, steps), strict=True):
            self._finals.pop((row, column), None)
        self._write(segment, rows, columns)
        self._count[columns] += steps
        self._step[columns] = segment.step[-1]
        for number, (step, env) in enumerate(segment.final_index):
            self._finals[int(rows[step, env]), int(columns[env])] = {
                key: values[number].copy() for key, values in segment.final_observation.items()
            }
        for env, column in enumerate(columns):
            self._following[int(column)] = {
                key: values[env].copy() for key, values in segment.last_observation.items()
            }
        return (rows * self.layout.num_envs + columns).ravel()

    def _check_range(self, segment: Segment) -> None:
        """In float16 large numbers would become infinite."""
        largest = np.finfo(np.float16).max
        for key, values in segment.observation.items() if self.layout.half else ():
            if values.dtype.kind == 'f' and np.abs(values).max(initial=0) > largest:
                raise ReplayError(f'observation {key!r} is beyond {largest:g}, the end of float16')

    def _columns_of(self, sampler: str, envs: int) -> np.ndarray:
        names = [f'{sampler}/{env}' for env in range(envs)]
        fresh = [name for name in names if name not in self._columns]
        if len(self._columns) + len(fresh) > self.layout.num_envs:
            raise ReplayError(
                f'{fresh[0]} is one environment more than the {self.layout.num_envs} planned'
            )
        for name in fresh:
            self._columns[name] = len(self._columns)
        return np.array([self._columns[name] for name in names])

    def _allocate(self, segment: Segment) -> None:
        lead = (self.layout.length, self.layout.num_envs)
        self._dtypes = {key: values.dtype for key, values in segment.observation.items()}

        def room(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
            # zeros take no memory before they are written: the buffer grows as it fills
            return np.zeros((*lead, *shape), dtype)

        self._rows = {
            'observation': {
                key: room(
                    (values.shape[2], *values.shape[3 + (key in self.layout.frames) :]),
                    self.layout.dtype(values.dtype),
                )
                for key, values in segment.observation.items()
            },
            'signals': {
                key: room(values.shape[2:], values.dtype) for key, values in segment.signals.items()
            },
            'age': room((), np.dtype(np.int64)),
            'version': room((), np.dtype(np.int64)),
        }
        for name in (*_SEGMENT, *_STEP):
            values = getattr(segment, name)
            self._rows[name] = room(values.shape[2:], values.dtype)

    def _close_gaps(self, segment: Segment, columns: np.ndarray) -> None:
        """Where steps are missing before a segment, the newest row ends as if by a time limit."""
        for column in columns:
            count = self._count[column]
            if not count or self._step[column] + 1 == segment.step[0]:
                continue
            row = int((count - 1) % self.layout.length)
            if not self.ended[row, column]:
                self.array('truncated')[row, column] = True
                self._finals[row, int(column)] = self._following[int(column)]

    def _write(self, segment: Segment, rows: np.ndarray, columns: np.ndarray) -> None:
        for key, values in segment.observation.items():
            newest = values[:, :, :, -1] if key in self.layout.frames else values
            self.tree('observation')[key][rows, columns] = newest
        for key, values in segment.signals.items():
            self.tree('signals')[key][rows, columns] = values
        ages = self._ages(segment, columns)
        for name in (*_SEGMENT, *_STEP):
            self.array(name)[rows, columns] = getattr(segment, name)
        self.array('age')[rows, columns] = ages
        self.array('version')[rows, columns] = segment.policy_version[:, None]

    def _ages(self, segment: Segment, columns: np.ndarray) -> np.ndarray:
        """``[T, E]``: steps since the start of the episode."""
        before = (self._count[columns] - 1) % self.layout.length
        fresh = (self._count[columns] == 0) | self.ended[before, columns]
        age = np.where(fresh, -1, self.array('age')[before, columns])
        ages = np.empty(segment.terminated.shape, np.int64)
        for step, ended in enumerate(segment.terminated | segment.truncated):
            ages[step] = age = age + 1
            age = np.where(ended, -1, age)
        return ages

    def array(self, name: str) -> np.ndarray:
        """``[length, env, ...]`` of what is no tree."""
        array = self._rows[name]
        assert isinstance(array, np.ndarray)
        return array

    def tree(self, name: str) -> Arrays:
        """The arrays of ``observation`` or ``signals``."""
        tree = self._rows[name]
        assert isinstance(tree, dict)
        return tree

    @property
    def ended(self) -> np.ndarray:
        """``[length, env]``: an episode ended here."""
        return self.array('terminated') | self.array('truncated')

    def complete(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Whether all frames of the stacks at these rows are still stored."""
        deepest = max(self.layout.frames.values(), default=1) - 1
        oldest = self._count[columns] - np.minimum(self._count[columns], self.layout.length)
        stored = (rows - oldest) % self.layout.length
        return np.minimum(self.array('age')[rows, columns], deepest) <= stored

    def observation(self, rows: np.ndarray, columns: np.ndarray) -> Arrays:
        """By key ``[n, agent, ...]``, as they came."""
        return {
            key: self._stack(key, values, rows, columns)
            for key, values in self.tree('observation').items()
        }

    def _stack(
        self, key: str, values: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        if key not in self.layout.frames:
            return values[rows, columns].astype(self._dtypes[key], copy=False)
        # before the first step of an episode its first frame is repeated, as gymnasium does
        age = self.array('age')[rows, columns]
        back = [np.minimum(ago, age) for ago in reversed(range(self.layout.frames[key]))]
        frames = [values[(rows - ago) % self.layout.length, columns] for ago in back]
        return np.stack(frames, axis=2).astype(self._dtypes[key], copy=False)

    def next_observation(self, last: np.ndarray, columns: np.ndarray) -> Arrays:
        """What followed these rows: the true last observation where the episode ended."""
        after = self.observation((last + 1) % self.layout.length, columns)
        newest = self.newest(columns)
        ended = self.ended[last, columns]
        for number in np.flatnonzero(ended | (last == newest)):
            row, column = int(last[number]), int(columns[number])
            known = self._finals[row, column] if ended[number] else self._following[column]
            for key, values in known.items():
                after[key][number] = values
        return after

    def state_dict(self) -> dict[str, Any]:
        """All of it, as :func:`opentinker.data.archive.pack` takes it."""
        return {
            'form': self.layout.form,
            'rows': self._rows,
            'columns': self._columns,
            'count': self._count.copy(),
            'step': self._step.copy(),
            'finals': [[*place, arrays] for place, arrays in self._finals.items()],
            'following': self._following,
            'dtypes': {key: dtype.str for key, dtype in self._dtypes.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`. Raises :class:`ReplayError` for another layout."""
        for key, own in self.layout.form.items():
            if state['form'][key] != own:
                raise ReplayError(
                    f'the saved buffer has {key} {state["form"][key]}, this one {own}'
                )
        self._rows = {
            name: {key: array.copy() for key, array in value.items()}
            if isinstance(value, dict)
            else value.copy()
            for name, value in state['rows'].items()
        }
        self._columns = dict(state['columns'])
        self._count, self._step = state['count'].copy(), state['step'].copy()
        self._finals = {(row, column): arrays for row, column, arrays in state['finals']}
        self._following = dict(state['following'])
        self._dtypes = {key: np.dtype(name) for key, name in state['dtypes'].items()}


def _leaves(rows: Mapping[str, Arrays | np.ndarray]) -> list[np.ndarray]:
    return [
        array
        for value in rows.values()
        for array in (value.values() if isinstance(value, dict) else [value])
    ]
