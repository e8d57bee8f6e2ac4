"""A job in Python: the same parts and names as in a YAML file, one call each."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from opentinker.config import ConfigError, JobConfig, load_config, settings_error
from opentinker.experiments.local import Trained, train
from opentinker.experiments.train_progress import TrainProgress
from opentinker.files import write_atomically
from opentinker.training.callback import Callback


class ExperimentBuilder:
    """Every call returns a new builder with one part set, so that variants share their beginning.

    ``ExperimentBuilder('cartpole').env('gymnasium', id='CartPole-v1').algorithm('ppo').train()``
    """

    def __init__(self, job: str) -> None:
        self._parts: dict[str, Any] = {'job': job}

    @classmethod
    def load(cls, path: Path | str) -> ExperimentBuilder:
        """What a YAML or JSON file says. Raises ConfigError."""
        config = load_config(path)
        builder = cls(config.job)
        builder._parts |= config.model_dump(exclude_unset=True)
        return builder

    def job(self, name: str) -> ExperimentBuilder:
        """The name of the job and of its directory."""
        return self._with(job=name)

    def plugins(self, *modules: str) -> ExperimentBuilder:
        """Python modules that register what the other parts name."""
        return self._with(plugins=list(modules))

    def env(self, name: str, **settings: Any) -> ExperimentBuilder:
        """The environment."""
        return self._with(env={'name': name, **settings})

    def policy(self, name: str, **settings: Any) -> ExperimentBuilder:
        """The policy."""
        return self._with(policy={'name': name, **settings})

    def algorithm(self, name: str, **settings: Any) -> ExperimentBuilder:
        """The algorithm; ``sampler``, ``estimator`` and ``optimizer`` name other parts of it."""
        return self._with(algorithm={'name': name, **settings})

    def rewards(self, changes: Mapping[str, float | bool | list[str]]) -> ExperimentBuilder:
        """Changes to rewards by name, such as ``{'distance': 2.0, 'reached.radius': 0.04}``."""
        return self._merged('rewards', changes)

    def samplers(self, **settings: Any) -> ExperimentBuilder:
        """How many environments, in which processes: ``envs``, ``workers``, ``mode``, ..."""
        return self._merged('samplers', settings)

    def stop(self, **settings: Any) -> ExperimentBuilder:
        """What ends the job: ``mean_return``, ``success``, ``transitions``, ``minutes``, ..."""
        return self._merged('stop', settings)

    def evaluation(self, **settings: Any) -> ExperimentBuilder:
        """Evaluations with frozen statistics: ``every``, ``episodes``, ``patience``."""
        return self._merged('evaluation', settings)

    def log(self, **settings: Any) -> ExperimentBuilder:
        """How often what is written: ``tensorboard``, ``train_every``, ``update_every``, ..."""
        return self._merged('log', settings)

    def training(self, **settings: Any) -> ExperimentBuilder:
        """How numbers are computed: ``device``, ``precision``, ``micro_batch``, ..."""
        return self._merged('training', settings)

    def resources(self, preset: str | None = None, **settings: Any) -> ExperimentBuilder:
        """What the job may use: a preset such as ``small``, or ``memory`` and ``cpus``.

        Raises ConfigError for both.
        """
        if preset and settings:
            raise ConfigError(f'resources: either the preset {preset} or {", ".join(settings)}')
        if preset or isinstance(self._parts.get('resources'), str):
            return self._with(resources=preset or settings)
        return self._merged('resources', settings)

    def callback(self, name: str, **settings: Any) -> ExperimentBuilder:
        """One more registered callback."""
        callbacks = [*self._parts.get('callbacks', []), {'name': name, **settings}]
        return self._with(callbacks=callbacks)

    def seed(self, seed: int) -> ExperimentBuilder:
        """Of everything that is drawn at random."""
        return self._with(seed=seed)

    def config(self) -> JobConfig:
        """The job. Raises ConfigError naming the wrong key, as for a file."""
        try:
            return JobConfig.model_validate(copy.deepcopy(self._parts))
        except ValidationError as error:
            raise settings_error('', error, JobConfig) from None

    def save(self, path: Path | str) -> None:
        """Write the file that `opentinker train` takes. Raises ConfigError."""
        parts = self.config().model_dump(mode='json', exclude_unset=True)
        write_atomically(Path(path), yaml.safe_dump(parts, sort_keys=False).encode())

    def train(
        self,
        *callbacks: Callback,
        root: Path | str = 'runs',
        checkpoint: Path | None = None,
        progress: bool = True,
    ) -> Trained:
        """Train in this process, as `opentinker train` does; see :func:`local.train`."""
        config = self.config()
        shown: Sequence[Callback] = (TrainProgress(config.stop),) if progress else ()
        say = print if progress else lambda text: None
        return train(
            config, root=root, checkpoint=checkpoint, callbacks=[*callbacks, *shown], say=say
        )

    def _with(self, **parts: Any) -> ExperimentBuilder:
        builder = ExperimentBuilder(self._parts['job'])
        builder._parts = {**copy.deepcopy(self._parts), **parts}
        return builder

    def _merged(self, part: str, settings: Mapping[str, Any]) -> ExperimentBuilder:
        return self._with(**{part: {**self._parts.get(part, {}), **settings}})
