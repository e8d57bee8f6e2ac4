import math

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
from rcl_interfaces.srv import DescribeParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter

from opentinker.envs.rewards import RewardSpec
from opentinker_ros.nodes.reward_parameters import RewardParameters

SIGNALS = ('distance', 'contact', 'action_change', 'limit_margin')


@pytest.fixture
def node(graph):
    return graph.add(Node('cell'))


@pytest.fixture
def requests(node):
    """What was passed on; the parameters belong to ``node``."""
    passed = []
    node.rewards = RewardParameters(
        node, RewardSpec.of(['distance', 'reached']), SIGNALS, passed.append
    )
    return passed


def set_together(graph, **values):
    parameters = [
        Parameter('reward.' + key.replace('__', '.'), value=value).to_parameter_msg()
        for key, value in values.items()
    ]
    request = SetParametersAtomically.Request(parameters=parameters)
    return graph.call(SetParametersAtomically, 'cell/set_parameters_atomically', request).result


def test_a_weight_set_through_the_parameter_service_becomes_a_request(graph, requests):
    assert set_together(graph, distance=2.0).successful
    assert requests == [{'distance': 2.0}]


def test_several_set_together_are_one_request(graph, requests):
    assert set_together(graph, distance=2.0, reached__radius=0.1, reached__enabled=False).successful
    assert requests == [{'distance': 2.0, 'reached.radius': 0.1, 'reached.enabled': False}]


@pytest.mark.parametrize(
    ('values', 'reason'),
    [
        ({'distance': math.nan}, 'reward.distance'),
        ({'distance': 1e9}, 'reward.distance'),
        ({'distance': 'much'}, 'DOUBLE'),
        ({'reached__radius': -1.0}, 'reward.reached.radius'),
        ({'terms': ['distance', 'no_such_term']}, 'no_such_term'),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_a_reason_and_nothing_changes(
    graph, node, requests, values, reason
):
    before = {
        name: parameter.value for name, parameter in node.get_parameters_by_prefix('reward').items()
    }
    result = set_together(graph, reached=3.0, **values)
    assert not result.successful
    assert reason in result.reason
    assert requests == []
    after = {
        name: parameter.value for name, parameter in node.get_parameters_by_prefix('reward').items()
    }
    assert after == before


def test_a_mirrored_revision_is_shown_without_being_requested_again(node, requests):
    spec = RewardSpec.of(['distance', 'reached']).changed({'distance': 5.0})
    node.rewards.mirror(spec)
    assert node.get_parameter('reward.distance').value == 5.0
    assert requests == []


def test_a_term_added_while_running_gets_its_parameters(node, requests):
    spec = RewardSpec.of(['distance', 'reached']).changed(
        {'terms': ['distance', 'reached', 'collision']}
    )
    node.rewards.mirror(spec)
    assert node.get_parameter('reward.terms').value == ['distance', 'reached', 'collision']
    assert node.get_parameter('reward.collision').value == spec.terms['collision'].weight


def test_every_parameter_has_a_description_and_numbers_have_a_range(graph, node, requests):
    names = ['reward.' + name for name in node.get_parameters_by_prefix('reward')]
    described = graph.call(
        DescribeParameters, 'cell/describe_parameters', DescribeParameters.Request(names=names)
    )
    assert all(each.description for each in described.descriptors)
    assert all(each.floating_point_range for each in described.descriptors if each.type == 3)
