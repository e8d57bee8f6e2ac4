"""What looks on while a job trains in one process, and may end it.

Registry kind ``callback``: ``factory(config: JobConfig, run: RunDirectory, **settings)`` returns a
:class:`Callback`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from opentinker import registry
from opentinker.config import ConfigError, JobConfig
from opentinker.lifecycle import Lifecycle
from opentinker.training.run_directory import RunDirectory

KIND = 'callback'


class Callback:
    """Override what you need."""

    def on_update(self, metrics: Mapping[str, Any]) -> str | None:
        """After every update, with its metrics. A returned text ends the job; it is the reason."""

    def on_evaluation(self, metrics: Mapping[str, Any]) -> str | None:
        """After every evaluation, with ``evaluation.return`` and so on; else like on_update."""

    def close(self) -> None:
        """The job is over."""


def check_callbacks(config: JobConfig) -> None:
    """Raise ConfigError for settings that a callback does not take, UnknownNameError for no such
    callback; for before there is a run.
    """
    for settings in config.callbacks:
        own = dict(settings)
        name = own.pop('name')
        try:
            inspect.signature(registry.get(KIND, name)).bind(config, None, **own)
        except TypeError as error:
            raise ConfigError(f'callbacks ({name}): {error}') from None


def make_callbacks(config: JobConfig, run: RunDirectory, life: Lifecycle) -> list[Callback]:
    """Those that a config names, and the one for TensorBoard."""
    chosen = [dict(settings) for settings in config.callbacks]
    if config.log.tensorboard:
        chosen.append({'name': 'tensorboard'})
    return [
        life.keep(registry.get(KIND, settings.pop('name'))(config, run, **settings))
        for settings in chosen
    ]
