"""Distributions of actions: what an actor's outputs mean.

Written out instead of taken from ``torch.distributions``, which neither draws from a generator of
one's own nor is as fast on the small batches of a control loop. Leading axes are free throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

LOG_TWO_PI = math.log(2 * math.pi)
_CLOSED = -1e9
"""Logit of a choice that the mask closes: its probability is 0 in float32, its gradient finite."""


class Distribution(Protocol):
    """Actions given observations; every result but an action has only the leading axes."""

    def sample(self, generator: torch.Generator) -> Tensor: ...

    @property
    def mode(self) -> Tensor: ...

    def log_prob(self, action: Tensor) -> Tensor: ...

    def entropy(self) -> Tensor: ...

    def kl(self, other: Any) -> Tensor:
        """KL(this | other) in nats, for another one of the same kind."""
        ...


@dataclass
class Gaussian:
    """Independent normal distributions."""

    mean: Tensor
    """``[..., action]``."""
    log_std: Tensor
    """``[action]``."""

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw ``[..., action]``."""
        noise = torch.randn(self.mean.shape, generator=generator)
        return self.mean + self.log_std.exp() * noise

    @property
    def mode(self) -> Tensor:
        """The means."""
        return self.mean

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-density, summed over the action's elements."""
        z = (action - self.mean) * torch.exp(-self.log_std)
        return (-0.5 * z * z - self.log_std - 0.5 * LOG_TWO_PI).sum(-1)

    def entropy(self) -> Tensor:
        """In nats."""
        return (self.log_std + 0.5 * (1 + LOG_TWO_PI)).sum(-1).expand(self.mean.shape[:-1])

    def kl(self, other: Gaussian) -> Tensor:
        """KL(this | other), in nats."""
        variance, others = (2 * self.log_std).exp(), (2 * other.log_std).exp()
        spread = (variance + (self.mean - other.mean).square()) / (2 * others)
        return (other.log_std - self.log_std + spread - 0.5).sum(-1)


@dataclass
class Categorical:
    """Independent choices among ``categories[i]`` options each, some of which may be closed."""

    logits: Tensor
    """``[..., sum(categories)]``: the logits of all choices, end to end."""
    categories: tuple[int, ...]
    shape: tuple[int, ...]
    """Of one action: () for a single choice, else one element a choice."""
    mask: Tensor | None = None
    """``[..., sum(categories)]``: 0 closes an option."""

    def __post_init__(self) -> None:
        logits = self.logits
        if self.mask is not None:
            logits = logits.masked_fill(self.mask == 0, _CLOSED)
        self._log_probs = [part.log_softmax(-1) for part in logits.split(self.categories, -1)]

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw ``[..., *shape]`` int64."""
        draws = []
        for log_prob in self._log_probs:
            rows = log_prob.exp().reshape(-1, log_prob.shape[-1])
            chosen = torch.multinomial(rows, 1, generator=generator)
            draws.append(chosen.reshape(log_prob.shape[:-1]))
        return self._shaped(draws)

    @property
    def mode(self) -> Tensor:
        """The likeliest options."""
        return self._shaped([log_prob.argmax(-1) for log_prob in self._log_probs])

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-probability, summed over the choices."""
        columns = action.reshape(*self.logits.shape[:-1], len(self.categories)).unbind(-1)
        each = [
            log_prob.gather(-1, column.long().unsqueeze(-1)).squeeze(-1)
            for log_prob, column in zip(self._log_probs, columns, strict=True)
        ]
        return torch.stack(each).sum(0)

    def entropy(self) -> Tensor:
        """In nats."""
        return torch.stack([-(p.exp() * p).sum(-1) for p in self._log_probs]).sum(0)

    def kl(self, other: Categorical) -> Tensor:
        """KL(this | other), in nats."""
        pairs = zip(self._log_probs, other._log_probs, strict=True)
        return torch.stack([(p.exp() * (p - q)).sum(-1) for p, q in pairs]).sum(0)

    def _shaped(self, choices: list[Tensor]) -> Tensor:
        return torch.stack(choices, -1).reshape(*self.logits.shape[:-1], *self.shape)
