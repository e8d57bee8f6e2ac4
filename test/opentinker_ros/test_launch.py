"""The launch files have tests in ``launch/``, which run where launch_pytest is installed."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / 'launch').glob('*.launch.py'))
TESTS = Path(__file__).parent / 'launch' / 'test_launch_files.py'


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_a_launch_file_describes_its_arguments_and_is_tested(path):
    tree = ast.parse(path.read_text())
    assert 'generate_launch_description' in {getattr(node, 'name', '') for node in tree.body}
    (arguments,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ARGUMENTS'
    ]
    assert all(description for _, description in arguments.values())
    assert path.name in TESTS.read_text()


@pytest.mark.skipif(not find_spec('launch_pytest'), reason='launch_pytest is not installed')
def test_launch_pytest_collects_a_test_for_each_launch_file():
    command = [sys.executable, '-m', 'pytest', '--collect-only', '-q', str(TESTS)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60).stdout
    assert listed.count('::test_') == len(FILES)
