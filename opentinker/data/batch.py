"""A batch: a small tree of arrays, numpy's or torch's, whose leaves share their first axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

Array = np.ndarray | torch.Tensor


class Batch(Mapping[str, Any]):
    """Arrays and batches by name: ``batch['reward']`` and ``batch.reward`` are the same.

    A missing name is a KeyError (an AttributeError for ``batch.name``) that lists those there are.
    """

    def __init__(self, tree: Mapping[str, Any] | None = None, /, **branches: Any) -> None:
        self._tree: dict[str, Any] = {}
        for name, value in {**(tree or {}), **branches}.items():
            if isinstance(value, Mapping) and not isinstance(value, Batch):
                value = Batch(value)
            elif not isinstance(value, Batch | np.ndarray | torch.Tensor):
                value = np.asarray(value)
            self._tree[name] = value

    def __getitem__(self, key: Any) -> Any:
        """A branch by name, or the batch of the rows that an index, slice or array picks."""
        if not isinstance(key, str):
            return self.map(lambda array: array[key])
        try:
            return self._tree[key]
        except KeyError:
            raise KeyError(self._missing(key)) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(name)
        try:
            return self._tree[name]
        except KeyError:
            raise AttributeError(self._missing(name)) from None

    def _missing(self, name: str) -> str:
        return f'no {name!r} in this batch; it has {", ".join(self._tree) or "nothing"}'

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree)

    def __len__(self) -> int:
        """Rows; 0 for a batch without arrays. Raises ValueError where the leaves differ."""
        lengths = {len(array) for _, array in self.leaves()}
        if len(lengths) > 1:
            each = ', '.join(f'{path}: {len(array)}' for path, array in self.leaves())
            raise ValueError(f'the arrays of this batch differ in length: {each}')
        return lengths.pop() if lengths else 0

    def __bool__(self) -> bool:
        return bool(self._tree)

    def __repr__(self) -> str:
        leaves = [f'{path}: {array.dtype}{list(array.shape)}' for path, array in self.leaves()]
        return f'Batch({", ".join(leaves)})'

    def leaves(self, path: str = '') -> Iterator[tuple[str, Array]]:
        """All arrays with their paths, such as ``observation/image``."""
        for name, value in self._tree.items():
            if isinstance(value, Batch):
                yield from value.leaves(f'{path}{name}/')
            else:
                yield f'{path}{name}', value

    def map(self, function: Callable[[Any], Any]) -> Batch:
        """The batch of what a function makes of each array."""
        return Batch(
            {
                name: value.map(function) if isinstance(value, Batch) else function(value)
                for name, value in self._tree.items()
            }
        )

    def with_(self, **branches: Any) -> Batch:
        """This batch with some branches added or replaced."""
        return Batch({**self._tree, **branches})

    def to(self, device: torch.device | str) -> Batch:
        """All arrays as tensors on a device; on the CPU, numpy's memory is shared."""
        return self.map(lambda array: torch.as_tensor(array, device=device))

    def numpy(self) -> Batch:
        """All arrays as numpy's, copied only where they are on another device."""
        return self.map(
            lambda array: array.detach().cpu().numpy() if isinstance(array, torch.Tensor) else array
        )

    def split(self, size: int, random: np.random.Generator | None = None) -> Iterator[Batch]:
        """Every row once, in pieces of at most ``size`` rows that differ by one row at most.

        The rows come in order, or shuffled by ``random``. Raises ValueError for a size below 1.
        """
        if size < 1:
            raise ValueError(f'pieces of {size} rows')
        rows = np.arange(len(self)) if random is None else random.permutation(len(self))
        if len(rows):
            for piece in np.array_split(rows, -(-len(rows) // size)):
                yield self[piece]


def stack(batches: Sequence[Batch], axis: int = 0) -> Batch:
    """Batches of one structure as one, along a new axis. Raises ValueError naming a difference."""
    return _joined(batches, lambda arrays: _library(arrays).stack(arrays, axis))


def cat(batches: Sequence[Batch], axis: int = 0) -> Batch:
    """Batches of one structure as one, along an axis they have. Raises ValueError as above."""
    return _joined(batches, lambda arrays: _library(arrays).concatenate(arrays, axis))


def _library(arrays: Sequence[Array]) -> Any:
    return torch if isinstance(arrays[0], torch.Tensor) else np


def _joined(batches: Sequence[Batch], join: Callable[[list[Array]], Array]) -> Batch:
    if not batches:
        raise ValueError('no batches to join')
    paths = [dict(batch.leaves()) for batch in batches]
    for number, other in enumerate(paths):
        if other.keys() != paths[0].keys():
            raise ValueError(
                f'batch {number} has other arrays than the first: '
                f'{sorted(other.keys() ^ paths[0].keys())}'
            )
    return _merged(batches, join)


def _merged(batches: Sequence[Batch], join: Callable[[list[Array]], Array]) -> Batch:
    columns = {name: [batch[name] for batch in batches] for name in batches[0]}
    return Batch(
        {
            name: _merged(each, join) if isinstance(each[0], Batch) else join(each)
            for name, each in columns.items()
        }
    )
