"""What can be adapted, and what cannot, by the type of an environment."""

import gymnasium
import pytest

from opentinker import registry
from opentinker.envs.adapt import Adapter, adapt
from opentinker.envs.gymnasium_env import GymnasiumVectorEnv


def test_an_environment_and_what_makes_one_are_adapted():
    assert adapt(gymnasium.make('CartPole-v1')).num_envs == 1
    assert adapt(lambda: gymnasium.make('CartPole-v1'), num_envs=3).num_envs == 3


def test_what_is_ours_stays_what_it_is():
    env = GymnasiumVectorEnv([gymnasium.make('CartPole-v1')])
    assert adapt(env) is env


def test_one_object_does_not_become_several():
    with pytest.raises(TypeError, match='2 environments need a callable'):
        adapt(gymnasium.make('CartPole-v1'), num_envs=2)


def test_a_plug_in_adapts_its_own_environments():
    class Own:
        pass

    registry.register('adapter', 'own', override=True)(
        Adapter(Own, lambda envs: GymnasiumVectorEnv([gymnasium.make('CartPole-v1') for _ in envs]))
    )
    assert adapt(Own, num_envs=2).num_envs == 2


def test_anything_else_is_refused_with_what_is_known():
    with pytest.raises(TypeError, match=r'int is none of .* gymnasium\.core\.Env'):
        adapt(3)
