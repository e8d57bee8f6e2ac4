"""The config of a training job, from YAML or JSON, with errors that name the wrong key."""

from __future__ import annotations

import difflib
import importlib
import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

_EXPONENT = re.compile(r'^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$')


class ConfigError(ValueError):
    """Settings that are refused; each line of the message begins with the path of a wrong key."""


def _named(part: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(part.get('name'), str):
        raise ValueError("needs a 'name', the registered name of what to use")
    return part


NamedPart = Annotated[dict[str, Any], AfterValidator(_named)]
"""``name`` and the settings of what is registered as that name, which checks them itself."""


class _Part(BaseModel):
    # strict: a job must not start with a number that was text, or a 1 that was `true`
    model_config = ConfigDict(extra='forbid', strict=True, validate_assignment=True)


class SamplersConfig(_Part):
    """The samplers that step their environments in a process of their own."""

    count: int = Field(default=1, ge=0, le=256)
    envs: int = Field(default=32, ge=1, le=65536)
    """Environments in each."""
    workers: int = Field(default=0, ge=0, le=1024)
    """Processes that step environments. In sync the sampler's own steps an equal share, and they
    pay where a step of all environments takes longer than the way there and back, some 0.05 ms."""
    mode: Literal['sync', 'async', 'timeout'] = 'sync'
    """How long to wait for workers: for all of them; for the first that is ready; or ``timeout_s``
    for all. Unless in sync, workers step all environments, each at its own pace."""
    timeout_s: float = Field(default=0.01, ge=0, le=60)
    overlap: bool = False
    """Training in one process: collect a batch while the one before it is trained on; the policy
    that acts is one version behind."""
    ahead: int = Field(default=1, ge=0, le=64)
    """Training in several: batches that a sampler may send, beyond the first, before it must see a
    newer policy."""


class BusConfig(_Part):
    """The channels between the processes of a job."""

    name: str = 'zmq'
    base_port: int = Field(default=0, ge=0, le=65533)
    """First of three ports in a row; 0 lets the system choose."""


class StopConfig(_Part):
    """What ends the job, whichever comes first."""

    success: float | None = Field(default=None, ge=0, le=1)
    """Share of successful episodes among the last ``episodes``."""
    mean_return: float | None = None
    """Mean return of the last ``episodes`` episodes."""
    of: str | None = None
    """The sampler whose episodes count, such as ``ros`` or ``sampler_0``, or ``evaluation``; null:
    all samplers.
    """
    episodes: int = Field(default=50, ge=1)
    transitions: int | None = Field(default=None, ge=1)
    """Agent transitions of all samplers."""
    minutes: float | None = Field(default=None, gt=0)


class EvaluationConfig(_Part):
    """Episodes with the best known actions, in environments of their own, now and then."""

    every: int | None = Field(default=None, ge=1)
    """Agent transitions between two evaluations; null: none."""
    episodes: int = Field(default=10, ge=1)
    """In each; their beginnings are the same every time. ``stop.of: evaluation`` counts them."""
    patience: int | None = Field(default=None, ge=1)
    """Evaluations in a row that are no better than the best before they end the job."""


class LogConfig(_Part):
    """How often what is written."""

    tensorboard: bool = True
    """Write event files for TensorBoard into the run directory."""
    train_every: int = Field(default=1000, ge=1)
    """Agent transitions between two points of the samplers' curves in TensorBoard."""
    update_every: int = Field(default=1, ge=1)
    """Updates between two lines of metrics.jsonl and two points of the updates' curves."""
    checkpoint_every_s: float = Field(default=60.0, gt=0)


class TrainingConfig(_Part):
    """How the numbers are computed, whatever the algorithm."""

    device: str = Field(default='auto', pattern=r'^(auto|cpu|mps|xla|cuda(:\d+)?)$')
    """Where policies are trained; auto: a GPU where there is one."""
    precision: Literal['float32', 'bfloat16', 'float16'] = 'float32'
    """Of forward passes and gradients while training; weights and optimizers stay float32."""
    micro_batch: int | None = Field(default=None, ge=1)
    """Rows whose gradients are computed at once; they add up to those of the minibatch."""
    compile: bool = False
    """Compile the networks before training (torch.compile); needs a C++ compiler on a CPU."""
    threads: int = Field(default=1, ge=1)
    """Of torch and of numpy; small networks are fastest with one."""


_PRESETS = {'small': {'memory': '768MiB', 'cpus': 1}}


_Number = Annotated[int, Field(ge=0)]


def _bytes(value: Any) -> Any:
    return TypeAdapter(ByteSize).validate_python(value) if isinstance(value, str) else value


def _preset(value: Any) -> Any:
    return _PRESETS.get(value, value) if isinstance(value, str) else value


class ResourcesConfig(_Part):
    """What the processes of a job may use of the machine."""

    memory: Annotated[int, BeforeValidator(_bytes)] | None = Field(default=None, ge=1)
    """A text such as 4GiB, or bytes. Environments and rows at once are planned to fit where the job
    leaves them open; null: nothing is planned."""
    cpus: Annotated[list[_Number], Field(min_length=1)] | Annotated[int, Field(ge=1)] | None = None
    """Processors by number, or how many; null: all."""


class JobConfig(_Part):
    """All that defines a job."""

    job: str = Field(pattern=r'^[A-Za-z0-9_-]+$')
    plugins: list[str] = []
    """Python modules to import; they register what the other parts name."""
    env: NamedPart
    policy: NamedPart = Field(default_factory=lambda: {'name': 'actor_critic'})
    algorithm: NamedPart = Field(default_factory=lambda: {'name': 'ppo'})
    rewards: dict[str, float | bool | list[str]] = {}
    """Changes to the rewards of the environment, as RewardSpec.changed takes them."""
    samplers: SamplersConfig = Field(default_factory=SamplersConfig)
    graph: NamedPart | None = None
    bus: BusConfig = Field(default_factory=BusConfig)
    stop: StopConfig = Field(default_factory=StopConfig)
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    callbacks: list[NamedPart] = []
    """What else looks on while a job trains in one process, and may end it."""
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    resources: Annotated[ResourcesConfig, BeforeValidator(_preset)] = Field(
        default_factory=ResourcesConfig
    )
    """Or the name of a preset: small."""
    seed: int = Field(default=0, ge=0)

    def import_plugins(self) -> None:
        """Import the modules of ``plugins``. Raises :class:`ConfigError` for one that fails."""
        for name in self.plugins:
            try:
                importlib.import_module(name)
            except Exception as error:
                raise ConfigError(f'plugins: {name}: {type(error).__name__}: {error}') from error


def load_config(path: Path | str) -> JobConfig:
    """The config in a YAML or JSON file. Raises :class:`ConfigError` naming file and keys."""
    path = Path(path)
    try:
        settings = yaml.load(path.read_text(encoding='utf-8'), _Loader)
    except OSError as error:
        raise ConfigError(f'{path}: {error.strerror or error}') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f'{path}: not YAML: {error}') from None
    if not isinstance(settings, dict):
        raise ConfigError(f'{path}: expected keys and values, found {type(settings).__name__}')
    try:
        return JobConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f'{path}:\n{settings_error("", error, JobConfig)}') from None


