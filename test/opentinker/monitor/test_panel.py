import io
import threading
from collections.abc import Iterator

import pytest
from rich.console import Console

from opentinker.bus.coordinator import CoordinatorBus
from opentinker.bus.messages import Welcome
from opentinker.config import JobConfig, StopConfig
from opentinker.envs.rewards import RewardSpec, TermSettings
from opentinker.monitor.job_view import JobView
from opentinker.monitor.panel import JobPanel, progress_line, render
from opentinker.training.run_directory import RunDirectory

METRICS = {
    'seconds': 35.2,
    'version': 12,
    'revision': 3,
    'all.transitions': 123456,
    'all.transitions_per_s': 8123.4,
    'ros.transitions': 456,
    'ros.transitions_per_s': 800.0,
    'ros.episodes': 4,
    'ros.success': 0.25,
    'ros.return': -12.34,
    'sampler_0.transitions': 123000,
    'sampler_0.transitions_per_s': 7323.4,
    'sampler_0.episodes': 0,
}
REWARDS = RewardSpec(
    revision=3,
    terms={'distance': TermSettings(weight=2), 'touch': TermSettings(weight=1, enabled=False)},
)


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    return RunDirectory.create(JobConfig(job='reach', env={'name': 'arms'}), tmp_path)


@pytest.fixture
def view(run) -> JobView:
    view = JobView(run)
    view.metrics, view.rewards = METRICS, REWARDS
    return view


@pytest.fixture
def bus() -> Iterator[CoordinatorBus]:
    bus = CoordinatorBus()
    yield bus
    bus.close()


def drawn(view: JobView, states: dict[str, str]) -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(render(view, states))
    return console.file.getvalue()


def test_the_panel_shows_the_job(view):
    text = drawn(view, {'learner': 'running', 'sim': 'killed by SIGKILL'})
    assert 'reach' in text
    assert '123,456 transitions' in text
    assert '8,123/s' in text
    assert 'policy version 12' in text
    assert 'rewards #3: distance 2   touch off' in text
    assert 'sim killed by SIGKILL' in text
    (ros,) = [line.split() for line in text.splitlines() if ' ros ' in line]
    assert ros[1:-1] == ['ros', '800', '4', '-12.34', '0.25']


def test_the_panel_is_drawn_before_there_is_anything_to_show(run):
    assert 'learner running' in drawn(JobView(run), {'learner': 'running'})
    assert 'waiting' in progress_line(JobView(run))


def test_the_panel_shows_how_far_the_goal_is(tmp_path):
    stop = StopConfig(success=0.5, of='ros', episodes=20)
    view = JobView(
        RunDirectory.create(JobConfig(job='j', env={'name': 'arms'}, stop=stop), tmp_path)
    )
    view.metrics = METRICS
    text = drawn(view, {})
    (goal,) = [line for line in text.splitlines() if 'goal' in line]
    assert 'goal: success 0.5 over 20 episodes of ros' in goal
    assert '0.25' in goal
    assert 14 <= goal.count('━') <= 30


def test_a_line_tells_success_and_return_of_each_sampler(view):
    line = progress_line(view)
    assert '35 s' in line
    assert 'ros: success 0.25 return -12.3' in line
    assert 'sampler_0: success - return -' in line


def test_without_a_terminal_lines_are_printed_every_few_seconds(view, monkeypatch):
    now = [100.0]
    monkeypatch.setattr('opentinker.monitor.panel.time.monotonic', lambda: now[0])
    console = Console(file=io.StringIO(), width=40)
    panel = JobPanel(view, console)
    for _ in range(12):
        now[0] += 1
        panel.update({'learner': 'running'})
    panel.close()
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 2
    assert 'sampler_0' in lines[0]


def test_in_a_terminal_the_panel_stays_on_the_screen(view):
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    panel = JobPanel(view, console)
    panel.update({'learner': 'running'})
    panel.close()
    assert 'policy version 12' in console.file.getvalue()


def test_a_view_follows_the_job_over_the_bus(run, bus):
    view = JobView(run)
    view.refresh()
    run.write_endpoints(bus.endpoints)
    joining = threading.Thread(target=lambda: [view.refresh() for _ in range(5)])
    joining.start()
    while joining.is_alive():
        for request in bus.poll(0.01):
            bus.welcome(request, Welcome(REWARDS, {}, None, {}))
    assert view.rewards == REWARDS
    bus.publish('metrics', METRICS)
    for _ in range(1000):
        view.refresh()
        bus.poll(0.01)
        if view.metrics:
            break
    view.close()
    assert view.metrics == METRICS
