"""The arms tasks as gymnasium environments; importing this module registers them.

``gymnasium.make('opentinker_ros.arms.gym_ids:OpenTinker/Reach-v0', arms=2)`` does both.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from opentinker.envs.adapters import GymnasiumAdapter
from opentinker_ros.arms.arms_env import make_env

REACH = 'OpenTinker/Reach-v0'


def make(**settings: Any) -> GymnasiumAdapter:
    """One cell as a single agent; ``settings`` are those of :class:`ArmsSettings`."""
    return GymnasiumAdapter(make_env(1, 0, **settings))


gymnasium.register(REACH, entry_point=make, kwargs={'task': 'reach', 'arms': 2})
