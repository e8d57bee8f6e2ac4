"""A ROS domain of its own for each test, and waiting with deadlines."""

import itertools
import os
import time
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec('launch_pytest') else ['launch/*']
_numbers = itertools.count(os.getpid())
_DOMAINS = 100  # ports of higher domains fall into the ephemeral range of Linux


@pytest.fixture
def domain(monkeypatch):
    """Environment of a fresh ROS domain on this host, for this process and its children."""
    pytest.importorskip('rclpy', reason='needs ROS 2')
    number = 1 + next(_numbers) % _DOMAINS
    monkeypatch.setenv('ROS_DOMAIN_ID', str(number))
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    return number


class Graph:
    """Nodes in this process on one executor."""

    def __init__(self):
        from opentinker_ros.nodes.executor import make_executor

        self.executor = make_executor()
        self.nodes = []

    def add(self, node):
        """Take a node into the graph."""
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def until(self, condition, deadline=20.0):
        """Spin until the condition holds; what it gave. Fails after the deadline (s)."""
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            self.executor.spin_once(timeout_sec=0.02)
        pytest.fail(f'not within {deadline} s: {getattr(condition, "__doc__", None) or condition}')

    def call(self, kind, name, request, deadline=20.0):
        """Call a service and wait for its answer."""
        client = self.nodes[0].create_client(kind, name)
        self.until(client.service_is_ready, deadline)
        future = client.call_async(request)
        self.until(future.done, deadline)
        return future.result()


@pytest.fixture
def graph(domain):
    """An empty graph; its nodes are destroyed afterwards."""
    import rclpy

    rclpy.init()
    graph = Graph()
    yield graph
    for node in reversed(graph.nodes):
        node.destroy_node()
    graph.executor.shutdown()
    rclpy.try_shutdown()
