"""A cell of arms from settings: which robot, how many, where they stand and what they are to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from opentinker import registry
from opentinker_ros.arms.kinematics import Kinematics
from opentinker_ros.arms.robot_model import RobotModel
from opentinker_ros.arms.scene import TIMESTEP, Scene, build_scene
from opentinker_ros.arms.tasks import reach  # noqa: F401  (registers the task)
from opentinker_ros.arms.tasks.task import KIND, Task
from opentinker_ros.share import share_file
from opentinker_ros.worlds.world import Start


class ArmsSettings(BaseModel):
    """Settings of the environment ``arms``."""

    model_config = ConfigDict(extra='forbid', frozen=True)
    task: str = Field(default='reach', description='name of the task')
    arms: int = Field(default=4, ge=1, le=100, description='number of arms')
    urdf: str = Field(
        default='', description='robot description; empty for the arm that comes along'
    )
    tool_link: str = Field(
        default='', description='link that reaches; empty for tool, else the last of the chain'
    )
    spacing: float = Field(
        default=1.1, gt=0, le=100, description='distance between the bases of neighbours, m'
    )
    control_period: float = Field(
        default=0.04, ge=TIMESTEP, le=1, description='seconds between two actions'
    )
    step_limit: int = Field(default=100, ge=1, description='steps of an episode')
    threads: int = Field(default=1, ge=1, le=256, description='threads that simulate in process')

    @field_validator('control_period')
    @classmethod
    def _whole_steps(cls, period: float) -> float:
        if abs(period / TIMESTEP - round(period / TIMESTEP)) > 1e-6:
            raise ValueError(f'must be a multiple of the physics step of {TIMESTEP} s')
        return period


@dataclass(frozen=True)
class Cell:
    """What every world and every node must agree on."""

    scene: Scene
    task: Task

    @property
    def joint_names(self) -> list[list[str]]:
        """Names of the command columns of each arm, its gripper last."""
        return self.scene.joint_names

    @property
    def object_names(self) -> tuple[str, ...]:
        """Names of the objects in the order of their states."""
        return self.scene.object_names

    def home(self) -> Start:
        """All arms at home and all objects at the origin."""
        robot, poses = self.scene.robot, np.zeros((1, len(self.object_names), 7))
        poses[..., 3] = 1
        return Start(np.tile(robot.home, (1, self.scene.arms, 1)), poses)


def make_cell(settings: ArmsSettings) -> Cell:
    """Build the cell.

    Raises :class:`RobotModelError` for a robot description that cannot be used,
    :class:`NoFreeConfigurationError` for arms that cannot start without touching, and
    :class:`opentinker.registry.UnknownNameError` for an unknown task.
    """
    task: type[Task] = registry.get(KIND, settings.task)
    robot = RobotModel.from_file(settings.urdf or share_file('config/arm.urdf'), settings.tool_link)
    scene = build_scene(robot, settings.arms, settings.spacing, task.object_names(settings.arms))
    cell = Cell(scene, task(Kinematics(scene)))
    cell.task.start(np.random.default_rng(0))  # fails here rather than in the first episode
    return cell
