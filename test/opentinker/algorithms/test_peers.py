"""The same numbers as other libraries on random data: estimators, losses, distributions, weights.

Truncation is where they differ: stable-baselines3 adds the bootstrapped value to the reward, which
is done to its data here.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from opentinker.algorithms.advantage_estimator import Steps
from opentinker.algorithms.clipped_surrogate import clipped_loss, critic_loss, explained_variance
from opentinker.algorithms.gae import Gae
from opentinker.algorithms.n_step import NStep
from opentinker.algorithms.td_lambda import TdLambda
from opentinker.algorithms.trust_region import conjugate_gradient
from opentinker.data.replay_samplers import PrioritizedSampler
from opentinker.policies.distributions import Categorical, Gaussian, SquashedGaussian
from opentinker.policies.normalizer import RunningNormalizer

STEPS, ENVS = 60, 3
GAMMA, LAM = 0.97, 0.9
CLOSE = {'rtol': 1e-6, 'atol': 1e-6}


@pytest.fixture
def steps():
    """Float64, so that the order of sums does not count; one episode in ten ends, some by time."""
    random = np.random.default_rng(0)
    shape = (STEPS, ENVS, 1)
    reward, value = random.normal(size=shape), random.normal(size=shape)
    ended = random.random(shape) < 0.1
    truncated = ended & (random.random(shape) < 0.5)
    last = random.normal(size=shape[1:])
    following = np.concatenate([value[1:], last[None]])
    final = random.normal(size=shape)
    next_value = np.where(truncated, final, np.where(ended, 0, following))
    return Steps(reward, value, next_value, ended), truncated, last


def baselines_buffer(given, lam):
    """stable-baselines3's advantages and returns, ``[T, E]``."""
    buffers = pytest.importorskip('stable_baselines3.common.buffers')
    steps, truncated, last = given
    space = spaces.Box(-1, 1, (1,))
    buffer = buffers.RolloutBuffer(STEPS, space, space, 'cpu', lam, GAMMA, ENVS)
    bootstrapped = steps.reward + GAMMA * np.where(truncated, steps.next_value, 0)
    buffer.rewards, buffer.values = bootstrapped[..., 0], steps.value[..., 0]
    ended = steps.ended[..., 0]
    buffer.episode_starts = np.concatenate([np.zeros((1, ENVS)), ended[:-1]])
    buffer.advantages = np.zeros((STEPS, ENVS))
    buffer.compute_returns_and_advantage(torch.from_numpy(last[:, 0]), ended[-1])
    return buffer.advantages, buffer.returns


def test_gae_is_that_of_stable_baselines3(steps):
    advantage, target = Gae(gamma=GAMMA, lam=LAM).advantages(steps[0])
    expected, returns = baselines_buffer(steps, LAM)
    np.testing.assert_allclose(advantage[..., 0], expected, **CLOSE)
    np.testing.assert_allclose(target[..., 0], returns, **CLOSE)


def test_lambda_returns_are_those_of_stable_baselines3(steps):
    _, target = TdLambda(gamma=GAMMA, lam=LAM).advantages(steps[0])
    np.testing.assert_allclose(target[..., 0], baselines_buffer(steps, LAM)[1], **CLOSE)


def test_returns_to_the_end_are_those_of_stable_baselines3_a2c(steps):
    advantage, target = NStep(gamma=GAMMA, n=STEPS).advantages(steps[0])
    expected, returns = baselines_buffer(steps, 1.0)
    np.testing.assert_allclose(advantage[..., 0], expected, **CLOSE)
    np.testing.assert_allclose(target[..., 0], returns, **CLOSE)


def test_gae_is_that_of_tianshou(steps):
    base = pytest.importorskip('tianshou.algorithm.algorithm_base')
    own = steps[0]
    advantage, _ = Gae(gamma=GAMMA, lam=LAM).advantages(own)
    for env in range(ENVS):
        columns = (own.value, own.next_value, own.reward, own.ended)
        given = [np.ascontiguousarray(column[:, env, 0]) for column in columns]
        np.testing.assert_allclose(advantage[:, env, 0], base._gae(*given, GAMMA, LAM), **CLOSE)


