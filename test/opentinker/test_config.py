from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from opentinker.config import ConfigError, JobConfig, load_config, settings_error

MINIMAL = 'job: reach\nenv: {name: arms}\n'


def load(tmp_path: Path, text: str, name: str = 'job.yaml') -> JobConfig:
    path = tmp_path / name
    path.write_text(text)
    return load_config(path)


def test_everything_but_job_and_env_has_a_default(tmp_path):
    config = load(tmp_path, MINIMAL)
    assert config.policy == {'name': 'actor_critic'}
    assert config.samplers.count == 1
    assert config.graph is None


def test_json_is_read_as_well(tmp_path):
    config = load(tmp_path, '{"job": "a", "env": {"name": "arms", "arms": 4}}', 'job.json')
    assert config.env == {'name': 'arms', 'arms': 4}


def test_a_number_with_an_exponent_is_a_number(tmp_path):
    config = load(tmp_path, MINIMAL + 'algorithm: {name: ppo, a: 5e-4, b: 1E3, c: .5e1, d: e3}\n')
    assert config.algorithm == {'name': 'ppo', 'a': 5e-4, 'b': 1000.0, 'c': 5.0, 'd': 'e3'}


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('smaplers: {count: 2}', 'smaplers: unknown key; did you mean samplers?'),
        ('samplers: {cuont: 2}', 'samplers.cuont: unknown key; did you mean count?'),
        (
            'samplers: {zzzzzzz: 2}',
            'samplers.zzzzzzz: unknown key; known: count, envs, workers, mode, timeout_s, overlap, '
            'ahead',
        ),
        ('samplers: {count: true}', 'samplers.count: a valid integer, not True'),
        ("samplers: {count: '2'}", "samplers.count: a valid integer, not '2'"),
        ('samplers: {count: 2.5}', 'samplers.count: a valid integer, not 2.5'),
        ('samplers: {count: -1}', 'samplers.count: greater than or equal to 0, not -1'),
        ('stop: {minutes: .nan}', 'stop.minutes: '),
        ('stop: {success: 2}', 'stop.success: less than or equal to 1, not 2'),
        ('bus: {base_port: 99999}', 'bus.base_port: '),
        ('policy: {hidden: [8]}', "policy: needs a 'name'"),
        ('policy: ppo', 'policy: a valid dictionary'),
        ('rewards: {distance: far}', 'rewards.distance'),
    ],
)
def test_a_wrong_key_is_named_with_its_path(tmp_path, text, message):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, MINIMAL + text)
    assert 'job.yaml' in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('env: {name: arms}', 'job: missing'),
        ('job: a/b\nenv: {name: arms}', 'job: '),
        ('job: a\njob: b\nenv: {name: arms}', "key 'job' is given twice"),
        ('- 1', 'expected keys and values, found list'),
        ('', 'expected keys and values, found NoneType'),
        ('a: [', 'not YAML'),
        ('!!python/object/apply:os.getcwd []', 'not YAML'),
    ],
)
def test_a_broken_file_is_refused_with_the_reason(tmp_path, text, message):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert message in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r'absent\.yaml: No such file'):
        load_config(tmp_path / 'absent.yaml')


class Inner(BaseModel):
    model_config = ConfigDict(extra='forbid')
    epochs: int = 4


def test_settings_of_a_part_are_answered_in_the_same_style():
    with pytest.raises(ValidationError) as error:
        Inner.model_validate({'epoch': 3, 'epochs': 'many'})
    message = str(settings_error('algorithm', error.value, Inner))
    assert 'algorithm.epoch: unknown key; did you mean epochs?' in message
    assert (
        "algorithm.epochs: a valid integer, unable to parse string as an integer, not 'many'"
        in message
    )


def test_a_plugin_that_fails_is_named():
    config = JobConfig(job='a', env={'name': 'arms'}, plugins=['json', 'no_such_module'])
    with pytest.raises(ConfigError, match=r'plugins: no_such_module: ModuleNotFoundError'):
        config.import_plugins()
