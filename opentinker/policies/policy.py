"""The policy interface: observations in, actions and their log-probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from opentinker import registry
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor

KIND = 'policy'
"""Registry kind: ``factory(descriptor, group, *, seed, **settings) -> Policy``."""

STATE = 'policy/memory'
"""Observation key of what a recurrent policy remembers."""

Arrays = dict[str, np.ndarray]


class PolicyMismatchError(ValueError):
    """A policy, its weights or its observations do not fit: which key, and both shapes."""


@dataclass
class ActionOutput:
    """What a policy chose."""

    action: np.ndarray
    """``[..., action]`` float32, normalised and not clipped."""
    log_prob: np.ndarray
    """``[...]`` float32."""
    state: Arrays = field(default_factory=dict)
    """What the policy wants to find among the next observations, by key; see Policy.state."""


def make_policy(
    settings: Mapping[str, Any], descriptor: EnvDescriptor, group: str, seed: int
) -> Policy:
    """The policy of a config: ``name`` and its settings. Raises ConfigError for wrong ones,
    :class:`PolicyMismatchError` where it does not fit the group.
    """
    own = dict(settings)
    made: Policy = registry.get(KIND, own.pop('name'))(descriptor, group, seed=seed, **own)
    return made


class Trainer(Protocol):
    """What trains a policy: an algorithm."""

    def update(self, batch: Any) -> dict[str, float]: ...


class Policy(torch.nn.Module, ABC):
    """Acts for all agents of a group, each of them a row.

    It owns no optimizer: an algorithm trains it. What it knows about the observations, such as
    their normalisation, is part of its ``state_dict``.
    """

    trainer: Trainer | None = None
    generator: torch.Generator
    """What it draws actions from."""
    state: dict[str, ArrayInfo]
    """What it remembers from step to step, by key: ``ActionOutput.state`` belongs into the next
    observation, zeros (or nothing) at the start of an episode. Empty for most policies.
    """

    def __init__(self, descriptor: EnvDescriptor, group: str, seed: int = 0) -> None:
        super().__init__()
        self.state = {}
        self.generator = torch.Generator().manual_seed(seed)
        try:
            self.info = descriptor.groups[group]
        except KeyError:
            raise PolicyMismatchError(
                f'no group {group!r} in environment {descriptor.name!r}; '
                f'groups: {", ".join(descriptor.groups)}'
            ) from None

    @property
    def device(self) -> torch.device:
        """Where its parameters are."""
        return next(self.parameters()).device

    def initial_state(self, lead: tuple[int, ...]) -> Arrays:
        """Zeros ``[*lead, ...]``: its state at the start of an episode."""
        return {key: np.zeros((*lead, *info.shape), info.dtype) for key, info in self.state.items()}

    @abstractmethod
    def get_action(self, observation: Arrays, deterministic: bool = False) -> ActionOutput:
        """Choose actions for observations ``[..., *shape]`` by key.

        They are drawn at random, for exploration; ``deterministic`` ones are the best known.
        """

    def update(self, batch: Any) -> dict[str, float]:
        """Learn from a batch, by the algorithm that trains this policy; its metrics.

        Raises RuntimeError for a policy that only acts.
        """
        if self.trainer is None:
            raise RuntimeError('no algorithm trains this policy: Algorithm.train(policy) does')
        return self.trainer.update(batch)

    def constrain(self) -> None:
        """Put parameters back within their bounds; for after an optimizer's step."""

    def check(self, observation: Arrays) -> None:
        """Raise :class:`PolicyMismatchError` for a missing key or a wrong shape."""
        for key, info in self.info.observation.items():
            if key not in observation:
                raise PolicyMismatchError(
                    f'observation {key!r} is missing; there are {sorted(observation)}'
                )
            shape = observation[key].shape
            if shape[len(shape) - len(info.shape) :] != info.shape:
                raise PolicyMismatchError(
                    f'observation {key!r} has shape {shape}, the policy takes [..., *{info.shape}]'
                )