@pytest.fixture
def rows():
    """Columns of 64 random rows: log-ratio, advantage, value, value before, value target."""
    random = torch.Generator().manual_seed(1)
    return [torch.randn(64, generator=random) for _ in range(5)]


class Column(torch.nn.Module):
    """A network that gives back its input."""

    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(()))

    def forward(self, observation, state=None, info=None):
        return self.factor * torch.as_tensor(observation)


class StandardNormal(Column):
    """An actor that does not look."""

    def forward(self, observation, state=None, info=None):
        mean = 0 * super().forward(observation)
        return (mean, torch.ones_like(mean)), state


@pytest.mark.parametrize('dual_clip', [None, 1.5])
@pytest.mark.parametrize('value_clip', [False, True])
def test_the_losses_of_ppo_are_those_of_tianshou(rows, dual_clip, value_clip):
    pytest.importorskip('tianshou')
    from tianshou.algorithm import PPO
    from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Batch

    log_ratio, advantage, value, before, target = rows

    def normal(location_and_scale):
        return torch.distributions.Independent(torch.distributions.Normal(*location_and_scale), 1)

    policy = ProbabilisticActorPolicy(
        actor=StandardNormal(),
        dist_fn=normal,
        action_space=spaces.Box(-1, 1, (1,)),
        action_scaling=False,
        action_bound_method=None,
    )
    ppo = PPO(
        policy=policy,
        critic=Column(),
        optim=AdamOptimizerFactory(lr=1e-9),
        eps_clip=0.2,
        dual_clip=dual_clip,
        value_clip=value_clip,
        advantage_normalization=False,
    )
    action = torch.zeros(64, 1)
    now = normal((torch.zeros(64, 1), torch.ones(64, 1))).log_prob(action)
    batch = Batch(
        obs=value[:, None].numpy(), act=action, adv=advantage, returns=target, v_s=before,
        logp_old=now - log_ratio, info=Batch(),
    )  # fmt: skip
    stats = ppo._update_with_batch(batch, None, 1)
    actor, _ = clipped_loss(log_ratio, advantage, 0.2, dual_clip)
    critic = critic_loss(value, target, before, 0.2 if value_clip else None)
    assert stats.actor_loss.mean == pytest.approx(float(actor), rel=1e-6)
    assert stats.vf_loss.mean == pytest.approx(float(critic), rel=1e-6)


def test_the_losses_of_ppo_are_those_that_stable_baselines3_logs(rows):
    baselines = pytest.importorskip('stable_baselines3')
    from stable_baselines3.common.logger import Logger

    log_ratio, advantage, _, before, target = (column.numpy() for column in rows)
    model = baselines.PPO(
        'MlpPolicy', 'Pendulum-v1', n_steps=64, batch_size=64, n_epochs=1, clip_range=0.2,
        normalize_advantage=False, device='cpu', seed=0,
    )  # fmt: skip
    model.set_logger(Logger(None, []))
    buffer, random = model.rollout_buffer, np.random.default_rng(2)
    buffer.observations = random.normal(size=(64, 1, 3)).astype(np.float32)
    buffer.actions = random.normal(size=(64, 1, 1)).astype(np.float32)
    observation, action = (
        torch.from_numpy(each[:, 0]) for each in (buffer.observations, buffer.actions)
    )
    with torch.no_grad():
        value, now, entropy = model.policy.evaluate_actions(observation, action)
    buffer.values, buffer.returns = before[:, None], target[:, None]
    buffer.log_probs, buffer.advantages = (
        now.numpy()[:, None] - log_ratio[:, None],
        advantage[:, None],
    )
    buffer.full, buffer.generator_ready = True, False
    model.train()
    logged = model.logger.name_to_value
    actor, clipped = clipped_loss(now - torch.from_numpy(buffer.log_probs[:, 0]), rows[1], 0.2)
    assert logged['train/policy_gradient_loss'] == pytest.approx(float(actor), rel=1e-6)
    assert logged['train/clip_fraction'] == pytest.approx(float(clipped), rel=1e-6)
    expected = critic_loss(value.flatten(), rows[4], rows[3], None)
    assert logged['train/value_loss'] == pytest.approx(float(expected), rel=1e-6)
    assert logged['train/entropy_loss'] == pytest.approx(-float(entropy.mean()), rel=1e-6)
    explained = explained_variance(SimpleNamespace(value=rows[3], value_target=rows[4]))
    assert logged['train/explained_variance'] == pytest.approx(explained, rel=1e-5)


