"""Evaluation: whole episodes with the best known actions; nothing is learnt from them."""

from __future__ import annotations

from collections.abc import Mapping

from opentinker.config import JobConfig
from opentinker.envs.rewards import RewardSpec
from opentinker.envs.vector import MultiAgentVectorEnv
from opentinker.policies.policy import Policy
from opentinker.training.collector import Collector, CollectStats
from opentinker.training.parts import make_env
from opentinker.training.statistics import EVALUATION

ENVS = 8
"""At most; no more than episodes."""
_LENGTH = 16
"""Steps a segment; nobody looks at the segments."""
_STREAM = 7_919
"""Keeps the seeds of evaluations apart from those of samplers."""


def evaluate(
    env: MultiAgentVectorEnv, policies: Mapping[str, Policy], episodes: int, seed: int
) -> CollectStats:
    """Play ``episodes`` from beginnings that depend on the seed alone."""
    collector = Collector(env, policies, _LENGTH, EVALUATION, seed, evaluating=True)
    return collector.collect(n_episode=episodes)


class Evaluation:
    """The evaluations of a job, each from the same beginnings."""

    def __init__(self, config: JobConfig) -> None:
        self._config = config.evaluation
        self._seed = config.seed + _STREAM
        self._env = make_env(config, min(self._config.episodes, ENVS), self._seed)
        self.best: float | None = None
        """The best mean return so far."""
        self.without_progress = 0
        """Evaluations since the best one."""

    def run(self, policies: Mapping[str, Policy], rewards: RewardSpec) -> CollectStats:
        """Evaluate policies under the rewards of the day."""
        self._env.rewards = rewards
        stats = evaluate(self._env, policies, self._config.episodes, self._seed)
        mean = stats.mean('return')
        assert mean is not None
        if self.best is None or mean > self.best:
            self.best, self.without_progress = mean, 0
        else:
            self.without_progress += 1
        return stats

    @property
    def stop_reason(self) -> str:
        """Why the job should end; empty while it should go on."""
        patience = self._config.patience
        if patience is None or self.without_progress < patience:
            return ''
        return f'{self.without_progress} evaluations were no better than {self.best:.2f}'

    def close(self) -> None:
        """Close its environments."""
        self._env.close()
