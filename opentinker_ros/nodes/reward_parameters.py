"""Rewards as parameters of a node: ``reward.distance``, ``reward.reached.radius``, …"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from opentinker import registry
from opentinker.envs.rewards import KIND, RewardError, RewardSpec, RewardTerm
from opentinker_ros.nodes.parameters import declare

PREFIX = 'reward.'


class RewardParameters:
    """Validates changes of the reward parameters together and passes them on as one request.

    The parameters are requests to the job's reward authority and mirrors of what it decided:
    :meth:`mirror` sets them to the rewards in force without asking again.
    """

    def __init__(
        self,
        node: Node,
        spec: RewardSpec,
        signals: Sequence[str],
        request: Callable[[dict[str, Any]], None],
    ) -> None:
        self._node = node
        self._spec = spec
        self._signals = tuple(signals)
        self._request = request
        self._mirroring = False
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._pass_on)
        self.mirror(spec)

    def mirror(self, spec: RewardSpec) -> None:
        """Show these rewards; terms that are new get their parameters."""
        self._mirroring = True
        try:
            self._spec = spec
            self._declare(spec)
            values = {**spec.flat(), 'terms': list(spec.terms)}
            self._node.set_parameters(
                [Parameter(PREFIX + key, value=value) for key, value in values.items()]
            )
        finally:
            self._mirroring = False

    def _declare(self, spec: RewardSpec) -> None:
        node = self._node
        declare(
            node,
            f'{PREFIX}terms',
            list(spec.terms),
            'names of the reward terms in force',
            read_only=False,
        )
        for name, settings in spec.terms.items():
            term: RewardTerm = registry.get(KIND, name)
            declare(
                node,
                PREFIX + name,
                settings.weight,
                term.weight.description,
                low=term.weight.low,
                high=term.weight.high,
                read_only=False,
            )
            declare(
                node,
                f'{PREFIX}{name}.enabled',
                settings.enabled,
                f'switch of: {term.description}',
                read_only=False,
            )
            for key, parameter in term.parameters.items():
                unit = f' [{parameter.unit}]' if parameter.unit else ''
                declare(
                    node,
                    f'{PREFIX}{name}.{key}',
                    settings.parameters[key],
                    parameter.description + unit,
                    low=parameter.low,
                    high=parameter.high,
                    read_only=False,
                )

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = _changes(parameters)
        if self._mirroring or not changes:
            return SetParametersResult(successful=True)
        try:
            self._spec.changed(changes).check_signals(self._signals)
        except RewardError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _pass_on(self, parameters: list[Parameter]) -> None:
        changes = _changes(parameters)
        if changes and not self._mirroring:
            self._request(changes)


def _changes(parameters: list[Parameter]) -> dict[str, Any]:
    return {
        parameter.name.removeprefix(PREFIX): parameter.value
        for parameter in parameters
        if parameter.name.startswith(PREFIX)
    }
