"""Where the package's data files are: installed by colcon or pip, or in a source tree."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = 'opentinker_ros'


def share_folder(package: str) -> Path | None:
    """The ``share`` folder of a ROS package on ``AMENT_PREFIX_PATH`` or in this Python, if any."""
    prefixes = [*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix]
    folders = (Path(prefix) / 'share' / package for prefix in prefixes if prefix)
    return next((folder for folder in folders if folder.is_dir()), None)


def share_file(name: str) -> Path:
    """The path of a data file such as ``config/arm.urdf``.

    A source tree comes before an installation, so that an edit is seen. Raises
    :class:`FileNotFoundError` that lists where it looked.
    """
    folders = [Path(__file__).resolve().parents[1], share_folder(PACKAGE)]
    candidates = [folder / name for folder in folders if folder is not None]
    for path in candidates:
        if path.is_file():
            return path
    raise FileNotFoundError(
        f'{PACKAGE} has no file {name}; looked for {", ".join(map(str, candidates))}'
    )
