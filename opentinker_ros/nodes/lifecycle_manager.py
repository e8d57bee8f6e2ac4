"""Brings lifecycle nodes up in order: each is configured, then each is activated."""

from __future__ import annotations

from collections import deque
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future

from opentinker_ros.nodes.diagnostics import Diagnostics
from opentinker_ros.nodes.parameters import declare

_POLL_S = 0.1
_TRANSITIONS = {
    'configure': Transition.TRANSITION_CONFIGURE,
    'activate': Transition.TRANSITION_ACTIVATE,
}


class LifecycleManager(Node):
    """Drives the nodes of parameter ``nodes`` to active, and says which one does not get there."""

    def __init__(self, **options: Any) -> None:
        super().__init__('lifecycle_manager', **options)
        names = declare(
            self, 'nodes', ['sim', 'arms_env', 'policy'], 'lifecycle nodes, in the order of start'
        )
        self._timeout = declare(
            self, 'timeout', 30.0, 's until a node that is not there is reported', low=0.0
        )
        self._diagnostics = Diagnostics(self)
        self._to_do = deque((name, transition) for transition in _TRANSITIONS for name in names)
        self._change = {
            name: self.create_client(ChangeState, f'{name}/change_state') for name in names
        }
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._since = self._steady.now()
        self._asked: Future | None = None
        self._timer = self.create_timer(_POLL_S, self._go_on, clock=self._steady)

    def _go_on(self) -> None:
        if self._asked is not None:
            return
        if not self._to_do:
            self._timer.cancel()
            self._diagnostics.clear()
            self.get_logger().info('all nodes are active')
            return
        name, transition = self._to_do[0]
        if not self._change[name].service_is_ready():
            if (self._steady.now() - self._since).nanoseconds * 1e-9 > self._timeout:
                self._diagnostics.fault(f'node {name} is not there to {transition}')
            return
        request = ChangeState.Request(transition=Transition(id=_TRANSITIONS[transition]))
        self._asked = self._change[name].call_async(request)
        self._asked.add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        name, transition = self._to_do[0]
        if future.result() is not None and future.result().success:
            self._to_do.popleft()
        else:
            self._diagnostics.fault(f'node {name} refused to {transition}; its log says why')
            self._timer.cancel()
        self._asked = None
        self._since = self._steady.now()
        self._go_on()


NODE = LifecycleManager
