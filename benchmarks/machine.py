"""What the figures were measured on."""

import os
import platform


def machine() -> str:
    """Processor, cores usable and Python of this machine."""
    model = platform.machine()
    with open('/proc/cpuinfo') as info:
        for line in info:
            if line.startswith('model name'):
                model = line.partition(':')[2].strip()
                break
    return f'{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}'
