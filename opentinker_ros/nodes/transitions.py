"""One environment step as a Transition message, and back as a transition to store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time

from opentinker.data.segment_builder import Transition as StoredTransition
from opentinker.envs.vector import Step
from opentinker.protocol.arrays import pack, unpack
from opentinker_ros.conversions import to_bytes, to_floats
from opentinker_ros.msg import Transition
from opentinker_ros.nodes.agent_commands import AgentCommands


@dataclass
class StepBegin:
    """Where a step began: its numbers, and what was observed then, ``[1, agent, ...]`` by key."""

    step: int
    episode: int
    episode_step: int
    observation: dict[str, np.ndarray]


def to_transition(
    begin: StepBegin, commands: AgentCommands, step: Step, group: str, stamp: Time
) -> Transition:
    """The message of a group's step that ``commands`` led to."""
    tree: dict[str, Any] = {
        'observation': _first(begin.observation),
        'action': commands.action,
        'log_prob': commands.log_prob,
        'reward': step.reward[group][0],
        'active': step.active[group][0],
        'signals': _first(step.signals[group]),
    }
    if step.final_observation is not None:
        tree['final_observation'] = _first(step.final_observation[group])
        tree['statistics'] = {key: float(values[0]) for key, values in step.episode.items()}
    terms = step.reward_terms[group]
    message = Transition(
        step=begin.step,
        episode=begin.episode,
        episode_step=begin.episode_step,
        policy_version=commands.policy_version,
        reward_revision=step.reward_revision,
        terminated=bool(step.terminated[0]),
        truncated=bool(step.truncated[0]),
        terms=list(terms),
        values=to_floats(np.array([values[0] for values in terms.values()])),
        data=to_bytes(pack(tree)),
    )
    message.header.stamp = stamp
    return message


def from_transition(message: Transition) -> StoredTransition:
    """The transition of a message. Raises FrameError or KeyError where its data are malformed."""
    tree = unpack(message.data)
    return StoredTransition(
        step=message.step,
        episode=message.episode,
        terminated=message.terminated,
        truncated=message.truncated,
        policy_version=message.policy_version,
        reward_revision=message.reward_revision,
        observation=tree['observation'],
        action=tree['action'],
        log_prob=tree['log_prob'],
        reward=tree['reward'],
        signals=tree['signals'],
        active=tree['active'],
        final_observation=tree.get('final_observation'),
        statistics=tree.get('statistics', {}),
    )


def _first(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key: values[0] for key, values in arrays.items()}
