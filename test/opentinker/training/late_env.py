"""A plug-in for tests: the points of point_env, of which one worker's are late at every step.

They wait until there is a file ``open`` in the folder ``gate``. Which worker is the late one: the
first that steps, and it leaves a file ``late`` there.
"""

import multiprocessing
import time
from pathlib import Path

from point_env import PointEnv

from opentinker import registry

_DEADLINE_S = 60.0


class LateEnv(PointEnv):
    def __init__(self, num_envs: int, seed: int, gate: str) -> None:
        self._gate = Path(gate)
        self._late = None
        super().__init__(num_envs, seed)

    def step(self, actions):
        if self._late is None:
            self._late = multiprocessing.parent_process() is not None and self._claims()
        until = time.monotonic() + _DEADLINE_S
        while self._late and not (self._gate / 'open').exists():
            if time.monotonic() > until:
                raise TimeoutError('nobody opened the gate')
            time.sleep(0.001)
        return super().step(actions)

    def _claims(self) -> bool:
        try:
            (self._gate / 'late').touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@registry.register('env', 'late')
def late(num_envs: int, seed: int, gate: str) -> LateEnv:
    return LateEnv(num_envs, seed, gate)
