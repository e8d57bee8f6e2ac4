"""What a segment must be before anything is learnt from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from opentinker.data.segment import Segment
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo


class UnfitSegmentError(ValueError):
    """A segment that must not be trained on: what is wrong with it, and at which step."""


def check(
    segment: Segment, descriptor: EnvDescriptor, state: Mapping[str, ArrayInfo] | None = None
) -> None:
    """Raise :class:`UnfitSegmentError` for one that does not fit the environment or itself.

    ``state`` is what the policy remembers (``Policy.state``), which is among its observations.
    The axes ``[T, E, A]`` of its arrays are taken to agree, as decoding sees to.
    """
    info = descriptor.groups.get(segment.group)
    if info is None:
        known = ', '.join(descriptor.groups)
        raise UnfitSegmentError(f'unknown group {segment.group!r}; groups: {known}')
    _check_shapes(segment, info, state or {})
    _check_ends(segment)
    _check_finite(segment)


def _check_shapes(segment: Segment, info: GroupInfo, state: Mapping[str, ArrayInfo]) -> None:
    expected = {key: array.shape for key, array in {**info.observation, **state}.items()}
    for name, lead in (('observation', 3), ('last_observation', 2), ('final_observation', 2)):
        observation = getattr(segment, name)
        for key, shape in expected.items():
            if key not in observation:
                raise UnfitSegmentError(f'{name} {key!r} is missing')
            _check_shape(f'{name} {key!r}', observation[key], lead, shape)
    _check_shape("'action'", segment.action, 3, info.action.shape)
    if len(info.agents) != segment.active.shape[2]:
        raise UnfitSegmentError(f'{segment.active.shape[2]} agents, expected {len(info.agents)}')
    missing = set(info.signals) - segment.signals.keys()
    if missing:
        raise UnfitSegmentError(f'signals {sorted(missing)} are missing')


def _check_shape(what: str, values: np.ndarray, lead: int, shape: tuple[int, ...]) -> None:
    if values.shape[lead:] != shape:
        raise UnfitSegmentError(
            f'{what} has shape {values.shape[lead:]} an agent, the environment {shape}'
        )


def _check_ends(segment: Segment) -> None:
    """Without its true last observation, an episode would be bootstrapped from the next one."""
    ends = np.argwhere(segment.terminated | segment.truncated)
    given = np.unique(segment.final_index, axis=0)
    if len(given) != len(segment.final_index) or not np.array_equal(given, ends):
        raise UnfitSegmentError(
            f'{len(ends)} episodes ended, but final_index names {len(segment.final_index)} steps '
            'or other ones'
        )


def _check_finite(segment: Segment) -> None:
    for key, values in _by_step(segment):
        if values.dtype.kind == 'f' and not np.isfinite(values).all():
            row, env = np.argwhere(~np.isfinite(values))[0][:2]
            raise UnfitSegmentError(
                f'{key!r} is not finite at step {segment.step[row]} of environment {env}'
            )
    for name in ('last_observation', 'final_observation'):
        for key, values in getattr(segment, name).items():
            if values.dtype.kind == 'f' and not np.isfinite(values).all():
                raise UnfitSegmentError(f'{name} {key!r} is not finite')


def _by_step(segment: Segment) -> Iterator[tuple[str, np.ndarray]]:
    yield from segment.observation.items()
    yield from segment.signals.items()
    for key in ('action', 'log_prob', 'reward'):
        yield key, getattr(segment, key)
