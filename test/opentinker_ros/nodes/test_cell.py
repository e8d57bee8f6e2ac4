"""The nodes of a cell together, over real DDS, in one process."""

import json

import numpy as np
import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
from lifecycle_msgs.msg import State
from opentinker_ros.msg import JointCommand, Transition
from opentinker_ros.srv import Reset, ResetWorld
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from opentinker.protocol.arrays import unpack
from opentinker_ros import qos
from opentinker_ros.arms.arms_env import make_env
from opentinker_ros.nodes.arms_env import ArmsEnvNode
from opentinker_ros.nodes.lifecycle_manager import LifecycleManager
from opentinker_ros.nodes.policy import PolicyNode
from opentinker_ros.nodes.sim import SimNode

ARMS = 2
POLICY = json.dumps({'name': 'actor_critic', 'hidden': [8]})


class Cell:
    """sim, policy and arms_env, and what they published."""

    def __init__(self, graph, **parameters):
        """``parameters`` by node; those of ``cell`` go to sim and arms_env."""
        self.graph = graph
        common = {'arms': ARMS, **parameters.get('cell', {})}
        self.sim = self._node(SimNode, common)
        self.policy = self._node(PolicyNode, {'policy': POLICY, **parameters.get('policy', {})})
        self.env = self._node(
            ArmsEnvNode, {**common, 'liveness_deadline': 1.0, **parameters.get('arms_env', {})}
        )
        self.transitions = []
        self.env.create_subscription(Transition, 'transitions', self.transitions.append, 1000)
        graph.add(LifecycleManager())

    def _node(self, kind, parameters):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        return self.graph.add(kind(parameter_overrides=overrides))

    def steps(self, number, deadline=30.0):
        """The first transitions, once that many have come."""
        self.graph.until(lambda: len(self.transitions) >= number, deadline)
        return self.transitions[:number]


def test_steps_follow_each_other_without_a_gap_across_episodes(graph):
    cell = Cell(graph, cell={'step_limit': 20})
    steps = cell.steps(50)
    assert [each.step for each in steps] == list(range(50))
    assert [each.episode for each in steps] == [1] * 20 + [2] * 20 + [3] * 10
    assert [each.truncated for each in steps] == ([False] * 19 + [True]) * 2 + [False] * 10
    ended = unpack(steps[19].data)
    assert ended['statistics']['length'] == 20
    assert 'final_observation' not in unpack(steps[18].data)


def test_transitions_carry_reward_terms_and_what_was_acted_on(graph):
    step = Cell(graph).steps(1)[0]
    tree = unpack(step.data)
    assert tree['action'].shape[0] == tree['log_prob'].shape[0] == ARMS
    values = np.array(step.values).reshape(len(step.terms), ARMS)
    assert np.isfinite(values).all()
    assert {'distance', 'reached', 'collision'} <= set(step.terms)


@pytest.mark.parametrize(
    ('cell', 'arms_env'),
    [
        pytest.param({'per_arm_topics': True}, {}, id='topics of each arm'),
        pytest.param({}, {'command_interface': 'trajectory'}, id='trajectories'),
        pytest.param({'lockstep': False}, {}, id='flowing time'),
        pytest.param({'lockstep': False}, {'use_sim_time': True}, id='flowing simulated time'),
    ],
)
def test_steps_follow_each_other_with(graph, cell, arms_env):
    steps = Cell(graph, cell=cell, arms_env=arms_env).steps(30)
    assert [each.step for each in steps] == list(range(30))


def test_the_graph_and_an_environment_in_process_make_the_same_steps_bit_for_bit(graph):
    cell = Cell(graph, cell={'step_limit': 20})
    recorded = [unpack(each.data) for each in cell.steps(45)]
    env = make_env(1, 0, arms=ARMS, step_limit=20)
    observation = env.reset()
    for tree in recorded:
        for key, values in tree['observation'].items():
            assert np.array_equal(values, observation['arm'][key][0]), key
        step = env.step({'arm': tree['action'][None]})
        assert np.array_equal(tree['reward'], step.reward['arm'][0])
        observation = step.observation


def test_a_reward_change_applies_at_the_next_step_without_a_gap(graph):
    cell = Cell(graph)
    cell.steps(10)
    request = SetParametersAtomically.Request(
        parameters=[Parameter('reward.distance', value=2.5).to_parameter_msg()]
    )
    assert graph.call(
        SetParametersAtomically, 'arms_env/set_parameters_atomically', request
    ).result.successful
    graph.until(lambda: cell.transitions[-1].reward_revision == 1)
    assert [each.step for each in cell.transitions] == list(range(len(cell.transitions)))
    revisions = [each.reward_revision for each in cell.transitions]
    assert revisions == sorted(revisions)


def test_the_reset_service_starts_a_new_episode(graph):
    cell = Cell(graph)
    cell.steps(10)
    assert graph.call(Reset, 'arms_env/reset', Reset.Request(seed=7)).success
    graph.until(lambda: cell.transitions[-1].episode >= 2 and cell.transitions[-1].episode_step > 0)


def test_the_same_seed_gives_the_same_start_again(graph):
    cell = Cell(graph)
    cell.steps(1)
    first = []
    for _ in range(2):
        assert graph.call(Reset, 'arms_env/reset', Reset.Request(seed=7)).success
        episode = cell.transitions[-1].episode if cell.transitions else 0
        step = graph.until(
            lambda episode=episode: next(
                (
                    each
                    for each in cell.transitions
                    if each.episode > episode and each.episode_step == 0
                ),
                None,
            )
        )
        first.append(unpack(step.data)['observation'])
    for key, values in first[0].items():
        assert np.array_equal(values, first[1][key]), key


