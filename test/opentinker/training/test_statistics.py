from dataclasses import replace

import numpy as np
from segments import SEGMENT, segment, statistics

from opentinker.training.statistics import sampler_names


def test_metrics_tell_each_sampler_apart():
    job = statistics(segment('ros', 1, 0), segment('sampler_0'), window=50)
    metrics = job.flat()
    assert metrics['ros.success'] == 0.5
    assert metrics['ros.episodes'] == 2
    assert metrics['sampler_0.transitions'] == 8
    assert metrics['all.transitions'] == 16
    assert metrics['sampler_0.success'] is None
    assert sampler_names(metrics) == ['ros', 'sampler_0']


def test_steps_that_never_came_are_counted():
    job = statistics(segment('ros'))
    for first in (4, 10):
        job.add(replace(SEGMENT, sampler='ros', step=np.arange(4) + first))
    assert job.flat()['ros.missing_steps'] == 2
    job.add(replace(SEGMENT, sampler='ros', step=np.array([14, 15, 18, 19])))
    assert job.flat()['ros.missing_steps'] == 4
    # another sampler counts its own steps
    job.add(replace(SEGMENT, sampler='sampler_0'))
    assert job.flat()['sampler_0.missing_steps'] == 0


def test_the_newest_reward_revision_of_a_sampler_is_told():
    job = statistics(replace(SEGMENT, sampler='ros', reward_revision=np.array([1, 1, 2, 3])))
    assert job.flat()['ros.revision'] == 3
