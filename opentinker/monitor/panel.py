"""The display of a running job: a live panel in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from opentinker.monitor.job_view import JobView
from opentinker.training.statistics import sampler_names

_LINE_EVERY_S = 5.0


class JobPanel:
    """Shows a :class:`JobView`; call :meth:`update` a few times a second."""

    def __init__(self, view: JobView, console: Console) -> None:
        self._view = view
        self._console = console
        # no thread of its own: it is drawn when it is updated
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._last_line = time.monotonic()
        if self._live is not None:
            self._live.start()

    def update(self, states: Mapping[str, str]) -> None:
        """Take in news and draw; ``states`` says how each process is."""
        self._view.refresh()
        if self._live is not None:
            self._live.update(render(self._view, states), refresh=True)
        elif time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            self._console.print(progress_line(self._view), soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Leave the last state on the screen, and the job."""
        if self._live is not None:
            self._live.stop()
        self._view.close()


def progress_line(view: JobView) -> str:
    """One line: time, speed, update, then success and return of each sampler."""
    if not view.metrics:
        return f'{view.seconds:4.0f} s  waiting for the first transitions'
    metrics = view.metrics
    samplers = [
        f'{name}: success {_number(metrics.get(f"{name}.success"), 2)} '
        f'return {_number(metrics.get(f"{name}.return"), 1)}'
        for name in sampler_names(metrics)
    ]
    parts = [
        f'{metrics["seconds"]:4.0f} s',
        f'{metrics["all.transitions_per_s"]:6.0f} transitions/s',
        f'policy version {metrics["version"]}',
        f'rewards #{metrics["revision"]}',
        *samplers,
    ]
    return '  '.join(parts)


def render(view: JobView, states: Mapping[str, str]) -> Panel:
    """The panel: samplers, rewards and processes."""
    metrics = view.metrics
    head = Text(f'{view.seconds:.0f} s')
    if metrics:
        head.append(
            f'   policy version {metrics["version"]}'
            f'   {metrics["all.transitions"]:,} transitions'
            f'   {metrics["all.transitions_per_s"]:,.0f}/s'
        )
    parts = Group(head, *_goal(view), _samplers(view), _rewards(view), _processes(states))
    return Panel(parts, title=view.run.path.name, subtitle=str(view.run.path))


def _goal(view: JobView) -> list[Table]:
    """How far the success has come that ends the job; nothing where no success does."""
    stop = view.stop
    if stop.success is None:
        return []
    success = view.metrics.get(f'{stop.of or "all"}.success') or 0.0
    row = Table.grid(padding=(0, 1))
    row.add_row(
        f'goal: success {stop.success:g} over {stop.episodes} episodes of {stop.of or "all"}',
        ProgressBar(total=stop.success, completed=success, width=30),
        f'{success:.2f}',
    )
    return [row]


def _samplers(view: JobView) -> Table:
    table = Table('sampler', box=None, pad_edge=False)
    for column in ('transitions/s', 'episodes', 'return', 'success'):
        table.add_column(column, justify='right')
    for name in sampler_names(view.metrics):
        values = {key: view.metrics.get(f'{name}.{key}') for key in ('return', 'success')}
        table.add_row(
            name,
            _number(view.metrics[f'{name}.transitions_per_s'], 0),
            str(view.metrics[f'{name}.episodes']),
            _number(values['return'], 2),
            _number(values['success'], 2),
        )
    return table


def _rewards(view: JobView) -> Text:
    if view.rewards is None:
        return Text('')
    terms = [
        f'{name} {term.weight:g}' if term.enabled else f'{name} off'
        for name, term in view.rewards.terms.items()
    ]
    return Text(f'rewards #{view.rewards.revision}: ' + '   '.join(terms))


def _processes(states: Mapping[str, str]) -> Text:
    text = Text('processes:')
    for name, state in states.items():
        style = 'green' if state == 'running' else 'yellow' if state == 'ended' else 'red'
        text.append(f'  {name} ')
        text.append(state, style)
    return text


def _number(value: Any, digits: int) -> str:
    return '-' if value is None else f'{value:,.{digits}f}'
