"""Files that are there whole or not at all."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or none, also after a crash."""
    part = path.with_name(f'{path.name}.part')
    with part.open('wb') as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
