import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opentinker.algorithms.rollout import Rollout
from opentinker.data.batch import Batch
from opentinker.policies.actor_critic import FIRST


def rollout(rows, first=None):
    column = torch.arange(float(rows))
    inputs = {'vector': column[:, None]}
    if first is not None:
        inputs[FIRST] = first
    return Rollout(Batch(inputs), column[:, None], *[column] * 4)


def minibatches(data, size, micro=None):
    return list(data.minibatches(size, torch.Generator().manual_seed(0), micro))


@given(st.integers(1, 40), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 40)))
def test_every_row_comes_once_and_sizes_differ_by_one_at_most(rows, size, micro):
    batches = minibatches(rollout(rows), size, micro)
    assert sorted(torch.cat([torch.cat(pieces) for pieces in batches]).tolist()) == list(
        range(rows)
    )
    sizes = [sum(map(len, pieces)) for pieces in batches]
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
    if micro:
        assert max(len(piece) for pieces in batches for piece in pieces) <= micro


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 20))
def test_sequences_stay_whole_and_in_order(lengths, size):
    first = torch.cat([torch.arange(length) == 0 for length in lengths])
    data = rollout(len(first), first)
    batches = minibatches(data, size, micro=4)
    pieces = [piece for batch in batches for piece in batch]
    for piece in pieces:
        assert first[piece[0]]
        follows = piece[1:] == piece[:-1] + 1
        assert (follows | first[piece[1:]]).all()
        # nothing is missing at the end of a sequence
        ends = torch.cat([~follows, torch.tensor([True])])
        after = piece[ends] + 1
        assert all(row == len(first) or first[row] for row in after.tolist())
    assert sorted(torch.cat(pieces).tolist()) == list(range(len(first)))


@pytest.mark.parametrize('size', [1, 3])
def test_the_order_is_random_and_repeatable(size):
    data = rollout(30)
    again = minibatches(data, size)
    for one, other in zip(minibatches(data, size), again, strict=True):
        assert torch.equal(torch.cat(one), torch.cat(other))
    assert torch.cat([torch.cat(each) for each in again]).tolist() != list(range(30))
