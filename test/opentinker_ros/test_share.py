import pytest

from opentinker_ros.share import share_file, share_folder


def test_a_data_file_is_found():
    assert '<robot' in share_file('config/arm.urdf').read_text()


def test_a_missing_file_says_where_it_was_looked_for():
    with pytest.raises(
        FileNotFoundError, match=r'no file config/none\.urdf; looked for .*config/none\.urdf'
    ):
        share_file('config/none.urdf')


def test_a_package_on_the_prefix_path_is_found(tmp_path, monkeypatch):
    folder = tmp_path / 'share' / 'my_robot'
    folder.mkdir(parents=True)
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    assert share_folder('my_robot') == folder
    assert share_folder('no_such_robot') is None
