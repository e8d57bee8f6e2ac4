"""The learner: segments in, better policies out. No sockets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save

from opentinker import registry
from opentinker.algorithms.algorithm import Algorithm, build
from opentinker.config import ConfigError
from opentinker.data.segment import Segment
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.rewards import RewardSpec
from opentinker.policies.actor_critic import ActorCritic
from opentinker.policies.policy import KIND
from opentinker.policies.weights import load_weights, save_weights

TOTAL_TRANSITIONS = 600_000


class UnfitSegmentError(ValueError):
    """A segment that must not be trained on: from whom, where, and what is wrong with it."""


class Learner:
    """One policy a group, shared by its agents, each trained by the algorithm of the job."""

    def __init__(
        self,
        descriptor: EnvDescriptor,
        policy: Mapping[str, Any],
        algorithm: Mapping[str, Any],
        rewards: RewardSpec,
        seed: int,
    ) -> None:
        self.descriptor = descriptor
        self.rewards = rewards
        """The rewards of the next update; older data are re-scored under them."""
        settings = dict(policy)
        factory = registry.get(KIND, settings.pop('name'))
        self.policies: dict[str, ActorCritic] = {
            group: factory(descriptor, group, seed=seed, **settings) for group in descriptor.groups
        }
        algorithm = dict(algorithm)
        self._total = _total(algorithm.pop('total_transitions', TOTAL_TRANSITIONS))
        self._algorithms: dict[str, Algorithm] = {}
        for group, own in self.policies.items():
            self._algorithms[group] = build(algorithm)
            self._algorithms[group].optimizer.attach(own)
        self.versions = dict.fromkeys(descriptor.groups, 0)
        self.transitions = 0
        """Agent transitions trained on."""
        torch.manual_seed(seed)

    @property
    def batch_size(self) -> int:
        """Agent transitions that make an update."""
        return max(each.sampler.batch_size for each in self._algorithms.values())

    def add(self, segment: Segment) -> None:
        """Take a segment. Raises :class:`UnfitSegmentError` and takes nothing where it is unfit."""
        check(segment, self.descriptor)
        self._algorithms[segment.group].sampler.add(segment)

    def ready(self) -> bool:
        """Whether every group has a batch."""
        return all(each.sampler.ready() for each in self._algorithms.values())

    def update(self) -> dict[str, float]:
        """One update of every group's policy under the newest rewards; its metrics."""
        metrics: dict[str, float] = {}
        for group, algorithm in self._algorithms.items():
            segments = [self._rescored(each) for each in algorithm.sampler.take()]
            result = self._update_group(group, algorithm, segments)
            prefix = f'{group}/' if len(self.policies) > 1 else ''
            metrics |= {prefix + key: value for key, value in result.items()}
        return {'transitions': self.transitions, **metrics}

    def _update_group(
        self, group: str, algorithm: Algorithm, segments: list[Segment]
    ) -> dict[str, float]:
        policy = self.policies[group]
        rollout = algorithm.estimator.estimate(policy, segments)
        result = algorithm.optimizer.optimize(rollout, self.transitions / self._total)
        # after the update: the ratios of this rollout belong to the old statistics
        policy.normalizer.update(rollout.observation)
        lags = np.concatenate([self.versions[group] - each.policy_version for each in segments])
        self.versions[group] += 1
        self.transitions += sum(each.transitions for each in segments)
        reward = np.concatenate([each.reward[each.active] for each in segments])
        return {
            **result,
            'reward': float(reward.mean()),
            'lag': float(lags.mean()),
            'max_lag': float(lags.max()),
        }

    def _rescored(self, segment: Segment) -> Segment:
        if (segment.reward_revision == self.rewards.revision).all():
            return segment
        return dataclasses.replace(segment, reward=self.rewards.evaluate(segment.signals)[1])

    def checkpoint(self) -> bytes:
        """Weights, optimizer states, counters and random state, as safetensors."""
        tensors = {'torch_rng': torch.get_rng_state()}
        rest: dict[str, Any] = {
            'versions': self.versions,
            'transitions': self.transitions,
            'rewards': self.rewards.model_dump(),
            'descriptor': self.descriptor.crc(),
        }
        for group, policy in self.policies.items():
            tensors |= {f'{group}/policy/{key}': v for key, v in load(save_weights(policy)).items()}
            adam = self._algorithms[group].optimizer.state_dict()
            for index, state in adam['state'].items():
                for key, value in state.items():
                    tensors[f'{group}/optimizer/{index}/{key}'] = torch.as_tensor(value).clone()
            rest[f'{group}/param_groups'] = adam['param_groups']
        return save(tensors, metadata={'learner': json.dumps(rest)})

    def restore(self, data: bytes) -> None:
        """Go on from :meth:`checkpoint`. Raises ConfigError where it is not of this job."""
        size = int.from_bytes(data[:8], 'little')
        rest = json.loads(json.loads(data[8 : 8 + size])['__metadata__']['learner'])
        if rest['descriptor'] != self.descriptor.crc():
            raise ConfigError('the checkpoint belongs to another environment')
        tensors = load(data)
        for group, policy in self.policies.items():
            own = _below(tensors, f'{group}/policy/')
            load_weights(policy, save(own))
            states: dict[int, dict[str, Any]] = {}
            for name, value in _below(tensors, f'{group}/optimizer/').items():
                index, key = name.split('/')
                states.setdefault(int(index), {})[key] = value
            self._algorithms[group].optimizer.load_state_dict(
                {'state': states, 'param_groups': rest[f'{group}/param_groups']}
            )
        self.versions, self.transitions = rest['versions'], rest['transitions']
        self.rewards = RewardSpec.model_validate(rest['rewards'])
        torch.set_rng_state(tensors['torch_rng'])


def check(segment: Segment, descriptor: EnvDescriptor) -> None:
    """Raise :class:`UnfitSegmentError` for an unknown group, a wrong shape or a non-finite value."""
    info = descriptor.groups.get(segment.group)
    if info is None:
        raise UnfitSegmentError(f'unknown group {segment.group!r}')
    shapes = {key: array.shape for key, array in info.observation.items()}
    for key, shape in shapes.items():
        for tree in (segment.observation, segment.last_observation, segment.final_observation):
            if key not in tree or tree[key].shape[tree[key].ndim - len(shape) :] != shape:
                raise UnfitSegmentError(f'observation {key!r} is not [..., *{shape}]')
    arrays = {**segment.observation, **segment.signals}
    for key in ('action', 'log_prob', 'reward'):
        arrays[key] = getattr(segment, key)
    for key, values in arrays.items():
        if values.dtype.kind == 'f' and not np.isfinite(values).all():
            step = segment.step[np.argwhere(~np.isfinite(values))[0][0]]
            raise UnfitSegmentError(f'{key!r} is not finite at step {step}')
    for name in ('last_observation', 'final_observation'):
        for key, array in getattr(segment, name).items():
            if array.dtype.kind == 'f' and not np.isfinite(array).all():
                raise UnfitSegmentError(f'{name} {key!r} is not finite')


def _below(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _total(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f'algorithm.total_transitions: a whole number above 0, not {value!r}')
    return value
