"""The progress bar of training in one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from opentinker.config import StopConfig
from opentinker.training.callback import Callback


class TrainProgress(Callback):
    """How far a job is on the way to its end by transitions or time, and how it is doing."""

    def __init__(self, rule: StopConfig) -> None:
        self._rule = rule
        self._bar = Progress(
            BarColumn(), TimeElapsedColumn(), TextColumn('{task.description}'), transient=True
        )
        self._task = self._bar.add_task('starting', total=None)

    def on_update(self, metrics: Mapping[str, Any]) -> None:
        """Show the metrics of an update."""
        self._bar.start()
        done: float = metrics['all.transitions']
        total: float | None = self._rule.transitions
        if total is None and self._rule.minutes is not None:
            done, total = metrics['seconds'], 60 * self._rule.minutes
        self._bar.update(
            self._task, completed=done, total=total, description=progress_text(metrics)
        )

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def progress_text(metrics: Mapping[str, Any]) -> str:
    """One line: transitions, their rate, and the statistics of the last episodes."""
    parts = [
        f'{metrics["all.transitions"]:,} transitions',
        f'{metrics["all.transitions_per_s"]:,.0f}/s',
    ]
    for name in ('return', 'success'):
        value = metrics.get(f'all.{name}')
        if value is not None:
            parts.append(f'{name} {value:.2f}')
    return ', '.join(parts)