def test_an_agent_that_no_policy_serves_is_named(graph):
    cell = Cell(graph, policy={'agents': ['arm_0']})
    graph.until(lambda: cell.env._diagnostics._fault.startswith('no policy serves arm_1 on'))
    assert not cell.transitions


def test_two_policy_nodes_share_the_agents(graph):
    cell = Cell(graph, policy={'agents': ['arm_1']})
    other = graph.add(
        PolicyNode(
            namespace='',
            parameter_overrides=[
                Parameter('policy', value=POLICY),
                Parameter('agents', value=['arm_0']),
            ],
            cli_args=['--ros-args', '-r', '__node:=other_policy'],
        )
    )
    other.trigger_configure()
    other.trigger_activate()
    assert len(cell.steps(10)) == 10


def test_an_unknown_agent_in_the_parameters_is_an_error_with_the_known_names(graph):
    cell = Cell(graph, policy={'agents': ['leg_3']})
    fault = graph.until(lambda: cell.policy._diagnostics._fault)
    assert 'leg_3' in fault
    assert 'arm_0' in fault


def test_a_policy_with_a_memory_is_refused_with_what_to_do(graph):
    memory = json.dumps({'name': 'actor_critic', 'hidden': [8], 'memory': 4})
    cell = Cell(graph, policy={'policy': memory})
    fault = graph.until(lambda: cell.policy._diagnostics._fault)
    assert 'train them with opentinker train' in fault


@pytest.mark.parametrize(
    'message',
    [
        JointCommand(step=0, agents=['arm_9']),
        JointCommand(step=0, agents=['arm_0'], targets=[0.0]),
        JointCommand(step=10**9, agents=['arm_0']),
    ],
    ids=['stranger', 'size', 'step'],
)
def test_a_malformed_command_is_counted_and_the_loop_goes_on(graph, message):
    cell = Cell(graph)
    publisher = graph.nodes[0].create_publisher(JointCommand, 'joint_commands', qos.STEP)
    graph.until(publisher.get_subscription_count)
    cell.steps(5)
    publisher.publish(message)
    graph.until(lambda: any('joint command' in what for what in cell.env._diagnostics.counts))
    seen = len(cell.transitions)
    cell.steps(seen + 5)


def test_a_stuck_world_ends_the_episode_as_broken_off_and_the_loop_recovers(graph):
    cell = Cell(graph)
    cell.steps(5)
    cell.sim.trigger_deactivate()
    graph.until(lambda: cell.env._diagnostics.counts['stuck episode truncated'])
    seen = len(cell.transitions)
    cell.sim.trigger_activate()
    assert cell.steps(seen + 5)[-1].episode > cell.transitions[0].episode


class ForgetfulDriver(Node):
    """Answers resets, but its joint states lack one joint."""

    def __init__(self, joints):
        super().__init__('driver')
        self._joints = joints
        self._states = self.create_publisher(JointState, 'joint_states', qos.STEP)
        self.create_service(ResetWorld, 'reset_world', self._reset)

    def _reset(self, request, response):
        response.success = True
        count = len(self._joints)
        self._states.publish(JointState(name=self._joints, position=[0.0] * count))
        return response


def test_a_joint_that_no_driver_reports_is_named_and_nothing_moves(graph):
    env = graph.add(
        ArmsEnvNode(
            parameter_overrides=[
                Parameter('arms', value=1),
                Parameter('liveness_deadline', value=0.5),
            ]
        )
    )
    env.trigger_configure()
    joints = [f'arm_0_{name}' for name in ('shoulder_pan', 'shoulder_lift', 'suction')]
    graph.add(ForgetfulDriver(joints))
    commands = []
    env.create_subscription(
        Float64MultiArray, 'forward_position_controller/commands', commands.append, 10
    )
    env.trigger_activate()
    fault = graph.until(lambda: env._diagnostics._fault)
    assert 'arm_0_elbow' in fault
    assert 'joint_states' in fault
    assert not commands


def test_commands_to_the_arms_stay_within_a_period_of_their_speed_limit(graph):
    sent = []
    cell = Cell(graph)
    cell.env.create_subscription(
        Float64MultiArray, 'forward_position_controller/commands', sent.append, 100
    )
    cell.steps(30)
    targets = np.array([np.array(each.data).reshape(ARMS, -1)[:, :-1] for each in sent])
    assert np.isfinite(targets).all()
    assert targets.shape[1:] == (ARMS, 6)


def test_a_shuffled_joint_state_of_another_driver_moves_no_wrong_joint(graph):
    cell = Cell(graph)
    state = graph.until(lambda: cell.env._world.read() if cell.transitions else None)
    names = list(reversed([name for arm in cell.sim._arms for name in arm]))
    values = np.concatenate([state.joint_positions[0], state.grippers[0][:, None]], axis=1).ravel()[
        ::-1
    ]
    message = JointState(name=names, position=values.tolist(), velocity=[0.0] * len(names))
    cell.env._world._reader.update(message)
    assert np.array_equal(cell.env._world.read().joint_positions, state.joint_positions)


def test_deactivating_holds_the_arms_where_they_are(graph):
    cell = Cell(graph)
    cell.steps(10)
    cell.env.trigger_deactivate()
    graph.until(lambda: cell.sim._step, 1)
    seen = len(cell.transitions)
    before = cell.sim._world.read().joint_positions
    for _ in range(20):
        graph.executor.spin_once(timeout_sec=0.02)
    assert len(cell.transitions) - seen <= 1
    assert np.allclose(cell.sim._world.read().joint_positions, before, atol=0.2)
    assert cell.env._state_machine.current_state[0] == State.PRIMARY_STATE_INACTIVE
