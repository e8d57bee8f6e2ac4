"""A share of a vector environment, stepped in this process or by a worker."""

from __future__ import annotations

import signal
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

import numpy as np

from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.handoff import Handoff
from opentinker.envs.rewards import RewardSpec
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step

Path = tuple[str, ...]
Make = Callable[[int, int], MultiAgentVectorEnv]
"""``make(num_envs, seed)``."""
Ending = tuple[Observations, dict[str, np.ndarray]]
"""The last observations and the statistics of the episodes that ended."""
_CLOSE_S = 5.0
_ALIGNMENT = 64


class WorkerError(RuntimeError):
    """A worker process failed or is gone; says of which environments it was, and why."""


class SharedArrays:
    """Arrays ``[env, ...]`` that several processes see.

    Their memory has no name, so that nothing stays behind however a process ends.
    """

    def __init__(
        self, context: SpawnContext, example: Mapping[Path, np.ndarray], num_envs: int
    ) -> None:
        self._layout: dict[Path, tuple[np.dtype, tuple[int, ...], int]] = {}
        size = 0
        for path, array in example.items():
            shape = (num_envs, *array.shape[1:])
            self._layout[path] = (array.dtype, shape, size)
            needed = int(np.prod(shape)) * array.dtype.itemsize
            size += -(-needed // _ALIGNMENT) * _ALIGNMENT
        self._memory = context.RawArray('B', size)

    def rows(self, first: int, last: int) -> dict[Path, np.ndarray]:
        """Of the environments from ``first`` up to ``last``, which is not among them."""
        return {
            path: np.ndarray(shape, dtype, self._memory, offset)[first:last]
            for path, (dtype, shape, offset) in self._layout.items()
        }


class SharedStep:
    """What of steps passes through shared memory, for the environments of these arrays."""

    def __init__(self, descriptor: EnvDescriptor, arrays: dict[Path, np.ndarray]) -> None:
        self._groups = descriptor.groups
        self._arrays = arrays

    def act(self, actions: Mapping[str, np.ndarray]) -> None:
        """Tell the workers what to do: ``[env, agent, *action]``."""
        for name, values in actions.items():
            self._arrays['action', name][...] = values

    def observation(self) -> Observations:
        """What the workers saw last."""
        return {
            name: {key: self._copy('observation', name, key) for key in group.observation}
            for name, group in self._groups.items()
        }

    def result(self, rewards: RewardSpec, endings: Sequence[Ending | None]) -> Step:
        """The step that the workers took, and what they said of episodes that ended."""
        signals = {
            name: {key: self._copy('signals', name, key) for key in group.signals}
            for name, group in self._groups.items()
        }
        step = Step.scored(
            rewards,
            observation=self.observation(),
            signals=signals,
            active={name: self._copy('active', name) for name in self._groups},
            terminated=self._copy('terminated'),
            truncated=self._copy('truncated'),
        )
        given = [ending for ending in endings if ending is not None]
        if given:
            step.final_observation = {
                name: _joined([final[name] for final, _ in given]) for name in self._groups
            }
            step.episode = _joined([episode for _, episode in given])
        return step

    def _copy(self, *path: str) -> np.ndarray:
        # the workers write into theirs at the next step
        return self._arrays[path].copy()


def _joined(each: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([arrays[key] for arrays in each]) for key in each[0]}


@dataclass(frozen=True)
class Share:
    """What a process needs to know to step its environments; it is pickled."""

    make: Make
    seed: int
    memory: SharedArrays
    rows: tuple[int, int]
    """The first environment, and the one after the last."""
    spin_s: float
    """For how long to look for a step again and again, before sleeping until a message comes."""


class OwnShare:
    """The share that this process steps, when its answer is asked for."""

    def __init__(self, share: Share, env: MultiAgentVectorEnv) -> None:
        self._work = _Work(env, share.memory.rows(*share.rows))

    def send(self, command: str, *arguments: Any) -> None:
        self._call = partial(getattr(self._work, command), *arguments)

    def receive(self) -> Any:
        return self._call()


class WorkerShare:
    """The share of another process."""

    def __init__(self, share: Share, context: SpawnContext) -> None:
        self._name = f'the worker of environments {share.rows[0]} to {share.rows[1] - 1}'
        self._spin_s = share.spin_s
        self._handoff = Handoff(context) if share.spin_s and Handoff.usable else None
        self._handed = False
        """The last message was handed over without the connection."""
        self.connection, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=_serve, args=(theirs, share, self._handoff), daemon=True
        )
        self._process.start()
        theirs.close()
        # once: when it is called, when nobody has the share any more, or at exit
        self.close = weakref.finalize(self, _end, self.connection, self._process)

    def send(self, command: str, *arguments: Any) -> None:
        usual = command == 'step' and arguments == (None,)
        self._handed = self._handoff is not None and usual and self._handoff.ask()
        if self._handed:
            return
        try:
            self.connection.send((command, arguments))
        except OSError:
            raise self._gone() from None

    def receive(self) -> Any:
        try:
            handoff = self._handoff if self._handed else None
            if handoff and not handoff.await_answer(self.connection, self._spin_s):
                return None
            failure, answer = self.connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if failure:
            raise WorkerError(f'{self._name}: {failure}')
        return answer

    def _gone(self) -> WorkerError:
        self._process.join(_CLOSE_S)
        return WorkerError(f'{self._name} ended with exit code {self._process.exitcode}')


