"""Run one or several nodes in this process: ``host sim arms_env zmq_bridge --ros-args …``.

``--import MODULE`` (repeatable) imports a Python module first, which registers what parameters
name. On SIGINT and SIGTERM active lifecycle nodes are deactivated first, which holds the arms, and
the process exits with 0.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

import rclpy
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from opentinker import registry
from opentinker_ros.nodes.executor import make_executor

KIND = 'node'
_BUILT_IN = ('sim', 'arms_env', 'policy', 'zmq_bridge', 'lifecycle_manager')
_TICK_S = 0.1
_ACTIVE = 'active'
_ACKNOWLEDGED_WITHIN = Duration(seconds=0.5)


class NodeFailure(Exception):  # noqa: N818 (what users read is its message)
    """A node cannot go on; the message says why."""


def make_node(name: str) -> Node:
    """A node by its executable name: one of ours, or a class registered as kind ``node``."""
    if name in _BUILT_IN:
        return importlib.import_module(f'opentinker_ros.nodes.{name}').NODE()
    return registry.get(KIND, name)()


def run(names: Sequence[str]) -> int:
    """Run the named nodes until a signal comes; the exit code."""
    os.environ.setdefault('AMENT_PREFIX_PATH', sys.prefix)
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, frame: stop.append(received))
    # rclpy's own handlers would close the context before the arms are held
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    nodes: list[Node] = []
    try:
        executor = make_executor()
        for name in names:
            nodes.append(make_node(name))
            executor.add_node(nodes[-1])
        while not stop:
            executor.spin_once(timeout_sec=_TICK_S)
        _hold(nodes)
    except (NodeFailure, registry.UnknownNameError, ValueError, OSError) as error:
        print(f'{"/".join(names)}: {error}', file=sys.stderr)
        return 1
    finally:
        for node in reversed(nodes):
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


def _hold(nodes: Sequence[Node]) -> None:
    """Deactivate what drives something, the last one first, and see its last commands arrive."""
    for node in reversed(nodes):
        if isinstance(node, LifecycleNode) and node._state_machine.current_state[1] == _ACTIVE:
            node.trigger_deactivate()
            for publisher in node.publishers:
                publisher.wait_for_all_acked(_ACKNOWLEDGED_WITHIN)


def main() -> None:
    """Entry point of executable ``host``."""
    parser = argparse.ArgumentParser(
        'host', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    nodes = ', '.join([*_BUILT_IN, *registry.names(KIND)])
    parser.add_argument('nodes', nargs='+', metavar='NODE', help=f'one of {nodes}')
    parser.add_argument('--import', dest='modules', action='append', default=[], metavar='MODULE')
    options = parser.parse_args(remove_ros_args(sys.argv)[1:])
    for module in options.modules:
        importlib.import_module(module)
    sys.exit(run(options.nodes))


if __name__ == '__main__':
    main()
