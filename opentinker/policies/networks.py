"""The networks that policies are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

Activation = Literal['tanh', 'relu']

_LAYERS: dict[str, type[nn.Module]] = {'tanh': nn.Tanh, 'relu': nn.ReLU}
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, kernel and stride of each layer, as in Mnih et al. 2015 (DQN)."""
_FEATURES = 512


def perceptron(
    size: int, hidden: Sequence[int], outputs: int, gain: float, activation: Activation = 'tanh'
) -> nn.Sequential:
    """Layers with orthogonal weights; ``gain`` scales those of the last one."""
    sizes = [size, *hidden]
    layers: list[nn.Module] = []
    for before, after in zip(sizes, hidden, strict=False):
        layers += [linear(before, after, math.sqrt(2)), _LAYERS[activation]()]
    return nn.Sequential(*layers, linear(sizes[-1], outputs, gain))


def linear(before: int, after: int, gain: float) -> nn.Linear:
    """A layer with orthogonal weights and no bias at first."""
    layer = nn.Linear(before, after)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class ImageEncoder(nn.Module):
    """Convolutions over images ``[..., height, width, channel]`` or ``[..., channel, height,
    width]`` of uint8, which stay uint8 until here. Raises ValueError for images below 36x36.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.outputs = _FEATURES
        self._shape = shape
        self._channels_last = shape[-1] < shape[0]
        height, width, channels = shape if self._channels_last else (*shape[1:], shape[0])
        layers: list[nn.Module] = []
        for filters, kernel, stride in _CONVOLUTIONS:
            convolution = nn.Conv2d(channels, filters, kernel, stride)
            nn.init.orthogonal_(convolution.weight, math.sqrt(2))
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
            layers += [convolution, nn.ReLU()]
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
            channels = filters
        if min(height, width) < 1:
            raise ValueError(f'images of shape {shape} are smaller than 36x36')
        size = channels * height * width
        self.layers = nn.Sequential(
            *layers, nn.Flatten(), linear(size, _FEATURES, math.sqrt(2)), nn.ReLU()
        )

    def forward(self, images: Tensor) -> Tensor:
        """``[..., features]``."""
        rows = images.reshape(-1, *self._shape)
        if self._channels_last:
            rows = rows.movedim(-1, 1)
        return self.layers(rows.float() / 255).reshape(
            *images.shape[: images.ndim - len(self._shape)], -1
        )


class Memory(nn.Module):
    """A gated recurrent unit, Cho et al. 2014, https://arxiv.org/abs/1406.1078."""

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.cell = nn.GRU(inputs, units)
        for parameter in self.cell.parameters():
            if parameter.ndim == 1:
                nn.init.zeros_(parameter)
            else:
                nn.init.orthogonal_(parameter)

    def step(self, features: Tensor, state: Tensor) -> Tensor:
        """``[..., units]``: the state after one step; it is the output, too."""
        rows, before = features.reshape(1, -1, features.shape[-1]), state.reshape(1, -1, self.units)
        return self.cell(rows, before.contiguous())[1].reshape(state.shape)

    def unroll(self, features: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """Outputs ``[n, units]`` of sequences laid end to end.

        ``first`` (``[n]`` bool) marks where each begins; only its row of ``state`` counts.
        """
        (starts,) = torch.nonzero(first, as_tuple=True)
        lengths = torch.diff(starts, append=starts.new_tensor([len(first)])).tolist()
        packed = nn.utils.rnn.pack_sequence(features.split(lengths), enforce_sorted=False)
        outputs, _ = self.cell(packed, state[starts][None])
        return torch.cat(nn.utils.rnn.unpack_sequence(outputs))