def settings_error(
    path: str, error: ValidationError, model: type[BaseModel] | None = None
) -> ConfigError:
    """A validation error as one line a key: its path below ``path``, what is wrong, and the value.

    With the ``model`` that was validated, an unknown key is answered with the ones that come close.
    """
    lines = []
    for item in error.errors():
        key = '.'.join([path, *map(str, item['loc'])] if path else map(str, item['loc']))
        if item['type'] == 'extra_forbidden':
            lines.append(f'{key}: unknown key{_close_matches(item["loc"], model)}')
        elif item['type'] == 'missing':
            lines.append(f'{key}: missing')
        else:
            problem = item['msg'].removeprefix('Value error, ').removeprefix('Input should be ')
            lines.append(f'{key}: {problem}, not {item["input"]!r:.80}')
    return ConfigError('\n'.join(lines))


Model = TypeVar('Model', bound=BaseModel)


def checked(path: str, model: type[Model], settings: dict[str, Any]) -> Model:
    """Settings as their model. Raises :class:`ConfigError` with paths below ``path``."""
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        raise settings_error(path, error, model) from None


def _close_matches(location: tuple[int | str, ...], model: type[BaseModel] | None) -> str:
    for key in location[:-1]:
        field = model.model_fields.get(str(key)) if model else None
        inner = field.annotation if field else None
        model = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    if model is None:
        return ''
    matches = difflib.get_close_matches(str(location[-1]), model.model_fields, cutoff=0.5)
    if matches:
        return f'; did you mean {" or ".join(matches)}?'
    return f'; known: {", ".join(model.model_fields)}'


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which also reads 1e-4 as a number and refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f'key {key!r} is given twice', node.start_mark
                )
        return super().construct_mapping(node, deep)


# YAML 1.1 takes 1e-4 for text, for want of a point
_Loader.add_implicit_resolver('tag:yaml.org,2002:float', _EXPONENT, list('-+.0123456789'))
