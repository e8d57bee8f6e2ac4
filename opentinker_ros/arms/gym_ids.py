"""The arms tasks as gymnasium environments: ``gymnasium.make('OpenTinker/Reach-v0', arms=2)``."""

from __future__ import annotations

from typing import Any

import gymnasium

from opentinker.envs.adapters import GymnasiumAdapter
from opentinker_ros.arms.arms_env import make_env

REACH = 'OpenTinker/Reach-v0'


def register() -> None:
    """Make the ids known; also the entry point of gymnasium's group ``gymnasium.envs``."""
    if REACH not in gymnasium.registry:
        gymnasium.register(REACH, entry_point=make, kwargs={'task': 'reach', 'arms': 2})


def make(**settings: Any) -> GymnasiumAdapter:
    """One cell as a single agent; ``settings`` are those of :class:`ArmsSettings`."""
    return GymnasiumAdapter(make_env(1, 0, **settings))