def _end(connection: Connection, process: SpawnProcess) -> None:
    # a worker ends where nobody holds the other end of its connection
    connection.close()
    process.join(_CLOSE_S)
    if process.is_alive():
        process.kill()
        process.join()
    process.close()


def _serve(connection: Connection, share: Share, handoff: Handoff | None) -> None:
    """The life of a worker."""
    # Ctrl-C goes to all processes of a terminal; the one that asks decides
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    env = None
    try:
        first, end = share.rows
        env = share.make(end - first, share.seed)
        work = _Work(env, share.memory.rows(first, end))
        while True:
            if handoff and handoff.await_question(connection, share.spin_s):
                ending = work.step(None)
                handoff.answer(more=ending is not None)
                if ending is not None:
                    connection.send(('', ending))
                continue
            command, arguments = connection.recv()
            connection.send(('', getattr(work, command)(*arguments)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        last_call = traceback.extract_tb(error.__traceback__)[-1]
        where = f'{last_call.filename}:{last_call.lineno}'
        connection.send((f'{type(error).__name__}: {error} ({where})', None))
    finally:
        if env is not None:
            env.close()


class _Work:
    """What a share can be asked for, a method each."""

    def __init__(self, env: MultiAgentVectorEnv, arrays: dict[Path, np.ndarray]) -> None:
        self._env = env
        self._arrays = arrays
        self._actions = {path[1]: array for path, array in arrays.items() if path[0] == 'action'}
        self.stagger = env.stagger
        self.render = env.render
        self.state_dict = env.state_dict
        self.load_state_dict = env.load_state_dict

    def ready(self) -> None:
        """The environments are there."""

    def reset(self, seed: int | None) -> None:
        self._write(_nested('observation', self._env.reset(seed)))

    def step(self, rewards: RewardSpec | None) -> Ending | None:
        """Step under these rewards, or those of the step before."""
        if rewards:
            self._env.rewards = rewards
        step = self._env.step(self._actions)
        self._write(_parts(step))
        if step.final_observation is None:
            return None
        return step.final_observation, step.episode

    def _write(self, parts: Mapping[Path, np.ndarray]) -> None:
        for path, value in parts.items():
            self._arrays[path][...] = value


def example_arrays(env: MultiAgentVectorEnv) -> dict[Path, np.ndarray]:
    """Arrays ``[env, ...]`` such as pass between processes; to get them, the environment steps."""
    env.reset(0)
    actions = {
        name: np.zeros((env.num_envs, len(group.agents), *group.action.shape), group.action.dtype)
        for name, group in env.descriptor.groups.items()
    }
    return {**_flat('action', actions), **_parts(env.step(actions))}


def _parts(step: Step) -> dict[Path, np.ndarray]:
    """What of a step is passed through shared memory; the rest follows from it or is rare."""
    return {
        **_nested('observation', step.observation),
        **_nested('signals', step.signals),
        **_flat('active', step.active),
        ('terminated',): step.terminated,
        ('truncated',): step.truncated,
    }


def _flat(kind: str, arrays: Mapping[str, np.ndarray]) -> dict[Path, np.ndarray]:
    return {(kind, name): values for name, values in arrays.items()}


def _nested(kind: str, groups: Mapping[str, Mapping[str, np.ndarray]]) -> dict[Path, np.ndarray]:
    return {
        (kind, name, key): values
        for name, arrays in groups.items()
        for key, values in arrays.items()
    }
