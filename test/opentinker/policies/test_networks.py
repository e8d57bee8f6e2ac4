import copy

import numpy as np
import pytest
import torch

from opentinker.policies.fast import FastPerceptron
from opentinker.policies.networks import ImageEncoder, Memory, perceptron

RANDOM = np.random.default_rng(0)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def drawn(layers, seed=0):
    """All parameters at random, biases too."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.normal_(generator=generator)
    return layers


@pytest.mark.parametrize('activation', ['tanh', 'relu'])
@pytest.mark.parametrize('lead', [(), (5,), (3, 2), (0,)])
def test_the_fast_perceptron_gives_what_torch_gives(activation, lead):
    layers = drawn(perceptron(4, [8, 6], 3, 1.0, activation))
    values = numbers(*lead, 4)
    before = values.copy()
    expected = layers(torch.from_numpy(values)).detach()
    np.testing.assert_allclose(FastPerceptron(layers)(values), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(values, before)


def test_the_fast_perceptron_follows_training_loading_and_copying():
    layers = perceptron(4, [8], 3, 1.0)
    fast, values = FastPerceptron(layers), numbers(5, 4)
    fast(values)
    drawn(layers)
    np.testing.assert_allclose(fast(values), layers(torch.from_numpy(values)).detach(), rtol=1e-4)
    for parameter in layers.parameters():
        parameter.data = parameter.data * 2
    np.testing.assert_allclose(fast(values), layers(torch.from_numpy(values)).detach(), rtol=1e-4)
    before, (twin, fast_twin) = fast(values), copy.deepcopy((layers, fast))
    drawn(twin, seed=1)
    np.testing.assert_allclose(
        fast_twin(values), twin(torch.from_numpy(values)).detach(), rtol=1e-4
    )
    np.testing.assert_array_equal(fast(values), before)


def test_images_are_encoded_alike_whichever_axis_holds_the_channels():
    torch.manual_seed(0)
    last = ImageEncoder((36, 40, 3))
    first = ImageEncoder((3, 36, 40))
    first.load_state_dict(last.state_dict())
    images = torch.randint(0, 256, (2, 4, 36, 40, 3), dtype=torch.uint8)
    features = last(images)
    assert features.shape == (2, 4, last.outputs)
    np.testing.assert_allclose(
        features.detach(), first(images.movedim(-1, 2)).detach(), rtol=1e-4, atol=1e-5
    )
    assert not torch.allclose(features[0, 0], features[0, 1])


def test_images_too_small_for_the_convolutions_are_refused_with_the_smallest():
    with pytest.raises(ValueError, match=r'\(35, 40, 3\) are smaller than 36x36'):
        ImageEncoder((35, 40, 3))


def test_sequences_laid_end_to_end_give_what_single_steps_give():
    memory = Memory(3, 5)
    features = torch.from_numpy(numbers(9, 3))
    states = torch.from_numpy(numbers(9, 5))
    starts = [0, 4, 5]
    first = torch.zeros(9, dtype=torch.bool)
    first[starts] = True
    outputs = memory.unroll(features, states, first)
    state = states[0]
    for row in range(9):
        if row in starts:
            state = states[row]
        state = memory.step(features[row], state)
        np.testing.assert_allclose(outputs[row].detach(), state.detach(), rtol=1e-5, atol=1e-6)


def test_the_gradient_stops_where_a_sequence_begins():
    memory = Memory(2, 4)
    features = torch.from_numpy(numbers(4, 2)).requires_grad_()
    first = torch.tensor([True, False, True, False])
    memory.unroll(features, torch.zeros(4, 4), first)[3].sum().backward()
    assert (features.grad[:2] == 0).all()
    assert (features.grad[2:] != 0).all()
