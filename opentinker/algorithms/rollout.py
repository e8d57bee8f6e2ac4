"""A rollout: agent transitions as rows, ready to train on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from opentinker.data.batch import Batch
from opentinker.policies.actor_critic import FIRST


@dataclass
class Rollout:
    """Rows of all active agents; where the policy remembers, those of a sequence are in a row."""

    observation: Batch
    """``[n, ...]``: the policy's inputs."""
    action: Tensor
    """``[n, *action]``, float32 or choices."""
    log_prob: Tensor
    """``[n]`` under the policy that acted."""
    advantage: Tensor
    """``[n]``."""
    value_target: Tensor
    """``[n]``."""
    value: Tensor
    """``[n]``: what the critic expected before the update."""

    def __len__(self) -> int:
        return len(self.advantage)

    def minibatches(
        self, size: int, generator: torch.Generator, micro: int | None = None
    ) -> Iterator[list[Tensor]]:
        """Every row once in a random order, as the row numbers of minibatches of about ``size``.

        Minibatches are of equal size, since a short last one would weigh as much as the others.
        Each is a list of pieces of at most about ``micro`` rows; sequences stay whole.
        """
        units = self._units()
        order = torch.randperm(len(units), generator=generator)
        for chosen in order.tensor_split(min(_pieces(len(self), size), len(units))):
            rows = sum(len(units[unit]) for unit in chosen.tolist()) if self._sequences else 0
            rows = rows or len(chosen)
            pieces = chosen.tensor_split(min(_pieces(rows, micro or rows), len(chosen)))
            yield [self._rows(units, piece) for piece in pieces]

    @property
    def _sequences(self) -> bool:
        return FIRST in self.observation

    def _units(self) -> range | tuple[Tensor, ...]:
        """What is not taken apart: rows, or the row numbers of each sequence."""
        if not self._sequences:
            return range(len(self))
        (starts,) = torch.nonzero(self.observation[FIRST], as_tuple=True)
        return torch.arange(len(self)).tensor_split(starts[1:].cpu())

    def _rows(self, units: range | tuple[Tensor, ...], chosen: Tensor) -> Tensor:
        if isinstance(units, range):
            return chosen
        return torch.cat([units[unit] for unit in chosen.tolist()])


def _pieces(rows: int, size: int) -> int:
    return math.ceil(rows / size)
