import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from opentinker.data.archive import ArchiveError, pack, unpack

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(TREES)
def test_plain_values_come_back_with_their_kinds_of_keys(tree):
    assert unpack(pack(tree)) == tree


def test_tensors_come_back_with_shape_and_precision():
    tree = {'a': [torch.tensor(3.0, dtype=torch.float64)], 0: torch.ones(2, 0), 'b': 1}
    again = unpack(pack(tree))
    assert torch.equal(again['a'][0], tree['a'][0])
    assert again['a'][0].dtype == torch.float64
    assert again[0].shape == (2, 0)
    assert again['b'] == 1


def test_tensors_that_share_memory_or_are_views_are_kept_whole():
    whole = torch.arange(6.0).reshape(2, 3)
    again = unpack(pack([whole, whole, whole.T]))
    assert torch.equal(again[1], whole)
    assert torch.equal(again[2], whole.T)


def test_what_was_packed_does_not_change_with_its_source():
    source = torch.zeros(2)
    data = pack([source])
    source += 1
    assert torch.equal(unpack(data)[0], torch.zeros(2))


@pytest.mark.parametrize(
    'data', [b'', b'{}', pickle.dumps({'a': 1}), save({'x': torch.ones(1)}), pack([1, 2])[:-1]]
)
def test_anything_else_is_refused(data):
    with pytest.raises(ArchiveError, match='not an archive'):
        unpack(data)
