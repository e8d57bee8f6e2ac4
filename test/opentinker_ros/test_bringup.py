from pathlib import Path

import pytest
import yaml

from opentinker.config import ConfigError, JobConfig
from opentinker_ros.arms.arms_env import ArmsSettings
from opentinker_ros.bringup import GraphSettings, graph, graph_of_job, host_command, processes

SIMULATED = {'sim', 'arms_env', 'policy', 'lifecycle_manager'}


def nodes(spec):
    return [node for host in spec.hosts for node in host.nodes]


def job(**changes):
    env = {'name': 'arms', 'arms': 3}
    return JobConfig(job='cell', env=env, **{'graph': {'name': 'ros'}, **changes})


def test_without_a_job_there_is_no_bridge():
    spec = graph(ArmsSettings(arms=2), GraphSettings())
    assert set(nodes(spec)) == SIMULATED


def test_a_job_has_a_bridge_to_its_run_directory(tmp_path):
    spec = graph_of_job(job(), tmp_path)
    assert set(nodes(spec)) == SIMULATED | {'zmq_bridge'}
    assert spec.parameters['zmq_bridge']['run'] == str(tmp_path)


def test_simulator_and_environment_agree_on_the_cell(tmp_path):
    parameters = graph_of_job(job(), tmp_path).parameters
    for name in ArmsSettings.model_fields:
        assert parameters['sim'][name] == parameters['arms_env'][name]
    assert parameters['sim']['arms'] == 3


def test_the_one_who_answers_is_brought_up_before_the_one_who_asks():
    order = graph(ArmsSettings(), GraphSettings()).parameters['lifecycle_manager']['nodes']
    assert order.index('sim') < order.index('arms_env')
    assert order.index('policy') < order.index('arms_env')


def test_the_parameter_file_holds_for_any_namespace(tmp_path):
    spec = graph(ArmsSettings(), GraphSettings(parameters={'policy': {'deterministic': True}}))
    tree = yaml.safe_load(spec.write_parameters(tmp_path / 'parameters.yaml').read_text())
    assert tree['/**/policy']['ros__parameters']['deterministic'] is True


def test_a_process_gets_its_nodes_plug_ins_and_namespace(tmp_path):
    spec = graph_of_job(
        job(plugins=['my_terms'], graph={'name': 'ros', 'namespace': 'left'}), tmp_path
    )
    command = host_command(spec, spec.hosts[-1], Path('p.yaml'))
    assert command[3:6] == ['policy', '--import', 'my_terms']
    assert command[-1] == '__ns:=/left'


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'graph': {'name': 'ros', 'lockstepp': True}}, 'graph.lockstepp: unknown key'),
        ({'graph': {'name': 'ros', 'namespace': '1 2'}}, 'graph.namespace'),
        ({'graph': {'name': 'ros', 'liveness_deadline': -1}}, 'graph.liveness_deadline'),
    ],
)
def test_a_wrong_setting_is_named_with_its_path(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        graph_of_job(job(**changes), tmp_path)


def test_the_processes_of_a_job_are_those_of_the_graph(tmp_path):
    specs = processes(job(), tmp_path)
    assert [spec.name for spec in specs] == ['cell', 'policy']
    assert (tmp_path / 'parameters.yaml').is_file()
