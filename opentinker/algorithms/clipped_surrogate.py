"""The clipped surrogate objective of PPO, Schulman et al. 2017, https://arxiv.org/abs/1707.06347."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from pydantic import ConfigDict, Field
from torch import Tensor

from opentinker import registry
from opentinker.algorithms.algorithm import OPTIMIZER
from opentinker.algorithms.gradient_step import GradientStep
from opentinker.algorithms.learning_rate import LearningRateSettings, set_rate
from opentinker.algorithms.rollout import Rollout
from opentinker.config import TrainingConfig, checked
from opentinker.policies.actor_critic import ActorCritic

_EPSILON = 1e-8
_STATISTICS = (
    'loss', 'policy_loss', 'value_loss', 'entropy', 'approx_kl', 'clip_fraction', 'skipped_steps'
)  # fmt: skip


class ClippedSurrogateSettings(LearningRateSettings):
    """Settings of optimizer ``clipped_surrogate``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    final_learning_rate: float | None = Field(1e-4, ge=0)
    std_learning_rate_factor: float = Field(5.0, gt=0)
    """The few parameters of the action noise take larger steps."""
    epochs: int = Field(6, ge=1)
    minibatch_size: int = Field(1024, ge=1)
    clip: float = Field(0.2, gt=0)
    final_clip: float | None = Field(None, ge=0)
    """Reached as ``final_learning_rate`` is; null: ``clip`` does not fall."""
    dual_clip: float | None = Field(None, gt=1)
    """Bound of the loss of a bad action that became likelier, in advantages (Ye et al. 2020,
    https://arxiv.org/abs/1912.09729, equation 5); null: none."""
    value_clip: float | None = Field(None, gt=0)
    """How far the critic may move from its estimate before the update; null: no bound."""
    target_kl: float | None = Field(None, gt=0)
    """An epoch whose mean divergence exceeds 1.5 times this is the last one; null: none is."""
    normalize_advantage: bool = True
    """To mean 0 and deviation 1 in each minibatch."""
    recompute_advantage: bool = False
    """Estimate anew before each epoch, with the critic as it has become
    (https://arxiv.org/abs/2006.05990, section 3.5)."""
    value_coefficient: float = Field(0.5, ge=0)
    entropy_coefficient: float = 0.0
    max_grad_norm: float = Field(0.5, gt=0)


