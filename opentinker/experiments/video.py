"""Frames into a file that people watch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import imageio.v2
import imageio.v3
import numpy as np

from opentinker.config import ConfigError

_GIF_FPS = 25
"""Viewers slow down what is faster."""


class Video:
    """A GIF or MP4 file that grows frame by frame; frames ``[height, width, 3]`` are uint8.

    ``fps`` are frames a second of the film's own time; a GIF leaves some out where they are many.
    Raises ConfigError for another kind of file, or for MP4 without the library that writes it.
    """

    def __init__(self, path: Path, fps: float) -> None:
        if path.suffix not in ('.gif', '.mp4'):
            raise ConfigError(f'{path}: a video is a file *.gif or *.mp4')
        if path.suffix == '.mp4' and importlib.util.find_spec('av') is None:
            raise ConfigError(
                f'{path}: MP4 needs `pip install "opentinker_ros[video]"`; a *.gif does without'
            )
        self._path, self._fps = path, fps
        self._every = max(1, round(fps / _GIF_FPS)) if path.suffix == '.gif' else 1
        self._file: Any = None
        self._frames = 0

    def add(self, frame: np.ndarray) -> None:
        """The next frame."""
        if self._file is None:
            # not before: who fails to draw leaves no empty file behind
            self._open()
        if self._frames % self._every == 0:
            height, width, _ = frame.shape
            # H.264 has colours for two by two pixels together
            self._write(frame[: height - height % 2, : width - width % 2])
        self._frames += 1

    def _open(self) -> None:
        try:
            if self._path.suffix == '.gif':
                pause = 1000 * self._every / self._fps
                self._file = imageio.v2.get_writer(self._path, duration=pause, loop=0)
                self._write = self._file.append_data
            else:
                self._file = imageio.v3.imopen(self._path, 'w', plugin='pyav')
                self._file.init_video_stream('libx264', fps=self._fps)
                self._write = self._file.write_frame
        except OSError as error:
            raise ConfigError(f'{self._path}: {error.strerror or error}') from None

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()
