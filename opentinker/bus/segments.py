"""Segments as array frames: every field of :class:`Segment` is a branch or leaf of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from opentinker.data.segment import Segment
from opentinker.protocol.arrays import Buffer, FrameError, decode, encode

_TEXTS = {'group', 'sampler'}
_BRANCHES = {'observation', 'last_observation', 'signals', 'final_observation', 'episodes'}
_AXES = {
    'observation': 'TEA...',
    'last_observation': 'EA...',
    'action': 'TEA...',
    'log_prob': 'TEA',
    'reward': 'TEA',
    'signals': 'TEA',
    'active': 'TEA',
    'terminated': 'TE',
    'truncated': 'TE',
    'final_index': 'K2',
    'final_observation': 'KA...',
    'policy_version': 'T',
    'reward_revision': 'T',
    'step': 'T',
    'episodes': 'N',
}
"""Axes of each field's arrays, by the letters of :class:`Segment`."""
_FLAGS = {'active', 'terminated', 'truncated'}
_WHOLE = {'final_index', 'policy_version', 'reward_revision', 'step'}


def encode_segment(segment: Segment) -> list[Buffer]:
    """The segment as a header and one view of each array; nothing is copied."""
    return encode({field.name: getattr(segment, field.name) for field in fields(Segment)})


def decode_segment(frames: Sequence[Buffer]) -> Segment:
    """The segment of such frames, its arrays being views of them.

    Raises :class:`FrameError` when a field is missing or unknown, or contradicts the others.
    """
    tree = decode(frames)
    expected = {field.name for field in fields(Segment)}
    if tree.keys() != expected:
        raise FrameError(
            f'not a segment: missing {sorted(expected - tree.keys())}, '
            f'unknown {sorted(tree.keys() - expected)}'
        )
    for name in _TEXTS:
        if not isinstance(tree[name], str):
            raise FrameError(f'{name}: expected text')
    _check_arrays(tree)
    _check_final_index(tree['final_index'], tree['terminated'].shape)
    return Segment(**tree)


def _check_arrays(tree: dict[str, Any]) -> None:
    lengths = {'2': 2}
    for name, axes in _AXES.items():
        named = axes.removesuffix('...')
        kinds = 'b' if name in _FLAGS else 'iu' if name in _WHOLE else 'biuf'
        for key, array in _arrays(name, tree[name]).items():
            if array.dtype.kind not in kinds:
                raise FrameError(f'{key}: dtype {array.dtype} is not of kind {kinds!r}')
            if array.ndim < len(named) or (axes == named and array.ndim != len(named)):
                raise FrameError(f'{key}: shape {array.shape} where axes {axes} are expected')
            for axis, length in zip(named, array.shape, strict=False):
                if lengths.setdefault(axis, length) != length:
                    raise FrameError(f'{key}: axis {axis} is {length}, expected {lengths[axis]}')
    if 0 in (lengths['T'], lengths['E'], lengths['A']):
        raise FrameError(f'an empty segment: {lengths}')


def _arrays(name: str, value: Any) -> dict[str, np.ndarray]:
    if name not in _BRANCHES:
        arrays = {name: value}
    elif isinstance(value, dict):
        arrays = {f'{name}/{key}': array for key, array in value.items()}
    else:
        raise FrameError(f'{name}: expected arrays by key')
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise FrameError(f'{key}: expected an array')
    return arrays


def _check_final_index(index: np.ndarray, steps: tuple[int, ...]) -> None:
    if index.size and ((index < 0).any() or (index >= np.array(steps)).any()):
        raise FrameError(f'final_index: outside the {steps[0]} steps of {steps[1]} environments')
