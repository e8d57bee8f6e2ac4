"""Acting by numpy: the same results as the torch modules, for a few rows at a time.

In a control loop torch spends most of its time on its own machinery. Weights are shared, so that
training shows at once, and random numbers come from the same generator.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from opentinker.policies.distributions import CLOSED, LOG_TWO_PI


class FastPerceptron:
    """The same outputs as a :func:`perceptron` on the CPU."""

    def __init__(self, layers: nn.Sequential) -> None:
        self._parameters = list(layers.parameters())
        self._activation: Callable[..., object] = _relu
        if isinstance(layers[1], nn.Tanh):
            self._activation = np.tanh
        self._addresses: tuple[int, ...] = ()

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """``[..., size]`` float32 to ``[..., outputs]``."""
        addresses = tuple([parameter.data_ptr() for parameter in self._parameters])
        if addresses != self._addresses:
            self._look_up(addresses)
        # numpy multiplies a matrix at once, and more axes one by one
        rows = values.reshape(-1, values.shape[-1])
        for weight, bias in self._hidden:
            rows = rows @ weight
            rows += bias
            self._activation(rows, rows)
        weight, bias = self._last
        rows = rows @ weight
        rows += bias
        return rows.reshape(*values.shape[:-1], rows.shape[-1])

    def _look_up(self, addresses: tuple[int, ...]) -> None:
        """See the memory that the parameters have now; some operations give them another."""
        arrays = [parameter.detach().numpy() for parameter in self._parameters]
        *self._hidden, self._last = [
            (weight.T, bias) for weight, bias in zip(arrays[::2], arrays[1::2], strict=True)
        ]
        self._addresses = addresses


def _relu(values: np.ndarray, out: np.ndarray) -> None:
    np.maximum(values, 0, out=out)


def draw_gaussian(
    mean: np.ndarray, log_std: np.ndarray, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """What ``Gaussian(mean, log_std, ...).draw(generator)`` gives."""
    noise = torch.randn(mean.shape, generator=generator).numpy()
    action = np.exp(log_std) * noise
    action += mean
    constant = log_std.sum() + 0.5 * LOG_TWO_PI * mean.shape[-1]
    log_prob = np.einsum('...i,...i->...', noise, noise)
    log_prob *= -0.5
    log_prob -= constant
    return action, log_prob


def draw_choice(
    logits: np.ndarray, mask: np.ndarray | None, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """What ``Categorical(logits, ...).draw(generator)`` gives for a single choice, ``[...]``."""
    if mask is not None:
        logits = np.where(mask == 0, np.float32(CLOSED), logits)
    shifted = logits - logits.max(-1, keepdims=True)
    chances = np.exp(shifted)
    total = chances.sum(-1, keepdims=True)
    rows = (chances.size // chances.shape[-1], chances.shape[-1])
    clocks = torch.empty(rows).exponential_(generator=generator).numpy().reshape(chances.shape)
    action = (chances / clocks).argmax(-1)
    shifted -= np.log(total)
    every = np.arange(rows[0])
    return action, shifted.reshape(rows)[every, action.ravel()].reshape(action.shape)
