"""How many environment steps and seconds it takes to learn, beside other libraries.

Every side learns every task from the same five seeds, in a process of its own with one thread, and
is evaluated by the best known actions after every so many transitions; evaluations and imports do
not count. A task is learnt when the mean of an evaluation reaches its threshold. HalfCheetah has
none: there the best other library's mean return at the end is what ours has to reach.

Finished runs are kept in runs/learning/ by machine, versions and settings, so that an interrupted
benchmark goes on, and the runs of others are not repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import console, machine  # type: ignore[import-not-found]
from rich.progress import track
from rich.table import Table

HERE = Path(__file__).parent
ROOT = HERE.parent
KEPT = ROOT / 'runs' / 'learning'
SEEDS = (0, 1, 2, 3, 4)
RESAMPLES = 10_000

sys.path.insert(0, str(HERE / 'peers'))
from race import TASKS  # noqa: E402  (beside the scripts of the others)


@dataclass(frozen=True)
class Outcome:
    """Of one run."""

    steps: int
    seconds: float
    last: float
    """Mean of the last evaluation."""
    reached: bool


def outcome(curve: list[list[float]], threshold: float) -> Outcome:
    """Where a curve of evaluations first reaches a threshold; its end where it does not."""
    for steps, seconds, mean in curve:
        if mean >= threshold:
            return Outcome(int(steps), seconds, curve[-1][2], True)
    steps, seconds, mean = curve[-1]
    return Outcome(int(steps), seconds, mean, False)


def run(side: str, task: str, seed: int) -> list[list[float]]:
    """The evaluations of one run: ``[transitions, seconds, mean]`` each; from the kept ones."""
    kept = KEPT / f'{task}-{side}-{seed}-{_fingerprint(side, task)}.json'
    if not kept.exists():
        script = str(HERE / 'peers' / 'learn.py')
        command = [sys.executable, script, side, task, str(seed)]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        curve = json.loads(result.stdout.splitlines()[-1])
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(curve))
    return json.loads(kept.read_text())


def _fingerprint(side: str, task: str) -> str:
    """Of all that a run depends on."""
    libraries = ['torch', 'gymnasium', 'mujoco', 'numpy']
    files = [HERE / 'peers' / name for name in ('learn.py', 'race.py')]
    if side == 'ours':
        files += [*(HERE / 'peers').glob('ours.py'), *(ROOT / 'opentinker').rglob('*.py')]
        files += [config_of(task)]
    else:
        libraries.append(side)
        files += [HERE / 'peers' / f'with_{side}.py']
    if task == 'reach':
        files += [*(ROOT / 'opentinker_ros').rglob('*.py'), HERE / 'peers' / 'arms_vec_env.py']
    digest = hashlib.sha256(machine().encode())
    for library in libraries:
        digest.update(f'{library} {importlib.metadata.version(library)}'.encode())
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def config_of(task: str) -> Path:
    """The job file of ours."""
    return ROOT / 'config' / f'{task.removesuffix("_ppo")}.yaml'


def bound(ours: list[float], theirs: list[float]) -> float:
    """The upper end of the one-sided 95 % interval of the ratio of means (bootstrap)."""
    rng = np.random.default_rng(0)
    means = [
        rng.choice(values, (RESAMPLES, len(values))).mean(1)
        for values in (np.asarray(ours), np.asarray(theirs))
    ]
    return float(np.quantile(means[0] / means[1], 0.95))


def add_rows(table: Table, task: str, outcomes: dict[str, list[Outcome]]) -> None:
    """One row a side; ratios to the best of the others in the row of ours."""
    peers = [side for side in outcomes if side != 'ours']
    for side, runs in outcomes.items():
        ratios = ['', '', '']
        if side == 'ours' and peers:
            ratios = _ratios(runs, [outcomes[peer] for peer in peers])
        table.add_row(
            task, side, f'{sum(run.reached for run in runs)} of {len(runs)}',
            _spread([run.steps for run in runs], ',.0f'),
            _spread([run.seconds for run in runs], '.1f'),
            _spread([run.last for run in runs], '.4g'), *ratios,
        )  # fmt: skip
    table.add_section()


def _spread(values: list[float], form: str) -> str:
    low, middle, high = np.quantile(values, (0, 0.5, 1))
    return f'{middle:{form}} [{low:{form}}..{high:{form}}]'


def _ratios(ours: list[Outcome], peers: list[list[Outcome]]) -> list[str]:
    steps = min(([float(run.steps) for run in runs] for runs in peers), key=np.mean)
    seconds = min(np.mean([run.seconds for run in runs]) for runs in peers)
    own = [float(run.steps) for run in ours]
    return [
        f'{np.mean(own) / np.mean(steps):.2f}',
        f'{bound(own, steps):.2f}',
        f'{np.mean([run.seconds for run in ours]) / seconds:.2f}',
    ]


def learn(task: str, sides: list[str], seeds: list[int]) -> dict[str, list[Outcome]]:
    """What all runs of a task came to."""
    chosen = [side for side in sides if side == 'ours' or side in TASKS[task].peers]
    jobs = [(side, seed) for seed in seeds for side in chosen]
    curves: dict[str, list[list[list[float]]]] = {side: [] for side in chosen}
    for side, seed in track(jobs, task, transient=True):
        curves[side].append(run(side, task, seed))
    threshold = TASKS[task].threshold
    if threshold is None:
        ends = [np.mean([curve[-1][2] for curve in curves[s]]) for s in chosen if s != 'ours']
        threshold = float(max(ends, default=np.inf))
    return {side: [outcome(curve, threshold) for curve in own] for side, own in curves.items()}


def main() -> None:
    """Learn and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sides = ['ours', 'stable_baselines3', 'tianshou']
    parser.add_argument('--tasks', nargs='+', choices=TASKS, default=list(TASKS))
    parser.add_argument('--sides', nargs='+', choices=sides, default=sides)
    parser.add_argument('--seeds', nargs='+', type=int, default=list(SEEDS))
    options = parser.parse_args()
    table = Table(title=rf'median \[least..most], one thread · {machine()}')
    columns = ('task', 'side', 'learnt', 'steps', 'seconds', 'last evaluation')
    for column in (*columns, 'ratio of steps', '95 % bound', 'ratio of seconds'):
        table.add_column(column)
    for task in options.tasks:
        add_rows(table, task, learn(task, options.sides, options.seeds))
    console().print(table)


if __name__ == '__main__':
    main()
