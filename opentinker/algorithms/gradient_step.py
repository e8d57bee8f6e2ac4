"""One step of a torch optimizer: precision, accumulation, clipping, and no step off a cliff."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from opentinker.config import TrainingConfig
from opentinker.policies.policy import Policy


class GradientStep:
    """Computes gradients piece by piece, clips their norm, and steps where they are finite."""

    def __init__(
        self,
        policy: Policy,
        optimizer: torch.optim.Optimizer,
        training: TrainingConfig,
        max_grad_norm: float | None = None,
    ) -> None:
        self.optimizer = optimizer
        self._parameters = [p for group in optimizer.param_groups for p in group['params']]
        self._policy = policy
        self._max_norm = max_grad_norm
        self._device = policy.device.type
        self._dtype = getattr(torch, training.precision)
        scales = self._dtype is torch.float16
        self._scaler = torch.amp.GradScaler(self._device, enabled=scales)

    def __call__(self, pieces: list[Tensor], loss: Callable[[Tensor], list[Tensor]]) -> Tensor:
        """Step down the mean of a loss over the rows of all pieces.

        ``loss(rows)`` is a list of means over those rows, of which the first is the loss. Returns
        their means over all rows, and last whether the step was left out, 0 or 1.
        """
        number = sum(len(piece) for piece in pieces)
        self.optimizer.zero_grad()
        sums: Tensor | None = None
        for rows in pieces:
            share = len(rows) / number
            with self._autocast():
                values = loss(rows)
            total = values[0] if share == 1 else values[0] * share
            self._scaler.scale(total).backward()
            part = torch.stack([value.detach().float() for value in values]) * share
            sums = part if sums is None else sums + part
        assert sums is not None
        return torch.cat([sums, self._step()[None].to(sums)])

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self._device, self._dtype)

    def _step(self) -> Tensor:
        self._scaler.unscale_(self.optimizer)
        limit = float('inf') if self._max_norm is None else self._max_norm
        norm = nn.utils.clip_grad_norm_(self._parameters, limit)
        # one step with a gradient that is not finite would end the policy; with float16 it only
        # tells the scaler to scale less
        finite = norm.isfinite()
        if finite or self._scaler.is_enabled():
            self._scaler.step(self.optimizer)
        self._scaler.update()
        if finite:
            self._policy.constrain()
        return ~finite

    def state_dict(self) -> dict[str, Any]:
        """The states of optimizer and scaler."""
        return {'optimizer': self.optimizer.state_dict(), 'scaler': self._scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self.optimizer.load_state_dict(state['optimizer'])
        if self._scaler.is_enabled():
            self._scaler.load_state_dict(state['scaler'])
