"""A tree of arrays and plain values as one safetensors file: nothing in it is ever unpickled."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

_KEY = 'opentinker'
_TENSOR, _ARRAY, _PAIRS, _ITEMS = 'tensor', 'array', 'pairs', 'items'


class ArchiveError(ValueError):
    """Bytes that are no archive."""


def pack(tree: Any) -> bytes:
    """Dicts, lists, numbers, texts, tensors and numpy arrays, nested, as bytes.

    Tuples come back as lists, numpy's scalars as plain numbers.
    """
    tensors: dict[str, torch.Tensor] = {}
    form = _without_tensors(tree, tensors)
    return save(tensors, metadata={_KEY: json.dumps(form)})


def unpack(data: bytes) -> Any:
    """What was given to :func:`pack`. Raises :class:`ArchiveError` for anything else."""
    try:
        tensors = load(data)
        size = int.from_bytes(data[:8], 'little')
        form = json.loads(json.loads(data[8 : 8 + size])['__metadata__'][_KEY])
        return _with_tensors(form, tensors)
    except (SafetensorError, ValueError, LookupError, TypeError) as error:
        raise ArchiveError(f'not an archive: {error}') from None


def _without_tensors(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray):
        name = str(len(tensors))
        # a copy: safetensors refuses tensors that share memory
        tensors[name] = torch.as_tensor(value).detach().cpu().clone().contiguous()
        return {_TENSOR if isinstance(value, torch.Tensor) else _ARRAY: name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        # pairs, since keys may be whole numbers, which JSON would turn into texts
        return {_PAIRS: [[key, _without_tensors(item, tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return {_ITEMS: [_without_tensors(item, tensors) for item in value]}
    return value


def _with_tensors(form: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if not isinstance(form, dict):
        return form
    ((kind, content),) = form.items()
    if kind == _TENSOR:
        return tensors[content]
    if kind == _ARRAY:
        return tensors[content].numpy()
    if kind == _PAIRS:
        return {key: _with_tensors(item, tensors) for key, item in content}
    return [_with_tensors(item, tensors) for item in content]
