"""Environments in worker processes, beside the same environments in this one."""

import gc
import os
import signal
import subprocess
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from opentinker.envs.episodes import env_seeds
from opentinker.envs.gymnasium_env import GROUP, make_env
from opentinker.envs.share import WorkerError
from opentinker.envs.worker_env import WorkerVectorEnv

make_cartpoles = partial(make_env, id='CartPole-v1')


@pytest.fixture
def workers():
    env = WorkerVectorEnv(make_cartpoles, num_envs=5, workers=2, seed=0)
    yield env
    env.close()


def test_every_step_is_that_of_the_same_environments_in_one_process(workers):
    sizes, seeds = (1, 2, 2), env_seeds(7, 3)
    alone = [make_cartpoles(size, seed) for size, seed in zip(sizes, seeds, strict=True)]
    seen = [env.reset(seed)[GROUP]['observation'] for env, seed in zip(alone, seeds, strict=True)]
    np.testing.assert_array_equal(workers.reset(7)[GROUP]['observation'], np.concatenate(seen))
    random, ended = np.random.default_rng(0), 0
    for _ in range(120):
        actions = random.integers(0, 2, (5, 1))
        step = workers.step({GROUP: actions})
        each = [
            env.step({GROUP: own})
            for env, own in zip(alone, np.split(actions, np.cumsum(sizes)[:-1]), strict=True)
        ]
        for name in ('terminated', 'truncated'):
            expected = np.concatenate([getattr(one, name) for one in each])
            np.testing.assert_array_equal(getattr(step, name), expected)
        for name in ('reward', 'active'):
            expected = np.concatenate([getattr(one, name)[GROUP] for one in each])
            np.testing.assert_array_equal(getattr(step, name)[GROUP], expected)
        expected = np.concatenate([one.observation[GROUP]['observation'] for one in each])
        np.testing.assert_array_equal(step.observation[GROUP]['observation'], expected)
        given = [one for one in each if one.ended.size]
        if given:
            finals = [one.final_observation[GROUP]['observation'] for one in given]
            np.testing.assert_array_equal(
                step.final_observation[GROUP]['observation'], np.concatenate(finals)
            )
            lengths = np.concatenate([one.episode['length'] for one in given])
            np.testing.assert_array_equal(step.episode['length'], lengths)
            assert len(step.ended) == len(lengths)
            ended += len(lengths)
    assert ended >= 5


def test_what_was_handed_out_is_not_overwritten_by_the_next_step(workers):
    first = workers.reset(0)[GROUP]['observation']
    kept = first.copy()
    workers.step({GROUP: np.zeros((5, 1), np.int64)})
    np.testing.assert_array_equal(first, kept)


def test_changed_rewards_count_from_the_next_step_on_in_all_processes(workers):
    workers.reset(0)
    workers.rewards = workers.rewards.changed({'environment': 3.0})
    step = workers.step({GROUP: np.zeros((5, 1), np.int64)})
    np.testing.assert_array_equal(step.reward[GROUP], np.full((5, 1), 3.0))
    assert step.reward_revision == 1


def test_a_worker_that_is_killed_is_named_and_the_others_end(workers):
    workers.reset(0)
    processes = [share._process for share in workers._shares[1:]]
    os.kill(processes[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match=r'environments 1 to 2 ended with exit code -9'):
        workers.step({GROUP: np.zeros((5, 1), np.int64)})
    pids = [process.pid for process in processes]
    workers.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_an_environment_that_fails_in_a_worker_is_named_with_what_it_said():
    # the workers know nothing of what is registered in this process alone
    gymnasium.register('OnlyHere-v0', CartPoleEnv)
    make = partial(make_env, id='OnlyHere-v0')
    with pytest.raises(WorkerError, match=r'environments 1 to 1: ConfigError: .*OnlyHere'):
        WorkerVectorEnv(make, num_envs=2, workers=1, seed=0)


def test_more_workers_than_can_share_the_environments_are_refused():
    with pytest.raises(ValueError, match='2 workers for 2 environments'):
        WorkerVectorEnv(make_cartpoles, num_envs=2, workers=2, seed=0)


def test_workers_end_when_nobody_has_their_environments_any_more():
    env = WorkerVectorEnv(make_cartpoles, num_envs=2, workers=1, seed=0)
    pid = env._shares[1]._process.pid
    del env
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_script_that_fails_leaves_no_worker_behind(tmp_path):
    script = tmp_path / 'script.py'
    script.write_text("""
from functools import partial
from opentinker.envs.gymnasium_env import make_env
from opentinker.envs.worker_env import WorkerVectorEnv

if __name__ == '__main__':
    env = WorkerVectorEnv(partial(make_env, id='CartPole-v1'), num_envs=2, workers=1, seed=0)
    print(env._shares[1]._process.pid, flush=True)
    raise SystemExit(3)
""")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (3, '')
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
