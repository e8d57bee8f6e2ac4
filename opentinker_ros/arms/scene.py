"""A cell of arms as a MuJoCo model: equal arms on a ring, and markers that nothing touches.

Physics and kinematics both use it, so that what is observed is what is simulated.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from opentinker_ros.arms.robot_model import GRIPPER, RobotModel, RobotModelError

TIMESTEP = 0.002
"""Seconds of one physics step."""
#: Stiff drives: full effort at this error (rad or m); a step settles with this time constant (s).
DRIVE_ERROR = 0.1
DRIVE_TIME = 0.03
DEFAULT_EFFORT = 100.0
ROTOR_INERTIA = 0.1
SUCTION_FORCE = 60.0
"""N: a cup of 4 cm at half a vacuum."""
MARKER_RADIUS = 0.05


@dataclass(frozen=True)
class Scene:
    """A compiled cell, and where its parts are in the model."""

    model: mujoco.MjModel
    robot: RobotModel
    base_position: np.ndarray
    """``[arm, 3]`` in the world frame, m."""
    base_rotation: np.ndarray
    """``[arm, 3, 3]`` from base frame to world frame."""
    object_names: tuple[str, ...]
    qpos_index: np.ndarray
    """``[arm, joint]`` into ``qpos``."""
    qvel_index: np.ndarray
    """``[arm, joint]`` into ``qvel``."""
    mimic_index: np.ndarray
    """``[2, arm, mimic]`` into ``qpos``: followers, leaders."""
    first_body: np.ndarray
    """``[arm]`` body ids of the links that the first joints move."""
    tool_body: np.ndarray
    """``[arm]`` body ids of the tool links."""
    arm_of_geom: np.ndarray
    """``[geom]`` the arm that a geom belongs to, -1 for none."""

    @property
    def arms(self) -> int:
        return len(self.base_position)

    @property
    def joint_names(self) -> list[list[str]]:
        """Names of the command columns of each arm, its gripper last."""
        columns = [*(joint.name for joint in self.robot.joints), GRIPPER]
        return [[prefix(arm) + column for column in columns] for arm in range(self.arms)]

    def qpos(self, joint_positions: np.ndarray) -> np.ndarray:
        """Generalised positions ``[..., nq]`` of joint positions ``[..., arm, joint]``."""
        qpos = np.zeros((*joint_positions.shape[:-2], self.model.nq))
        qpos[..., self.qpos_index] = joint_positions
        if self.robot.mimics:
            followers, leaders = self.mimic_index
            multiplier, offset = np.array([(m.multiplier, m.offset) for m in self.robot.mimics]).T
            qpos[..., followers] = multiplier * qpos[..., leaders] + offset
        return qpos


def arm_name(arm: int) -> str:
    """The name of an arm as an agent."""
    return f'arm_{arm}'


def prefix(arm: int) -> str:
    """What comes before the names of an arm's joints and links."""
    return f'{arm_name(arm)}_'


def arm_colour(index: int, arms: int, alpha: float = 1.0) -> list[float]:
    """The colour (red, green, blue, alpha) by which an arm and what belongs to it are known."""
    return [*colorsys.hsv_to_rgb((0.58 + index / arms) % 1.0, 0.68, 0.92), alpha]


def build_scene(robot: RobotModel, arms: int, spacing: float, objects: Sequence[str] = ()) -> Scene:
    """Arms on a ring, ``spacing`` m from base to base, facing its centre, and a marker an object.

    Raises :class:`RobotModelError` where MuJoCo cannot use the description.
    """
    positions, yaws = _ring(arms, spacing)
    try:
        excluded = _links_that_may_touch(robot)
        spec = _empty_cell(np.abs(positions).max() + 1.5)
        for arm in range(arms):
            _add_arm(spec, robot, arm, arms, positions[arm], yaws[arm])
            for first, second in excluded:
                spec.add_exclude(bodyname1=prefix(arm) + first, bodyname2=prefix(arm) + second)
        for index, name in enumerate(objects):
            marker = spec.worldbody.add_body(name=name, mocap=True)
            marker.add_geom(
                size=[MARKER_RADIUS, 0, 0],
                contype=0,
                conaffinity=0,
                rgba=arm_colour(index, len(objects), 0.45),
            )
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise RobotModelError(f'robot {robot.name!r} cannot be simulated: {error}') from None
    return _locate(model, robot, positions, yaws, tuple(objects))


