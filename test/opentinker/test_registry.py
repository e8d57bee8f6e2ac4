import logging
import sys

import pytest

from opentinker import plugin, registry
from opentinker.registry import AlreadyRegisteredError, UnknownNameError


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Tests see an empty registry without plug-ins, and leave none of their names behind."""
    monkeypatch.setattr(registry, '_implementations', {})
    monkeypatch.setattr(registry, '_modules', {})
    monkeypatch.setattr(registry, '_state', {'plugins loaded': True})


class EntryPoint:
    value = 'somewhere:register'

    def __init__(self, name, loaded):
        self.name = name
        self._loaded = loaded

    def load(self):
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def offer(monkeypatch, *points, only=registry.ENTRY_POINT_GROUPS[0]):
    """Let these entry points be what is installed."""
    monkeypatch.setattr(registry, '_state', {'plugins loaded': False})
    monkeypatch.setattr(
        registry.metadata, 'entry_points', lambda group: points if group == only else []
    )


@pytest.mark.parametrize('group', ['opentinker.plugins', 'opentinker.plugin_registry'])
def test_plug_ins_are_found_under_both_groups(monkeypatch, group):
    implementation = object()
    offer(
        monkeypatch,
        EntryPoint('mine', lambda: registry.register('fruit', 'fig')(implementation)),
        only=group,
    )
    assert registry.get('fruit', 'fig') is implementation


def test_what_was_registered_is_found_by_name():
    implementation = registry.register('fruit', 'apple')(object())
    assert registry.get('fruit', 'apple') is implementation
    assert registry.names('fruit') == ['apple']
    assert registry.kinds() == ['fruit']


def test_an_unknown_name_lists_the_known_ones():
    for name in ('pear', 'apple'):
        registry.register('fruit', name)(object())
    with pytest.raises(UnknownNameError, match="unknown fruit 'plum'; known: apple, pear"):
        registry.get('fruit', 'plum')
    with pytest.raises(UnknownNameError, match="unknown tree 'oak'; known: none"):
        registry.get('tree', 'oak')


def test_a_second_registration_is_refused_unless_it_says_override():
    first, second = object(), object()
    registry.register('fruit', 'apple')(first)
    registry.register('fruit', 'apple')(first)
    with pytest.raises(AlreadyRegisteredError, match='override=True'):
        registry.register('fruit', 'apple')(second)
    assert registry.get('fruit', 'apple') is first
    registry.register('fruit', 'apple', override=True)(second)
    assert registry.get('fruit', 'apple') is second


@pytest.fixture
def orchard(tmp_path, monkeypatch):
    """A module that registers an apple when it is imported."""
    text = "from opentinker import registry\nregistry.register('fruit', 'apple')('an apple')\n"
    (tmp_path / 'orchard.py').write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    registry.register_module('fruit', 'apple', 'orchard')
    yield
    sys.modules.pop('orchard', None)


def test_a_module_is_imported_when_its_name_is_asked_for(orchard):
    assert registry.names('fruit') == ['apple']
    assert registry.kinds() == ['fruit']
    assert 'orchard' not in sys.modules
    assert registry.get('fruit', 'apple') == 'an apple'


def test_the_name_of_a_module_that_was_not_imported_yet_is_taken_all_the_same(orchard):
    with pytest.raises(AlreadyRegisteredError, match='orchard'):
        registry.register('fruit', 'apple')('another')
    registry.register('fruit', 'apple', override=True)('another')
    assert registry.get('fruit', 'apple') == 'another'


def test_installed_plugins_are_loaded_once(monkeypatch):
    calls = []
    offer(monkeypatch, EntryPoint('fruits', lambda: calls.append('loaded')))
    registry.names('fruit')
    registry.names('fruit')
    assert calls == ['loaded']


def test_a_plugin_that_fails_is_named_and_does_not_stop_the_others(monkeypatch, caplog):
    def register():
        registry.register('fruit', 'apple')('an apple')

    offer(monkeypatch, EntryPoint('broken', ImportError('no x')), EntryPoint('good', register))
    with caplog.at_level(logging.ERROR):
        assert registry.get('fruit', 'apple') == 'an apple'
    assert 'plug-in broken' in caplog.text
    assert 'ImportError: no x' in caplog.text


def test_the_core_is_a_plugin_that_registers_its_parts(monkeypatch):
    monkeypatch.undo()
    plugin.register()
    for kind, name in {
        'policy': 'actor_critic', 'algorithm': 'ppo', 'sampler': 'on_policy', 'estimator': 'gae',
        'optimizer': 'clipped_surrogate', 'bus': 'zmq',
    }.items():  # fmt: skip
        assert name in registry.names(kind)
