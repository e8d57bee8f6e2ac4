"""Environments so small that what must be learnt is known, in numpy."""

import numpy as np

from opentinker.algorithms import ppo  # noqa: F401  (registers)
from opentinker.envs.descriptor import ArrayInfo, EnvDescriptor, GroupInfo
from opentinker.envs.rewards import RewardSpec, reward_term
from opentinker.envs.vector import MultiAgentVectorEnv, Step
from opentinker.training.collector import Collector
from opentinker.training.learner import Learner


@reward_term('probe_pay', needs=('pay',), weight=1.0)
def probe_pay(signals):
    """The signal itself."""
    return signals['pay']


class ProbeEnv(MultiAgentVectorEnv):
    """Episodes of ``length`` steps; subclasses say what agents see and what an action pays."""

    def __init__(self, num_envs, agents, length, truncates=False):
        info = GroupInfo(
            agents=tuple('abc'[:agents]),
            observation={'seen': ArrayInfo(shape=(1,))},
            action=ArrayInfo(shape=(1,)),
            signals=('pay',),
        )
        self.descriptor = EnvDescriptor(name='probe', groups={'all': info}, control_period=1)
        self.rewards = RewardSpec.of(['probe_pay'])
        self.num_envs = num_envs
        self._agents, self._length, self._truncates = agents, length, truncates

    def reset(self, seed=None):
        self._random = np.random.default_rng(seed)
        self._age = np.zeros(self.num_envs, int)
        self._numbers = self._draw(self.num_envs)
        return self._observation()

    def step(self, actions):
        pay = self.pay(actions['all'][..., 0]).astype(np.float32)
        self._age += 1
        final = self._observation()['all']['seen']
        over = self._age >= self._length
        (ended,) = np.nonzero(over)
        self._age[ended] = 0
        self._numbers[ended] = self._draw(len(ended))
        never = np.zeros_like(over)
        return Step(
            observation=self._observation(),
            reward={'all': self.rewards.evaluate({'pay': pay})[1]},
            reward_terms={},
            signals={'all': {'pay': pay}},
            reward_revision=self.rewards.revision,
            active={'all': np.ones(pay.shape, bool)},
            terminated=never if self._truncates else over,
            truncated=over if self._truncates else never,
            ended=ended,
            final_observation={'all': {'seen': final[ended]}} if len(ended) else None,
        )

    def _observation(self):
        return {'all': {'seen': self.see()[..., None].astype(np.float32)}}

    def _draw(self, envs):
        return self._random.uniform(-1, 1, (envs, self._agents))


class Partner(ProbeEnv):
    """Every agent is to say the number that it sees: another agent's."""

    def see(self):
        return np.roll(self._numbers, 1, axis=1)

    def pay(self, action):
        return -np.square(action - self.see())


class Wage(ProbeEnv):
    """One agent sees its age, and is paid 1 in the last step of an episode, or in every step."""

    def __init__(self, num_envs, length, truncates=False, always=False):
        super().__init__(num_envs, 1, length, truncates)
        self._always = always

    def see(self):
        return np.zeros((self.num_envs, 1)) if self._always else self._age[:, None]

    def pay(self, action):
        last = self._age == self._length - 1
        return np.where(last | self._always, 1.0, 0.0)[:, None]


class Recall(ProbeEnv):
    """One agent sees a number at first and then zeros; it is to say the number in every step."""

    def __init__(self, num_envs, length):
        super().__init__(num_envs, 1, length)

    def see(self):
        return np.where(self._age[:, None] == 0, self._numbers, 0)

    def pay(self, action):
        return -np.square(action - self._numbers)


def trained(env, updates, steps=16, policy=None, **algorithm):
    """A learner after some updates on an environment."""
    agents = len(env.descriptor.groups['all'].agents)
    settings = {'name': 'ppo', 'batch_size': steps * env.num_envs * agents, **algorithm}
    policy = {'name': 'actor_critic', 'hidden': [32], **(policy or {})}
    learner = Learner(env.descriptor, policy, settings, env.rewards, seed=0)
    collector = Collector(env, learner.policies, steps, 'probe', seed=1)
    while learner.versions['all'] < updates:
        for segment in collector.step():
            learner.add(segment)
            learner.update()
    return learner
