"""Frames into a file that people watch."""

from __future__ import annotations

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
        self._every, self._frames = 1, 0
        try:
            if path.suffix == '.gif':
                self._every = max(1, round(fps / _GIF_FPS))
                pause = 1000 * self._every / fps
                self._file: Any = imageio.v2.get_writer(path, duration=pause, loop=0)
                self._write = self._file.append_data
            elif path.suffix == '.mp4':
                self._file = imageio.v3.imopen(path, 'w', plugin='pyav')
                self._file.init_video_stream('libx264', fps=fps)
                self._write = self._file.write_frame
            else:
                raise ConfigError(f'{path}: a video is a file *.gif or *.mp4')
        except ImportError:
            raise ConfigError(
                f'{path}: MP4 needs `pip install "opentinker_ros[video]"`; a *.gif does without'
            ) from None
        except OSError as error:
            raise ConfigError(f'{path}: {error.strerror or error}') from None

    def add(self, frame: np.ndarray) -> None:
        """The next frame."""
        if self._frames % self._every == 0:
            height, width, _ = frame.shape
            # H.264 has colours for two by two pixels together
            self._write(frame[: height - height % 2, : width - width % 2])
        self._frames += 1

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
