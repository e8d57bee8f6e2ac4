"""Counted events of a node on /diagnostics, once a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

PERIOD = 1.0


class Diagnostics:
    """Counts of a node by name, and the fault that it suffers now.

    A fault stays until :meth:`clear`; a new count of something harmful shows as a warning for one
    period. ``values`` gives what else is to be reported.
    """

    def __init__(self, node: Node, values: Callable[[], Mapping[str, Any]] = dict) -> None:
        self._node = node
        self._values = values
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        # a stopped /clock must not silence the report
        self._timer = node.create_timer(
            PERIOD, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        self.counts: Counter[str] = Counter()
        self._fault = ''
        self._warning = ''

    def count(self, what: str, number: int = 1) -> None:
        """Count an event that deserves attention."""
        if number:
            self.counts[what] += number
            self._warning = what

    def fault(self, message: str) -> None:
        """Report an error until it is cleared; said once in the log."""
        if message != self._fault:
            self._node.get_logger().error(message)
        self._fault = message

    def clear(self) -> None:
        """What was wrong is over."""
        if self._fault:
            self._node.get_logger().info(f'over: {self._fault}')
        self._fault = ''

    def publish(self) -> None:
        """Send the report now."""
        level, message = DiagnosticStatus.OK, 'running'
        if self._fault:
            level, message = DiagnosticStatus.ERROR, self._fault
        elif self._warning:
            level, message = DiagnosticStatus.WARN, self._warning
        self._warning = ''
        pairs = {**self._values(), **self.counts}
        report = DiagnosticArray()
        report.header.stamp = self._node.get_clock().now().to_msg()
        report.status = [
            DiagnosticStatus(
                level=level,
                name=self._node.get_fully_qualified_name(),
                message=message,
                hardware_id='',
                values=[KeyValue(key=key, value=str(value)) for key, value in pairs.items()],
            )
        ]
        self._publisher.publish(report)
