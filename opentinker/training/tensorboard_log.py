"""Curves for TensorBoard: ``tensorboard --logdir runs``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from opentinker import registry
from opentinker.config import JobConfig
from opentinker.training.callback import KIND, Callback
from opentinker.training.run_directory import RunDirectory
from opentinker.training.statistics import EVALUATION

_FOLDERS = {'all': 'train', EVALUATION: EVALUATION}


@registry.register(KIND, 'tensorboard')
class TensorBoardLog(Callback):
    """Writes numbers over agent transitions: ``train/``, ``update/`` and ``evaluation/``."""

    def __init__(self, config: JobConfig, run: RunDirectory) -> None:
        self._log = config.log
        self._writer = SummaryWriter(str(run.path / 'tensorboard'))
        self._updates = 0
        self._next_train = 0

    def on_update(self, metrics: Mapping[str, Any]) -> None:
        """Points of the update and of the samplers, each at its interval."""
        folders = set()
        if self._updates % self._log.update_every == 0:
            folders.add('update')
        if metrics['all.transitions'] >= self._next_train:
            folders.add('train')
            self._next_train = metrics['all.transitions'] + self._log.train_every
        self._updates += 1
        self._write(metrics, folders)

    def on_evaluation(self, metrics: Mapping[str, Any]) -> None:
        """Points of the evaluation."""
        self._write(metrics, {EVALUATION})

    def _write(self, metrics: Mapping[str, Any], folders: set[str]) -> None:
        for key, value in metrics.items():
            source, _, name = key.rpartition('.')
            folder = _FOLDERS.get(source) if source else 'update'
            if folder in folders and value is not None:
                self._writer.add_scalar(f'{folder}/{name}', value, metrics['all.transitions'])

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
