"""What ends a job by itself."""

from __future__ import annotations

from opentinker.config import StopConfig
from opentinker.training.statistics import JobStatistics


def stop_reason(rule: StopConfig, statistics: JobStatistics, seconds: float) -> str:
    """Why the job is at its end after ``seconds``; empty while it goes on."""
    for key, wanted in (('success', rule.success), ('return', rule.mean_return)):
        if wanted is None:
            continue
        sampler = statistics.of(rule.of)
        mean = sampler.mean(key)
        if mean is not None and sampler.full(key) and mean >= wanted:
            whose = rule.of or 'all samplers'
            return (
                f'{key} {mean:.2f} over the last {rule.episodes} episodes of {whose} '
                f'reached {wanted:g}'
            )
    if rule.transitions is not None and statistics.all.transitions >= rule.transitions:
        return f'{statistics.all.transitions:,} transitions were sampled'
    if rule.minutes is not None and seconds >= 60 * rule.minutes:
        return f'{rule.minutes:g} minutes are over'
    return ''
