"""One package for pip and colcon: Python code, nodes, and the ROS interfaces that CMake builds.

It builds against the ROS 2 that is sourced, else against the Jazzy wheels on PyPI. Where there is
neither, the learning core and the simulated arms are installed, and the version ends in +noros.
"""

import os
import platform
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.develop import develop

from distutils.command.install_data import install_data  # isort: skip  (setuptools provides it)

NAME = 'opentinker_ros'
NODES = ('arms_env', 'host', 'policy', 'sim', 'zmq_bridge')
# colcon build --symlink-install runs a symlink of this file from its build folder
ROOT = Path(os.path.realpath(__file__)).parent
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()

# The wheels' metadata leaves out what CMake's find_package() needs, so each is named
BUILD_WHEELS = """
    ament-cmake ament-cmake-gmock ament-cmake-gtest ament-cmake-include-directories
    ament-cmake-pytest ament-cmake-ros ament-package fastrtps-cmake-module python-cmake-module
    rosidl-core-generators rosidl-default-generators"""
MESSAGE_WHEELS = """
    action-msgs builtin-interfaces geometry-msgs sensor-msgs service-msgs std-msgs
    unique-identifier-msgs"""
RUN_WHEELS = """
    diagnostic-msgs lifecycle-msgs rcl-interfaces rclpy rmw-fastrtps-cpp rosgraph-msgs
    rosidl-default-runtime std-srvs trajectory-msgs visualization-msgs"""
# What a sourced ROS takes from the system's Python, which pip's build environment hides
GENERATOR_TOOLS = ['catkin_pkg', 'empy', 'lark-parser', 'numpy']


def find_ros():
    """Where ROS comes from ('sourced', 'wheels' or None) and, for None, why."""
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    if os.environ.get('OPENTINKER_NO_ROS') == '1':
        return None, 'OPENTINKER_NO_ROS=1'
    if any(Path(p, 'share/rosidl_default_generators').is_dir() for p in prefixes if p):
        return 'sourced', ''
    machine = f'{sys.platform} {platform.machine()}'
    if machine == 'linux x86_64' and (3, 10) <= sys.version_info[:2] <= (3, 13):
        return 'wheels', ''
    return None, (
        'no ROS 2 is sourced, and PyPI has it for Python 3.10 to 3.13 on linux x86_64, '
        f'not for Python {platform.python_version()} on {machine}'
    )


ROS, NO_ROS_REASON = find_ros()
if ROS is None:
    print(
        f'{NAME} is installed without ROS: {NO_ROS_REASON}.\n'
        'The learning core and the simulated arms work; nodes and messages do not.',
        file=sys.stderr,
    )


def wheels(names):
    return [f'ros-jazzy-{name}' for name in names.split()]


def build_requires():
    """What pip puts into the build environment; colcon finds it in the ROS that it runs in."""
    if ROS is None or 'COLCON' in os.environ:
        return []
    cmake = [] if shutil.which('cmake') else ['cmake', 'ninja']
    ros = wheels(BUILD_WHEELS + MESSAGE_WHEELS) if ROS == 'wheels' else []
    return cmake + ros + GENERATOR_TOOLS


def ros_prefixes():
    """Install prefixes that hold ROS: the sourced ones, or those of the wheels on sys.path."""
    if ROS == 'sourced':
        prefixes = os.environ['AMENT_PREFIX_PATH'].split(os.pathsep)
    else:
        prefixes = [str(Path(p).parents[2]) for p in sys.path if p.endswith('-packages')]
    return [p for p in dict.fromkeys(prefixes) if Path(p, 'share/ament_index').is_dir()]


def cmake_environment(prefixes):
    """The Python that CMake starts needs what pip and colcon put on sys.path only."""
    site = f'lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages'
    # sitecustomize: pip's and colcon's own, for their Python alone
    python_path = [p for p in sys.path if p and not Path(p, 'sitecustomize.py').is_file()]
    additions = {
        'AMENT_PREFIX_PATH': prefixes,
        'CMAKE_PREFIX_PATH': [*prefixes, os.environ.get('CMAKE_PREFIX_PATH', '')],
        'PYTHONPATH': [*python_path, *(f'{p}/{site}' for p in prefixes)],
        'PATH': [*(f'{p}/bin' for p in prefixes), os.environ.get('PATH', os.defpath)],
    }
    return os.environ | {name: os.pathsep.join(paths) for name, paths in additions.items()}


def build_interfaces(build):
    """Run CMake in the folder `build`; return the folder that holds what to install."""
    prefixes = ros_prefixes()
    env = cmake_environment(prefixes)
    cmake, compiler, ninja = (shutil.which(p, path=env['PATH']) for p in ('cmake', 'c++', 'ninja'))
    if not cmake or not compiler:
        raise SystemExit('ROS messages need cmake and a C++ compiler: apt-get install cmake g++')
    made_for = build / 'made_for'
    now = '\n'.join([sys.executable, sys.version, *prefixes])
    if not made_for.is_file() or made_for.read_text() != now:  # pip's build folder is always new
        shutil.rmtree(build, ignore_errors=True)
    stage = build / 'stage'
    shutil.rmtree(stage, ignore_errors=True)
    settings = {
        'BUILD_TESTING': 'OFF',
        'CMAKE_BUILD_TYPE': 'Release',
        'CMAKE_INSTALL_PREFIX': stage,
        'Python3_EXECUTABLE': sys.executable,
    }
    definitions = [f'-D{name}={value}' for name, value in settings.items()]
    generator = ['-G', 'Ninja'] if ninja else []
    for arguments in (
        ['-S', str(ROOT), '-B', str(build), *generator, *definitions],
        ['--build', str(build), '--parallel', str(os.cpu_count() or 1)],
        ['--install', str(build)],
    ):
        subprocess.run([cmake, *arguments], env=env, check=True)
    made_for.write_text(now)
    return stage