def _ring(arms: int, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Base positions ``[arm, 3]`` and yaws ``[arm]``, rad."""
    angles = 2 * math.pi * np.arange(arms) / arms
    radius = spacing / (2 * math.sin(math.pi / arms)) if arms > 1 else 0.0
    positions = radius * np.stack([np.cos(angles), np.sin(angles), np.zeros(arms)], axis=1)
    return positions, angles + math.pi


def _empty_cell(floor: float) -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    # a world that diverges must be seen, not put back to its first state in silence
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    _add_look(spec, floor)
    return spec


def _add_look(spec: mujoco.MjSpec, floor: float) -> None:
    """Floor (``floor`` m to each side where drawn, endless for contacts), sky and light."""
    pale = [0.97, 0.97, 0.98]
    spec.add_texture(
        name='sky',
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        width=64,
        height=384,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        rgb1=pale,
    )
    spec.add_texture(
        name='tiles',
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        width=512,
        height=512,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        mark=mujoco.mjtMark.mjMARK_EDGE,
        rgb1=[0.86, 0.87, 0.89],
        markrgb=[0.68, 0.7, 0.73],
    )
    tiles = spec.add_material(name='tiles', texrepeat=[4, 4], texuniform=True)
    tiles.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = 'tiles'
    spec.worldbody.add_geom(
        name='floor', type=mujoco.mjtGeom.mjGEOM_PLANE, size=[floor, floor, 1], material='tiles'
    )
    spec.worldbody.add_light(
        pos=[0, 0, 5],
        dir=[0, 0, -1],
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        castshadow=True,
        diffuse=[0.45, 0.45, 0.45],
        specular=[0.2, 0.2, 0.2],
    )
    spec.visual.headlight.ambient = [0.45, 0.45, 0.45]
    spec.visual.headlight.diffuse = [0.25, 0.25, 0.25]
    spec.visual.headlight.specular = [0, 0, 0]


def _arm_spec(robot: RobotModel) -> mujoco.MjSpec:
    """One arm, made fit for fast and stable physics."""
    spec = mujoco.MjSpec.from_string(robot.urdf)
    for geom in spec.geoms:
        radius, half = geom.size[0], geom.size[1]
        if geom.type == mujoco.mjtGeom.mjGEOM_CYLINDER and half > radius:
            # inside the cylinder; contacts of capsules have a closed form
            geom.type, geom.size = mujoco.mjtGeom.mjGEOM_CAPSULE, [radius, half - radius, 0]
    for body in spec.bodies[1:]:
        body.gravcomp = 1
    for joint in spec.joints:
        joint.armature = ROTOR_INERTIA
    return spec


def _add_arm(
    spec: mujoco.MjSpec, robot: RobotModel, arm: int, arms: int, position: np.ndarray, yaw: float
) -> None:
    child = _arm_spec(robot)
    for index, body in enumerate(child.bodies):
        for geom in body.geoms:
            geom.rgba = [0.3, 0.32, 0.36, 1] if index % 2 else arm_colour(arm, arms)
    suction_body = _tool_shape(child, robot)
    frame = spec.worldbody.add_frame(
        pos=position, quat=[math.cos(yaw / 2), 0, 0, math.sin(yaw / 2)]
    )
    frame.attach_body(child.body(robot.root_link), prefix(arm), '')
    for joint in robot.joints:
        effort = joint.effort if math.isfinite(joint.effort) else DEFAULT_EFFORT
        name = prefix(arm) + joint.name
        drive = spec.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, forcerange=[-effort, effort]
        )
        drive.set_to_position(kp=effort / DRIVE_ERROR, kv=effort / DRIVE_ERROR * DRIVE_TIME)
    suction = spec.add_actuator(
        name=prefix(arm) + GRIPPER,
        target=prefix(arm) + suction_body,
        trntype=mujoco.mjtTrn.mjTRN_BODY,
        ctrlrange=[0, 1],
    )
    suction.set_to_adhesion(SUCTION_FORCE)
    for mimic in robot.mimics:
        follow = spec.add_equality(
            type=mujoco.mjtEq.mjEQ_JOINT,
            name1=prefix(arm) + mimic.name,
            name2=prefix(arm) + mimic.leader,
        )
        follow.data[:5] = [mimic.offset, mimic.multiplier, 0, 0, 0]  # a polynomial of the leader


def _tool_shape(spec: mujoco.MjSpec, robot: RobotModel) -> str:
    """The link that touches for the tool: itself, or the nearest one before it with a shape."""
    body = spec.body(robot.tool_link)
    while not body.geoms and body.name != robot.root_link:
        body = body.parent
    return body.name


def _links_that_may_touch(robot: RobotModel) -> set[tuple[str, str]]:
    """Pairs of links whose contact means nothing: neighbours, and what touches at home."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_frame().attach_body(_arm_spec(robot).body(robot.root_link), prefix(0), '')
    compiled = spec.compile()
    names = [compiled.body(index).name.removeprefix(prefix(0)) for index in range(compiled.nbody)]
    welded = compiled.body_weldid
    fixed = [index for index in range(1, compiled.nbody) if welded[index] == 0]
    first = [
        index
        for index in range(1, compiled.nbody)
        if welded[index] and welded[compiled.body_parentid[index]] == 0
    ]
    pairs = {(names[base], names[link]) for base in fixed for link in first}
    data = mujoco.MjData(compiled)
    for joint, position in zip(robot.joints, robot.home, strict=True):
        data.joint(prefix(0) + joint.name).qpos = position
    mujoco.mj_forward(compiled, data)
    touching = compiled.geom_bodyid[data.contact.geom]
    return pairs | {(names[one], names[other]) for one, other in touching}


def _locate(
    model: mujoco.MjModel,
    robot: RobotModel,
    positions: np.ndarray,
    yaws: np.ndarray,
    objects: tuple[str, ...],
) -> Scene:
    arms = range(len(positions))
    rotation = np.zeros((len(yaws), 3, 3))
    rotation[:, 0, 0] = rotation[:, 1, 1] = np.cos(yaws)
    rotation[:, 1, 0], rotation[:, 0, 1], rotation[:, 2, 2] = np.sin(yaws), -np.sin(yaws), 1

    def addresses(names: Sequence[str], address: np.ndarray) -> np.ndarray:
        rows = [[address[model.joint(prefix(arm) + name).id] for name in names] for arm in arms]
        return np.array(rows, int).reshape(len(rows), len(names))

    def bodies(link: str) -> np.ndarray:
        return np.array([model.body(prefix(arm) + link).id for arm in arms])

    names = [joint.name for joint in robot.joints]
    followers, leaders = [m.name for m in robot.mimics], [m.leader for m in robot.mimics]
    arm_of_body = np.full(model.nbody, -1)
    for body in range(model.nbody):
        for arm in arms:
            if model.body(body).name.startswith(prefix(arm)):
                arm_of_body[body] = arm
    return Scene(
        model,
        robot,
        positions,
        rotation,
        objects,
        qpos_index=addresses(names, model.jnt_qposadr),
        qvel_index=addresses(names, model.jnt_dofadr),
        mimic_index=np.stack(
            [addresses(group, model.jnt_qposadr) for group in (followers, leaders)]
        ),
        first_body=bodies(robot.joints[0].child),
        tool_body=bodies(robot.tool_link),
        arm_of_geom=arm_of_body[model.geom_bodyid],
    )
