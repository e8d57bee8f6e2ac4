"""Starts the processes of a job, watches them, and stops them in order."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from opentinker.training.graph import ProcessSpec

_log = logging.getLogger(__name__)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_LAST_LINES = 8


class SupervisorError(RuntimeError):
    """A process that cannot be started."""


class Ending(NamedTuple):
    """How a job came to its end."""

    reason: str
    exit_code: int


@dataclass
class _Child:
    spec: ProcessSpec
    process: subprocess.Popen[bytes]
    log: Path
    ended_at: float | None = None

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def state(self) -> str:
        code = self.process.poll()
        if code is None:
            return 'running'
        if code < 0:
            return f'killed by {signal.Signals(-code).name}'
        return f'exit code {code}' if code else 'ended'


class Supervisor:
    """The processes of a job, each with a session and a log file of its own.

    A Ctrl-C in the terminal therefore reaches only the supervisor, which then stops the others in
    reverse order. They get a SIGTERM from the kernel when the supervisor itself is killed. Start
    it before other threads exist: what runs between fork and exec must not meet a held lock.
    """

    def __init__(self, specs: list[ProcessSpec], logs: Path, grace_s: float = 8.0) -> None:
        self._specs = specs
        self._logs = logs
        self._grace_s = grace_s
        self._children: list[_Child] = []

    def start(self) -> None:
        """Start all. Raises :class:`SupervisorError` naming a program that cannot be run."""
        for spec in self._specs:
            self._children.append(self._start(spec))

    def states(self) -> dict[str, str]:
        """What each process is doing, or how it ended."""
        return {child.spec.name: child.state for child in self._children}

    def check(self) -> Ending | None:
        """How the job ended; None while it goes on."""
        for child in self._children:
            if child.running:
                continue
            if child.process.returncode == 0 and child.spec.ends_job:
                return Ending(f'{child.spec.name} finished', 0)
            if child.spec.essential and self._has_died(child):
                return Ending(_obituary(child), 1)
        return None

    def close(self) -> None:
        """Stop all that still run, newest first: SIGTERM, and SIGKILL to what does not heed it."""
        for child in reversed(self._children):
            if child.running:
                os.killpg(child.process.pid, signal.SIGTERM)
                self._await(child)
            _kill_group(child.process.pid)

    def _start(self, spec: ProcessSpec) -> _Child:
        path = self._logs / f'{spec.name}.log'
        env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONUNBUFFERED': '1', **spec.env}
        try:
            with path.open('ab') as log:
                process = subprocess.Popen(
                    spec.command,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_dies_with(os.getpid()),
                )
        except OSError as error:
            self.close()
            raise SupervisorError(f'{spec.name}: {spec.command[0]}: {error.strerror}') from None
        return _Child(spec, process, path)

    def _has_died(self, child: _Child) -> bool:
        """Whether an end was untimely: an orderly one may come just before the job's own."""
        if child.process.returncode != 0:
            return True
        now = time.monotonic()
        child.ended_at = child.ended_at or now
        return now - child.ended_at > self._grace_s

    def _await(self, child: _Child) -> None:
        try:
            child.process.wait(self._grace_s)
        except subprocess.TimeoutExpired:
            _log.warning(
                '%s did not end within %.0f s of SIGTERM and was killed',
                child.spec.name,
                self._grace_s,
            )
            os.killpg(child.process.pid, signal.SIGKILL)
            child.process.wait()


def _dies_with(parent: int) -> Callable[[], None]:
    def arrange() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return arrange


def _kill_group(group: int) -> None:
    """End what an ended process may have left behind in its session."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _obituary(child: _Child) -> str:
    with child.log.open(encoding='utf-8', errors='replace') as log:
        last = [line.rstrip() for line in deque(log, _LAST_LINES)]
    lines = ''.join(f'\n    {line}' for line in last) or '\n    (nothing)'
    return f'{child.spec.name} died: {child.state}. Its last words, from {child.log}:{lines}'