def is_wanted(path):
    """Whether a file of the stage, relative to it, is to be installed."""
    return not (
        path.suffix in ('.pyc', '.c')
        or '.egg-info/' in str(path)
        or path.parts[-2:] == (NAME, '__init__.py')  # the hand-written one extends __path__
        or 'parent_prefix_path' in path.parts  # names folders of the machine that builds
        or path.parts[-2:] in ((NAME, 'package.xml'), ('packages', NAME))  # are data files of ours
    )


def write_nodes(folder):
    """Write the scripts that `ros2 run` and launch find in lib/<package>; pip has only bin/."""
    folder.mkdir(parents=True, exist_ok=True)
    for node in NODES:
        script = folder / node
        # env, so that an active venv counts also where colcon runs with the system's Python
        script.write_text(
            '#!/usr/bin/env python3\nimport sys\n\n'
            f'from {NAME}.nodes.{node} import main\n\nsys.exit(main())\n'
        )
        script.chmod(0o755)
    return folder


def files_below(top, pattern='**/*'):
    """The files below a folder that fit a pattern, as {their folder relative to it: [path]}."""
    files = {}
    for path in sorted(Path(top).glob(pattern)):
        if path.is_file():
            files.setdefault(path.parent.relative_to(top), []).append(path)
    return files


def data_files(target, files):
    """What files_below() found, in the form of setuptools."""
    return [(str(target / folder), [str(p) for p in paths]) for folder, paths in files.items()]


def built_files(command):
    """The data files that are made at build time."""
    if ROS is None:
        return []
    build = Path(command.get_finalized_command('build').build_base).resolve()
    stage = build_interfaces(build / 'interfaces')
    staged = {
        folder: wanted
        for folder, paths in files_below(stage).items()
        if (wanted := [path for path in paths if is_wanted(path.relative_to(stage))])
    }
    nodes = files_below(write_nodes(build / 'nodes'))
    return data_files(Path(), staged) + data_files(Path('lib', NAME), nodes)


class InstallData(install_data):
    def run(self):
        self.data_files = [*self.data_files, *built_files(self)]
        super().run()


class Develop(develop):
    """colcon build --symlink-install, whose symlink_data reads the distribution's data_files."""

    def run(self):
        self.distribution.data_files += built_files(self)
        super().run()


class RosDistribution(Distribution):
    def has_ext_modules(self):
        return ROS is not None  # a platform wheel

    def has_data(self):
        return True  # without this name 'pip install -e' leaves every data file out


SHARE = Path('share', NAME)

setup(
    name=NAME,
    version=MANIFEST.findtext('version') + ('' if ROS else '+noros'),
    description=MANIFEST.findtext('description'),
    license=MANIFEST.findtext('license'),
    maintainer=MANIFEST.findtext('maintainer'),
    maintainer_email=MANIFEST.find('maintainer').get('email'),
    packages=find_packages(include=['opentinker*']),
    # '' makes 'pip install -e' write a plain .pth file; its import hook would never run
    # opentinker_ros/__init__.py, which the messages in site-packages/opentinker_ros hide
    package_dir={'': '.'},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (str(SHARE), ['package.xml']),
        *data_files(SHARE / 'launch', files_below('launch', '*.launch.py')),
        *data_files(SHARE / 'config', files_below('config')),
    ],
    python_requires='>=3.10',
    setup_requires=build_requires(),
    install_requires=[
        'gymnasium>=1.0',
        'imageio>=2.28',  # gymnasium's MuJoCo environments import it, too
        'matplotlib>=3.6',
        'mujoco>=3.3',
        'numpy>=1.26',
        'pettingzoo>=1.27',
        'protobuf>=4.21',
        'psutil>=5.9',
        'pydantic>=2.6',
        'pyyaml>=6.0',
        'pyzmq>=25',
        'rich>=13',
        'safetensors>=0.4',
        'tensorboard>=2.14',
        'threadpoolctl>=3.1',
        'torch>=2.2',
        'typer>=0.12',
        *(wheels(MESSAGE_WHEELS + RUN_WHEELS) if ROS == 'wheels' else []),
    ],
    extras_require={
        # colcon test runs pytest where it finds it here
        'test': [
            'hypothesis>=6.100',
            'pytest>=8',
            'pytest-timeout>=2.2',
            # peers whose results ours must equal, and whose speed it is measured against
            'stable-baselines3>=2.3',
            'tianshou>=2.0; python_version >= "3.11"',
        ],
        # MP4 files, and the pictures of gymnasium's classic environments
        'video': ['av>=11', 'pygame-ce>=2.1.3'],
        'lint': ['import-linter>=2.1', 'mypy>=1.10', 'ruff>=0.6'],
    },
    entry_points={
        'console_scripts': ['opentinker = opentinker.cli:main'],
        'opentinker.plugins': [
            'core = opentinker.plugin:register',
            'arms = opentinker_ros.plugin:register',
        ],
    },
    distclass=RosDistribution,
    cmdclass={'install_data': InstallData, 'develop': Develop},
    zip_safe=False,
)
