"""What the sources use is declared, and what is declared is installed."""

import ast
import importlib
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from importlib import metadata
from pathlib import Path

import pytest

import opentinker
from opentinker_ros.share import share_folder

ROOT = Path(__file__).resolve().parents[1]
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()
SETUP = ast.parse((ROOT / 'setup.py').read_text())
INTERFACES = sorted(
    [*ROOT.glob('msg/*.msg'), *ROOT.glob('srv/*.srv'), *ROOT.glob('action/*.action')]
)

# import: (rosdep key, name on PyPI); rosdep has no key for some, a wheel exists not for all
PYTHON = {
    'gymnasium': ('python3-gymnasium-pip', 'gymnasium'),
    'google': ('python3-protobuf', 'protobuf'),
    'hypothesis': ('python3-hypothesis', 'hypothesis'),
    'imageio': ('python3-imageio', 'imageio'),
    'matplotlib': ('python3-matplotlib', 'matplotlib'),
    'mujoco': ('python3-mujoco-pip', 'mujoco'),
    'numpy': ('python3-numpy', 'numpy'),
    'pettingzoo': (None, 'pettingzoo'),
    'psutil': ('python3-psutil', 'psutil'),
    'pydantic': ('python3-pydantic', 'pydantic'),
    'pytest': ('python3-pytest', 'pytest'),
    'rich': ('python3-rich', 'rich'),
    'safetensors': (None, 'safetensors'),
    'threadpoolctl': (None, 'threadpoolctl'),
    'stable_baselines3': (None, 'stable-baselines3'),
    'tensorboard': (None, 'tensorboard'),
    'tianshou': (None, 'tianshou'),
    'torch': ('python3-torch', 'torch'),
    'typer': ('python3-typer', 'typer'),
    'yaml': ('python3-yaml', 'pyyaml'),
    'zmq': ('python3-zmq', 'pyzmq'),
}
WITHOUT_WHEELS = {'launch', 'launch_pytest', 'launch_ros'}


def imports(folder):
    """Top-level names that the Python files below a folder import, {name: one file that does}."""
    found = {}
    for path in (ROOT / folder).rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            else:
                continue
            found.update((name.partition('.')[0], str(path.relative_to(ROOT))) for name in names)
    scripts = {path.stem for top in ('benchmarks', 'test') for path in (ROOT / top).rglob('*.py')}
    known = sys.stdlib_module_names | {'opentinker', 'opentinker_ros'} | scripts
    return {name: path for name, path in found.items() if name not in known}


def declared_in_setup():
    """Names of the distributions in setup.py."""
    strings = [
        n.value for n in ast.walk(SETUP) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    return {re.split('[<>=]', word)[0] for string in strings for word in string.split()}


def nodes():
    """The executables for `ros2 run`."""
    return next(
        ast.literal_eval(statement.value)
        for statement in SETUP.body
        if isinstance(statement, ast.Assign) and statement.targets[0].id == 'NODES'
    )


def has_messages():
    return not metadata.version('opentinker_ros').endswith('+noros')


@pytest.mark.parametrize('folder', ['opentinker', 'opentinker_ros', 'launch', 'test', 'benchmarks'])
def test_every_import_is_declared(folder):
    keys = {element.text for element in MANIFEST if element.tag.endswith('depend')}
    names = declared_in_setup()
    for name, path in imports(folder).items():
        key, distribution = PYTHON.get(name, (name, name.replace('_', '-')))
        assert key is None or key in keys, f'package.xml lacks {key} for {name} in {path}'
        assert name in WITHOUT_WHEELS or distribution in names, (
            f'setup.py lacks {distribution} for {name} in {path}'
        )


def test_interfaces_use_declared_packages_only():
    cmake = (ROOT / 'CMakeLists.txt').read_text()
    built_with = set(re.search(r'set\(message_dependencies (.*)\)', cmake).group(1).split())
    assert built_with == {element.text for element in MANIFEST.iter('depend')}
    for path in INTERFACES:
        used = set(re.findall(r'^(\w+)/', path.read_text(), re.MULTILINE)) - {'opentinker_ros'}
        assert used <= built_with, f'{path.name} uses {used - built_with}'


def test_versions_agree():
    assert MANIFEST.findtext('version') == opentinker.__version__


def test_requirements_are_pinned():
    pinned = {
        line.partition('==')[0] for line in (ROOT / 'constraints.txt').read_text().splitlines()
    }
    required = {
        re.split('[ <>=;]', line)[0].lower() for line in metadata.requires('opentinker_ros')
    }
    assert required <= pinned


def test_every_node_has_a_main_and_an_executable():
    prefix = share_folder('opentinker_ros').parents[1]
    for node in nodes():
        tree = ast.parse((ROOT / f'opentinker_ros/nodes/{node}.py').read_text())
        assert any(
            isinstance(statement, ast.FunctionDef) and statement.name == 'main'
            for statement in tree.body
        )
        assert not has_messages() or os.access(prefix / f'lib/opentinker_ros/{node}', os.X_OK)


@pytest.mark.skipif(not has_messages(), reason='installed without ROS')
@pytest.mark.parametrize('path', INTERFACES, ids=lambda path: path.stem)
def test_interface_is_built(path):
    assert hasattr(importlib.import_module(f'opentinker_ros.{path.parent.name}'), path.stem)
