"""A replay buffer: segments in, batches of n-step transitions out.

Every environment of every sampler has a ring of its own, so that data of environments that run at
their own pace stay consecutive. An observation is stored once: what followed a step is the next
row, or, where an episode ended, its true last observation, which is kept aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opentinker.data.batch import Batch
from opentinker.data.replay_samplers import ReplaySampler, UniformSampler
from opentinker.data.segment import Segment
from opentinker.envs.rewards import RewardSpec

Arrays = dict[str, np.ndarray]
_SEGMENT = ('action', 'log_prob', 'reward', 'active')
_STEP = ('terminated', 'truncated')


class ReplayError(ValueError):
    """What a buffer cannot take or give; nothing was changed."""


@dataclass(frozen=True)
class ReplayLayout:
    """How much a buffer holds and how it hands it out."""

    capacity: int
    """Steps of all environments together."""
    num_envs: int
    """Environments of all samplers together."""
    n_step: int = 1
    gamma: float = 0.99
    frames: Mapping[str, int] | None = None
    """Observation keys that are stacks of so many frames (their first axis). Only the newest frame
    is stored, and the stack is rebuilt when it is asked for."""


class ReplayBuffer:
    """Storage of the transitions of one group; ``sampler`` decides which are drawn."""

    def __init__(self, layout: ReplayLayout, sampler: ReplaySampler | None = None) -> None:
        self._layout = layout
        self._frames = dict(layout.frames or {})
        self._length = layout.capacity // layout.num_envs
        if self._length < 1 or layout.n_step < 1:
            raise ReplayError(
                f'capacity {layout.capacity}, {layout.num_envs} environments, n_step '
                f'{layout.n_step}: every environment needs a row, and n_step is 1 or more'
            )
        self.sampler = sampler or UniformSampler()
        self.sampler.allocate(self._length * layout.num_envs)
        self._columns: dict[str, int] = {}
        """Number of an environment by ``sampler/row``."""
        self._rows: dict[str, Arrays | np.ndarray] = {}
        self._count = np.zeros(layout.num_envs, np.int64)
        """Steps ever written."""
        self._step = np.full(layout.num_envs, -1, np.int64)
        """The sampler's own number of the newest step."""
        self._finals: dict[tuple[int, int], Arrays] = {}
        self._following: dict[int, Arrays] = {}
        self.revision = -1
        """Of the rewards under which all rows are scored; -1 where they are mixed."""

    def __len__(self) -> int:
        """Steps of environments that are stored."""
        return int(np.minimum(self._count, self._length).sum())

    @property
    def nbytes(self) -> int:
        """Memory of what is stored."""
        row = sum(array[0, 0].nbytes for array in _leaves(self._rows))
        finals = sum(array.nbytes for each in self._finals.values() for array in each.values())
        return row * len(self) + finals

    # writing

    def add(self, segment: Segment) -> None:
        """Store a segment. Raises :class:`ReplayError` for one that there is no room for."""
        steps, envs = segment.terminated.shape
        if steps > self._length:
            raise ReplayError(f'a segment of {steps} steps; an environment has {self._length} rows')
        columns = self._columns_of(segment.sampler, envs)
        revisions = {*segment.reward_revision.tolist(), *([self.revision] if len(self) else [])}
        self.revision = revisions.pop() if len(revisions) == 1 else -1
        if not self._rows:
            self._allocate(segment)
        self._close_gaps(segment, columns)
        rows = (self._count[columns] + np.arange(steps)[:, None]) % self._length
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
        self.sampler.added((rows * self._layout.num_envs + columns).ravel())

    def _columns_of(self, sampler: str, envs: int) -> np.ndarray:
        names = [f'{sampler}/{env}' for env in range(envs)]
        fresh = [name for name in names if name not in self._columns]
        if len(self._columns) + len(fresh) > self._layout.num_envs:
            raise ReplayError(
                f'{fresh[0]} is one environment more than the {self._layout.num_envs} planned'
            )
        for name in fresh:
            self._columns[name] = len(self._columns)
        return np.array([self._columns[name] for name in names])

    def _allocate(self, segment: Segment) -> None:
        lead = (self._length, self._layout.num_envs)

        def room(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
            # zeros take no memory before they are written: the buffer grows as it fills
            return np.zeros((*lead, *shape), dtype)

        self._rows = {
            'observation': {
                key: room(
                    (values.shape[2], *values.shape[3 + (key in self._frames) :]), values.dtype
                )
                for key, values in segment.observation.items()
            },
            'signals': {
                key: room(values.shape[2:], values.dtype) for key, values in segment.signals.items()
            },
            'age': room((), np.dtype(np.int64)),
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
            row = int((count - 1) % self._length)
            if not self._ended[row, column]:
                self._array('truncated')[row, column] = True
                self._finals[row, int(column)] = self._following[int(column)]

    def _write(self, segment: Segment, rows: np.ndarray, columns: np.ndarray) -> None:
        for key, values in segment.observation.items():
            newest = values[:, :, :, -1] if key in self._frames else values
            self._tree('observation')[key][rows, columns] = newest
        for key, values in segment.signals.items():
            self._tree('signals')[key][rows, columns] = values
        ages = self._ages(segment, columns)
        for name in (*_SEGMENT, *_STEP):
            self._array(name)[rows, columns] = getattr(segment, name)
        self._array('age')[rows, columns] = ages

    def _ages(self, segment: Segment, columns: np.ndarray) -> np.ndarray:
        """``[T, E]``: steps since the start of the episode."""
        before = (self._count[columns] - 1) % self._length
        fresh = (self._count[columns] == 0) | self._ended[before, columns]
        age = np.where(fresh, -1, self._array('age')[before, columns])
        ages = np.empty(segment.terminated.shape, np.int64)
        for step, ended in enumerate(segment.terminated | segment.truncated):
            ages[step] = age = age + 1
            age = np.where(ended, -1, age)
        return ages

    def _array(self, name: str) -> np.ndarray:
        array = self._rows[name]
        assert isinstance(array, np.ndarray)
        return array

    def _tree(self, name: str) -> Arrays:
        tree = self._rows[name]
        assert isinstance(tree, dict)
        return tree

    @property
    def _ended(self) -> np.ndarray:
        return self._array('terminated') | self._array('truncated')

    # reading

    def rescore(self, rewards: RewardSpec) -> None:
        """Score everything that is stored under these rewards."""
        if self._rows and rewards.revision != self.revision:
            self._rows['reward'] = np.array(rewards.evaluate(self._tree('signals'))[1])
        self.revision = rewards.revision

    def sample(self, size: int, random: np.random.Generator) -> Batch:
        """Transitions ``[size, agent, ...]``.

        ``observation``, ``action``, ``active``; ``reward``, the discounted sum of up to ``n_step``
        rewards; ``next_observation`` after them, and ``discount``, what its value is worth: 0
        after a terminal state or where the agent left. ``index`` is for :meth:`reprioritize` and
        ``weight`` corrects for the sampler's preferences. Raises :class:`ReplayError` where fewer
        steps are stored.
        """
        if size > len(self):
            raise ReplayError(f'a batch of {size} where {len(self)} steps are stored')
        slots, weight = self._draw(size, random)
        rows, columns = np.divmod(slots, self._layout.num_envs)
        reward, last, discount = self._returns(rows, columns)
        return Batch(
            observation=self._observation(rows, columns),
            action=self._array('action')[rows, columns],
            log_prob=self._array('log_prob')[rows, columns],
            active=self._array('active')[rows, columns],
            reward=reward,
            next_observation=self._next_observation(last, columns),
            discount=discount,
            index=self.sampler.tickets(slots),
            weight=weight.astype(np.float32),
        )

    def reprioritize(self, index: np.ndarray, error: np.ndarray) -> None:
        """Tell the sampler the errors ``[size]`` of sampled transitions; replaced ones pass."""
        self.sampler.update(index, error)

    def _draw(self, size: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        slots, weights = np.zeros(0, np.int64), np.zeros(0)
        stored = np.minimum(self._count, self._length)
        for _ in range(1000):
            drawn, weight = self.sampler.draw(size, random, stored, self._layout.num_envs)
            good = self._complete(*np.divmod(drawn, self._layout.num_envs))
            slots = np.concatenate([slots, drawn[good]])
            weights = np.concatenate([weights, weight[good]])
            if len(slots) >= size:
                return slots[:size], weights[:size] / weights[:size].max()
        raise ReplayError('no step has all the frames of its stack')

    def _complete(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Whether all frames of the stacks at these rows are still stored."""
        deepest = max(self._frames.values(), default=1) - 1
        oldest = self._count[columns] - np.minimum(self._count[columns], self._length)
        stored = (rows - oldest) % self._length
        return np.minimum(self._array('age')[rows, columns], deepest) <= stored

    def _returns(
        self, rows: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of rewards, the rows of their last steps, and discounts of what follows."""
        active, gamma = self._array('active'), np.float32(self._layout.gamma)
        newest = (self._count[columns] - 1) % self._length
        ended = self._ended[rows, columns]
        going = active[rows, columns].copy()
        reward = self._array('reward')[rows, columns] * going
        discount = np.full_like(reward, gamma)
        last = rows.copy()
        for _ in range(self._layout.n_step - 1):
            more = ~ended & (last != newest)
            last = np.where(more, (last + 1) % self._length, last)
            going &= active[last, columns] | ~more[:, None]
            paid = (going & more[:, None]) * self._array('reward')[last, columns]
            reward = reward + discount * paid
            discount = np.where(more[:, None], discount * gamma, discount)
            ended = self._ended[last, columns]
        following = active[(last + 1) % self._length, columns]
        leaves = ~following & ~(ended | (last == newest))[:, None]
        over = self._array('terminated')[last, columns][:, None] | leaves | ~going
        return reward, last, np.where(over, np.float32(0), discount)

    def _observation(self, rows: np.ndarray, columns: np.ndarray) -> Arrays:
        return {
            key: self._stack(key, values, rows, columns)
            for key, values in self._tree('observation').items()
        }

    def _stack(
        self, key: str, values: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        if key not in self._frames:
            return values[rows, columns]
        # before the first step of an episode its first frame is repeated, as gymnasium does
        age = self._array('age')[rows, columns]
        back = [np.minimum(ago, age) for ago in reversed(range(self._frames[key]))]
        frames = [values[(rows - ago) % self._length, columns] for ago in back]
        return np.stack(frames, axis=2)

    def _next_observation(self, last: np.ndarray, columns: np.ndarray) -> Arrays:
        after = self._observation((last + 1) % self._length, columns)
        newest = (self._count[columns] - 1) % self._length
        ended = self._ended[last, columns]
        for number in np.flatnonzero(ended | (last == newest)):
            row, column = int(last[number]), int(columns[number])
            known = self._finals[row, column] if ended[number] else self._following[column]
            for key, values in known.items():
                after[key][number] = values
        return after

    # keeping

    def state_dict(self) -> dict[str, Any]:
        """All of it, as :func:`opentinker.data.archive.pack` takes it."""
        return {
            'rows': self._rows,
            'columns': self._columns,
            'count': self._count.copy(),
            'step': self._step.copy(),
            'finals': [[*place, arrays] for place, arrays in self._finals.items()],
            'following': self._following,
            'revision': self.revision,
            'sampler': self.sampler.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`. Raises :class:`ReplayError` for another layout."""
        own = (self._length, self._layout.num_envs)
        if state['rows'] and state['rows']['reward'].shape[:2] != own:
            raise ReplayError(
                f'the saved buffer has {state["rows"]["reward"].shape[:2]} rows and environments, '
                f'this one {own}'
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
        self.revision = state['revision']
        self.sampler.load_state_dict(state['sampler'])


def _leaves(rows: Mapping[str, Arrays | np.ndarray]) -> list[np.ndarray]:
    return [
        array
        for value in rows.values()
        for array in (value.values() if isinstance(value, dict) else [value])
    ]
