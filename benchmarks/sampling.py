"""How fast environments are sampled: the arms beside MuJoCo, gymnasium's beside other libraries.

The first table has world steps of the arms environment a second of processor time. MuJoCo alone
gets the starts and the gated commands of the environment's run and does nothing but ``mj_step``:
the ratio is what commands, observations, rewards, collision checks and resets leave of its speed.

The second table has steps/s with a 64x64 policy and storage of every step, beside the collectors of
stable-baselines3 and Tianshou, each in a process of its own on the same processors; the best of
three rounds counts. With ``workers`` every side may use both processors. The extra ``test``
has these libraries.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import mujoco
import numpy as np
from machine import console, machine  # type: ignore[import-not-found]
from rich.table import Table

from opentinker_ros.arms.arms_env import GROUP, ArmsEnv, ArmsSettings, make_cell
from opentinker_ros.arms.scene import Scene
from opentinker_ros.worlds.mujoco import MujocoWorld
from opentinker_ros.worlds.world import Start


class RecordingWorld(MujocoWorld):
    """Keeps what it is told: ``(envs, Start)`` or commands ``[env, arm, joint + 1]``, in order."""

    def __init__(self, scene: Scene, num_envs: int) -> None:
        super().__init__(scene, num_envs)
        self.told: list[tuple[np.ndarray, Start] | np.ndarray] = []

    def reset(self, envs: np.ndarray, start: Start) -> None:
        """Reset, and note it."""
        super().reset(envs, start)
        self.told.append((envs, start))

    def command(self, targets: np.ndarray) -> None:
        """Command, and note it."""
        super().command(targets)
        self.told.append(targets)


def run_env(env: ArmsEnv, steps: int) -> float:
    """World steps/s (processor time) of the environment under random actions."""
    info = env.descriptor.groups[GROUP]
    shape = (steps, env.num_envs, len(info.agents), *info.action.shape)
    actions = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    started = time.process_time()
    env.reset(seed=0)
    for action in actions:
        env.step({GROUP: action})
    return steps * env.num_envs / (time.process_time() - started)


def run_mujoco(world: RecordingWorld, scene: Scene, period: float, steps: int) -> float:
    """World steps/s (processor time) of ``mj_step`` alone through what the world was told."""
    model = scene.model
    cells = [mujoco.MjData(model) for _ in range(world.num_envs)]
    substeps = round(period / model.opt.timestep)
    started = time.process_time()
    for told in world.told:
        if isinstance(told, tuple):
            for env, positions in zip(told[0], told[1].joint_positions, strict=True):
                mujoco.mj_resetData(model, cells[env])
                cells[env].qpos[scene.qpos_index] = positions
            continue
        for cell, targets in zip(cells, told, strict=True):
            cell.ctrl = targets.ravel()
            mujoco.mj_step(model, cell, substeps)
    return steps * world.num_envs / (time.process_time() - started)


def measure(arms: int, envs: int, steps: int, rounds: int) -> tuple[float, float]:
    """The best round of each side, in turn: environment and MuJoCo alone, world steps/s."""
    settings = ArmsSettings(arms=arms)
    cell = make_cell(settings)
    ours, raw = [], []
    for _ in range(rounds):
        world = RecordingWorld(cell.scene, envs)
        ours.append(run_env(ArmsEnv(world, cell, settings), steps))
        raw.append(run_mujoco(world, cell.scene, settings.control_period, steps))
    return max(ours), max(raw)


def arms_table(options: argparse.Namespace) -> Table:
    """The arms environment beside ``mj_step``."""
    title = f'world steps/s (processor time), {options.envs} environments, one thread · {machine()}'
    table = Table(title=title)
    for column in ('arms', 'mj_step alone', 'ArmsEnv', 'ratio', 'agent steps/s'):
        table.add_column(column, justify='right')
    for arms in options.arms:
        ours, raw = measure(arms, options.envs, options.steps, options.rounds)
        table.add_row(
            str(arms), f'{raw:.0f}', f'{ours:.0f}', f'{ours / raw:.2f}', f'{ours * arms:.0f}'
        )
    return table


def collected(side: str, env: str, envs: int, workers: int) -> float:
    """Steps/s of one side. Raises CalledProcessError where it fails."""
    script = Path(__file__).parent / 'peers' / 'collect.py'
    command = [sys.executable, str(script), side, env, str(envs), '--workers', str(workers)]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(result.stdout.split()[-1])


def collectors_table() -> Table:
    """Our collector beside those of other libraries."""
    peers = ('stable_baselines3', 'tianshou')
    table = Table(title=f'steps/s with policy and storage · {machine()}')
    for column in ('environment', 'envs', 'workers', 'ours', *peers, 'ratio to the best'):
        table.add_column(column, justify='right')
    for env in ('CartPole-v1', 'HalfCheetah-v5'):
        for envs, workers in ((1, 0), (2, 0), (8, 0), (8, 1)):
            sides = ('ours', *peers)
            ours, *others = (collected(side, env, envs, workers) for side in sides)
            rates = [f'{rate:.0f}' for rate in (ours, *others)]
            table.add_row(env, str(envs), str(workers), *rates, f'{ours / max(others):.2f}')
    return table


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--arms', type=int, nargs='+', default=[2, 8, 20], help='rows of the table')
    parser.add_argument('--envs', type=int, default=32, help='environments stepped together')
    parser.add_argument('--steps', type=int, default=200, help='steps of each a round')
    parser.add_argument('--rounds', type=int, default=3, help='rounds, of which the best counts')
    options = parser.parse_args()
    console().print(arms_table(options))
    console().print(collectors_table())


if __name__ == '__main__':
    main()
