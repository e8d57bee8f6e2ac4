"""Small robots with known kinematics."""

import pytest

LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="50"/>'


def link(name, shape='<sphere radius="0.02"/>', xyz='0 0 0'):
    """A link of 1 kg with one shape."""
    return (
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" '
        f'ixy="0" ixz="0" iyz="0"/></inertial><collision><origin xyz="{xyz}"/><geometry>{shape}'
        '</geometry></collision></link>'
    )


def joint(name, parent, child, kind='revolute', inside=LIMIT, xyz='0 0 0', axis='0 1 0'):
    """A joint."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{inside}</joint>'
    )


#: Two links of 0.3 m and 0.2 m above a base, pitching about y, 0.5 m above the floor.
TWO_LINKS = [
    link('base'),
    link('upper'),
    link('lower'),
    '<link name="tip"/>',
    joint('lift', 'base', 'upper', xyz='0 0 0.5'),
    joint('bend', 'upper', 'lower', xyz='0 0 0.3'),
    joint('end', 'lower', 'tip', 'fixed', '', xyz='0 0 0.2'),
]


@pytest.fixture
def write_urdf(tmp_path):
    """Writes a robot of these elements (by default the two links) and gives the path."""

    def write(*elements):
        path = tmp_path / 'robot.urdf'
        path.write_text(f'<robot name="small">{"".join(elements or TWO_LINKS)}</robot>')
        return path

    return write
