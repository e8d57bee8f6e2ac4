"""Implementations found by name: what a config file says is what is registered here.

Register in code with :func:`register`, or from another package with an entry point in the group
``opentinker.plugins`` (or ``opentinker.plugin_registry``) whose value is a callable without
arguments (it calls :func:`register`) or a module that registers on import.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any, TypeVar

ENTRY_POINT_GROUPS = ('opentinker.plugins', 'opentinker.plugin_registry')
T = TypeVar('T')
_log = logging.getLogger(__name__)
_implementations: dict[str, dict[str, Any]] = {}
_modules: dict[tuple[str, str], str] = {}
_state = {'plugins loaded': False}


class UnknownNameError(LookupError):
    """A name that nothing is registered under; the message lists the known names."""


class AlreadyRegisteredError(ValueError):
    """A second registration of a name without ``override=True``."""


def register(kind: str, name: str, *, override: bool = False) -> Callable[[T], T]:
    """Decorator that makes an object findable as ``name`` among the objects of a ``kind``.

    Raises :class:`AlreadyRegisteredError` when another object has the name and ``override`` is
    false.
    """

    def keep(implementation: T) -> T:
        names = _implementations.setdefault(kind, {})
        holder = names.get(name, _unloaded(kind, name))
        if holder is not None and holder is not implementation and not override:
            raise AlreadyRegisteredError(
                f'{kind} {name!r} is registered already ({holder!r}); '
                'pass override=True to replace it'
            )
        names[name] = implementation
        return implementation

    return keep


def register_module(kind: str, name: str, module: str) -> None:
    """Let a module be imported, and register ``name``, only when somebody asks for that name.

    For what drags a heavy library in: who runs a job need not load what its processes load.
    """
    _modules[kind, name] = module


def get(kind: str, name: str) -> Any:
    """The object registered as ``name``. Raises :class:`UnknownNameError` with the known names."""
    load_plugins()
    if name not in _implementations.get(kind, {}) and (kind, name) in _modules:
        importlib.import_module(_modules[kind, name])
    try:
        return _implementations[kind][name]
    except KeyError:
        known = ', '.join(names(kind)) or 'none'
        raise UnknownNameError(f'unknown {kind} {name!r}; known: {known}') from None


def names(kind: str) -> list[str]:
    """All names registered for a kind, sorted."""
    load_plugins()
    return sorted({*_implementations.get(kind, {}), *(n for k, n in _modules if k == kind)})


def kinds() -> list[str]:
    """All kinds under which something is registered, sorted."""
    load_plugins()
    return sorted({*_implementations, *(kind for kind, _ in _modules)})


def _unloaded(kind: str, name: str) -> str | None:
    """The module that holds a name and was not imported yet."""
    module = _modules.get((kind, name))
    return None if module in sys.modules else module


def load_plugins() -> None:
    """Load the entry points once; one that fails is named in the log and stops nothing else."""
    if _state['plugins loaded']:
        return
    _state['plugins loaded'] = True
    found = [metadata.entry_points(group=group) for group in ENTRY_POINT_GROUPS]
    # a package that is listed in both groups is one plug-in
    for point in {
        (point.name, point.value): point for points in found for point in points
    }.values():
        try:
            loaded = point.load()
            if callable(loaded):
                loaded()
        except Exception as error:
            _log.error(
                'plug-in %s (%s) failed to load: %s: %s',
                point.name,
                point.value,
                type(error).__name__,
                error,
            )
