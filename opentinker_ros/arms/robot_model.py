"""A robot arm as its URDF describes it: driven joints, their limits, and the tool link.

The format: http://wiki.ros.org/urdf/XML/joint
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

import numpy as np

from opentinker_ros.share import share_folder

DEFAULT_TOOL_LINK = 'tool'
GRIPPER = 'suction'
"""Name of the command column of the suction gripper, after the joints of an arm."""


class RobotModelError(ValueError):
    """A robot description that cannot be used: which file, joint or link, and what is wrong."""


@dataclass(frozen=True)
class Joint:
    """A joint that is driven. Positions in rad or m; a continuous joint has infinite bounds."""

    name: str
    kind: str
    parent: str
    child: str
    lower: float
    upper: float
    velocity: float
    effort: float


@dataclass(frozen=True)
class MimicJoint:
    """A joint that follows another: ``multiplier * leader + offset``."""

    name: str
    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class RobotModel:
    """What is needed of a URDF; ``urdf`` is its text without visuals, mesh paths absolute."""

    name: str
    joints: tuple[Joint, ...]
    mimics: tuple[MimicJoint, ...]
    root_link: str
    tool_link: str
    urdf: str

    @property
    def lower(self) -> np.ndarray:
        """``[joint]`` lowest positions, rad."""
        return np.array([joint.lower for joint in self.joints])

    @property
    def upper(self) -> np.ndarray:
        """``[joint]`` highest positions, rad."""
        return np.array([joint.upper for joint in self.joints])

    @property
    def velocity(self) -> np.ndarray:
        """``[joint]`` highest speeds, rad/s."""
        return np.array([joint.velocity for joint in self.joints])

    @property
    def home(self) -> np.ndarray:
        """``[joint]`` the middle of each range, 0 for a continuous joint."""
        return np.array(
            [(j.lower + j.upper) / 2 if math.isfinite(j.lower) else 0.0 for j in self.joints]
        )

    @classmethod
    def from_file(cls, path: str | Path, tool_link: str = '') -> RobotModel:
        """Read a URDF file.

        ``tool_link`` names the link that reaches; by default it is the link ``tool``, else the last
        link of the chain. Raises :class:`RobotModelError`.
        """
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise RobotModelError(
                f'cannot read the robot description {path}: {error.strerror}'
            ) from None
        return _Reader(path, data).read(tool_link)


class _Builder(ElementTree.TreeBuilder):
    """Refuses document type declarations, and with them entities of any kind."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> NoReturn:
        raise RobotModelError('a DOCTYPE is not allowed in a robot description')


