"""The command ``opentinker``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opentinker import __version__

if TYPE_CHECKING:
    from opentinker.config import JobConfig

# What a command needs is imported when it runs, so that --help answers at once.

app = typer.Typer(
    name='opentinker',
    help='Train cooperating robot arms in simulation and in a live ROS 2 graph.',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
worker = typer.Typer(help='One process of a job, for those who start processes themselves.')
app.add_typer(worker, name='worker')


class Checkpoint(str, Enum):
    """The checkpoints of a run."""

    latest = 'latest'
    best = 'best'


RunOption = Annotated[Path, typer.Option('--run', help='The run directory of the job.')]


def main() -> None:
    """Entry point of the command."""
    app()


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option('--version', help='Print the version.')] = False,
) -> None:
    if version:
        typer.echo(f'opentinker {__version__}')
        raise typer.Exit


@app.command()
def up(
    config: Annotated[Path, typer.Argument(help='The config of the job, YAML or JSON.')],
) -> None:
    """Run a training job: learner, samplers and, where the config has one, the ROS graph.

    Everything the job writes is in runs/<job>/. Ctrl-C or SIGTERM ends it in good order.
    """
    from opentinker.config import load_config

    with _plain_errors():
        _run(load_config(config))


@app.command()
def train(
    config: Annotated[
        Path,
        typer.Argument(
            help='The config of the job, YAML or JSON; or the directory of a run to resume.'
        ),
    ],
    checkpoint: Annotated[
        Path | None,
        typer.Option('--from', help='A checkpoint of such a job to begin with.', exists=True),
    ] = None,
) -> None:
    """Train in this process, sampling and learning in turn; without a graph.

    Everything the job writes is in runs/<job>/. Ctrl-C or SIGTERM ends it with a checkpoint, and
    `opentinker train runs/<job>` goes on from there.
    """
    from opentinker.config import load_config
    from opentinker.experiments import local
    from opentinker.experiments.train_progress import TrainProgress
    from opentinker.training.run_directory import RunDirectory

    with _plain_errors():
        resumed = RunDirectory(config) if config.is_dir() else None
        job = resumed.config() if resumed else load_config(config)
        progress = TrainProgress(job.stop)
        trained = local.train(
            job, resumed=resumed, checkpoint=checkpoint, callbacks=[progress], say=typer.echo
        )
    typer.echo(trained.summary)


RunArgument = Annotated[Path, typer.Argument(help='The directory of a run, such as runs/cartpole.')]
CheckpointOption = Annotated[
    Checkpoint, typer.Option(help='The last one, or the best by the evaluations.')
]
SeedOption = Annotated[int, typer.Option(help='Of the beginnings of the episodes.', min=0)]


@app.command('eval')
def evaluate(
    run: RunArgument,
    episodes: Annotated[int, typer.Option(help='How many to play.', min=1)] = 20,
    checkpoint: CheckpointOption = Checkpoint.latest,
    seed: SeedOption = 0,
    video: Annotated[
        Path | None, typer.Option(help='Film them, into a *.gif or *.mp4 file.')
    ] = None,
) -> None:
    """Play episodes with the best known actions and tell how good they were."""
    _play(run, checkpoint, episodes, seed, video)


@app.command()
def play(
    run: RunArgument,
    episodes: Annotated[int, typer.Option(help='How many to film.', min=1)] = 1,
    checkpoint: CheckpointOption = Checkpoint.latest,
    seed: SeedOption = 0,
    video: Annotated[
        Path | None, typer.Option(help='A *.gif or *.mp4 file; play.gif in the run if not given.')
    ] = None,
) -> None:
    """Film how the policies of a run act."""
    _play(run, checkpoint, episodes, seed, video or run / 'play.gif')


def _play(run: Path, checkpoint: Checkpoint, episodes: int, seed: int, video: Path | None) -> None:
    from opentinker.experiments.playback import play, report
    from opentinker.training.run_directory import RunDirectory

    with _plain_errors():
        stats = play(RunDirectory(run), checkpoint.value, episodes, seed, video)
    typer.echo(report(stats))
    if video:
        typer.echo(f'Video: {video}')


@app.command()
def demo(
    ros_only: Annotated[
        bool, typer.Option('--ros-only', help='Two arms that learn from the ROS graph alone.')
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(help='End after this time at the latest.', min=0.1)
    ] = None,
) -> None:
    """Four arms in a ROS 2 graph learn to reach, with a simulated sampler beside them."""
    from opentinker import registry
    from opentinker.config import load_config

    name = 'demo_ros_only' if ros_only else 'demo'
    with _plain_errors():
        if name not in registry.names('config'):
            _fail('the demo is part of the ROS package, which is not installed (opentinker_ros)')
        config = load_config(registry.get('config', name))
        if minutes is not None:
            config.stop.minutes = minutes
        _run(config)


@app.command()
def plugins() -> None:
    """List what a config may name, by kind."""
    from opentinker import registry

    for kind in registry.kinds():
        typer.echo(f'{kind}: {", ".join(registry.names(kind))}')


@worker.command()
def learner(run: RunOption) -> None:
    """Learn from segments, decide on rewards, announce policies."""
    from opentinker.training.learner_process import run_learner

    with _plain_errors():
        run_learner(run)


@worker.command()
def sampler(
    run: RunOption,
    index: Annotated[int, typer.Option(help='Number of the sampler, from 0.', min=0)] = 0,
) -> None:
    """Step simulated environments with the newest policy and send segments."""
    from opentinker.training.sampler_process import run_sampler

    with _plain_errors():
        run_sampler(run, index)


def _run(config: JobConfig) -> None:
    from rich.console import Console

    from opentinker.experiments.job import run_job
    from opentinker.experiments.summary import write_summary
    from opentinker.lifecycle import Lifecycle
    from opentinker.monitor.job_view import JobView
    from opentinker.monitor.panel import JobPanel
    from opentinker.training.machine import use_processors
    from opentinker.training.memory import PeakMemory
    from opentinker.training.preflight import check_job
    from opentinker.training.resources import beside_plan, plan
    from opentinker.training.run_directory import RunDirectory

    config.import_plugins()
    check_job(config)
    use_processors(config.resources.cpus)
    console, memory = Console(), PeakMemory()
    if planned := plan(config, apart=True):
        config = planned.config
        console.print(f'Memory: {planned}', soft_wrap=True, highlight=False)

    def watch(states: Mapping[str, str]) -> None:
        memory.look()
        panel.update(states)

    with Lifecycle() as life:
        run = RunDirectory.create(config)
        console.print(f'Job {config.job} runs in {run.path}', soft_wrap=True, highlight=False)
        view = JobView(run)
        panel = life.keep(JobPanel(view, console))
        ending = run_job(config, run, life, watch)
    if ending.exit_code:
        typer.echo(ending.reason, err=True)
    told = beside_plan(memory.bytes, planned)
    typer.echo(write_summary(run, ending.reason.splitlines()[0], view.seconds, told))
    raise typer.Exit(ending.exit_code)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Say in one line what a user can put right; a traceback is for what is our fault."""
    from opentinker.bus.messages import BusError
    from opentinker.config import ConfigError
    from opentinker.envs.rewards import RewardError
    from opentinker.envs.share import WorkerError
    from opentinker.policies.policy import PolicyMismatchError
    from opentinker.registry import UnknownNameError
    from opentinker.training.learner import CheckpointError
    from opentinker.training.segment_check import UnfitSegmentError
    from opentinker.training.supervisor import SupervisorError

    try:
        yield
    except (
        BusError,
        CheckpointError,
        ConfigError,
        PolicyMismatchError,
        RewardError,
        SupervisorError,
        TimeoutError,
        UnfitSegmentError,
        UnknownNameError,
        WorkerError,
    ) as error:
        _fail(str(error))


def _fail(message: str) -> None:
    typer.echo(f'opentinker: {message}', err=True)
    sys.exit(2)
