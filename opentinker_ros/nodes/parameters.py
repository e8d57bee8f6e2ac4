"""Parameters declared once, with description, type and range."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

_TYPES = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
    list: Parameter.Type.STRING_ARRAY,
}


def declare(
    node: Node,
    name: str,
    default: Any,
    description: str,
    *,
    low: float | None = None,
    high: float | None = None,
    read_only: bool = True,
) -> Any:
    """Declare a parameter of the default's type and return its value.

    A list is a list of strings. ``low`` and ``high`` (inclusive) also keep NaN out.
    """
    descriptor = ParameterDescriptor(
        name=name, description=description, read_only=read_only, type=_TYPES[type(default)].value
    )
    if low is not None or high is not None:
        _set_range(descriptor, default, low, high)
    if not node.has_parameter(name):  # a node that is configured again keeps what was set
        node.declare_parameter(name, default, descriptor)
    return node.get_parameter(name).value


def _set_range(
    descriptor: ParameterDescriptor, default: Any, low: float | None, high: float | None
) -> None:
    if isinstance(default, int):
        descriptor.integer_range = [
            IntegerRange(from_value=int(low or 0), to_value=int(high or 2**31), step=0)
        ]
    else:
        descriptor.floating_point_range = [
            FloatingPointRange(
                from_value=float(low if low is not None else -math.inf),
                to_value=float(high if high is not None else math.inf),
                step=0.0,
            )
        ]


def declare_model(node: Node, model: type[BaseModel]) -> dict[str, Any]:
    """Declare every field of a settings model as a parameter and return what was set."""
    values = {}
    for name, field in model.model_fields.items():
        low = high = None
        for limit in field.metadata:
            low = getattr(limit, 'ge', getattr(limit, 'gt', low))
            high = getattr(limit, 'le', getattr(limit, 'lt', high))
        values[name] = declare(
            node, name, field.default, field.description or name, low=low, high=high
        )
    return values
