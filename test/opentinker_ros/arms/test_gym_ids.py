import warnings

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from opentinker.envs.adapters import ParallelAdapter
from opentinker_ros.arms.arms_env import make_env


def test_the_reach_id_passes_check_env_and_reports_success():
    env = gymnasium.make('opentinker_ros.arms.gym_ids:OpenTinker/Reach-v0', arms=3, step_limit=12)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', '.*Box observation space')
        check_env(env.unwrapped)
    env.reset(seed=0)
    truncated = False
    while not truncated:
        *_, truncated, info = env.step(np.zeros(21, np.float32))
    assert info['success'] == 0.0
    assert info['length'] == 12
    env.close()


def test_reach_passes_the_parallel_api_test():
    parallel_api_test(ParallelAdapter(make_env(1, 0, arms=2, step_limit=20)), num_cycles=60)
