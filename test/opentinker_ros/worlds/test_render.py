import numpy as np
import pytest

from opentinker_ros.arms.cell import ArmsSettings, make_cell
from opentinker_ros.worlds.mujoco import MujocoWorld
from opentinker_ros.worlds.render import Renderer, RenderError


def test_arms_and_targets_can_be_seen():
    cell = make_cell(ArmsSettings(arms=2))
    world = MujocoWorld(cell.scene, num_envs=1)
    start = cell.home()
    start.objects[..., :3] = [0, 0, 5]
    world.reset(np.array([0]), start)
    try:
        renderer = Renderer(cell.scene, 160, 120)
    except RenderError as error:
        pytest.skip(str(error))
    without = renderer.picture(world.data()).astype(int)
    start.objects[..., :3] = [0, 0, 0.3]
    world.reset(np.array([0]), start)
    difference = np.abs(renderer.picture(world.data()) - without)
    renderer.close()
    assert without.shape == (120, 160, 3)
    assert without.std() > 10
    assert 20 < (difference.max(axis=2) > 30).sum() < 2000
