"""The clipped surrogate objective of PPO, Schulman et al. 2017, https://arxiv.org/abs/1707.06347."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from opentinker import registry
from opentinker.algorithms.algorithm import OPTIMIZER, Rollout
from opentinker.config import checked
from opentinker.policies.actor_critic import ActorCritic

_EPSILON = 1e-8
_STATISTICS = (
    'policy_loss', 'value_loss', 'entropy', 'approx_kl', 'clip_fraction', 'skipped_steps'
)  # fmt: skip


class ClippedSurrogateSettings(BaseModel):
    """Settings of optimizer ``clipped_surrogate``."""

    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)
    learning_rate: float = Field(1e-3, gt=0)
    final_learning_rate: float = Field(1e-4, ge=0)
    """Reached on a straight line at ``total_transitions``, and kept."""
    total_transitions: int = Field(600_000, ge=1)
    """Agent transitions over which the learning rate falls."""
    std_learning_rate_factor: float = Field(5.0, gt=0)
    """The few parameters of the action noise take larger steps."""
    epochs: int = Field(6, ge=1)
    minibatch_size: int = Field(1024, ge=1)
    clip: float = Field(0.2, gt=0)
    dual_clip: float | None = Field(None, gt=1)
    """Bound of the loss of a bad action that became likelier, in advantages (Ye et al. 2020,
    https://arxiv.org/abs/1912.09729, equation 5); null: none."""
    value_clip: float | None = Field(None, gt=0)
    """How far the critic may move from its estimate before the update; null: no bound."""
    target_kl: float | None = Field(None, gt=0)
    """An epoch whose mean divergence exceeds 1.5 times this is the last one; null: none is."""
    normalize_advantage: bool = True
    """To mean 0 and deviation 1 in each minibatch."""
    value_coefficient: float = Field(0.5, ge=0)
    entropy_coefficient: float = 0.0
    max_grad_norm: float = Field(0.5, gt=0)


@registry.register(OPTIMIZER, 'clipped_surrogate')
class ClippedSurrogate:
    """Several epochs of minibatches over a rollout, by Adam."""

    settings = ClippedSurrogateSettings
    needs = 'advantages'

    def __init__(self, **settings: Any) -> None:
        self._chosen = checked('algorithm', ClippedSurrogateSettings, settings)

    def attach(self, policy: ActorCritic) -> None:
        """Train this policy from now on."""
        self._policy = policy
        std = [] if policy.log_std is None else [policy.log_std]
        others = [p for p in policy.parameters() if p is not policy.log_std]
        self._adam = torch.optim.Adam(
            [{'params': others, 'factor': 1.0},
             {'params': std, 'factor': self._chosen.std_learning_rate_factor}], eps=1e-5
        )  # fmt: skip

    def optimize(
        self, rollout: Rollout, transitions: int, generator: torch.Generator
    ) -> dict[str, float]:
        """Improve the policy; ``transitions`` before this rollout place the learning rate."""
        rate = self._set_learning_rate(transitions)
        # pieces of equal size: a short last one would weigh as much as the others
        pieces = math.ceil(len(rollout) / self._chosen.minibatch_size)
        statistics = []
        for _ in range(self._chosen.epochs):
            for rows in torch.randperm(len(rollout), generator=generator).tensor_split(pieces):
                statistics.append(self._step(rollout, rows))
            if self._has_gone_far(statistics[-pieces:]):
                break
        mean = torch.stack(statistics).mean(0).tolist()
        return {
            **dict(zip(_STATISTICS, mean, strict=True)),
            'explained_variance': explained_variance(rollout),
            'epochs': len(statistics) / pieces,
            'learning_rate': rate,
            **noise(self._policy),
        }

    def _has_gone_far(self, epoch: list[Tensor]) -> bool:
        limit = self._chosen.target_kl
        kl = torch.stack(epoch).mean(0)[_STATISTICS.index('approx_kl')]
        return limit is not None and bool(kl > 1.5 * limit)

    def _set_learning_rate(self, transitions: int) -> float:
        first, last = self._chosen.learning_rate, self._chosen.final_learning_rate
        rate = first + (last - first) * min(transitions / self._chosen.total_transitions, 1.0)
        for group in self._adam.param_groups:
            group['lr'] = rate * group['factor']
        return rate

    def _step(self, rollout: Rollout, rows: Tensor) -> Tensor:
        """One minibatch; its values of ``_STATISTICS``."""
        observation = rollout.observation[rows]
        log_prob, entropy = self._policy.evaluate(observation, rollout.action[rows])
        log_ratio = log_prob - rollout.log_prob[rows]
        advantage = rollout.advantage[rows]
        if self._chosen.normalize_advantage:
            advantage = normalized(advantage)
        policy_loss, clipped = clipped_loss(
            log_ratio, advantage, self._chosen.clip, self._chosen.dual_clip
        )
        value_loss = critic_loss(
            self._policy.value(observation),
            rollout.value_target[rows],
            rollout.value[rows],
            self._chosen.value_clip,
        )
        loss = (
            policy_loss
            + self._chosen.value_coefficient * value_loss
            - self._chosen.entropy_coefficient * entropy
        )
        self._adam.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self._policy.parameters(), self._chosen.max_grad_norm)
        # one step with a gradient that is not finite would end the policy
        finite = norm.isfinite()
        if finite:
            self._adam.step()
            self._policy.constrain()
        # k3 of http://joschu.net/blog/kl-approx.html: unbiased, and never below 0
        kl = (log_ratio.detach().exp() - 1 - log_ratio.detach()).mean()
        values = [policy_loss, value_loss, entropy, kl, clipped, (~finite).float()]
        return torch.stack([value.detach() for value in values])

    def state_dict(self) -> dict[str, Any]:
        """Adam's state."""
        return self._adam.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self._adam.load_state_dict(state)


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
