"""Plans a job to fit its budget of memory: what it does not say itself is chosen, the rest checked.

Planned are the working memory of all processes of a job without a graph, on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from opentinker.config import ConfigError, JobConfig
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.policies.actor_critic import ActorCritic
from opentinker.training.evaluation import ENVS
from opentinker.training.learner import Learner
from opentinker.training.memory import mebibytes, resident
from opentinker.training.parts import make_env, make_learner

_PROBES = 4
_ROWS = 8
_COPIES = 6
"""Of the weights: themselves, gradients, two moments of Adam, a checkpoint and its archive."""
_FEWEST_ROWS = 16
"""Smaller forward passes would save little and take for ever."""
_SPARE = 24 * 2**20
"""Fragments, libraries that are loaded late, TensorBoard's queue."""


@dataclass(frozen=True)
class Needs:
    """Bytes of the parts of a job."""

    process: int
    """A process before it has made anything."""
    environment: int
    """One of a sampler's."""
    transition: int
    """What is stored, of all groups, for an agent transition of a batch: as it came, and as a row
    of tensors."""
    row: int
    """A row on its way through the networks, with its gradients."""
    policies: int


@dataclass(frozen=True)
class Sizes:
    """What the memory of a job depends on."""

    processes: int
    samplers: int
    envs: int
    """Of each."""
    others: int
    """Environments of evaluations."""
    batch: int
    """Agent transitions of an update."""
    rows: int
    """That pass through the networks at once."""


