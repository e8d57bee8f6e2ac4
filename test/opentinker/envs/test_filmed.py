import numpy as np
import pytest

from opentinker import registry
from opentinker.envs.filmed import FilmedEnv


@pytest.mark.parametrize(
    ('name', 'settings', 'action'),
    [
        ('gymnasium', {'id': 'CartPole-v1'}, lambda info: np.zeros((1, 1), np.int64)),
        ('arms', {'arms': 1, 'task': 'reach'}, lambda info: np.zeros((1, 1, *info.action.shape))),
    ],
)
def test_the_end_of_an_episode_is_filmed_before_the_next_one_begins(name, settings, action):
    frames = []
    inner = registry.get('env', name)(num_envs=1, seed=0, render=True, **settings)
    env = FilmedEnv(inner, frames.append)
    try:
        env.reset(0)
        ((group, info),) = env.descriptor.groups.items()
        steps, ended = 0, False
        while not ended:
            step = env.step({group: action(info)})
            steps, ended = steps + 1, bool(step.ended.size)
        assert len(frames) == 1 + steps + 1
        before, last, first_of_next = (frame.astype(int) for frame in frames[-3:])
        # the end is close to the step before it; the next episode is somewhere else
        assert np.abs(last - before).sum() < np.abs(first_of_next - last).sum()
    finally:
        env.close()
