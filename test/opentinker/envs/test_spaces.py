import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from opentinker.envs.descriptor import ArrayInfo
from opentinker.envs.spaces import (
    SpaceError,
    bounds,
    flatten,
    from_infos,
    to_info,
    to_infos,
    to_space,
)

LEAVES = st.one_of(
    st.builds(
        lambda shape, low: spaces.Box(low, np.inf, tuple(shape), np.float32),
        st.lists(st.integers(1, 3), max_size=3),
        st.sampled_from([-np.inf, -1.5, 0.0]),
    ),
    st.builds(lambda n: spaces.Discrete(n), st.integers(1, 9)),
    st.builds(spaces.MultiDiscrete, st.lists(st.integers(1, 5), min_size=1, max_size=4)),
    st.builds(spaces.MultiBinary, st.integers(1, 4)),
    st.just(spaces.Box(0, 255, (4, 4, 3), np.uint8)),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(['a', 'b', 'camera']), inner, min_size=1).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
    ),
    max_leaves=5,
)


@given(TREES)
def test_a_space_comes_back_from_its_description(space):
    assert from_infos(to_infos(space)) == space


@given(TREES, st.integers(0, 99))
def test_a_value_becomes_one_array_a_leaf_of_the_shape_described(space, seed):
    space.seed(seed)
    arrays, infos = flatten(space, space.sample()), to_infos(space)
    assert arrays.keys() == infos.keys()
    for key, info in infos.items():
        assert arrays[key].shape == info.shape
        assert to_space(info).contains(arrays[key].astype(info.dtype)[()])


@given(LEAVES)
def test_a_description_survives_json(space):
    info = to_info(space)
    assert ArrayInfo.model_validate_json(info.model_dump_json()) == info


def test_paths_name_where_a_leaf_is():
    space = spaces.Dict(
        {'camera': spaces.Dict({'rgb': spaces.Box(0, 255, (2, 2, 3), np.uint8)}),
         'arms': spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,))])}
    )  # fmt: skip
    infos = to_infos(space)
    assert list(infos) == ['arms/[0]', 'arms/[1]', 'camera/rgb']
    assert infos['camera/rgb'].dtype == 'uint8'
    assert infos['arms/[0]'].categories == (3,)


def test_choices_count_from_zero():
    assert flatten(spaces.Discrete(3, start=5), np.int64(6))['observation'] == 1


def test_bounds_are_infinite_or_the_types_own_where_there_are_none():
    half = to_info(spaces.Box(np.array([-1, -np.inf]), np.array([np.inf, 2]), dtype=np.float32))
    low, high = bounds(half)
    np.testing.assert_array_equal(low, [-1, -np.inf])
    np.testing.assert_array_equal(high, [np.inf, 2])
    assert bounds(ArrayInfo(shape=(), dtype='uint8'))[1] == 255


@pytest.mark.parametrize(
    ('space', 'says'),
    [
        (spaces.Dict({'words': spaces.Text(9)}), r'words: no array describes the space Text'),
        (spaces.Dict({'a/b': spaces.Discrete(2)}), r"'a/b'.* reads like a path"),
        (spaces.Dict({'[0]': spaces.Discrete(2)}), r'reads like a path'),
    ],
)
def test_a_space_that_no_array_describes_is_refused_with_its_place(space, says):
    with pytest.raises(SpaceError, match=says):
        to_infos(space)
