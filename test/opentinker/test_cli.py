import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from opentinker import __version__, registry
from opentinker.cli import app


def run(*arguments: str):
    return CliRunner().invoke(app, arguments)


def test_help_says_what_there_is():
    result = run('--help')
    assert result.exit_code == 0
    for command in ('up', 'train', 'eval', 'play', 'demo', 'plugins', 'worker'):
        assert f' {command} ' in result.output


def test_the_version_is_told():
    assert run('--version').output == f'opentinker {__version__}\n'


def test_a_config_that_is_not_there_is_named_in_one_line():
    result = run('up', 'absent.yaml')
    assert result.exit_code == 2
    assert result.stderr == 'opentinker: absent.yaml: No such file or directory\n'


def test_without_the_ros_package_the_demo_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(registry, 'names', lambda kind: [])
    result = run('demo')
    assert result.exit_code == 2
    assert 'the ROS package, which is not installed' in result.stderr


def test_what_a_config_may_name_is_listed_by_kind(monkeypatch):
    monkeypatch.setattr(registry, 'kinds', lambda: ['bus', 'env'])
    monkeypatch.setattr(registry, 'names', lambda kind: ['zmq'] if kind == 'bus' else ['a', 'b'])
    assert run('plugins').output == 'bus: zmq\nenv: a, b\n'


@pytest.mark.parametrize('process', ['learner', 'sampler'])
def test_a_worker_without_a_run_directory_names_it(process, tmp_path):
    result = run('worker', process, '--run', str(tmp_path))
    assert result.exit_code == 2
    assert f'{tmp_path}/config.yaml: No such file' in result.stderr


def test_help_loads_nothing_heavy():
    code = (
        'import sys; from opentinker.cli import app\n'
        "try: app(['--help'])\n"
        'except SystemExit: pass\n'
        "heavy = {'torch', 'numpy', 'zmq', 'pydantic', 'matplotlib'} & set(sys.modules)\n"
        'assert not heavy, heavy'
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, '-c', code], check=True, cwd=root, stdout=subprocess.DEVNULL)
