import contextlib
import json
import struct
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opentinker.protocol.arrays import MAX_HEADER, FrameError, decode, encode, pack, unpack

DTYPES = st.sampled_from(
    ['?', 'u1', 'i1', '<u2', '>i2', '<i4', '>u4', '<i8', '<u8', '<f2', '<f4', '>f4', '<f8']
)
ARRAYS = DTYPES.flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
    )
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
)
TREES = st.dictionaries(
    st.text(),
    st.recursive(
        ARRAYS | SCALARS, lambda leaf: st.dictionaries(st.text(), leaf, max_size=4), max_leaves=12
    ),
    max_size=5,
)


def assert_same(left, right):
    assert type(left) is type(right) or isinstance(left, np.ndarray)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype.newbyteorder('<')
        assert left.shape == right.shape
        np.testing.assert_array_equal(left, right)
    else:
        assert left == right


def header(
    layout: list, scalars: list | None = None, *, magic: bytes = b'OTAF', version: int = 1
) -> bytes:
    layout_json, scalars_json = json.dumps(layout).encode(), json.dumps(scalars or []).encode()
    return (
        struct.pack('<4sHHII', magic, version, 0, len(layout_json), len(scalars_json))
        + layout_json
        + scalars_json
    )


@given(TREES)
def test_a_tree_survives_frames(tree):
    assert_same(decode([bytes(frame) for frame in encode(tree)]), tree)


@given(TREES)
def test_a_tree_survives_one_buffer(tree):
    assert_same(unpack(pack(tree)), tree)


def test_the_buffer_of_a_ros_message_is_read():
    tree = {'q': np.arange(6, dtype=np.float32)}
    assert_same(unpack(array('B', pack(tree))), tree)


def test_decoded_arrays_are_aligned_views_of_the_buffer():
    buffer = pack({'flag': np.array([True]), 'value': np.array([1.5])})
    value = unpack(buffer)['value']
    assert not value.flags.owndata
    assert not value.flags.writeable
    assert np.frombuffer(buffer, np.uint8).ctypes.data < value.ctypes.data
    assert buffer.index(struct.pack('<d', 1.5)) % 8 == 0


def test_strided_and_big_endian_arrays_arrive_as_their_values():
    source = np.arange(12, dtype='>i4').reshape(3, 4)[:, ::2].T
    np.testing.assert_array_equal(unpack(pack({'x': source}))['x'], [[0, 4, 8], [2, 6, 10]])


def test_equal_layouts_with_unlike_scalars_stay_apart():
    for value in (1, True, 1.0, '1'):
        result = unpack(pack({'value': value, 'x': np.zeros(2)}))['value']
        assert result == value
        assert type(result) is type(value)


@pytest.mark.parametrize(
    'leaf',
    [
        np.array([{}], object),
        np.array(['a']),
        np.array([1j]),
        [1, 2],
        object(),
        float('nan'),
        np.array(['2020-01-01'], 'M8[D]'),
    ],
)
def test_what_no_frame_can_carry_is_refused(leaf):
    with pytest.raises(FrameError):
        pack({'leaf': leaf})


@pytest.mark.parametrize(
    ('buffer', 'message'),
    [
        (b'', 'no array frame'),
        (header([], magic=b'PICK'), 'not an array frame'),
        (header([], version=2), 'version 2'),
        (header([[['x'], 'O', [1]]]), 'unknown dtype'),
        (header([[['x'], 'V8', [1]]]) + bytes(8), 'unknown dtype'),
        (header([[['x'], ['f4'], [1]]]), 'unknown dtype'),
        (header([[['x'], 'f4', [2**40]]]), 'absurd shape'),
        (header([[['x'], 'f4', [0, 2**62]]]), 'absurd shape'),
        (header([[['x'], 'f4', [-1]]]), 'absurd shape'),
        (header([[['x'], 'f4', [True]]]), 'absurd shape'),
        (header([[['x'], 'f4', [1] * 40]]), 'absurd shape'),
        (header([[['x'], 'f4', [4]]]) + bytes(8), 'bytes, expected'),
        (header([[['x'], 'f4', [2]]]) + bytes(16), 'bytes, expected'),
        (header([[['x'], 'f4', [0]], [['x'], 'f4', [0]]]), 'appears twice'),
        (header([[['x', 'y'], 'f4', [0]]], [[['x'], 3]]), 'a leaf already'),
        (header([[['x'] * 99, 'f4', [0]]]), 'not a path'),
        (header([[[], 'f4', [0]]]), 'not a path'),
        (header([['x']]), 'malformed entry'),
        (header([], [[['x'], [1]]]), 'expected a scalar'),
        (struct.pack('<4sHHII', b'OTAF', 1, 0, 2**31, 0), 'header of'),
        (struct.pack('<4sHHII', b'OTAF', 1, 0, 60000, 0) + b'[' * 60000, 'not JSON'),
        (
            struct.pack('<4sHHII', b'OTAF', 1, 0, 2 * MAX_HEADER, 0) + bytes(2 * MAX_HEADER),
            'header of',
        ),
    ],
)
def test_a_hostile_buffer_is_refused_with_its_fault(buffer, message):
    with pytest.raises(FrameError, match=message):
        unpack(buffer)


def test_a_frame_of_wrong_size_names_the_array():
    frames = [bytes(frame) for frame in encode({'a': {'b': np.zeros(3)}})]
    with pytest.raises(FrameError, match='a/b: 23 bytes, expected 24'):
        decode([frames[0], frames[1][:-1]])
    with pytest.raises(FrameError, match='0 buffers where the header names 1'):
        decode(frames[:1])


@given(st.binary(max_size=200))
def test_noise_is_refused_and_nothing_worse(noise):
    with pytest.raises(FrameError):
        unpack(noise)


@given(TREES, st.data())
def test_a_damaged_frame_is_refused_or_still_a_tree(tree, data):
    damaged = bytearray(pack(tree))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    with contextlib.suppress(FrameError):
        assert isinstance(unpack(bytes(damaged)), dict)
