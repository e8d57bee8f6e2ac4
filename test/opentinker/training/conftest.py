"""Makes the plug-in of these tests importable, here and in the processes that they start."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
os.environ['PYTHONPATH'] = os.pathsep.join(
    [str(HERE), str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])]
)
