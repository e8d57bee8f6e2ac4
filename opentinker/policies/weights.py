"""Weights as safetensors: written whole, loaded only when every tensor fits."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from opentinker.policies.policy import Policy, PolicyMismatchError


def save_weights(policy: Policy) -> bytes:
    """All tensors of a policy."""
    return save({name: tensor.contiguous() for name, tensor in policy.state_dict().items()})


def load_weights(policy: Policy, data: bytes) -> None:
    """Load tensors into a policy of the same architecture.

    Raises :class:`PolicyMismatchError` naming the tensor and both shapes; then nothing was changed.
    """
    try:
        tensors = load(data)
    except (SafetensorError, ValueError) as error:
        raise PolicyMismatchError(f'not safetensors: {error}') from None
    check_fit(policy, tensors)
    policy.load_state_dict(tensors)


def check_fit(policy: Policy, tensors: Mapping[str, torch.Tensor]) -> None:
    """Raise :class:`PolicyMismatchError` unless the tensors are a ``state_dict`` for the policy."""
    own = policy.state_dict()
    missing, strangers = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    if missing or strangers:
        raise PolicyMismatchError(f'missing tensors {missing}, unknown tensors {strangers}')
    for name, expected in own.items():
        tensor = tensors[name]
        if tensor.shape != expected.shape or tensor.dtype != expected.dtype:
            raise PolicyMismatchError(
                f'{name}: {tuple(tensor.shape)} {tensor.dtype}, the policy has '
                f'{tuple(expected.shape)} {expected.dtype}'
            )
        if not torch.isfinite(tensor).all():
            raise PolicyMismatchError(f'{name}: not all values are finite')
