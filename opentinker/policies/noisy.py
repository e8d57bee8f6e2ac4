"""Noise in the weights instead of in the actions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class NoisyLinear(nn.Module):
    """A layer whose weights are drawn anew by :meth:`resample`, factorised Gaussian noise around
    what is learnt; how much of it is learnt, too. Fortunato et al. 2018,
    https://arxiv.org/abs/1706.10295, section 3 (b).

    Noise is on while ``noisy`` is; a fresh layer has drawn none yet.
    """

    noise_in: Tensor
    noise_out: Tensor

    def __init__(self, inputs: int, outputs: int, std: float = 0.5) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_std = nn.Parameter(torch.full((outputs, inputs), std * bound))
        self.bias_std = nn.Parameter(torch.full((outputs,), std * bound))
        self.noisy = True
        # no part of the weights: drawn before every use
        self.register_buffer('noise_in', torch.zeros(inputs), persistent=False)
        self.register_buffer('noise_out', torch.zeros(outputs), persistent=False)

    def resample(self, generator: torch.Generator) -> None:
        """Draw the noise of the next forward passes."""
        for noise in (self.noise_in, self.noise_out):
            drawn = torch.randn(noise.shape, generator=generator)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())

    def forward(self, features: Tensor) -> Tensor:
        """``[..., outputs]``."""
        if not self.noisy:
            return nn.functional.linear(features, self.weight, self.bias)
        weight = self.weight + self.weight_std * torch.outer(self.noise_out, self.noise_in)
        return nn.functional.linear(features, weight, self.bias + self.bias_std * self.noise_out)
