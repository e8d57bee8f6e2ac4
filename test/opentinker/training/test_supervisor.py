import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from opentinker.training.graph import ProcessSpec
from opentinker.training.supervisor import Ending, Supervisor, SupervisorError

DEADLINE_S = 20.0
READY = 'import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch();'
FOREVER = READY + 'time.sleep(600)'
STUBBORN = 'import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);' + FOREVER


def child(tmp_path: Path, name: str, code: str = FOREVER, **settings) -> ProcessSpec:
    return ProcessSpec(name, [sys.executable, '-c', code, str(tmp_path / name)], **settings)


def wait_for(condition: Callable[[], object]) -> object:
    deadline = time.monotonic() + DEADLINE_S
    while not (result := condition()):
        assert time.monotonic() < deadline, 'not in time'
        time.sleep(0.01)
    return result


def started(tmp_path: Path, *specs: ProcessSpec, grace_s: float = 5.0) -> Supervisor:
    supervisor = Supervisor(list(specs), tmp_path, grace_s)
    supervisor.start()
    wait_for(lambda: all((tmp_path / spec.name).exists() for spec in specs))
    return supervisor


def test_a_job_ends_with_the_process_that_ends_it(tmp_path):
    supervisor = started(
        tmp_path, child(tmp_path, 'learner', READY, ends_job=True), child(tmp_path, 'sampler')
    )
    assert wait_for(supervisor.check) == Ending('learner finished', 0)
    supervisor.close()
    assert supervisor.states() == {'learner': 'ended', 'sampler': 'killed by SIGTERM'}


def test_a_process_that_dies_is_named_with_its_code_and_last_words(tmp_path):
    supervisor = started(
        tmp_path,
        child(tmp_path, 'learner', ends_job=True),
        child(tmp_path, 'sampler', READY + "print('one'); sys.exit('no such arm')"),
    )
    ending = wait_for(supervisor.check)
    supervisor.close()
    assert ending.exit_code == 1
    assert ending.reason.startswith('sampler died: exit code 1.')
    assert str(tmp_path / 'sampler.log') in ending.reason
    assert {'    one', '    no such arm'} <= set(ending.reason.splitlines())


def test_a_process_that_is_killed_is_named_with_the_signal(tmp_path):
    supervisor = started(
        tmp_path, child(tmp_path, 'sim', READY + 'import os; os.kill(os.getpid(), 9)')
    )
    assert wait_for(supervisor.check).reason.startswith('sim died: killed by SIGKILL.')
    supervisor.close()


def test_a_process_that_is_not_essential_may_die(tmp_path):
    supervisor = started(
        tmp_path, child(tmp_path, 'a'), child(tmp_path, 'viewer', READY + '1/0', essential=False)
    )
    wait_for(lambda: supervisor.states()['viewer'] == 'exit code 1')
    assert supervisor.check() is None
    supervisor.close()


def test_an_orderly_end_without_the_end_of_the_job_is_a_death_in_the_end(tmp_path):
    supervisor = started(
        tmp_path, child(tmp_path, 'learner'), child(tmp_path, 'sampler', READY), grace_s=0.3
    )
    wait_for(lambda: supervisor.states()['sampler'] == 'ended')
    assert supervisor.check() is None
    assert wait_for(supervisor.check).reason.startswith('sampler died: ended.')
    supervisor.close()


def test_processes_are_stopped_newest_first(tmp_path):
    code = (
        'import signal, sys, time;'
        "signal.signal(signal.SIGTERM, lambda *_: (open(sys.argv[1] + '/../order', 'a')"
        ".write(sys.argv[2]), sys.exit(0)));open(sys.argv[1] + '/' + sys.argv[2], 'w');"
        'time.sleep(600)'
    )
    (tmp_path / 'up').mkdir()
    specs = [
        ProcessSpec(name, [sys.executable, '-c', code, str(tmp_path / 'up'), name])
        for name in 'abc'
    ]
    supervisor = Supervisor(specs, tmp_path)
    supervisor.start()
    wait_for(lambda: len(list((tmp_path / 'up').iterdir())) == 3)
    supervisor.close()
    assert (tmp_path / 'order').read_text() == 'cba'


def test_what_does_not_heed_a_request_to_end_is_killed_and_named(tmp_path, caplog):
    supervisor = started(tmp_path, child(tmp_path, 'stubborn', STUBBORN), grace_s=0.2)
    supervisor.close()
    assert supervisor.states() == {'stubborn': 'killed by SIGKILL'}
    assert 'stubborn did not end' in caplog.text


def test_what_a_process_started_ends_with_it(tmp_path):
    code = (
        'import subprocess, sys, time; p = subprocess.Popen(["sleep", "600"]);'
        "open(sys.argv[1] + '.part', 'w').write(str(p.pid));"
        "import os; os.rename(sys.argv[1] + '.part', sys.argv[1]); time.sleep(600)"
    )
    supervisor = started(tmp_path, child(tmp_path, 'parent', code))
    grandchild = psutil.Process(int((tmp_path / 'parent').read_text()))
    supervisor.close()
    grandchild.wait(DEADLINE_S)


def test_nothing_is_left_when_the_supervisor_itself_is_killed(tmp_path):
    code = (
        'import pathlib, sys, time; from opentinker.training.graph import ProcessSpec;'
        'from opentinker.training.supervisor import Supervisor; path = sys.argv[1];'
        f'spec = ProcessSpec("child", [sys.executable, "-c", {FOREVER!r}, path + "/child"]);'
        's = Supervisor([spec], pathlib.Path(path)); s.start(); time.sleep(600)'
    )
    supervisor = subprocess.Popen([sys.executable, '-c', code, str(tmp_path)])
    wait_for((tmp_path / 'child').exists)
    (process,) = psutil.Process(supervisor.pid).children()
    supervisor.kill()
    supervisor.wait(DEADLINE_S)
    process.wait(DEADLINE_S)


def test_a_program_that_is_not_there_is_named_and_nothing_runs_on(tmp_path):
    specs = [child(tmp_path, 'first'), ProcessSpec('second', ['/no/such/program'])]
    supervisor = Supervisor(specs, tmp_path)
    with pytest.raises(SupervisorError, match='second: /no/such/program: No such file'):
        supervisor.start()
    assert supervisor.states() == {'first': 'killed by SIGTERM'}


def test_children_compute_with_one_thread_and_their_own_variables(tmp_path):
    code = READY + "import os; print(os.environ['OMP_NUM_THREADS'], os.environ['COLOR'])"
    supervisor = started(tmp_path, child(tmp_path, 'a', code, env={'COLOR': 'green'}))
    wait_for(lambda: supervisor.states()['a'] == 'ended')
    assert (tmp_path / 'a.log').read_text() == '1 green\n'
