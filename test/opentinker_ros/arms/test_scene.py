import struct

import mujoco
import numpy as np
import pytest

from opentinker_ros.arms.kinematics import Kinematics
from opentinker_ros.arms.robot_model import RobotModel, RobotModelError
from opentinker_ros.arms.scene import build_scene
from opentinker_ros.share import share_file


@pytest.fixture(scope='module')
def robot():
    return RobotModel.from_file(share_file('config/arm.urdf'))


@pytest.mark.parametrize('arms', [2, 3, 20])
def test_neighbours_stand_one_spacing_apart_and_face_the_centre(robot, arms):
    scene = build_scene(robot, arms, 1.1)
    bases = scene.base_position
    apart = np.linalg.norm(bases - np.roll(bases, 1, axis=0), axis=1)
    np.testing.assert_allclose(apart, 1.1)
    radius = np.linalg.norm(bases, axis=1)
    ahead = bases + scene.base_rotation[:, :, 0] * radius[:, None]
    np.testing.assert_allclose(ahead, 0, atol=1e-12)


def test_names_are_prefixed_and_end_with_the_gripper(robot):
    scene = build_scene(robot, 2, 1.0, ['target_0'])
    assert scene.joint_names[1][0] == 'arm_1_shoulder_pan'
    assert [names[-1] for names in scene.joint_names] == ['arm_0_suction', 'arm_1_suction']
    actuators = [scene.model.actuator(index).name for index in range(scene.model.nu)]
    assert actuators == [name for names in scene.joint_names for name in names]


def test_joint_positions_go_to_the_joints_of_their_names(robot):
    scene = build_scene(robot, 11, 1.0)
    positions = np.arange(66.0).reshape(11, 6)
    data = mujoco.MjData(scene.model)
    data.qpos = scene.qpos(positions)
    assert data.joint('arm_1_elbow').qpos == positions[1, 2]
    assert data.joint('arm_10_elbow').qpos == positions[10, 2]


def test_geometry_is_known_by_its_arm(robot):
    scene = build_scene(robot, 11, 1.0)
    geoms = scene.model.body('arm_10_forearm').geomadr
    assert scene.arm_of_geom[geoms].tolist() == [10]
    assert scene.arm_of_geom[scene.model.geom('floor').id] == -1


def test_markers_do_not_collide(robot):
    scene = build_scene(robot, 1, 1.0, ['target_0'])
    data = mujoco.MjData(scene.model)
    data.mocap_pos[0] = [0, 0, 0.1]  # inside the base
    mujoco.mj_forward(scene.model, data)
    assert data.ncon == 0


def test_a_mimic_joint_follows_its_leader(write_urdf):
    path = write_urdf()
    path.write_text(
        path.read_text().replace(
            '<origin xyz="0 0 0.3"/>',
            '<origin xyz="0 0 0.3"/><mimic joint="lift" multiplier="-2" offset="0.1"/>',
        )
    )
    scene = build_scene(RobotModel.from_file(path), 1, 1.0)
    data = mujoco.MjData(scene.model)
    data.qpos = scene.qpos(np.array([[0.2]]))
    assert data.joint('arm_0_bend').qpos == pytest.approx(-0.3)
    data.ctrl[0] = 0.5
    mujoco.mj_step(scene.model, data, 1000)
    assert data.joint('arm_0_bend').qpos == pytest.approx(-0.9, abs=0.02)


def test_a_robot_with_meshes_is_simulated(write_urdf, tmp_path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * 0.05
    faces = corners[[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]].astype('<f4')
    triangles = b''.join(b'\0' * 12 + face.tobytes() + b'\0\0' for face in faces)
    (tmp_path / 'part.stl').write_bytes(b'\0' * 80 + struct.pack('<I', 4) + triangles)
    path = write_urdf()
    path.write_text(
        path.read_text().replace('<sphere radius="0.02"/>', '<mesh filename="part.stl"/>')
    )
    scene = build_scene(RobotModel.from_file(path), 2, 1.0)
    assert scene.model.geom('floor').id >= 0
    assert (scene.model.geom_type == mujoco.mjtGeom.mjGEOM_MESH).sum() == 6
    assert not Kinematics(scene).poses(np.zeros((1, 2, 2))).contact.any()


def test_a_missing_mesh_is_named(write_urdf):
    path = write_urdf()
    path.write_text(
        path.read_text().replace('<sphere radius="0.02"/>', '<mesh filename="gone.stl"/>', 1)
    )
    with pytest.raises(RobotModelError, match=r"'small' cannot be simulated: .*gone\.stl"):
        build_scene(RobotModel.from_file(path), 1, 1.0)
