"""Trees of numpy arrays as binary frames: a bounded header, then raw little-endian buffers.

A tree is a dict of dicts whose leaves are arrays or JSON scalars (text, numbers, booleans, None).
The header is magic, version and two lengths, then two JSON parts: the *layout*
``[[path, dtype, shape], ...]`` and the *scalars* ``[[path, value], ...]``. Buffers follow in layout
order, either as frames of their own (:func:`encode`, :func:`decode`) or in one buffer, each padded
to 8 bytes (:func:`pack`, :func:`unpack`). Decoding copies nothing: arrays are views, read-only
where the buffer is.

Layouts repeat from message to message, so both directions keep the ones they saw last.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Buffer = bytes | bytearray | memoryview
Path = tuple[str, ...]
MAGIC = b'OTAF'
VERSION = 1
MAX_HEADER = 1 << 18
"""Bytes of JSON in a frame's header."""
MAX_ARRAYS = 4096
MAX_BYTES = 1 << 31
"""Bytes of one array."""
MAX_DIMENSIONS = 16
MAX_DEPTH = 16
_PREFIX = struct.Struct('<4sHHII')
_ALIGNMENT = 8
_DTYPES = {
    code: np.dtype(code).newbyteorder('<')
    for code in ('b1', 'u1', 'i1', 'u2', 'i2', 'u4', 'i4', 'u8', 'i8', 'f2', 'f4', 'f8')
}
_SCALARS = (str, bool, int, float, type(None))


class FrameError(ValueError):
    """A frame that is refused, or a tree that no frame can carry."""


class _Field(NamedTuple):
    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    size: int
    """Bytes."""
    offset: int
    """Of the buffer, counted from the end of the header."""


def encode(tree: Mapping[str, Any]) -> list[Buffer]:
    """The tree as frames: the header, then one view of each array's memory."""
    header, arrays = _split(tree)
    return [header, *(array.reshape(-1).view(np.uint8).data for array in arrays)]


def decode(frames: Sequence[Buffer]) -> dict[str, Any]:
    """The tree of frames from :func:`encode`. Raises :class:`FrameError`."""
    if not frames:
        raise FrameError('a message without a header')
    fields, tree, end = _open(frames[0])
    if end != len(frames[0]):
        raise FrameError(f'header of {len(frames[0])} bytes where its lengths say {end}')
    if len(fields) != len(frames) - 1:
        raise FrameError(f'{len(frames) - 1} buffers where the header names {len(fields)}')
    for field, buffer in zip(fields, frames[1:], strict=True):
        if len(buffer) != field.size:
            raise FrameError(f'{"/".join(field.path)}: {len(buffer)} bytes, expected {field.size}')
        _place(tree, field.path, np.ndarray(field.shape, field.dtype, buffer))
    return tree


def pack(tree: Mapping[str, Any]) -> bytes:
    """The tree in one buffer."""
    header, arrays = _split(tree)
    parts: list[Buffer] = [header]
    for array in arrays:
        parts.append(array.tobytes())
        if array.nbytes % _ALIGNMENT:
            parts.append(bytes(-array.nbytes % _ALIGNMENT))
    return b''.join(parts)


def unpack(buffer: Buffer) -> dict[str, Any]:
    """The tree of a buffer from :func:`pack`. Raises :class:`FrameError`."""
    fields, tree, start = _open(buffer)
    last = fields[-1] if fields else None
    expected = start + (_aligned(last.offset + last.size) if last else 0)
    if len(buffer) != expected:
        raise FrameError(f'{len(buffer)} bytes, expected {expected}')
    for path, dtype, shape, _, offset in fields:
        _place(tree, path, np.ndarray(shape, dtype, buffer, start + offset))
    return tree


def _split(tree: Mapping[str, Any]) -> tuple[bytes, list[np.ndarray]]:
    layout, arrays, scalars = [], [], []
    for path, leaf in _leaves(tree, ()):
        if isinstance(leaf, np.ndarray):
            dtype = _DTYPES.get(leaf.dtype.str[1:])
            if dtype is None:
                raise FrameError(f'{"/".join(path)}: dtype {leaf.dtype} has no place in a frame')
            layout.append((path, dtype.str[1:], leaf.shape))
            arrays.append(np.asarray(leaf, dtype, order='C'))
        else:
            scalars.append((path, leaf))
    return _header(tuple(layout), _json(scalars) if scalars else b''), arrays


