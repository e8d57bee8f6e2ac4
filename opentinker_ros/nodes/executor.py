"""The executor that all nodes of a process share."""

from __future__ import annotations

import time

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import Empty

_SELF_TEST_S = 3.0


def make_executor() -> Executor:
    """An EventsExecutor, five times faster than the default one, where it works; else the default
    one.

    It is experimental in Jazzy, so it must first deliver a message of its own.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    executor = EventsExecutor()
    if _delivers(executor):
        return executor
    rclpy.logging.get_logger('executor').warning(
        'EventsExecutor delivers nothing; using SingleThreadedExecutor'
    )
    executor.shutdown()
    return SingleThreadedExecutor()


def _delivers(executor: Executor) -> bool:
    node = Node('executor_self_test', start_parameter_services=False, enable_rosout=False)
    received: list[Empty] = []
    topic = f'{node.get_name()}_{id(node)}'
    node.create_subscription(Empty, topic, received.append, 1)
    publisher = node.create_publisher(Empty, topic, 1)
    executor.add_node(node)
    deadline = time.monotonic() + _SELF_TEST_S
    while not received and time.monotonic() < deadline:
        publisher.publish(Empty())
        executor.spin_once(timeout_sec=0.05)
    executor.remove_node(node)
    node.destroy_node()
    return bool(received)
