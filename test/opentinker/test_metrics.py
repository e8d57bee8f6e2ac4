import pytest

from opentinker import metrics
from opentinker.metrics import Rate


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(metrics.time, 'monotonic', lambda: now[0])
    return now


def test_a_rate_is_taken_over_the_time_since_the_start_at_first(clock):
    rate = Rate(window_s=10)
    clock[0] += 2
    rate.add(30)
    assert rate.per_second == 15


def test_a_rate_forgets_what_is_older_than_its_window(clock):
    rate = Rate(window_s=10)
    rate.add(1000)
    clock[0] += 9
    rate.add(20)
    clock[0] += 2
    assert rate.per_second == 2
    clock[0] += 20
    assert rate.per_second == 0
