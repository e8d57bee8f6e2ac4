import os

import pytest
import torch

from opentinker.config import ConfigError, JobConfig, TrainingConfig
from opentinker.training.machine import UsedMachine, device, use_processors


def test_a_device_that_is_not_there_is_refused_by_name():
    number = torch.cuda.device_count()
    with pytest.raises(ConfigError, match=f'this machine has no cuda:{number}'):
        device(TrainingConfig(device=f'cuda:{number}'))


def test_the_device_is_a_gpu_where_there_is_one():
    expected = 'cuda' if torch.cuda.is_available() else 'cpu'
    assert device(TrainingConfig()).type == expected
    assert device(TrainingConfig(device='cpu')).type == 'cpu'


def test_processors_and_threads_are_used_until_the_machine_is_closed():
    before = os.sched_getaffinity(0), torch.get_num_threads()
    config = JobConfig.model_validate(
        {
            'job': 'a',
            'env': {'name': 'gymnasium'},
            'training': {'threads': 3},
            'resources': {'cpus': 1},
        }
    )
    used = UsedMachine(config)
    assert (len(os.sched_getaffinity(0)), torch.get_num_threads()) == (1, 3)
    used.close()
    assert (os.sched_getaffinity(0), torch.get_num_threads()) == before


def test_more_processors_than_there_are_are_refused():
    with pytest.raises(ConfigError, match=r'resources\.cpus: 9999 of the'):
        use_processors(9999)


def test_processors_that_the_process_may_not_use_are_named():
    before = os.sched_getaffinity(0)
    with pytest.raises(ConfigError, match=r'resources\.cpus: \[9999\] are not among'):
        use_processors([9999])
    assert os.sched_getaffinity(0) == before
