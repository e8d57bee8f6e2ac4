import threading

import pytest

from opentinker.bus.messages import Endpoints
from opentinker.config import ConfigError, JobConfig
from opentinker.training.run_directory import RunDirectory

CONFIG = JobConfig(job='reach', env={'name': 'arms', 'arms': 4}, rewards={'distance': 2})
ENDPOINTS = Endpoints(control='tcp://a:1', data='tcp://a:2', requests='tcp://a:3')


def test_a_run_keeps_its_config(tmp_path):
    run = RunDirectory.create(CONFIG, tmp_path)
    assert run.path.name == 'reach'
    assert RunDirectory(run.path).config() == CONFIG


def test_a_second_run_of_a_job_moves_on(tmp_path):
    names = [RunDirectory.create(CONFIG, tmp_path).path.name for _ in range(3)]
    assert names == ['reach', 'reach-2', 'reach-3']


def test_a_directory_that_is_no_run_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r'config\.yaml: No such file'):
        RunDirectory(tmp_path).config()


def test_endpoints_are_awaited(tmp_path):
    run = RunDirectory.create(CONFIG, tmp_path)
    assert run.endpoints() is None
    writer = threading.Timer(0.1, run.write_endpoints, [ENDPOINTS])
    writer.start()
    assert run.wait_for_endpoints(10) == ENDPOINTS
    writer.join()


def test_a_wait_for_endpoints_ends_at_its_deadline_or_when_given_up(tmp_path):
    run = RunDirectory.create(CONFIG, tmp_path)
    with pytest.raises(TimeoutError, match=r'endpoints\.json'):
        run.wait_for_endpoints(0)
    with pytest.raises(TimeoutError):
        run.wait_for_endpoints(3600, give_up=lambda: True)


def test_half_a_line_of_metrics_does_not_spoil_the_rest(tmp_path):
    run = RunDirectory.create(CONFIG, tmp_path)
    assert run.metrics() == []
    run.append_metrics({'update': 1})
    run.append_metrics({'update': 2})
    with run.metrics_path.open('a') as file:
        file.write('{"update": 3')
    assert run.metrics() == [{'update': 1}, {'update': 2}]
