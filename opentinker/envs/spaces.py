"""Spaces of gymnasium as array descriptions, and back.

Nested spaces (``Dict``, ``Tuple``) become one array a leaf, whose key is its path: ``camera/rgb``,
``[0]/rgb`` in a tuple. Choices count from 0, whatever a space lets them start with.
"""

from __future__ import annotations

import re
from typing import Any, get_args

import numpy as np
from gymnasium import spaces

from opentinker.envs.descriptor import ArrayInfo, Dtype

ROOT = 'observation'
"""Key of a space that is not nested."""
_DTYPES = get_args(Dtype)
_ITEM = re.compile(r'\[(\d+)\]')


class SpaceError(ValueError):
    """A space that no array describes."""


def to_info(space: spaces.Space) -> ArrayInfo:
    """The description of a space that is not nested. Raises :class:`SpaceError`."""
    if isinstance(space, spaces.Box):
        return ArrayInfo(
            shape=space.shape,
            dtype=_dtype(space.dtype),
            low=_bound(space.low),
            high=_bound(space.high),
        )
    if isinstance(space, spaces.Discrete):
        return ArrayInfo(shape=(), dtype='int64', categories=(int(space.n),))
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(space.nvec.ravel().tolist())
        return ArrayInfo(shape=space.shape, dtype='int64', categories=sizes)
    if isinstance(space, spaces.MultiBinary):
        sizes = (2,) * int(np.prod(space.shape))
        return ArrayInfo(shape=space.shape, dtype='int8', categories=sizes)
    raise SpaceError(f'no array describes the space {space}')


def to_space(info: ArrayInfo) -> spaces.Space:
    """The space that an array description stands for."""
    if info.categories is None:
        low, high = bounds(info)
        return spaces.Box(low, high, info.shape, np.dtype(info.dtype).type)
    if info.dtype == 'int8' and set(info.categories) == {2}:
        return spaces.MultiBinary(info.shape if len(info.shape) > 1 else info.size)
    if info.shape == ():
        return spaces.Discrete(info.categories[0])
    return spaces.MultiDiscrete(np.reshape(info.categories, info.shape))


def bounds(info: ArrayInfo) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest values ``[*shape]``; of floats, infinite where there is no bound."""
    dtype = np.dtype(info.dtype)
    lowest, highest = _extremes(dtype)

    def filled(given: float | tuple[float | None, ...] | None, default: float) -> np.ndarray:
        each = given if isinstance(given, tuple) else (given,) * info.size
        values = [default if value is None else value for value in each]
        return np.array(values).astype(dtype).reshape(info.shape)

    return filled(info.low, lowest), filled(info.high, highest)


def _extremes(dtype: np.dtype) -> tuple[float, float]:
    if dtype.kind == 'f':
        return -np.inf, np.inf
    return (0, 1) if dtype.kind == 'b' else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def to_infos(space: spaces.Space, path: str = '') -> dict[str, ArrayInfo]:
    """The leaves of a space by path. Raises :class:`SpaceError` naming the one that cannot be."""
    children = _children(space)
    if children is None:
        try:
            return {path or ROOT: to_info(space)}
        except SpaceError as error:
            raise SpaceError(f'{path or ROOT}: {error}') from None
    infos: dict[str, ArrayInfo] = {}
    for name, child in children:
        infos |= to_infos(child, f'{path}/{name}' if path else name)
    return infos


def from_infos(infos: dict[str, ArrayInfo]) -> spaces.Space:
    """The space whose leaves these are; the contrary of :func:`to_infos`."""
    if set(infos) == {ROOT}:
        return to_space(infos[ROOT])
    branches: dict[str, dict[str, ArrayInfo]] = {}
    for path, info in infos.items():
        name, _, rest = path.partition('/')
        branches.setdefault(name, {})[rest or ROOT] = info
    children = {name: from_infos(branch) for name, branch in branches.items()}
    if all(_ITEM.fullmatch(name) for name in children):
        return spaces.Tuple(children.values())
    return spaces.Dict(children)


def flatten(space: spaces.Space, value: Any, path: str = '') -> dict[str, np.ndarray]:
    """A value of a space as the arrays of its leaves, choices counted from 0."""
    children = _children(space)
    if children is None:
        start = getattr(space, 'start', 0)
        return {path or ROOT: np.asarray(value) - start if np.any(start) else np.asarray(value)}
    arrays: dict[str, np.ndarray] = {}
    inner = [value[name] for name in space] if isinstance(space, spaces.Dict) else list(value)
    for (name, child), each in zip(children, inner, strict=True):
        arrays |= flatten(child, each, f'{path}/{name}' if path else name)
    return arrays


def _children(space: spaces.Space) -> list[tuple[str, spaces.Space]] | None:
    if isinstance(space, spaces.Dict):
        strange = [name for name in space if '/' in name or _ITEM.fullmatch(name)]
        if strange:
            raise SpaceError(f'key {strange[0]!r} of {space} reads like a path')
        return list(space.items())
    if isinstance(space, spaces.Tuple):
        return [(f'[{index}]', child) for index, child in enumerate(space.spaces)]
    return None


def _dtype(dtype: Any) -> Any:
    name = np.dtype(dtype).name
    if name not in _DTYPES:
        raise SpaceError(f'dtype {name} is none of {", ".join(_DTYPES)}')
    return name


def _bound(values: np.ndarray) -> float | tuple[float | None, ...] | None:
    """One number where all are equal; None for what is not bounded."""
    each = [value if np.isfinite(value) else None for value in values.ravel().tolist()]
    if not each or all(value == each[0] for value in each):
        return each[0] if each else None
    return tuple(each)
