"""What a Q network says of its actions: a value, or a distribution of returns."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Layers = Callable[[int], nn.Sequential]
"""From a number of outputs to the layers that have them."""


class QHead(nn.Module):
    """One value an action. ``dueling`` splits it into that of the state and what the action adds,
    Wang et al. 2016, https://arxiv.org/abs/1511.06581, equation 9.
    """

    def __init__(self, layers: Layers, actions: int, dueling: bool, atoms: int = 1) -> None:
        super().__init__()
        self.actions, self.atoms = actions, atoms
        self.advantage = layers(actions * atoms)
        self.state_value = layers(atoms) if dueling else None

    def forward(self, features: Tensor) -> Tensor:
        """``[..., actions, atoms]``."""
        advantage = self.advantage(features).unflatten(-1, (self.actions, self.atoms))
        if self.state_value is None:
            return advantage
        state_value = self.state_value(features).unsqueeze(-2)
        return state_value + advantage - advantage.mean(-2, keepdim=True)

    def values(self, output: Tensor) -> Tensor:
        """``[..., actions]``: the expected returns in what :meth:`forward` gave."""
        return output.squeeze(-1)


class QuantileHead(QHead):
    """The return by quantiles of equal weight, Dabney et al. 2018,
    https://arxiv.org/abs/1710.10044.
    """

    shares: Tensor
    """``[quantiles]``: the part of the probability below each."""

    def __init__(self, layers: Layers, actions: int, dueling: bool, quantiles: int) -> None:
        super().__init__(layers, actions, dueling, quantiles)
        # the middles of the quantiles' shares, equation 9
        shares = (torch.arange(quantiles) + 0.5) / quantiles
        self.register_buffer('shares', shares, persistent=False)

    def values(self, output: Tensor) -> Tensor:
        """Their mean."""
        return output.mean(-1)


class CategoricalHead(QHead):
    """Probabilities of fixed returns, Bellemare et al. 2017, https://arxiv.org/abs/1707.06887;
    the outputs are their logits.
    """

    support: Tensor
    """``[atoms]``: the returns."""

    def __init__(
        self,
        layers: Layers,
        actions: int,
        dueling: bool,
        atoms: int,
        value_range: tuple[float, float],
    ) -> None:
        super().__init__(layers, actions, dueling, atoms)
        self.register_buffer('support', torch.linspace(*value_range, atoms), persistent=False)

    def values(self, output: Tensor) -> Tensor:
        """Their expectation."""
        return output.softmax(-1) @ self.support