class _Reader:
    """Reads one URDF; every error names the file."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = path
        try:
            self._root = ElementTree.fromstring(data, ElementTree.XMLParser(target=_Builder()))
        except ElementTree.ParseError as error:
            self._fail(f'broken XML: {error}')
        except RobotModelError as error:
            self._fail(str(error))

    def _fail(self, what: str) -> NoReturn:
        raise RobotModelError(f'{self._path}: {what}')

    def read(self, tool_link: str) -> RobotModel:
        if self._root.tag != 'robot':
            self._fail(f'expected a <robot> element, got <{self._root.tag}>')
        elements = self._root.findall('joint')
        joints, mimics = [], []
        for element in elements:
            name, kind = self._attribute(element, 'name'), self._attribute(element, 'type')
            mimic = element.find('mimic')
            if kind == 'fixed':
                continue
            if mimic is not None:
                mimics.append(self._mimic(name, mimic))
            else:
                joints.append(self._joint(element, name, kind))
        if not joints:
            self._fail('there is no joint to drive')
        names = [joint.name for joint in joints]
        if len(set(names)) < len(names) or GRIPPER in names:
            self._fail(
                f'joint names must differ from each other and from {GRIPPER!r}: {", ".join(names)}'
            )
        for mimic_joint in mimics:
            if mimic_joint.leader not in names:
                self._fail(
                    f'joint {mimic_joint.name!r} mimics {mimic_joint.leader!r}, which is not driven'
                )
        root, tool = self._ends(elements, joints[-1].child, tool_link)
        return RobotModel(
            self._root.get('name', self._path.stem),
            tuple(joints),
            tuple(mimics),
            root,
            tool,
            self._plain_text(),
        )

    def _joint(self, element: ElementTree.Element, name: str, kind: str) -> Joint:
        if kind not in ('revolute', 'prismatic', 'continuous'):
            self._fail(
                f'joint {name!r}: type {kind!r} cannot be driven; '
                'use revolute, prismatic or continuous'
            )
        limit = element.find('limit')
        lower, upper = -math.inf, math.inf
        if kind != 'continuous':
            if limit is None or (limit.get('upper') is None and limit.get('lower') is None):
                self._fail(
                    f'joint {name!r} is {kind} and has no position limits; add '
                    '<limit lower= upper= velocity= effort=>, or make it continuous'
                )
            lower, upper = (self._number(name, limit, key, 0.0) for key in ('lower', 'upper'))
            if not lower < upper:
                self._fail(f'joint {name!r}: lower limit {lower} is not below upper limit {upper}')
        velocity, effort = (
            self._number(name, limit, key, math.inf) for key in ('velocity', 'effort')
        )
        if velocity <= 0 or effort <= 0:
            self._fail(
                f'joint {name!r}: velocity limit {velocity} and effort limit {effort} '
                'must be above 0'
            )
        return Joint(
            name,
            kind,
            self._link(element, 'parent'),
            self._link(element, 'child'),
            lower,
            upper,
            velocity,
            effort,
        )

    def _mimic(self, name: str, element: ElementTree.Element) -> MimicJoint:
        return MimicJoint(
            name,
            self._attribute(element, 'joint'),
            self._number(name, element, 'multiplier', 1.0),
            self._number(name, element, 'offset', 0.0),
        )

    def _ends(
        self, elements: list[ElementTree.Element], last: str, tool_link: str
    ) -> tuple[str, str]:
        """The link that carries all others, and the tool link."""
        links = [self._attribute(element, 'name') for element in self._root.findall('link')]
        child_of = {
            self._link(element, 'parent'): self._link(element, 'child') for element in elements
        }
        strangers = (set(child_of) | set(child_of.values())) - set(links)
        if strangers:
            self._fail(f'joints connect links that are not there: {", ".join(sorted(strangers))}')
        roots = set(links) - {self._link(element, 'child') for element in elements}
        if len(roots) != 1:
            self._fail(f'expected one link without a parent, got {sorted(roots)}')
        if tool_link and tool_link not in links:
            self._fail(f'there is no link {tool_link!r} to be the tool; links: {", ".join(links)}')
        if not tool_link and DEFAULT_TOOL_LINK in links:
            tool_link = DEFAULT_TOOL_LINK
        while not tool_link and last in child_of:
            last = child_of[last]
        return roots.pop(), tool_link or last

    def _plain_text(self) -> str:
        for link in self._root.findall('link'):
            for visual in link.findall('visual'):
                link.remove(visual)
        for mesh in self._root.iter('mesh'):
            mesh.set('filename', str(self._mesh(self._attribute(mesh, 'filename'))))
        return ElementTree.tostring(self._root, encoding='unicode')

    def _mesh(self, filename: str) -> Path:
        if not filename.startswith('package://'):
            return (self._path.parent / filename.removeprefix('file://')).resolve()
        package, _, inside = filename.removeprefix('package://').partition('/')
        folder = share_folder(package)
        if folder is None:
            self._fail(f'mesh {filename}: package {package!r} is not on AMENT_PREFIX_PATH')
        return folder / inside

    def _attribute(self, element: ElementTree.Element, key: str) -> str:
        value = element.get(key)
        if not value:
            self._fail(f'<{element.tag}> {element.get("name", "")} has no attribute {key!r}')
        return value

    def _link(self, joint: ElementTree.Element, end: str) -> str:
        element = joint.find(end)
        if element is None:
            self._fail(f'joint {joint.get("name")!r} has no <{end}>')
        return self._attribute(element, 'link')

    def _number(
        self, joint: str, element: ElementTree.Element | None, key: str, default: float
    ) -> float:
        text = None if element is None else element.get(key)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self._fail(f'joint {joint!r}: {key}={text!r} is not a finite number')
        return value
