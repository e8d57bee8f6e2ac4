"""One library learns one task from one seed; prints its evaluations as JSON.

The settings of the others are those they publish: rl-baselines3-zoo ``hyperparams/*.yml``, and
Tianshou's ``test/discrete/test_ppo_discrete.py``, ``test_a2c_with_il.py`` and
``examples/mujoco/mujoco_ppo.py``; for the arms, which have none, those of ours.
"""

from __future__ import annotations

import argparse
import json

import torch
import torch._dynamo  # imports do not count; the optimizers of torch do this one late
from race import TASKS, Race


def main() -> None:
    """Learn and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('side', choices=('ours', 'stable_baselines3', 'tianshou'))
    parser.add_argument('task', choices=TASKS)
    parser.add_argument('seed', type=int)
    parser.add_argument('--config', help='the job file of ours, to try another')
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.side == 'ours':
        from ours import learn
    elif options.side == 'stable_baselines3':
        from with_stable_baselines3 import learn
    else:
        from with_tianshou import learn
    settings = {'config': options.config} if options.config else {}
    race = learn(options.task, Race(TASKS[options.task]), options.seed, **settings)
    print(json.dumps(race.curve))


if __name__ == '__main__':
    main()