@dataclass(frozen=True)
class Plan:
    """What the processes of a job are expected to have at most, in bytes."""

    budget: int
    parts: dict[str, int]
    config: JobConfig
    """The job with all that was chosen."""

    @property
    def total(self) -> int:
        """Of all processes together."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        parts = ', '.join(f'{name} {mebibytes(size)}' for name, size in self.parts.items())
        return f'{mebibytes(self.total)} of {mebibytes(self.budget)} ({parts})'


def plan(config: JobConfig, apart: bool = False) -> Plan | None:
    """The plan of a job; None for one without a budget.

    ``apart``: learner and samplers have processes of their own, beside the one that watches them.

    Raises ConfigError where it does not fit, telling what would.
    """
    budget = config.resources.memory
    if budget is None:
        return None
    if config.graph is not None:
        raise ConfigError('resources.memory: is planned for jobs without a graph')
    environment = _environment(config)
    learner = make_learner(config)
    needs, sizes = _needs(environment, learner), _sizes(config, learner, apart)
    for attempt in _attempts(config, sizes):
        if sum(_parts(needs, attempt).values()) <= budget:
            return Plan(budget, _parts(needs, attempt), _with(config, learner, sizes, attempt))
    raise ConfigError(_refusal(budget, needs, attempt))


def beside_plan(peak: int, plan: Plan | None) -> str:
    """The measured peak beside the plan, in words."""
    planned = f', {mebibytes(plan.total)} planned of {mebibytes(plan.budget)}' if plan else ''
    return f'{mebibytes(peak)} at most{planned}'


def _environment(config: JobConfig) -> int:
    """Bytes of one environment, from several, after the libraries of the first were loaded."""
    made = []
    try:
        for number in (1, _PROBES):
            before = resident()
            made.append(make_env(config, number, config.seed))
            made[-1].reset(config.seed)
        return max(resident() - before, 0) // _PROBES
    finally:
        for env in made:
            env.close()


def _stored(descriptor: EnvDescriptor) -> int:
    """Bytes in all groups for a transition of the batch of a group.

    Every step has transitions of all agents, and steps go on until the smallest group has a batch.
    """
    groups = descriptor.groups.values()
    smallest = min(len(group.agents) for group in groups)
    every = sum(len(group.agents) * group.transition_bytes for group in groups)
    return math.ceil(every / smallest)


def _needs(environment: int, learner: Learner) -> Needs:
    policies = learner.policies.values()
    weights = [tensor for each in policies for tensor in each.state_dict().values()]
    return Needs(
        process=resident(),
        environment=environment,
        transition=2 * _stored(learner.descriptor),
        # gradients of what is kept are as large as that
        row=max(2 * kept_for_gradients(each) for each in policies),
        policies=_COPIES * sum(tensor.nbytes for tensor in weights),
    )


def _sizes(config: JobConfig, learner: Learner, apart: bool) -> Sizes:
    """Of the job as it stands."""
    stepping = 1 + config.samplers.workers
    batch = learner.batch_size
    rows = config.training.micro_batch or min(learner.minibatch_size or batch, batch)
    return Sizes(
        processes=2 + config.samplers.count * stepping if apart else stepping,
        samplers=config.samplers.count if apart else 1,
        envs=config.samplers.envs,
        others=min(ENVS, config.evaluation.episodes) if config.evaluation.every else 0,
        batch=batch,
        rows=rows,
    )


def _attempts(config: JobConfig, sizes: Sizes) -> Iterator[Sizes]:
    """Smaller and smaller: fewer rows at once cost little, fewer environments more."""
    rows = [sizes.rows]
    if 'micro_batch' not in config.training.model_fields_set:
        rows += _halves(sizes.rows, _FEWEST_ROWS)
    envs = [sizes.envs]
    if 'envs' not in config.samplers.model_fields_set:
        envs += _halves(sizes.envs, config.samplers.workers + 1)
    for some in envs:
        for few in rows:
            yield replace(sizes, envs=some, rows=few)


def _halves(number: int, least: int) -> list[int]:
    halves = []
    while number // 2 >= least:
        number //= 2
        halves.append(number)
    return halves


def _parts(needs: Needs, sizes: Sizes) -> dict[str, int]:
    return {
        'processes': needs.process * sizes.processes + _SPARE,
        'environments': needs.environment * (sizes.envs * sizes.samplers + sizes.others),
        # the ones that are trained on, and those that are collected meanwhile
        'data': 2 * needs.transition * sizes.batch,
        'policies': needs.policies,
        'update': needs.row * sizes.rows,
    }


def _with(config: JobConfig, learner: Learner, before: Sizes, chosen: Sizes) -> JobConfig:
    """The job with the sizes that were chosen, where they are not those it has anyway."""
    planned = config.model_copy(deep=True)
    if chosen.envs != before.envs:
        planned.samplers.envs = chosen.envs
    if chosen.rows != before.rows:
        planned.training.micro_batch = chosen.rows
    if learner.takes('max_batch_size') and 'max_batch_size' not in config.algorithm:
        planned.algorithm['max_batch_size'] = chosen.rows
    return planned


def _refusal(budget: int, needs: Needs, least: Sizes) -> str:
    """Why nothing fits, and what would: more memory, fewer environments or a smaller batch."""
    parts = _parts(needs, least)
    told = ', '.join(f'{name} {mebibytes(size)}' for name, size in parts.items())
    fits = [f'memory: {-(-sum(parts.values()) // 2**20)}MiB']

    def largest(most: int, sizes: Callable[[int], dict[str, Any]]) -> int:
        """The largest number below ``most`` that fits, by halves; 0 where none does."""
        for number in _halves(most, 1):
            if sum(_parts(needs, replace(least, **sizes(number))).values()) <= budget:
                return number
        return 0

    if envs := largest(least.envs, lambda number: {'envs': number}):
        fits.append(f'samplers.envs: {envs}')
    smaller = largest(
        least.batch, lambda number: {'batch': number, 'rows': min(number, least.rows)}
    )
    if smaller:
        fits.append(f'algorithm.batch_size: {smaller}')
    return (
        f'resources.memory: {mebibytes(budget)} are less than the job needs, {told}; '
        f'what would fit: {", or ".join(fits)}'
    )


def kept_for_gradients(policy: ActorCritic) -> int:
    """Bytes that each row of a forward pass keeps until its backward pass."""
    few, more = (_kept(policy, rows) for rows in (_ROWS, 2 * _ROWS))
    return -(-(more - few) // _ROWS)


def _kept(policy: ActorCritic, rows: int) -> int:
    sizes: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    observation = policy.info.zeros(rows)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        kept = policy(policy.inputs(observation))
    del kept
    return sum(sizes.values())
