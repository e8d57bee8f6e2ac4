import pytest
from segments import segment, statistics

from opentinker.config import StopConfig
from opentinker.training.stop_rule import stop_reason

RULE = StopConfig(success=0.5, of='ros', episodes=4)


@pytest.mark.parametrize(
    ('segments', 'stops'),
    [
        ([], False),
        ([segment('ros', 1, 1, 1)], False),
        ([segment('ros', 0, 0, 1, 1)], True),
        ([segment('ros', 0, 0, 0, 1), segment('ros', 1)], True),
        ([segment('ros', 1, 1, 1, 1), segment('ros', 0, 0, 0)], False),
        ([segment('sampler_0', 1, 1, 1, 1)], False),
    ],
)
def test_success_counts_over_the_last_episodes_of_the_sampler_asked_for(segments, stops):
    assert bool(stop_reason(RULE, statistics(*segments), 0)) is stops


def test_success_counts_over_all_samplers_where_none_is_named():
    job = statistics(segment('ros', 0, 1), segment('sampler_0', 1, 1))
    reason = stop_reason(StopConfig(success=0.75, episodes=4), job, 0)
    assert reason == 'success 0.75 over the last 4 episodes of all samplers reached 0.75'


def test_time_ends_a_job():
    rule = StopConfig(minutes=2)
    assert stop_reason(rule, statistics(), 119.9) == ''
    assert stop_reason(rule, statistics(), 120) == '2 minutes are over'


def test_a_rule_without_conditions_never_ends_a_job():
    assert stop_reason(StopConfig(), statistics(segment('ros', 1, 1, 1, 1)), 1e9) == ''
