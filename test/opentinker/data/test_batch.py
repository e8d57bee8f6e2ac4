import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opentinker.data.batch import Batch, cat, stack


def batch(rows, start=0):
    numbers = np.arange(start, start + rows)
    return Batch(
        reward=numbers.astype(np.float32),
        observation={'image': np.repeat(numbers[:, None], 2, axis=1).astype(np.uint8)},
    )


def same(first, second):
    one, other = dict(first.leaves()), dict(second.leaves())
    assert one.keys() == other.keys()
    for path, array in one.items():
        np.testing.assert_array_equal(array, other[path])
        assert array.dtype == other[path].dtype


def test_a_name_is_read_as_item_and_as_attribute():
    own = batch(3)
    assert own['reward'] is own.reward
    assert own.observation.image.shape == (3, 2)
    assert len(own) == 3


def test_a_missing_name_is_an_error_that_names_it_and_what_there_is():
    with pytest.raises(KeyError, match="no 'rewards' in this batch; it has reward, observation"):
        batch(1)['rewards']
    with pytest.raises(AttributeError, match=r"no 'images' .* it has image"):
        _ = batch(1).observation.images


def test_an_index_picks_rows_of_every_leaf():
    np.testing.assert_array_equal(batch(5)[[3, 1]].observation.image[:, 0], [3, 1])
    np.testing.assert_array_equal(batch(5)[1:3].reward, [1, 2])
    assert batch(5)[2].reward == 2


@given(st.integers(1, 4), st.integers(1, 4))
def test_cat_is_undone_by_slices(first, second):
    whole = cat([batch(first), batch(second, 10)])
    same(whole[:first], batch(first))
    same(whole[first:], batch(second, 10))


def test_stack_keeps_structure_and_adds_an_axis():
    whole = stack([batch(2), batch(2, 5)])
    assert whole.observation.image.shape == (2, 2, 2)
    same(whole[1], batch(2, 5))


def test_a_name_may_hold_a_path():
    own = Batch({'camera/rgb': np.zeros(2)})
    assert list(cat([own, own])) == ['camera/rgb']


def test_tensors_stay_tensors():
    whole = cat([batch(2).to('cpu'), batch(1).to('cpu')])
    assert isinstance(whole.observation.image, torch.Tensor)
    assert whole.observation.image.dtype == torch.uint8
    same(whole.numpy(), cat([batch(2), batch(1)]))


def test_batches_of_different_structure_are_not_joined():
    with pytest.raises(ValueError, match=r"batch 1 has other arrays.*\['done'\]"):
        cat([batch(1), batch(1).with_(done=np.zeros(1))])
    with pytest.raises(ValueError, match='no batches'):
        stack([])


def test_leaves_of_different_length_are_named():
    with pytest.raises(ValueError, match=r'reward: 2, action: 3'):
        len(Batch(reward=np.zeros(2), action=np.zeros(3)))


@given(st.integers(0, 20), st.integers(1, 25), st.booleans())
def test_pieces_hold_every_row_once_and_none_is_short(rows, size, shuffled):
    random = np.random.default_rng(0) if shuffled else None
    pieces = list(batch(rows).split(size, random))
    seen = [row for piece in pieces for row in piece.reward.tolist()]
    assert sorted(seen) == list(range(rows))
    lengths = [len(piece) for piece in pieces]
    assert max(lengths, default=0) <= size
    assert max(lengths, default=0) - min(lengths, default=0) <= 1
