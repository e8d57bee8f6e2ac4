"""A replay buffer: segments in, batches of n-step transitions out.

Every environment of every sampler has a ring of its own, so that data of environments that run at
their own pace stay consecutive.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opentinker.data.archive import ArchiveError, pack, unpack
from opentinker.data.batch import Batch
from opentinker.data.replay_layout import ReplayError, ReplayLayout
from opentinker.data.replay_samplers import ReplaySampler, UniformSampler
from opentinker.data.replay_storage import ReplayStorage
from opentinker.data.segment import Segment
from opentinker.envs.rewards import RewardSpec
from opentinker.files import write_atomically

__all__ = ['ReplayBuffer', 'ReplayError', 'ReplayLayout']

_KIND = 'replay buffer 1'
"""What a file says it is, with the version of its form."""


class ReplayBuffer:
    """The transitions of one group: a storage, and a ``sampler`` that decides which are drawn."""

    def __init__(self, layout: ReplayLayout, sampler: ReplaySampler | None = None) -> None:
        self.storage = ReplayStorage(layout)
        self.sampler = sampler or UniformSampler()
        self.sampler.allocate(layout.length * layout.num_envs)
        self.revision = -1
        """Of the rewards under which all rows are scored; -1 where they are mixed."""

    def __len__(self) -> int:
        """Steps of environments that are stored."""
        return int(self.storage.stored.sum())

    def add(self, segment: Segment) -> None:
        """Store a segment. Raises :class:`ReplayError` for one that there is no room for."""
        revisions = {*segment.reward_revision.tolist(), *([self.revision] if len(self) else [])}
        self.sampler.added(self.storage.add(segment))
        self.revision = revisions.pop() if len(revisions) == 1 else -1

    def rescore(self, rewards: RewardSpec) -> None:
        """Score everything that is stored under these rewards."""
        if len(self) and rewards.revision != self.revision:
            _, reward = rewards.evaluate(self.storage.tree('signals'))
            self.storage.array('reward')[...] = reward
        self.revision = rewards.revision

    def sample(self, size: int, random: np.random.Generator) -> Batch:
        """Transitions ``[size, agent, ...]``.

        ``observation``, ``action``, ``active``; ``info``, the signals; ``policy``, the version that
        acted and its ``log_prob``; ``reward``, the discounted sum of up to ``n_step``
        rewards; ``next_observation`` after them, and ``discount``, what its value is worth: 0
        after a terminal state or where the agent left. ``index`` is for :meth:`reprioritize` and
        ``weight`` corrects for the sampler's preferences. Raises :class:`ReplayError` where fewer
        steps are stored.
        """
        if size > len(self):
            raise ReplayError(f'a batch of {size} where {len(self)} steps are stored')
        slots, weight = self._draw(size, random)
        array, signals = self.storage.array, self.storage.tree('signals')
        rows, columns = np.divmod(slots, self.storage.layout.num_envs)
        reward, last, discount = self._returns(rows, columns)
        return Batch(
            observation=self.storage.observation(rows, columns),
            action=array('action')[rows, columns],
            policy={key: array(key)[rows, columns] for key in ('log_prob', 'version')},
            info={key: signal[rows, columns] for key, signal in signals.items()},
            active=array('active')[rows, columns],
            reward=reward,
            next_observation=self.storage.next_observation(last, columns),
            discount=discount,
            index=self.sampler.tickets(slots),
            weight=weight.astype(np.float32),
        )

    def reprioritize(self, index: np.ndarray, error: np.ndarray) -> None:
        """Tell the sampler the errors ``[size]`` of sampled transitions; replaced ones pass."""
        self.sampler.update(index, error)

    def _draw(self, size: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        slots, weights = np.zeros(0, np.int64), np.zeros(0)
        stored = self.storage.stored
        for _ in range(1000):
            drawn, weight = self.sampler.draw(size, random, stored, self.storage.layout.num_envs)
            good = self.storage.complete(*np.divmod(drawn, self.storage.layout.num_envs))
            slots = np.concatenate([slots, drawn[good]])
            weights = np.concatenate([weights, weight[good]])
            if len(slots) >= size:
                return slots[:size], weights[:size] / weights[:size].max()
        raise ReplayError('no step has all the frames of its stack')

    def _returns(
        self, rows: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of rewards, the rows of their last steps, and discounts of what follows."""
        active, gamma = self.storage.array('active'), np.float32(self.storage.layout.gamma)
        newest = self.storage.newest(columns)
        ended = self.storage.ended[rows, columns]
        going = active[rows, columns].copy()
        reward = self.storage.array('reward')[rows, columns] * going
        discount = np.full_like(reward, gamma)
        last = rows.copy()
        for _ in range(self.storage.layout.n_step - 1):
            more = ~ended & (last != newest)
            last = np.where(more, (last + 1) % self.storage.layout.length, last)
            going &= active[last, columns] | ~more[:, None]
            paid = (going & more[:, None]) * self.storage.array('reward')[last, columns]
            reward = reward + discount * paid
            discount = np.where(more[:, None], discount * gamma, discount)
            ended = self.storage.ended[last, columns]
        following = active[(last + 1) % self.storage.layout.length, columns]
        leaves = ~following & ~(ended | (last == newest))[:, None]
        over = self.storage.array('terminated')[last, columns][:, None] | leaves | ~going
        return reward, last, np.where(over, np.float32(0), discount)

    def state_dict(self) -> dict[str, Any]:
        """All of it, as :func:`opentinker.data.archive.pack` takes it."""
        return {
            'kind': _KIND,
            'drawn by': type(self.sampler).__name__,
            'storage': self.storage.state_dict(),
            'revision': self.revision,
            'sampler': self.sampler.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`.

        Raises :class:`ReplayError` for another layout or sampler.
        """
        own = type(self.sampler).__name__
        if state['drawn by'] != own:
            raise ReplayError(
                f'the saved buffer is drawn by {state["drawn by"]}, this one by {own}'
            )
        self.storage.load_state_dict(state['storage'])
        self.revision = state['revision']
        self.sampler.load_state_dict(state['sampler'])

    def save(self, path: Path) -> None:
        """Write all of it into a file, or, after a crash, nothing."""
        write_atomically(path, pack(self.state_dict()))

    def load(self, path: Path) -> None:
        """Go on from a saved one. Raises :class:`ReplayError` for a file that is none of such."""
        try:
            state = unpack(path.read_bytes())
            kind = state['kind']
        except (ArchiveError, LookupError, TypeError, OSError) as error:
            raise ReplayError(f'{path}: no replay buffer: {error}') from None
        if kind != _KIND:
            raise ReplayError(f'{path}: {kind!r} where {_KIND!r} is known')
        self.load_state_dict(state)
