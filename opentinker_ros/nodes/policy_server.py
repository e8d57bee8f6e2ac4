"""Policies of the agents that one node serves: loading versions, and acting with them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from opentinker import registry
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.vector import Observations
from opentinker.policies.policy import KIND, Policy, PolicyMismatchError
from opentinker.policies.weights import load_weights
from opentinker_ros.arms.actions import to_targets
from opentinker_ros.conversions import ObservationCodec, agent_rows


@dataclass
class _Served:
    policy: Policy
    version: int
    description: str


@dataclass
class Commands:
    """What the served agents are to do, one row each."""

    targets: np.ndarray
    """``[agent, joint + gripper]`` absolute, rad or m."""
    action: np.ndarray
    """``[agent, action]``."""
    log_prob: np.ndarray
    """``[agent]``."""
    version: int
    """The oldest of the versions that acted."""


class PolicyServer:
    """Serves the ``wanted`` agents of an environment, or all where that is empty.

    Raises ValueError for a name that the environment does not have.
    """

    def __init__(self, descriptor: EnvDescriptor, wanted: list[str], seed: int) -> None:
        self._descriptor = descriptor
        self._seed = seed
        self._rows = _rows(descriptor, wanted)
        self._served: dict[str, _Served] = {}
        self.crc = descriptor.crc()
        self.codec = ObservationCodec(descriptor)
        self.agents = [
            descriptor.groups[group].agents[row]
            for group, rows in self._rows.items()
            for row in rows
        ]

    @property
    def complete(self) -> bool:
        """Every group that is served has a policy."""
        return len(self._served) == len(self._rows)

    @property
    def versions(self) -> dict[str, int]:
        """The version in use, by group."""
        return {group: served.version for group, served in self._served.items()}

    def start(self, description: str) -> None:
        """Freshly initialised policies as version 0, for groups without one."""
        for group in self._rows:
            if group not in self._served:
                self._served[group] = _Served(self._build(group, description), 0, description)

    def load(
        self, group: str, version: int, description: str, descriptor: int, weights: bytes
    ) -> None:
        """Use a version from the next step on; other groups' versions are passed over.

        Raises ValueError or LookupError where it does not fit; then nothing was changed.
        """
        if group not in self._rows:
            return
        if descriptor not in (0, self.crc):
            raise PolicyMismatchError('it was made for another environment descriptor')
        served = self._served.get(group)
        same = served is not None and served.description == description
        policy = served.policy if served and same else self._build(group, description)
        load_weights(policy, weights)
        self._served[group] = _Served(policy, version, description)

    def _build(self, group: str, description: str) -> Policy:
        settings = json.loads(description)
        factory = registry.get(KIND, settings.pop('name'))
        policy: Policy = factory(self._descriptor, group, seed=self._seed, **settings)
        if policy.state:
            raise PolicyMismatchError(
                'policies with a memory do not act over topics; train them with opentinker train'
            )
        return policy

    def act(self, observation: Observations, deterministic: bool) -> Commands:
        """Commands of the served agents, in the order of :attr:`agents`."""
        targets, actions, log_probs = [], [], []
        for group, rows in self._rows.items():
            own = {key: values[0, rows] for key, values in observation[group].items()}
            output = self._served[group].policy.get_action(own, deterministic)
            targets.append(to_targets(own['last_command'], output.action).ravel())
            actions.append(output.action.ravel())
            log_probs.append(output.log_prob)
        return Commands(
            np.concatenate(targets),
            np.concatenate(actions),
            np.concatenate(log_probs),
            min(self.versions.values()),
        )


def _rows(descriptor: EnvDescriptor, wanted: list[str]) -> dict[str, list[int]]:
    known = [agent for info in descriptor.groups.values() for agent in info.agents]
    strangers = sorted(set(wanted) - set(known))
    if strangers:
        raise ValueError(f'parameter agents names {strangers}; the environment has {known}')
    rows = {
        group: agent_rows(info, [name for name in info.agents if not wanted or name in wanted])
        for group, info in descriptor.groups.items()
    }
    return {group: members for group, members in rows.items() if members}