@pytest.mark.parametrize(
    ('theirs', 'ours'), [('DiagGaussian', Gaussian), ('SquashedDiagGaussian', SquashedGaussian)]
)
def test_densities_are_those_of_stable_baselines3(theirs, ours):
    distributions = pytest.importorskip('stable_baselines3.common.distributions')
    random = torch.Generator().manual_seed(3)
    # in float64: near the edge, the way back through tanh has few digits
    mean = torch.randn(50, 4, generator=random, dtype=torch.float64)
    log_std = 0.3 * torch.randn(4, generator=random, dtype=torch.float64)
    own = ours(mean, log_std, (4,))
    action = own.sample(random)
    other = getattr(distributions, f'{theirs}Distribution')(4).proba_distribution(mean, log_std)
    if ours is SquashedGaussian:
        other.epsilon = 0.0  # it is added to what the logarithm is taken of
    torch.testing.assert_close(own.log_prob(action), other.log_prob(action), **CLOSE)
    if ours is Gaussian:
        torch.testing.assert_close(own.entropy(), other.entropy(), **CLOSE)


def test_several_choices_are_as_likely_as_in_stable_baselines3():
    distributions = pytest.importorskip('stable_baselines3.common.distributions')
    random = torch.Generator().manual_seed(4)
    own = Categorical(torch.randn(50, 9, generator=random), (2, 3, 4), (3,))
    other = distributions.MultiCategoricalDistribution([2, 3, 4]).proba_distribution(own.logits)
    action = own.sample(random)
    torch.testing.assert_close(own.log_prob(action), other.log_prob(action), **CLOSE)
    torch.testing.assert_close(own.entropy(), other.entropy(), **CLOSE)


def test_running_statistics_are_those_of_stable_baselines3():
    running = pytest.importorskip('stable_baselines3.common.running_mean_std')
    own, other = RunningNormalizer(3).double(), running.RunningMeanStd(epsilon=0.0, shape=(3,))
    random = np.random.default_rng(5)
    for size in (1, 7, 100):
        values = random.normal(3, 2, (size, 3))
        own.update(torch.from_numpy(values))
        other.update(values)
    np.testing.assert_allclose(own.mean.numpy(), other.mean, **CLOSE)
    np.testing.assert_allclose(own.variance.numpy(), other.var, **CLOSE)


def test_the_weights_of_prioritized_steps_are_those_of_tianshou():
    data = pytest.importorskip('tianshou.data')
    errors = np.random.default_rng(6).random(16) * 5
    other = data.PrioritizedReplayBuffer(16, alpha=0.6, beta=0.4, weight_norm=True)
    for number in range(16):
        other.add(data.Batch(obs=number, act=0, rew=0.0, terminated=False, truncated=False,
                             obs_next=0, info={}))  # fmt: skip
    other.update_weight(np.arange(16), errors)
    own = PrioritizedSampler(alpha=0.6, beta=0.4, epsilon=np.finfo(np.float32).eps.item())
    own.allocate(16)
    slots = np.arange(16)
    own.added(slots)
    own.update(own.tickets(slots), errors)
    drawn, weight = own.draw(200, np.random.default_rng(0), np.array([16]), 1)
    expected = other.get_weight(drawn)
    np.testing.assert_allclose(weight / weight.max(), expected / expected.max(), **CLOSE)


def test_conjugate_gradients_are_those_of_tianshou():
    npg = pytest.importorskip('tianshou.algorithm').NPG
    random = torch.Generator().manual_seed(7)
    root = torch.randn(12, 12, generator=random, dtype=torch.float64)
    fisher, gradient = root @ root.T + torch.eye(12), torch.randn(12, generator=random).double()

    class Solver:
        _MVP = staticmethod(lambda vector, _: fisher @ vector)

    expected = npg._conjugate_gradients(Solver(), gradient, None, nsteps=10)
    own = conjugate_gradient(lambda vector: fisher @ vector, gradient, 10)
    torch.testing.assert_close(own, expected, **CLOSE)
