"""Observation normalisation by running mean and variance."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_EPSILON = 1e-8


class RunningNormalizer(torch.nn.Module):
    """Standardises vectors by statistics over all that was given to :meth:`update`.

    Acting and evaluating never move the statistics; they travel with the weights. Batches are
    merged as in Chan et al. 1979, "Updating formulae and a pairwise algorithm for computing sample
    variances".
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, size: int, clip: float = 10.0) -> None:
        super().__init__()
        self._clip = clip
        self._written: tuple[int, ...] = ()
        """Which memory, and how often written, the statistics are of that numpy has."""
        self.register_buffer('mean', torch.zeros(size))
        self.register_buffer('variance', torch.ones(size))
        self.register_buffer('count', torch.zeros((), dtype=torch.float64))

    def forward(self, values: Tensor) -> Tensor:
        """``[..., size]`` to the same shape, clipped."""
        scale = torch.rsqrt(self.variance + _EPSILON)
        return ((values - self.mean) * scale).clamp(-self._clip, self._clip)

    def fast(self, values: np.ndarray) -> np.ndarray:
        """The same by numpy, in place, for acting on the CPU."""
        written = (self.mean.data_ptr(), self.mean._version, self.variance._version)
        if written != self._written:
            self._written = written
            self._center = self.mean.numpy()
            self._scale = 1 / np.sqrt(self.variance.numpy() + np.float32(_EPSILON))
        values -= self._center
        values *= self._scale
        np.maximum(values, -self._clip, out=values)
        return np.minimum(values, self._clip, out=values)

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Take ``[n, size]`` into the statistics."""
        number = len(values)
        if not number:
            return
        total = float(self.count) + number
        share = number / total
        mean = values.mean(0)
        variance = values.var(0, correction=0)
        delta = mean - self.mean
        self.variance += (variance - self.variance) * share + delta**2 * share * (1 - share)
        self.mean += delta * share
        self.count.fill_(total)
