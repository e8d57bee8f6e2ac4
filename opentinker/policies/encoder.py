"""From observations by key to what a network takes: vectors, images, masks, states."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from opentinker.data.batch import Batch
from opentinker.envs.descriptor import ArrayInfo
from opentinker.policies.networks import ImageEncoder
from opentinker.policies.normalizer import RunningNormalizer

MASK = 'action_mask'
VECTOR = 'vector'


class Encoder(nn.Module):
    """All keys but images become one vector, choices as one-hot vectors; it is standardised.

    Images are keys of three axes and type uint8. The key ``action_mask`` is left to the policy.
    """

    def __init__(self, infos: Mapping[str, ArrayInfo]) -> None:
        super().__init__()
        self._infos = dict(infos)
        self._images = [key for key, info in infos.items() if _is_image(info)]
        self._vector = [key for key in infos if key not in (*self._images, MASK)]
        self._flat = not any(infos[key].categories for key in self._vector)
        self.normalizer = RunningNormalizer(sum(_width(infos[key]) for key in self._vector))
        self.images = nn.ModuleDict(
            {_name(key): ImageEncoder(infos[key].shape) for key in self._images}
        )
        sizes = [each.outputs for each in self.images.values() if isinstance(each, ImageEncoder)]
        self.outputs = len(self.normalizer.mean) + sum(sizes)

    def vector(self, observation: Mapping[str, np.ndarray]) -> np.ndarray:
        """``[..., size]`` float32, a new array: what is no image."""
        parts = []
        for key in self._vector:
            info, values = self._infos[key], observation[key]
            lead = values.shape[: values.ndim - len(info.shape)]
            encoded = values if self._flat else _one_hot(values, info)
            parts.append(encoded.reshape(*lead, _width(info)))
        if not parts:
            key = self._images[0]
            lead = observation[key].shape[: -len(self._infos[key].shape)]
            return np.zeros((*lead, 0), np.float32)
        return np.concatenate(parts, axis=-1, dtype=np.float32)

    def inputs(self, observation: Mapping[str, np.ndarray]) -> Batch:
        """Tensors: ``vector``, and images and the mask by their keys."""
        tensors = {VECTOR: torch.from_numpy(self.vector(observation))}
        for key in [*self._images, MASK]:
            if key in self._infos:
                # a copy: what came over the wire is read-only
                tensors[key] = torch.from_numpy(np.array(observation[key]))
        return Batch(tensors)

    def forward(self, inputs: Batch) -> Tensor:
        """Features ``[..., outputs]``."""
        vector = self.normalizer(inputs[VECTOR])
        if not self._images:
            return vector
        return torch.cat(
            [vector, *(self.images[_name(key)](inputs[key]) for key in self._images)], -1
        )

    @property
    def has_images(self) -> bool:
        """Whether any key is an image."""
        return bool(self._images)


def _is_image(info: ArrayInfo) -> bool:
    return info.dtype == 'uint8' and len(info.shape) == 3


def _name(key: str) -> str:
    """A key as the name of a module, which has no dots."""
    return key.replace('.', '·')


def _width(info: ArrayInfo) -> int:
    return sum(info.categories) if info.categories else info.size


def _one_hot(values: np.ndarray, info: ArrayInfo) -> np.ndarray:
    if info.categories is None:
        return values
    columns = values.reshape(-1, info.size).T
    parts = [
        np.eye(number, dtype=np.float32)[column]
        for number, column in zip(info.categories, columns, strict=True)
    ]
    return np.concatenate(parts, axis=-1)
