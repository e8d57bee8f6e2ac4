import numpy as np
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import (
    Independent,
    Normal,
    TanhTransform,
    TransformedDistribution,
    kl_divergence,
)

from opentinker.policies.distributions import Categorical, Gaussian, SquashedGaussian

RANDOM = np.random.default_rng(0)
CLOSE = {'rtol': 1e-5, 'atol': 1e-6}


def tensor(*shape):
    return torch.from_numpy(RANDOM.normal(size=shape).astype(np.float32))


def generator():
    return torch.Generator().manual_seed(0)


def test_a_gaussian_agrees_with_that_of_torch():
    first, second = (Gaussian(tensor(5, 3), tensor(3) / 2, (3,)) for _ in range(2))
    theirs = [Independent(Normal(own.mean, own.log_std.exp()), 1) for own in (first, second)]
    action = tensor(5, 3)
    np.testing.assert_allclose(first.log_prob(action), theirs[0].log_prob(action), **CLOSE)
    np.testing.assert_allclose(first.entropy(), theirs[0].entropy(), **CLOSE)
    np.testing.assert_allclose(first.kl(second), kl_divergence(*theirs), **CLOSE)


def test_choices_agree_with_those_of_torch():
    logits, others = tensor(5, 7), tensor(5, 7)
    first, second = (Categorical(each, (3, 4), (2,)) for each in (logits, others))
    theirs = [[TorchCategorical(logits=p) for p in each.split((3, 4), -1)]
              for each in (logits, others)]  # fmt: skip
    action = torch.stack([torch.randint(0, n, (5,), generator=generator()) for n in (3, 4)], -1)

    def total(parts):
        return torch.stack(list(parts)).sum(0)

    log_prob = total(part.log_prob(a) for part, a in zip(theirs[0], action.T, strict=True))
    divergence = total(kl_divergence(p, q) for p, q in zip(*theirs, strict=True))
    np.testing.assert_allclose(first.log_prob(action), log_prob, **CLOSE)
    np.testing.assert_allclose(first.entropy(), total(p.entropy() for p in theirs[0]), **CLOSE)
    np.testing.assert_allclose(first.kl(second), divergence, **CLOSE)


def test_draws_have_the_shape_of_the_action_and_the_frequencies_of_the_distribution():
    single = Categorical(torch.tensor([0.2, 0.8]).log().expand(4000, 2), (2,), ())
    drawn = single.sample(generator())
    assert drawn.shape == (4000,)
    assert drawn.dtype == torch.int64
    np.testing.assert_allclose(drawn.float().mean(), 0.8, atol=0.03)
    assert Categorical(tensor(2, 5, 7), (3, 4), (2,)).sample(generator()).shape == (2, 5, 2)


def test_a_closed_choice_is_never_drawn_and_weighs_nothing():
    mask = torch.tensor([[1, 0, 1]])
    logits = torch.tensor([[0.0, 50.0, 1.0]], requires_grad=True)
    chances = Categorical(logits, (3,), (), mask)
    many = Categorical(logits.detach().expand(1000, 3), (3,), (), mask.expand(1000, 3))
    assert set(many.sample(generator()).tolist()) == {0, 2}
    assert chances.mode.item() == 2
    two = TorchCategorical(logits=torch.tensor([0.0, 1.0]))
    np.testing.assert_allclose(chances.entropy().detach(), [two.entropy()], **CLOSE)
    (chances.entropy() + chances.log_prob(torch.tensor([2]))).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[0, 1] == 0


def test_a_squashed_gaussian_agrees_with_that_of_torch():
    mean, log_std = tensor(5, 3), tensor(3) / 2
    own = SquashedGaussian(mean, log_std, (3,))
    bent = TransformedDistribution(Normal(mean, log_std.exp()), TanhTransform())
    action = torch.tanh(tensor(5, 3))
    expected = Independent(bent, 1).log_prob(action)
    np.testing.assert_allclose(own.log_prob(action), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(own.mode, mean.tanh())


def test_the_entropy_of_a_squashed_gaussian_is_the_mean_surprise_of_its_draws():
    mean, log_std = tensor(1, 2) / 2, torch.tensor([-1.0, -0.5])
    many = SquashedGaussian(mean.expand(50_000, 2), log_std, (2,))
    draws = many.sample(generator())
    assert draws.abs().max() <= 1
    surprise = -many.log_prob(draws).mean()
    np.testing.assert_allclose(many.entropy()[0], surprise, atol=0.02)


def test_an_action_on_the_edge_has_a_finite_density_and_gradient():
    mean = torch.zeros(1, 2, requires_grad=True)
    chances = SquashedGaussian(mean, torch.zeros(2), (2,))
    log_prob = chances.log_prob(torch.tensor([[1.0, -1.0]]))
    log_prob.sum().backward()
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(mean.grad).all()