def _leaves(tree: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in tree.items():
        here = (*path, key)
        if not isinstance(key, str) or len(here) > MAX_DEPTH:
            raise FrameError(f'{here}: keys are text, at most {MAX_DEPTH} deep')
        if isinstance(value, dict) and value:
            yield from _leaves(value, here)
        elif isinstance(value, (np.ndarray, dict, *_SCALARS)):
            yield here, value
        else:
            raise FrameError(f'{"/".join(here)}: {type(value).__name__} has no place in a frame')


def _header(layout: tuple, scalars: bytes) -> bytes:
    layout_json = _layout_json(layout)
    length = _PREFIX.size + len(layout_json) + len(scalars)
    if length > MAX_HEADER:
        raise FrameError(f'header of {length} bytes; at most {MAX_HEADER}')
    scalars += b' ' * (-length % _ALIGNMENT)
    return _PREFIX.pack(MAGIC, VERSION, 0, len(layout_json), len(scalars)) + layout_json + scalars


@lru_cache(maxsize=64)
def _layout_json(layout: tuple) -> bytes:
    return _json(layout)


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, separators=(',', ':'), allow_nan=False).encode()
    except ValueError as error:
        raise FrameError(f'scalars: {error}') from None


def _open(buffer: Buffer) -> tuple[tuple[_Field, ...], dict[str, Any], int]:
    """Fields, a tree that holds the scalars, and where the header ends."""
    if len(buffer) < _PREFIX.size:
        raise FrameError(f'{len(buffer)} bytes are no array frame')
    magic, version, _, layout_length, scalars_length = _PREFIX.unpack_from(buffer)
    if magic != MAGIC:
        raise FrameError(f'not an array frame: it begins with {magic!r}')
    if version > VERSION:
        raise FrameError(f'array frame of version {version}; this side reads up to {VERSION}')
    scalars_start = _PREFIX.size + layout_length
    end = scalars_start + scalars_length
    if end > min(len(buffer), MAX_HEADER + _ALIGNMENT):
        raise FrameError(f'header of {end} bytes in a message of {len(buffer)}')
    tree: dict[str, Any] = {}
    scalars = bytes(buffer[scalars_start:end])
    if scalars and not scalars.isspace():
        for path, value in _rows(scalars, 2):
            if not isinstance(value, _SCALARS) and value != {}:
                raise FrameError(f'{path}: expected a scalar')
            _place(tree, _path(path), value)
    return _fields(bytes(buffer[_PREFIX.size : scalars_start])), tree, end


@lru_cache(maxsize=64)
def _fields(layout: bytes) -> tuple[_Field, ...]:
    fields = []
    offset = 0
    for path, code, shape in _rows(layout, 3):
        name = _path(path)
        dtype = _DTYPES.get(code) if isinstance(code, str) else None
        if dtype is None:
            raise FrameError(f'{"/".join(name)}: unknown dtype {code!r}')
        size = _size(name, shape, dtype)
        fields.append(_Field(name, dtype, tuple(shape), size, offset))
        offset = _aligned(offset + size)
    return tuple(fields)


def _size(name: Path, shape: Any, dtype: np.dtype) -> int:
    """Bytes of an array, after a look at whether numpy can make one of that shape at all."""
    good = (
        isinstance(shape, list)
        and len(shape) <= MAX_DIMENSIONS
        and all(type(length) is int and length >= 0 for length in shape)
        and math.prod(max(length, 1) for length in shape) * dtype.itemsize <= MAX_BYTES
    )
    if not good:
        raise FrameError(f'{"/".join(name)}: absurd shape {str(shape)[:80]}')
    return math.prod(shape) * dtype.itemsize


def _rows(text: bytes, width: int) -> list[list[Any]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError('a header that is not JSON') from None
    if not isinstance(rows, list) or len(rows) > MAX_ARRAYS:
        raise FrameError('a header that is no list of arrays')
    if not all(isinstance(row, list) and len(row) == width for row in rows):
        raise FrameError('a header with a malformed entry')
    return rows


def _path(path: Any) -> Path:
    good = isinstance(path, list) and 0 < len(path) <= MAX_DEPTH
    if not good or not all(isinstance(key, str) for key in path):
        raise FrameError(f'not a path: {str(path)[:80]}')
    return tuple(path)


def _place(tree: dict[str, Any], path: Path, value: Any) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise FrameError(f'{"/".join(path)}: {key!r} is a leaf already')
    if path[-1] in tree:
        raise FrameError(f'{"/".join(path)} appears twice')
    tree[path[-1]] = value


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
