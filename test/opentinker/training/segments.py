"""Small segments for the tests of this folder."""

from dataclasses import replace

import numpy as np

from opentinker.data.segment import Segment
from opentinker.training.statistics import JobStatistics

SEGMENT = Segment(
    group='arm',
    observation={},
    last_observation={},
    action=np.zeros((4, 2, 1, 1)),
    log_prob=np.zeros((4, 2, 1)),
    reward=np.zeros((4, 2, 1)),
    signals={},
    active=np.ones((4, 2, 1), bool),
    terminated=np.zeros((4, 2), bool),
    truncated=np.zeros((4, 2), bool),
    final_index=np.zeros((0, 2), np.int64),
    final_observation={},
    policy_version=np.zeros(4),
    reward_revision=np.zeros(4),
    step=np.arange(4),
)


def segment(sampler: str, *successes: float) -> Segment:
    return replace(SEGMENT, sampler=sampler, episodes={'success': np.array(successes)})


def statistics(*segments: Segment, window: int = 4) -> JobStatistics:
    job = JobStatistics(window)
    for item in segments:
        job.add(item)
    return job
