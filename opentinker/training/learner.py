"""The learner: segments in, better policies out. No sockets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker.algorithms.algorithm import Algorithm, build
from opentinker.config import TrainingConfig
from opentinker.data.archive import ArchiveError, pack, unpack
from opentinker.data.segment import Segment
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.rewards import RewardSpec
from opentinker.policies.policy import PolicyMismatchError, make_policy
from opentinker.policies.weights import check_fit
from opentinker.training.machine import compile_networks, device
from opentinker.training.segment_check import check

_FORMAT = 1
"""Of a checkpoint; another one for every change after which older ones cannot be read."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or that belongs to something else; nothing was changed."""


class Learner:
    """One policy a group, shared by its agents, each trained by the algorithm of the job."""

    def __init__(
        self,
        descriptor: EnvDescriptor,
        policy: Mapping[str, Any],
        algorithm: Mapping[str, Any],
        rewards: RewardSpec,
        seed: int,
        training: TrainingConfig | None = None,
    ) -> None:
        training = training or TrainingConfig()
        self.descriptor = descriptor
        self.rewards = rewards
        """The rewards of the next update; older data are re-scored under them."""
        self.policies: dict[str, Any] = {
            group: make_policy(policy, descriptor, group, seed).to(device(training))
            for group in descriptor.groups
        }
        self._algorithms: dict[str, Algorithm] = {
            group: build(algorithm) for group in self.policies
        }
        for group, each in self._algorithms.items():
            each.train(self.policies[group], seed, training)
        if training.compile:
            for own in self.policies.values():
                compile_networks(own)
        self.versions = dict.fromkeys(self.policies, 0)

    @property
    def batch_size(self) -> int:
        """Agent transitions that make an update."""
        return max(each.sampler.batch_size for each in self._algorithms.values())

    @property
    def minibatch_size(self) -> int | None:
        """Rows of a gradient step; None: those of a batch."""
        sizes = [each.optimizer.minibatch_size for each in self._algorithms.values()]
        return max((size for size in sizes if size is not None), default=None)

    @property
    def tolerates_lag(self) -> bool:
        """Whether the algorithm may train on what a somewhat older policy did."""
        return all(each.tolerates_lag for each in self._algorithms.values())

    def takes(self, key: str) -> bool:
        """Whether the algorithm of the job has such a setting."""
        return all(each.takes(key) for each in self._algorithms.values())

    @property
    def transitions(self) -> int:
        """Agent transitions trained on."""
        return sum(each.transitions for each in self._algorithms.values())

    def add(self, segment: Segment) -> None:
        """Take a segment. Raises UnfitSegmentError and takes nothing where it is unfit."""
        own = self.policies.get(segment.group)
        check(segment, self.descriptor, own.state if own else None)
        self._algorithms[segment.group].sampler.add(segment)

    def ready(self) -> bool:
        """Whether every group has a batch."""
        return all(each.sampler.ready() for each in self._algorithms.values())

    def update(self) -> dict[str, float]:
        """One update of every group's policy under the newest rewards; its metrics."""
        metrics: dict[str, float] = {}
        for group, algorithm in self._algorithms.items():
            segments = [self._rescored(each) for each in algorithm.sampler.take()]
            result = {**self.policies[group].update(segments), **self._about(group, segments)}
            self.versions[group] += 1
            prefix = f'{group}/' if len(self.policies) > 1 else ''
            metrics |= {prefix + key: value for key, value in result.items()}
        return {'transitions': self.transitions, **metrics}

    def _rescored(self, segment: Segment) -> Segment:
        if (segment.reward_revision == self.rewards.revision).all():
            return segment
        return dataclasses.replace(segment, reward=self.rewards.evaluate(segment.signals)[1])

    def _about(self, group: str, segments: list[Segment]) -> dict[str, float]:
        """What an update was made of: mean reward, and by how many versions the data lagged."""
        reward = np.concatenate([each.reward[each.active] for each in segments])
        lags = np.concatenate([self.versions[group] - each.policy_version for each in segments])
        return {
            'reward': float(reward.mean()),
            'lag': float(lags.mean()),
            'max_lag': float(lags.max()),
        }

    def checkpoint(self, **more: Any) -> bytes:
        """Weights, optimizer states, counters and random state, to :meth:`restore` from.

        ``more`` goes along for whoever trains.
        """
        return pack(
            {
                **more,
                'format': _FORMAT,
                'descriptor': self.descriptor.crc(),
                'rewards': self.rewards.model_dump(),
                'groups': {
                    group: {
                        'version': self.versions[group],
                        'policy': policy.state_dict(),
                        'algorithm': self._algorithms[group].state_dict(),
                    }
                    for group, policy in self.policies.items()
                },
            }
        )

    def restore(self, data: bytes) -> dict[str, Any]:
        """Go on from :meth:`checkpoint`; returns all that it holds.

        Raises CheckpointError, and changes nothing, where it is not of such a job.
        """
        try:
            state = unpack(data)
            self._check_state(state)
        except (ArchiveError, LookupError, TypeError, AttributeError, PolicyMismatchError) as error:
            raise CheckpointError(f'the checkpoint does not fit this job: {error}') from None
        for group, own in state['groups'].items():
            self.policies[group].load_state_dict(own['policy'])
            self._algorithms[group].load_state_dict(own['algorithm'])
            self.versions[group] = own['version']
        self.rewards = RewardSpec.model_validate(state['rewards'])
        return dict(state)

    def _check_state(self, state: Any) -> None:
        if state['format'] != _FORMAT:
            raise CheckpointError(
                f'the checkpoint is of format {state["format"]}, this version reads {_FORMAT}'
            )
        if state['descriptor'] != self.descriptor.crc():
            raise CheckpointError('the checkpoint belongs to another environment')
        if state['groups'].keys() != self.policies.keys():
            raise CheckpointError(f'the checkpoint has other groups: {list(state["groups"])}')
        RewardSpec.model_validate(state['rewards'])
        for group, own in state['groups'].items():
            check_fit(self.policies[group], own['policy'])
            name, expected = own['algorithm']['name'], self._algorithms[group].name
            if name != expected:
                raise CheckpointError(f'the checkpoint is of algorithm {name}, not {expected}')
