import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opentinker_ros.arms.robot_model import MimicJoint, RobotModel, RobotModelError
from opentinker_ros.share import share_file

ARM = share_file('config/arm.urdf')


def _link(name):
    return f'<link name="{name}"/>'


def _joint(name, parent, child, kind, inside=''):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'{inside}</joint>'
    )


LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="50"/>'


def test_the_arm_that_comes_along_has_six_limited_joints_and_its_tool():
    robot = RobotModel.from_file(ARM)
    assert len(robot.joints) == 6
    assert robot.tool_link == 'tool'
    assert robot.root_link == 'base_link'
    assert all(math.isfinite(joint.lower) and joint.velocity == 3 for joint in robot.joints)


def test_joints_come_in_file_order_with_their_limits(write_urdf):
    robot = RobotModel.from_file(
        write_urdf(
            _link('a'),
            _link('b'),
            _link('c'),
            _joint('second', 'b', 'c', 'prismatic', LIMIT),
            _joint('first', 'a', 'b', 'revolute', LIMIT),
        )
    )
    assert [joint.name for joint in robot.joints] == ['second', 'first']
    assert robot.lower.tolist() == [-1, -1]
    assert robot.upper.tolist() == [2, 2]
    assert robot.home.tolist() == [0.5, 0.5]
    assert (robot.joints[0].velocity, robot.joints[0].effort) == (3, 50)


def test_a_continuous_joint_is_unbounded_and_keeps_its_velocity_limit(write_urdf):
    robot = RobotModel.from_file(
        write_urdf(
            _link('a'),
            _link('b'),
            _joint('wheel', 'a', 'b', 'continuous', '<limit velocity="2" effort="1"/>'),
        )
    )
    joint = robot.joints[0]
    assert (joint.lower, joint.upper, joint.velocity) == (-math.inf, math.inf, 2)
    assert robot.home.tolist() == [0]


def test_a_mimic_joint_is_not_driven(write_urdf):
    robot = RobotModel.from_file(
        write_urdf(
            _link('a'),
            _link('b'),
            _link('c'),
            _joint('left', 'a', 'b', 'revolute', LIMIT),
            _joint(
                'right',
                'a',
                'c',
                'revolute',
                LIMIT + '<mimic joint="left" multiplier="-1" offset="0.1"/>',
            ),
        )
    )
    assert [joint.name for joint in robot.joints] == ['left']
    assert robot.mimics == (MimicJoint('right', 'left', -1.0, 0.1),)


def test_without_a_link_named_tool_the_tool_is_the_last_of_the_chain(write_urdf):
    assert RobotModel.from_file(write_urdf()).tool_link == 'tip'
    assert RobotModel.from_file(write_urdf(), tool_link='lower').tool_link == 'lower'


@pytest.mark.parametrize(
    ('elements', 'message'),
    [
        (
            [_link('a'), _link('b'), _joint('j', 'a', 'b', 'revolute')],
            "joint 'j' is revolute and has no position limits",
        ),
        (
            [
                _link('a'),
                _link('b'),
                _joint('j', 'a', 'b', 'revolute', '<limit velocity="1" effort="1"/>'),
            ],
            "joint 'j' is revolute and has no position limits",
        ),
        (
            [
                _link('a'),
                _link('b'),
                _joint('j', 'a', 'b', 'revolute', '<limit lower="1" upper="1"/>'),
            ],
            'lower limit 1.0 is not below',
        ),
        (
            [
                _link('a'),
                _link('b'),
                _joint('j', 'a', 'b', 'revolute', LIMIT.replace('"3"', '"0"')),
            ],
            'velocity limit 0.0',
        ),
        (
            [
                _link('a'),
                _link('b'),
                _joint('j', 'a', 'b', 'revolute', LIMIT.replace('"2"', '"nan"')),
            ],
            "joint 'j': upper='nan' is not a finite number",
        ),
        (
            [_link('a'), _link('b'), _joint('j', 'a', 'b', 'floating')],
            "type 'floating' cannot be driven",
        ),
        ([_link('a'), _link('b'), _joint('j', 'a', 'b', 'fixed')], 'no joint to drive'),
        ([_link('a'), _joint('j', 'a', 'b', 'revolute', LIMIT)], 'links that are not there: b'),
        (
            [_link('a'), _link('b'), _link('c'), _joint('j', 'a', 'b', 'revolute', LIMIT)],
            'one link without a parent',
        ),
        (
            [_link('a'), _link('b'), _joint('suction', 'a', 'b', 'revolute', LIMIT)],
            "differ from each other and from 'suction'",
        ),
        (
            [
                _link('a'),
                _link('b'),
                _joint('j', 'a', 'b', 'revolute', LIMIT + '<mimic joint="x"/>'),
                _joint('k', 'a', 'b', 'revolute', LIMIT),
            ],
            "mimics 'x', which is not driven",
        ),
    ],
)
def test_what_is_wrong_in_a_description_is_named(write_urdf, elements, message):
    path = write_urdf(*elements)
    with pytest.raises(RobotModelError, match=re.escape(message)) as caught:
        RobotModel.from_file(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RobotModelError, match=r'cannot read .*nowhere\.urdf: No such file'):
        RobotModel.from_file(tmp_path / 'nowhere.urdf')


def test_a_missing_tool_link_lists_the_links(write_urdf):
    with pytest.raises(
        RobotModelError, match="no link 'hand' to be the tool; links: base, upper, lower, tip"
    ):
        RobotModel.from_file(write_urdf(), tool_link='hand')


def test_entities_are_refused(tmp_path):
    path = tmp_path / 'bomb.urdf'
    path.write_text('<!DOCTYPE robot [<!ENTITY a "aaaa">]><robot name="&a;"/>')
    with pytest.raises(RobotModelError, match='DOCTYPE'):
        RobotModel.from_file(path)


def test_visuals_are_left_out_and_meshes_become_absolute(tmp_path, monkeypatch):
    (tmp_path / 'share' / 'my_robot').mkdir(parents=True)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    path = tmp_path / 'robot.urdf'
    path.write_text(
        '<robot name="r"><link name="a"><visual><geometry><mesh filename="package://other/a.dae"/></geometry>'
        '</visual><collision><geometry><mesh filename="package://my_robot/a.stl"/></geometry></collision></link>'
        '<link name="b"><collision><geometry><mesh filename="b.stl"/></geometry></collision></link>'
        + _joint('j', 'a', 'b', 'revolute', LIMIT)
        + '</robot>'
    )
    urdf = RobotModel.from_file(path).urdf
    assert 'other' not in urdf
    assert f'"{tmp_path}/share/my_robot/a.stl"' in urdf
    assert f'"{tmp_path}/b.stl"' in urdf


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, len(ARM.read_bytes()) - 20), junk=st.binary(max_size=8))
def test_a_damaged_file_gives_a_robot_model_error_and_nothing_else(tmp_path_factory, cut, junk):
    path = tmp_path_factory.mktemp('damaged') / 'arm.urdf'
    path.write_bytes(ARM.read_bytes()[:cut] + junk)
    with pytest.raises(RobotModelError):
        RobotModel.from_file(path)
