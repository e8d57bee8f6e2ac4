"""Settings that libraries read when they are imported: no display, one thread a process."""

import os

os.environ.setdefault('MPLBACKEND', 'agg')
os.environ.setdefault('MUJOCO_GL', 'egl')
os.environ.setdefault('OMP_NUM_THREADS', '1')