@registry.register(OPTIMIZER, 'clipped_surrogate')
class ClippedSurrogate:
    """Several epochs of minibatches over a rollout, by Adam."""

    settings = ClippedSurrogateSettings
    needs = 'advantages'
    tolerates_lag = True

    def __init__(self, **settings: Any) -> None:
        self._chosen = checked('algorithm', ClippedSurrogateSettings, settings)
        self.minibatch_size = self._chosen.minibatch_size

    def attach(self, policy: ActorCritic, training: TrainingConfig) -> None:
        """Train this policy from now on."""
        self._policy = policy
        self._micro = training.micro_batch
        std = [] if policy.log_std is None else [policy.log_std]
        others = [p for p in policy.parameters() if p is not policy.log_std]
        adam = torch.optim.Adam(
            [{'params': others, 'factor': 1.0},
             {'params': std, 'factor': self._chosen.std_learning_rate_factor}],
            eps=1e-5, fused=policy.device.type in ('cpu', 'cuda'),
        )  # fmt: skip
        self._step = GradientStep(policy, adam, training, self._chosen.max_grad_norm)

    def optimize(
        self,
        rollout: Rollout,
        transitions: int,
        generator: torch.Generator,
        again: Callable[[], Rollout],
    ) -> dict[str, float]:
        """Improve the policy; ``transitions`` before this rollout place learning rate and clip."""
        rate = self._chosen.rate(transitions)
        set_rate(self._step.optimizer, rate)
        self._clip = self._chosen.falling(self._chosen.clip, self._chosen.final_clip, transitions)
        explained = explained_variance(rollout)
        epochs: list[Tensor] = []
        for epoch in range(self._chosen.epochs):
            if epoch and self._chosen.recompute_advantage:
                fresh = again()
                rollout = replace(
                    rollout, advantage=fresh.advantage, value_target=fresh.value_target
                )
            epochs.append(self._epoch(rollout, generator))
            if self._has_gone_far(epochs[-1]):
                break
        mean = torch.stack(epochs).mean(0).tolist()
        return {
            **dict(zip(_STATISTICS, mean, strict=True)),
            'explained_variance': explained,
            'epochs': float(len(epochs)),
            'learning_rate': rate,
            **noise(self._policy),
        }

    def _epoch(self, rollout: Rollout, generator: torch.Generator) -> Tensor:
        """Every row once; the means of ``_STATISTICS``."""
        size = self._chosen.minibatch_size
        return torch.stack(
            [
                self._minibatch(rollout, pieces)
                for pieces in rollout.minibatches(size, generator, self._micro)
            ]
        ).mean(0)

    def _has_gone_far(self, epoch: Tensor) -> bool:
        limit = self._chosen.target_kl
        return limit is not None and bool(epoch[_STATISTICS.index('approx_kl')] > 1.5 * limit)

    def _minibatch(self, rollout: Rollout, pieces: list[Tensor]) -> Tensor:
        """One step; its values of ``_STATISTICS``."""
        advantages = [rollout.advantage[rows] for rows in pieces]
        if self._chosen.normalize_advantage:
            joined = normalized(torch.cat(advantages))
            advantages = list(joined.split([len(rows) for rows in pieces]))
        each = iter(advantages)
        return self._step(pieces, lambda rows: self._losses(rollout, rows, next(each)))

    def _losses(self, rollout: Rollout, rows: Tensor, advantage: Tensor) -> list[Tensor]:
        """Means over rows: the loss, and those of ``_STATISTICS`` that come of it."""
        chances, value = self._policy(rollout.observation[rows])
        log_ratio = chances.log_prob(rollout.action[rows]) - rollout.log_prob[rows]
        policy_loss, clipped = clipped_loss(
            log_ratio, advantage, self._clip, self._chosen.dual_clip
        )
        value_loss = critic_loss(
            value, rollout.value_target[rows], rollout.value[rows], self._chosen.value_clip
        )
        entropy = chances.entropy().mean()
        loss = (
            policy_loss
            + self._chosen.value_coefficient * value_loss
            - self._chosen.entropy_coefficient * entropy
        )
        # k3 of http://joschu.net/blog/kl-approx.html: unbiased, and never below 0
        kl = (log_ratio.detach().exp() - 1 - log_ratio.detach()).mean()
        return [loss, policy_loss, value_loss, entropy, kl, clipped]

    def state_dict(self) -> dict[str, Any]:
        """Adam's state."""
        return self._step.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._step.load_state_dict(state)


def noise(policy: ActorCritic) -> dict[str, float]:
    """The mean deviation of a policy's actions; nothing for one that makes choices."""
    return {} if policy.log_std is None else {'std': float(policy.log_std.detach().exp().mean())}


def clipped_loss(
    log_ratio: Tensor, advantage: Tensor, clip: float, dual_clip: float | None = None
) -> tuple[Tensor, Tensor]:
    """The loss (equation 7 of the paper, negated) and the share of clipped ratios."""
    ratio = log_ratio.exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    if dual_clip is not None:
        gain = torch.where(advantage < 0, torch.maximum(gain, dual_clip * advantage), gain)
    return -gain.mean(), ((ratio - 1).abs() > clip).float().mean()


def critic_loss(value: Tensor, target: Tensor, before: Tensor, clip: float | None) -> Tensor:
    """Mean squared error; with ``clip`` the worse of it and that of the value that stays so close
    to the one ``before`` the update (https://arxiv.org/abs/2005.12729, section 3).
    """
    error = (value - target).square()
    if clip is not None:
        bounded = before + (value - before).clamp(-clip, clip)
        error = torch.maximum(error, (bounded - target).square())
    return error.mean()


def normalized(advantage: Tensor) -> Tensor:
    """Mean 0 and deviation 1; a single advantage becomes 0, not NaN."""
    centred = advantage - advantage.mean()
    return centred / (centred.square().mean().sqrt() + _EPSILON)


def explained_variance(rollout: Rollout) -> float:
    """Share of the value targets' variance that the critic foresaw: at most 1, 0 for a constant."""
    spread = rollout.value_target.var(correction=0)
    missed = (rollout.value_target - rollout.value).var(correction=0)
    return float(1 - missed / spread) if spread > 0 else 0.0
