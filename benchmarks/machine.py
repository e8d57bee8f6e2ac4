"""What the figures were measured on, and how they are printed."""

import os
import platform

from rich.console import Console


def machine() -> str:
    """Processor, cores usable and Python of this machine."""
    model = platform.machine()
    with open('/proc/cpuinfo') as info:
        for line in info:
            if line.startswith('model name'):
                model = line.partition(':')[2].strip()
                break
    return f'{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}'


def console() -> Console:
    """Where tables are printed: whole, also into a file."""
    made = Console()
    return made if made.is_terminal else Console(width=200)
