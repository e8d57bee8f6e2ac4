"""`opentinker eval` and `opentinker play` on runs that `opentinker train` wrote."""

import imageio.v3
import pytest
from typer.testing import CliRunner

from opentinker.cli import app

JOB = """
job: cart
env: {name: gymnasium, id: CartPole-v1}
algorithm: {name: ppo, batch_size: 256, epochs: 1}
samplers: {envs: 2}
stop: {transitions: 256}
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture(scope='module')
def cart(tmp_path_factory):
    folder = tmp_path_factory.mktemp('cart')
    (folder / 'job.yaml').write_text(JOB)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run('train', 'job.yaml').exit_code == 0
    return folder / 'runs' / 'cart'


def test_an_evaluation_tells_how_good_its_episodes_were(cart):
    result = run('eval', cart, '--episodes', 3)
    assert result.exit_code == 0, result.stderr
    assert result.output.startswith('3 episodes, ')
    assert 'return ' in result.output


def test_the_same_seed_gives_the_same_evaluation(cart):
    first, again = (run('eval', cart, '--episodes', 2, '--seed', 5).output for _ in range(2))
    assert first == again


@pytest.mark.parametrize('name', ['cart.gif', 'cart.mp4'])
def test_a_film_has_the_frames_of_its_episodes(cart, tmp_path, name):
    pytest.importorskip('pygame')
    if name.endswith('mp4'):
        pytest.importorskip('av')
    film = tmp_path / name
    result = run('play', cart, '--video', film)
    assert result.exit_code == 0, result.stderr
    assert f'Video: {film}' in result.output
    frames = imageio.v3.imread(film)
    assert len(frames) > 3
    assert frames.shape[1:] == (400, 600, 3)
    assert frames[0].std() > 0


def test_a_checkpoint_that_is_not_there_is_named(cart):
    result = run('eval', cart, '--checkpoint', 'best')
    assert result.exit_code == 2
    assert 'best.safetensors: No such file' in result.stderr


def test_another_kind_of_file_is_refused_before_anything_is_written(cart, tmp_path):
    result = run('play', cart, '--video', tmp_path / 'cart.avi')
    assert result.exit_code == 2
    assert 'a video is a file *.gif or *.mp4' in result.stderr
    assert not list(tmp_path.iterdir())
