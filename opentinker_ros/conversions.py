"""Arrays in messages: the wire form of observations, commands, objects and stamps."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion
from std_msgs.msg import MultiArrayDimension

from opentinker.envs.descriptor import EnvDescriptor, GroupInfo
from opentinker.envs.vector import Observations
from opentinker_ros.msg import RewardSettings

NANOSECONDS = 10**9
_STEP_LABEL = 'step '


def to_stamp(nanoseconds: int) -> Time:
    """A stamp from whole nanoseconds."""
    return Time(sec=nanoseconds // NANOSECONDS, nanosec=nanoseconds % NANOSECONDS)


def from_stamp(stamp: Time) -> int:
    """Whole nanoseconds of a stamp."""
    return stamp.sec * NANOSECONDS + stamp.nanosec


def to_bytes(data: bytes) -> array:
    """Bytes as rclpy takes them for a ``uint8[]`` field without converting each one."""
    return array('B', data)


def to_doubles(values: np.ndarray) -> array:
    """Numbers as rclpy takes them for a ``float64[]`` field."""
    return array('d', np.ascontiguousarray(values, np.float64).tobytes())


def to_floats(values: np.ndarray) -> array:
    """Numbers as rclpy takes them for a ``float32[]`` field."""
    return array('f', np.ascontiguousarray(values, np.float32).tobytes())


def step_dimension(step: int, size: int) -> MultiArrayDimension:
    """The dimension of a command array; its label carries the control step."""
    return MultiArrayDimension(label=f'{_STEP_LABEL}{step}', size=size, stride=size)


def labelled_step(dimensions: Sequence[MultiArrayDimension]) -> int | None:
    """The control step in a command's label; None in a command that was sent by hand."""
    if not dimensions or not dimensions[0].label.startswith(_STEP_LABEL):
        return None
    number = dimensions[0].label.removeprefix(_STEP_LABEL)
    return int(number) if number.isdecimal() else None


def to_pose(row: np.ndarray) -> Pose:
    """A pose from x y z qw qx qy qz."""
    x, y, z, qw, qx, qy, qz = row.tolist()
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=qw, x=qx, y=qy, z=qz))


def from_pose(pose: Pose) -> list[float]:
    """x y z qw qx qy qz of a pose."""
    p, q = pose.position, pose.orientation
    return [p.x, p.y, p.z, q.w, q.x, q.y, q.z]


class _Field(NamedTuple):
    group: str
    key: str
    dtype: np.dtype
    shape: tuple[int, ...]
    number: int
    offset: int


class ObservationCodec:
    """Observations of one environment as bytes, laid out by its descriptor, and back."""

    def __init__(self, descriptor: EnvDescriptor) -> None:
        self._fields: list[_Field] = []
        self.size = 0
        for group, info in descriptor.groups.items():
            for key, value in info.observation.items():
                dtype = np.dtype(value.dtype).newbyteorder('<')
                shape = (1, len(info.agents), *value.shape)
                field = _Field(group, key, dtype, shape, math.prod(shape), self.size)
                self._fields.append(field)
                self.size += field.number * dtype.itemsize

    def encode(self, observation: Observations) -> bytes:
        """Bytes of the first environment."""
        return b''.join(
            np.ascontiguousarray(observation[field.group][field.key][0], field.dtype).tobytes()
            for field in self._fields
        )

    def decode(self, data: bytes | array) -> Observations:
        """Read-only views ``[1, agent, ...]`` of the data. Raises ValueError for a wrong size."""
        if len(data) != self.size:
            raise ValueError(f'observation has {len(data)} bytes, the descriptor says {self.size}')
        observation: Observations = {}
        for group, key, dtype, shape, number, offset in self._fields:
            values = np.frombuffer(data, dtype, number, offset).reshape(shape)
            observation.setdefault(group, {})[key] = values
        return observation


def agent_rows(info: GroupInfo, agents: Sequence[str]) -> list[int]:
    """Rows of the named agents in their group. Raises ValueError naming the strangers."""
    strangers = [name for name in agents if name not in info.agents]
    if strangers:
        raise ValueError(f'unknown agents {strangers}; the environment has {list(info.agents)}')
    return [info.agents.index(name) for name in agents]


def to_reward_settings(settings: Mapping[str, Any], revision: int = 0) -> RewardSettings:
    """Flat reward settings as a message; ``terms`` is the list of names where it is among them."""
    numbers = {key: float(value) for key, value in settings.items() if key != 'terms'}
    return RewardSettings(
        revision=revision,
        terms=list(settings.get('terms', [])),
        keys=list(numbers),
        values=array('d', numbers.values()),
    )


def from_reward_settings(message: RewardSettings) -> dict[str, Any]:
    """Flat reward settings of a message, as :meth:`RewardSpec.changed` takes them."""
    settings: dict[str, Any] = {'terms': list(message.terms)} if message.terms else {}
    for key, value in zip(message.keys, message.values, strict=False):
        settings[key] = bool(value) if key.endswith('.enabled') else value
    return settings
