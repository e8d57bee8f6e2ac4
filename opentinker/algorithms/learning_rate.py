"""Learning rates that fall while training goes on."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import BaseModel, Field


class LearningRateSettings(BaseModel):
    """What optimizers with a learning rate have in common."""

    learning_rate: float = Field(1e-3, gt=0)
    final_learning_rate: float | None = Field(None, ge=0)
    """Reached at ``total_transitions``, and kept; null: the rate does not fall."""
    total_transitions: int = Field(600_000, ge=1)
    """Agent transitions over which the learning rate falls."""
    schedule: Literal['linear', 'cosine'] = 'linear'
    """The line on which it falls: straight, or half a wave (https://arxiv.org/abs/1608.03983)."""

    def rate(self, transitions: int) -> float:
        """The learning rate after so many transitions."""
        return self.falling(self.learning_rate, self.final_learning_rate, transitions)

    def falling(self, first: float, final: float | None, transitions: int) -> float:
        """A quantity on its way from ``first`` to ``final``; ``first`` where that is None."""
        if final is None:
            return first
        done = min(transitions / self.total_transitions, 1.0)
        if self.schedule == 'cosine':
            done = (1 - math.cos(math.pi * done)) / 2
        return first + (final - first) * done


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give all parameters a learning rate, times the ``factor`` of their group."""
    for group in optimizer.param_groups:
        group['lr'] = rate * group.get('factor', 1.0)
