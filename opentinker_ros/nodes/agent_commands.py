"""The joint commands of one step, gathered from all policy nodes that serve some of the agents."""

from __future__ import annotations

import numpy as np

from opentinker.envs.descriptor import GroupInfo
from opentinker_ros.conversions import agent_rows
from opentinker_ros.msg import JointCommand


class CommandError(ValueError):
    """A command that is refused: which agent, and what is wrong."""


class AgentCommands:
    """Rows of targets, actions and log-probabilities, filled as messages arrive."""

    def __init__(self, info: GroupInfo) -> None:
        self._info = info
        agents, size = len(info.agents), info.action.size
        self._have = np.zeros(agents, bool)
        self._rows: dict[tuple[str, ...], list[int]] = {}
        self.targets = np.zeros((agents, size))
        """``[agent, joint + gripper]`` absolute, rad or m."""
        self.action = np.zeros((agents, size), np.float32)
        """``[agent, action]`` as the policy drew it."""
        self.log_prob = np.zeros(agents, np.float32)
        self.policy_version = 0
        """The oldest of the versions that acted."""

    def clear(self) -> None:
        """Begin a new step."""
        self._have[:] = False

    def add(self, message: JointCommand) -> None:
        """Take the rows of one message, or none: raises :class:`CommandError` if malformed."""
        rows = self._rows_of(tuple(message.agents))
        size = len(rows) * self._info.action.size
        if (
            len(message.targets) != size
            or len(message.action) != size
            or len(message.log_prob) != len(rows)
        ):
            raise CommandError(
                f'{len(message.targets)} targets, {len(message.action)} actions and '
                f'{len(message.log_prob)} log-probabilities for {len(rows)} agents of '
                f'{self._info.action.size} values each'
            )
        first = not self._have.any()
        # non-finite targets go on to the gate, which holds the arm; non-finite actions must not be
        # learnt from
        self.targets[rows] = np.frombuffer(message.targets, np.float64).reshape(len(rows), -1)
        self.action[rows] = np.frombuffer(message.action, np.float32).reshape(len(rows), -1)
        self.log_prob[rows] = np.frombuffer(message.log_prob, np.float32)
        self.policy_version = (
            message.policy_version if first else min(self.policy_version, message.policy_version)
        )
        self._have[rows] = True

    def _rows_of(self, agents: tuple[str, ...]) -> list[int]:
        if agents not in self._rows:
            try:
                rows = agent_rows(self._info, agents)
            except ValueError as error:
                raise CommandError(str(error)) from None
            if len(set(rows)) != len(rows):
                raise CommandError(f'an agent is named twice in {list(agents)}')
            self._rows[agents] = rows
        return self._rows[agents]

    @property
    def complete(self) -> bool:
        """Every agent has its command."""
        return bool(self._have.all())

    @property
    def missing(self) -> list[str]:
        """Agents without a command."""
        return [name for name, have in zip(self._info.agents, self._have, strict=True) if not have]
