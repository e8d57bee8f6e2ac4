"""Distributions of actions: what an actor's outputs mean.

Written out instead of taken from ``torch.distributions``, which neither draws from a generator of
one's own nor is as fast on the small batches of a control loop. Leading axes are free throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

LOG_TWO_PI = math.log(2 * math.pi)
_EDGE = 1 - 1e-6
"""The largest action whose origin float32 can tell."""
_QUADRATURE = tuple(
    values.astype(np.float32) * scale
    for values, scale in zip(
        np.polynomial.hermite_e.hermegauss(16), (1, 1 / math.sqrt(2 * math.pi)), strict=True
    )
)
"""Points, and weights that add up to 1."""
CLOSED = -1e9
"""Logit of a choice that the mask closes: its probability is 0 in float32, its gradient finite."""


class Distribution(Protocol):
    """Actions given observations; every result but an action has only the leading axes."""

    def sample(self, generator: torch.Generator) -> Tensor: ...

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """:meth:`sample` and the :meth:`log_prob` of what it gave."""
        ...

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
    """``[..., size]``."""
    log_std: Tensor
    """``[size]``."""
    shape: tuple[int, ...]
    """Of one action."""

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw ``[..., *shape]``."""
        return self._shaped(self.mean + self.log_std.exp() * self._noise(generator))

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """:meth:`sample` and the :meth:`log_prob` of what it gave."""
        noise = self._noise(generator)
        action = self._shaped(self.mean + self.log_std.exp() * noise)
        return action, self._log_density(noise)

    def _log_density(self, z: Tensor) -> Tensor:
        """Of standardised actions ``[..., size]``."""
        constant = self.log_std.sum() + 0.5 * LOG_TWO_PI * z.shape[-1]
        return -0.5 * torch.linalg.vecdot(z, z) - constant

    def _noise(self, generator: torch.Generator) -> Tensor:
        return torch.randn(self.mean.shape, generator=generator).to(self.mean.device)

    @property
    def mode(self) -> Tensor:
        """The means."""
        return self._shaped(self.mean)

    def _shaped(self, flat: Tensor) -> Tensor:
        return flat if len(self.shape) == 1 else flat.reshape(*flat.shape[:-1], *self.shape)

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-density, summed over the action's elements."""
        z = (action.reshape(self.mean.shape) - self.mean) * torch.exp(-self.log_std)
        return self._log_density(z)

    def entropy(self) -> Tensor:
        """In nats."""
        return (self.log_std + 0.5 * (1 + LOG_TWO_PI)).sum(-1).expand(self.mean.shape[:-1])

    def kl(self, other: Gaussian) -> Tensor:
        """KL(this | other), in nats."""
        variance, others = (2 * self.log_std).exp(), (2 * other.log_std).exp()
        spread = (variance + (self.mean - other.mean).square()) / (2 * others)
        return (other.log_std - self.log_std + spread - 0.5).sum(-1)


class SquashedGaussian(Gaussian):
    """A normal distribution whose draws go through tanh: no action is out of bounds.

    The correction of the density is that of Haarnoja et al. 2018, appendix C,
    https://arxiv.org/abs/1801.01290.
    """

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw ``[..., *shape]`` between -1 and 1."""
        return super().sample(generator).tanh()

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """:meth:`sample` and the :meth:`log_prob` of what it gave."""
        action = self.sample(generator)
        return action, self.log_prob(action)

    @property
    def mode(self) -> Tensor:
        """The medians; tanh keeps those."""
        return super().mode.tanh()

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-density, summed over the action's elements."""
        before = action.clamp(-_EDGE, _EDGE).atanh()
        bend = _log_slope(before).reshape(self.mean.shape).sum(-1)
        return super().log_prob(before) - bend

    def entropy(self) -> Tensor:
        """In nats; the mean of the bend is integrated by 16-point Gauss-Hermite quadrature."""
        points, weights = (torch.from_numpy(each).to(self.mean) for each in _QUADRATURE)
        before = self.mean[..., None] + self.log_std.exp()[..., None] * points
        return super().entropy() + (_log_slope(before) @ weights).sum(-1)


def _log_slope(before: Tensor) -> Tensor:
    """Log of the derivative of tanh, also where float32 would round it to 0."""
    return 2 * (math.log(2) - before - nn.functional.softplus(-2 * before))


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
            logits = logits.masked_fill(self.mask == 0, CLOSED)
        parts = (logits,) if not self.shape else logits.split(self.categories, -1)
        self._log_probs = [part.log_softmax(-1) for part in parts]

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw ``[..., *shape]`` int64."""
        draws = []
        for log_prob in self._log_probs:
            rows = log_prob.exp().reshape(-1, log_prob.shape[-1])
            # the quickest of exponential clocks, at the rates of the probabilities
            clocks = torch.empty(rows.shape).exponential_(generator=generator)
            chosen = (rows / clocks.to(rows.device)).argmax(-1)
            draws.append(chosen.reshape(log_prob.shape[:-1]))
        return self._shaped(draws)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """:meth:`sample` and the :meth:`log_prob` of what it gave."""
        action = self.sample(generator)
        return action, self.log_prob(action)

    @property
    def mode(self) -> Tensor:
        """The likeliest options."""
        return self._shaped([log_prob.argmax(-1) for log_prob in self._log_probs])

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-probability, summed over the choices."""
        if not self.shape:
            return self._log_probs[0].gather(-1, action.long().unsqueeze(-1)).squeeze(-1)
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
        if not self.shape:
            return choices[0]
        return torch.stack(choices, -1).reshape(*self.logits.shape[:-1], *self.shape)
