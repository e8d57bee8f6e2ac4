import numpy as np
import pytest

from opentinker_ros.arms.cell import ArmsSettings, make_cell
from opentinker_ros.arms.kinematics import Kinematics, NoFreeConfigurationError
from opentinker_ros.arms.robot_model import RobotModel
from opentinker_ros.arms.scene import build_scene


@pytest.fixture
def two_arms(write_urdf):
    """Two planar arms that face each other, bases at x = 0.4 and -0.4."""
    return Kinematics(build_scene(RobotModel.from_file(write_urdf()), 2, 0.8))


def test_tool_poses_agree_with_the_geometry_of_two_links(two_arms):
    lift, bend = 0.4, 0.7
    poses = two_arms.poses(np.array([[[0, 0], [lift, bend]]]))
    along = 0.3 * np.sin(lift) + 0.2 * np.sin(lift + bend)
    up = 0.5 + 0.3 * np.cos(lift) + 0.2 * np.cos(lift + bend)
    np.testing.assert_allclose(poses.tool_position[0, 0], [0.4, 0, 1.0], atol=1e-12)
    np.testing.assert_allclose(poses.tool_position[0, 1], [-0.4 + along, 0, up], atol=1e-12)
    tool_axis = poses.tool_rotation[0, 1, :, 2]
    np.testing.assert_allclose(tool_axis, [np.sin(lift + bend), 0, np.cos(lift + bend)], atol=1e-12)
    first_axis = poses.first_rotation[0, 1, :, 2]
    np.testing.assert_allclose(first_axis, [np.sin(lift), 0, np.cos(lift)], atol=1e-12)


def test_points_in_base_frames_look_alike_to_arms_in_the_same_pose(two_arms):
    poses = two_arms.poses(np.full((3, 2, 2), 0.5))
    own = two_arms.to_base(poses.tool_position)
    np.testing.assert_allclose(own[:, 0], own[:, 1], atol=1e-12)
    others = two_arms.to_base(poses.tool_position[:, [[1], [0]]])
    assert others.shape == (3, 2, 1, 3)
    np.testing.assert_allclose(others[:, 0], others[:, 1], atol=1e-12)
    np.testing.assert_allclose(others[0, 0, 0, 0], 0.8 - own[0, 0, 0], atol=1e-12)


def test_contact_marks_arms_whose_elbows_meet(write_urdf):
    kinematics = Kinematics(build_scene(RobotModel.from_file(write_urdf()), 2, 0.6))
    upright, level = [0.0, 0.0], [np.pi / 2, -1.5]
    contact = kinematics.poses(np.array([[level, level], [upright, level]])).contact
    assert contact.tolist() == [[True, True], [False, False]]


def test_a_tool_in_the_floor_is_a_contact(write_urdf):
    path = write_urdf()
    path.write_text(path.read_text().replace('0 0 0.5', '0 0 0.25'))
    kinematics = Kinematics(build_scene(RobotModel.from_file(path), 2, 3.0))
    down = np.array([[[0, 0], [1.99, 1.5]]])
    assert kinematics.poses(down).contact.tolist() == [[False, False]]
    path.write_text(path.read_text().replace('0 0 0.25', '0 0 0.1'))
    kinematics = Kinematics(build_scene(RobotModel.from_file(path), 2, 3.0))
    assert kinematics.poses(down).contact.tolist() == [[False, True]]


@pytest.mark.parametrize('arms', [1, 2, 3, 4, 20])
def test_the_arms_that_come_along_do_not_touch_at_home(arms):
    cell = make_cell(ArmsSettings(arms=arms))
    assert not cell.task.kinematics.poses(cell.home().joint_positions).contact.any()


def test_random_configurations_touch_nothing_and_stay_in_range(two_arms):
    rng = np.random.default_rng(0)
    low, high = np.array([-1.0, -2.0]), np.array([2.0, 2.0])
    drawn = np.stack([two_arms.random_configuration(rng, low, high) for _ in range(50)])
    assert not two_arms.poses(drawn).contact.any()
    assert (drawn >= low).all()
    assert (drawn <= high).all()


def test_arms_that_cannot_be_placed_are_named(write_urdf):
    kinematics = Kinematics(build_scene(RobotModel.from_file(write_urdf()), 2, 0.01))
    with pytest.raises(
        NoFreeConfigurationError, match=r'arms \[0, 1\] touch; put the arms further apart'
    ):
        kinematics.random_configuration(
            np.random.default_rng(0), np.zeros(2), np.zeros(2), attempts=5
        )
