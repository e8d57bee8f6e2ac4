"""The page at the end of a run: its result, with which versions, and where the files are."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from opentinker import __version__
from opentinker.files import write_atomically
from opentinker.training.run_directory import RunDirectory
from opentinker.training.statistics import sampler_names

_PACKAGES = ('torch', 'mujoco', 'rclpy', 'numpy')
_QUANTITIES = ('success', 'return')


def write_summary(run: RunDirectory, result: str, seconds: float, memory: str = '') -> str:
    """Write ``summary.txt`` and ``learning_curve.png`` into the run directory; returns the text."""
    metrics = run.metrics()
    if metrics:
        plot_learning_curve(metrics, run.path / 'learning_curve.png', f'{run.path.name}: {result}')
    text = summary_text(run, metrics, result, seconds, memory)
    write_atomically(run.path / 'summary.txt', text.encode())
    return text


def summary_text(
    run: RunDirectory, metrics: list[dict[str, Any]], result: str, seconds: float, memory: str = ''
) -> str:
    """The text of the page."""
    last = metrics[-1] if metrics else {}
    lines = [
        f'Job        {run.path.name}',
        f'Result     {result}',
        f'Time       {seconds:.0f} s',
        f'Learned    {last.get("version", 0)} policy versions from '
        f'{last.get("all.transitions", 0):,} transitions, rewards #{last.get("revision", 0)}',
    ]
    if memory:
        lines.append(f'Memory     {memory}')
    for name in sampler_names(last):
        numbers = [
            f'{quantity} {last[f"{name}.{quantity}"]:.2f}'
            for quantity in _QUANTITIES
            if last.get(f'{name}.{quantity}') is not None
        ]
        numbers.append(f'{last[f"{name}.episodes"]} episodes')
        lines.append(f'{name:<10} {", ".join(numbers)}')
    versions = [f'{name} {version}' for name, version in _versions().items()]
    lines += [f'Versions   {", ".join(versions)}', f'Files      {run.path}']
    lines += [f'             {path.relative_to(run.path)}' for path in _files(run.path)]
    return '\n'.join(lines) + '\n'


def plot_learning_curve(metrics: list[dict[str, Any]], path: Path, title: str) -> None:
    """Success and return of each sampler over seconds and over transitions, as a PNG."""
    # not pyplot: it would choose a windowing system and keep the figure
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout='constrained')
    canvas = FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    known = [
        each for each in _QUANTITIES if any(line.get(f'all.{each}') is not None for line in metrics)
    ]
    shown = known or _QUANTITIES
    grid = figure.subplots(len(shown), 2, sharex='col', sharey='row', squeeze=False)
    for axes, quantity in zip(grid, shown, strict=True):
        for plot, clock in zip(axes, ('seconds', 'all.transitions'), strict=True):
            _plot(plot, metrics, quantity, clock)
        axes[0].set_ylabel(quantity)
        if quantity == 'success':
            axes[0].set_ylim(-0.02, 1.02)
    grid[0][0].legend(loc='upper left', fontsize=8)
    grid[-1][0].set_xlabel('seconds')
    grid[-1][1].set_xlabel('agent transitions')
    canvas.print_png(path)


def _plot(plot: Any, metrics: list[dict[str, Any]], quantity: str, clock: str) -> None:
    for name in sampler_names(metrics[-1]):
        key = f'{name}.{quantity}'
        points = [(line[clock], line[key]) for line in metrics if line.get(key) is not None]
        plot.plot(*zip(*points, strict=True) if points else ((), ()), label=name)
    plot.grid(alpha=0.3)


def _versions() -> dict[str, str]:
    versions = {'opentinker': __version__, 'python': platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob('*') if file.is_file())
