import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
from opentinker_ros.msg import JointCommand

from opentinker.envs.descriptor import ArrayInfo, GroupInfo
from opentinker_ros.conversions import to_doubles, to_floats
from opentinker_ros.nodes.agent_commands import AgentCommands, CommandError

INFO = GroupInfo(agents=('arm_0', 'arm_1', 'arm_2'), observation={}, action=ArrayInfo(shape=(2,)))


def command(agents, version=1, size=2):
    rows = np.arange(len(agents) * size, dtype=float)
    return JointCommand(
        agents=list(agents),
        policy_version=version,
        targets=to_doubles(rows),
        action=to_floats(rows),
        log_prob=to_floats(np.zeros(len(agents))),
    )


def test_commands_of_several_policies_are_put_to_the_rows_of_their_agents():
    commands = AgentCommands(INFO)
    commands.add(command(['arm_2', 'arm_0'], version=5))
    assert commands.missing == ['arm_1']
    commands.add(command(['arm_1'], version=3))
    assert commands.complete
    assert commands.targets.tolist() == [[2, 3], [0, 1], [0, 1]]
    assert commands.policy_version == 3


def test_an_unknown_agent_is_refused_with_the_known_names():
    with pytest.raises(CommandError, match=r"unknown agents \['leg_0'\].*arm_0"):
        AgentCommands(INFO).add(command(['leg_0']))


def test_an_agent_named_twice_is_refused():
    with pytest.raises(CommandError, match='named twice'):
        AgentCommands(INFO).add(command(['arm_0', 'arm_0']))


def test_a_command_of_the_wrong_size_changes_nothing():
    commands = AgentCommands(INFO)
    with pytest.raises(CommandError, match=r'9 targets.*3 agents of 2 values'):
        commands.add(command(INFO.agents, size=3))
    assert len(commands.missing) == 3
