"""What ends a job by itself."""

from __future__ import annotations

from opentinker.config import StopConfig
from opentinker.training.statistics import JobStatistics


def stop_reason(rule: StopConfig, statistics: JobStatistics, seconds: float) -> str:
    """Why the job is at its end after ``seconds``; empty while it goes on."""
    if rule.success is not None:
        sampler = statistics.of(rule.of)
        success = sampler.mean('success')
        if success is not None and sampler.full('success') and success >= rule.success:
            whose = rule.of or 'all samplers'
            return (
                f'success {success:.2f} over the last {rule.episodes} episodes of {whose} '
                f'reached {rule.success:g}'
            )
    if rule.minutes is not None and seconds >= 60 * rule.minutes:
        return f'{rule.minutes:g} minutes are over'
    return ''
