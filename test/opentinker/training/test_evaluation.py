import numpy as np
import pytest
from point_env import PointEnv
from test_resume import POINT, learnt, train

from opentinker.config import JobConfig
from opentinker.lifecycle import Lifecycle
from opentinker.policies.actor_critic import actor_critic
from opentinker.training.callback import Callback
from opentinker.training.evaluation import Evaluation, evaluate
from opentinker.training.local_trainer import LocalTrainer
from opentinker.training.run_directory import RunDirectory


def policy(seed=0):
    return {'point': actor_critic(PointEnv(1, 0).descriptor, 'point', seed=seed, hidden=[8])}


def evaluation(**settings):
    return Evaluation(JobConfig(**{**POINT, 'evaluation': {'every': 1, **settings}}))


def test_evaluations_begin_at_the_same_places_and_change_nothing():
    policies, own = policy(), evaluation(episodes=11)
    before = {key: value.clone() for key, value in policies['point'].state_dict().items()}
    drawn = policies['point'].generator.get_state().clone()
    first, second = (own.run(policies, PointEnv(1, 0).rewards) for _ in range(2))
    np.testing.assert_array_equal(first.episodes['return'], second.episodes['return'])
    assert first.episodes['length'].tolist() == [7] * 11
    assert policies['point'].generator.get_state().equal(drawn)
    for key, value in policies['point'].state_dict().items():
        assert value.equal(before[key])
    own.close()


def test_evaluations_take_the_rewards_of_the_day():
    own, rewards = evaluation(), PointEnv(1, 0).rewards
    policies = policy()
    once, twice = (
        own.run(policies, rewards.changed({'closeness': weight})) for weight in (1.0, 2.0)
    )
    np.testing.assert_allclose(twice.episodes['return'], 2 * once.episodes['return'], rtol=1e-5)
    own.close()


def test_training_is_the_same_with_and_without_evaluations(tmp_path):
    with_them = train(POINT, tmp_path)
    without = train({**POINT, 'evaluation': {}}, tmp_path)
    assert learnt(with_them) == learnt(without)


def test_a_job_ends_when_evaluations_no_longer_improve(tmp_path):
    evaluations = {'every': 64, 'episodes': 3, 'patience': 2}
    run = train({**POINT, 'rewards': {'closeness': 0.0}, 'evaluation': evaluations}, tmp_path)
    assert run.stop_reason() == '2 evaluations were no better than 0.00'
    assert run.metrics()[-1]['evaluation.episodes'] == 9


def test_the_best_checkpoint_is_that_of_the_best_evaluation(tmp_path):
    seen = []

    class Note(Callback):
        def on_evaluation(self, metrics):
            seen.append((metrics['evaluation.return'], metrics['version']))

    config = JobConfig(**{**POINT, 'algorithm': {**POINT['algorithm'], 'learning_rate': 0.05}})
    run = RunDirectory.create(config, tmp_path)
    with Lifecycle() as life:
        life.keep(LocalTrainer(config)).run(run, life, [Note()])
    _, version = max(seen, key=lambda pair: (pair[0], -pair[1]))
    trainer = LocalTrainer(config)
    trainer.begin_with(run.checkpoint('best'))
    assert trainer.learner.versions['point'] == version
    trainer.close()


def test_a_job_can_stop_by_what_its_evaluations_reach(tmp_path):
    stop = {'of': 'evaluation', 'episodes': 3, 'mean_return': -1000.0, 'transitions': 640}
    run = train({**POINT, 'stop': stop}, tmp_path)
    assert 'over the last 3 episodes of evaluation reached -1000' in run.stop_reason()
    assert run.metrics()[-1]['version'] == 1


def test_a_callback_ends_a_job_with_its_reason(tmp_path):
    class Enough(Callback):
        def on_update(self, metrics):
            return 'three are enough' if metrics['version'] == 3 else None

    config = JobConfig(**POINT)
    run = RunDirectory.create(config, tmp_path)
    with Lifecycle() as life:
        assert life.keep(LocalTrainer(config)).run(run, life, [Enough()]) == 'three are enough'
    assert run.metrics()[-1] | {'version': 3, 'stopped': 'three are enough'} == run.metrics()[-1]


@pytest.mark.parametrize(('episodes', 'envs'), [(1, 4), (5, 4), (9, 2)])
def test_as_many_episodes_are_played_as_were_asked_for(episodes, envs):
    stats = evaluate(PointEnv(envs, 0, steps=5), policy(), episodes, seed=3)
    assert stats.episodes['return'].shape == (episodes,)
    assert stats.steps == envs * 5 * -(-episodes // envs)
