"""Render the pictures of the documentation into ``docs/images``."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from opentinker_ros.arms.cell import ArmsSettings, make_cell
from opentinker_ros.arms.tasks.reach import Reach
from opentinker_ros.worlds.mujoco import MujocoWorld
from opentinker_ros.worlds.render import Renderer
from opentinker_ros.worlds.world import Start

SAMPLES = 2
"""Drawn larger by this factor and then reduced, for smooth edges."""


def reach_picture(arms: int, width: int, height: int, seed: int) -> np.ndarray:
    """Arms on their way: half-way from home to a joint solution of their targets."""
    cell = make_cell(ArmsSettings(arms=arms))
    assert isinstance(cell.task, Reach)
    positions, goal, objects = cell.task.draw(np.random.default_rng(seed))
    world = MujocoWorld(cell.scene, num_envs=1)
    world.reset(np.array([0]), Start((0.35 * positions + 0.65 * goal)[None], objects[None]))
    cell.scene.model.vis.quality.shadowsize = 8192
    renderer = Renderer(
        cell.scene, SAMPLES * width, SAMPLES * height, azimuth=25, elevation=-33, distance=2.25
    )
    image = Image.fromarray(renderer.picture(world.data[0]))
    renderer.close()
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))


def main() -> None:
    """Render all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--folder', type=Path, default=Path(__file__).parent / 'images')
    parser.add_argument('--seed', type=int, default=3, help='of the targets')
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / 'reach4.png'
    Image.fromarray(reach_picture(4, 1200, 675, options.seed)).save(path, optimize=True)
    print(path)


if __name__ == '__main__':
    main()
