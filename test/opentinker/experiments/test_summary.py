import pytest

from opentinker.config import JobConfig
from opentinker.experiments.summary import write_summary
from opentinker.training.run_directory import RunDirectory


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    return RunDirectory.create(JobConfig(job='reach', env={'name': 'arms'}), tmp_path)


def line(update: int, **values) -> dict:
    return {
        'seconds': 2.0 * update,
        'version': update,
        'revision': 1,
        'all.transitions': 1000 * update,
        'ros.transitions': 1000 * update,
        'ros.episodes': update,
        **values,
    }


def test_the_summary_says_result_versions_and_files(run):
    run.append_metrics(line(1))
    run.append_metrics(line(2, **{'ros.success': 0.5, 'ros.return': -3.25}))
    text = write_summary(run, 'success 0.50 reached 0.5', 61.4)
    assert text == (run.path / 'summary.txt').read_text()
    assert 'Job        reach\n' in text
    assert 'Result     success 0.50 reached 0.5\n' in text
    assert 'Time       61 s\n' in text
    assert '2 policy versions from 2,000 transitions, rewards #1' in text
    assert 'ros        success 0.50, return -3.25, 2 episodes' in text
    assert 'python 3.' in text
    assert ' learning_curve.png\n' in text
    assert (run.path / 'learning_curve.png').read_bytes().startswith(b'\x89PNG')


def test_a_job_that_learned_nothing_has_a_summary_too(run):
    text = write_summary(run, 'learner died: exit code 2.', 1.0)
    assert 'Result     learner died' in text
    assert not (run.path / 'learning_curve.png').exists()
