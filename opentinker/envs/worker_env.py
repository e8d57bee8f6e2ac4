"""Environments in worker processes, which pass arrays through shared memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

import numpy as np

from opentinker.envs.episodes import env_seeds
from opentinker.envs.rewards import RewardSpec
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step

Path = tuple[str, ...]
Make = Callable[[int, int], MultiAgentVectorEnv]
_CLOSE_S = 5.0
_SPIN_S = 0.001
"""For how long who waits looks again and again before it sleeps: waking up takes a tenth of it."""
_ALIGNMENT = 64


class WorkerError(RuntimeError):
    """A worker process failed or is gone; says which, of what environments, and why."""


class WorkerVectorEnv(MultiAgentVectorEnv):
    """As many environments as asked for, spread over processes that step them side by side.

    This process steps the first share itself, so that it does not idle, and ``workers`` others do
    the rest. ``make(num_envs, seed)`` makes the environments of a share, in the process that steps
    them; it is pickled. Raises ValueError where there are not more environments than workers,
    :class:`WorkerError` where a worker fails.
    """

    def __init__(self, make: Make, num_envs: int, workers: int, seed: int) -> None:
        if not 1 <= workers < num_envs:
            raise ValueError(f'{workers} workers for {num_envs} environments')
        self.num_envs = num_envs
        example = self._probe(make, seed)
        context = multiprocessing.get_context('spawn')
        self._shared = _SharedArrays(context, example, num_envs)
        self._arrays = self._shared.rows(0, num_envs)
        shares = workers + 1
        edges = [num_envs * index // shares for index in range(shares + 1)]
        seeds = [int(own or 0) for own in env_seeds(seed, shares)]
        spin_s = _SPIN_S if shares <= len(os.sched_getaffinity(0)) else 0.0
        self._shares: list[_Own | _Worker] = []
        try:
            for index in range(1, shares):
                rows = (edges[index], edges[index + 1])
                worker = _Worker(context, make, seeds[index], self._shared, rows, spin_s)
                self._shares.append(worker)
            own = make(edges[1], seeds[0])
            self._shares.insert(0, _Own(own, self._shared.rows(0, edges[1])))
            self._ask('ready')
        except BaseException:
            self.close()
            raise
        self._told = self.rewards

    def _probe(self, make: Make, seed: int) -> dict[Path, np.ndarray]:
        """Learn the descriptor, and the arrays that a step has, from one environment here."""
        env = make(1, seed)
        try:
            self.descriptor, self.rewards = env.descriptor, env.rewards
            env.reset(seed)
            actions = {
                name: np.zeros(
                    (1, len(group.agents), *group.action.shape), np.dtype(group.action.dtype)
                )
                for name, group in env.descriptor.groups.items()
            }
            return {**_action_parts(actions), **_parts(env.step(actions))}
        finally:
            env.close()

    def reset(self, seed: int | None = None) -> Observations:
        """Start a new episode everywhere."""
        seeds = env_seeds(seed, len(self._shares))
        self._ask('reset', *([own] for own in seeds))
        return self._observation()

    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """Apply actions ``[env, agent, *action]``; all workers step at the same time."""
        if self.rewards is not self._told:
            self._told = self.rewards
            self._ask('rewards', *([self.rewards] for _ in self._shares))
        for path, value in _action_parts(actions).items():
            self._arrays[path][...] = value
        endings = self._ask('step')
        groups = self.descriptor.groups
        signals = {
            name: {key: self._copy('signals', name, key) for key in group.signals}
            for name, group in groups.items()
        }
        scored = {name: self.rewards.evaluate(own) for name, own in signals.items()}
        terminated, truncated = self._copy('terminated'), self._copy('truncated')
        step = Step(
            observation=self._observation(),
            reward={name: total for name, (_, total) in scored.items()},
            reward_terms={name: terms for name, (terms, _) in scored.items()},
            signals=signals,
            reward_revision=self.rewards.revision,
            active={name: self._copy('active', name) for name in groups},
            terminated=terminated,
            truncated=truncated,
            ended=np.nonzero(terminated | truncated)[0],
        )
        given = [ending for ending in endings if ending is not None]
        if given:
            step.final_observation = {
                name: _joined([final[name] for final, _ in given]) for name in groups
            }
            step.episode = _joined([episode for _, episode in given])
        return step

    def stagger(self) -> None:
        """Let the workers cut the running episodes short by different amounts."""
        self._ask('stagger')

    def render(self) -> np.ndarray:
        """The first environment as a picture ``[height, width, 3]``, uint8."""
        self._shares[0].send('render')
        return self._shares[0].receive()

    def state_dict(self) -> dict[str, Any] | None:
        """None where the environments have no state to save."""
        states = self._ask('state_dict')
        return None if any(state is None for state in states) else {'shares': states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`. Raises ValueError for another number of workers."""
        written, workers = len(state['shares']) - 1, len(self._shares) - 1
        if written != workers:
            raise ValueError(f'it was written with {written} workers, now there are {workers}')
        self._ask('load_state_dict', *([own] for own in state['shares']))

    def close(self) -> None:
        """End the workers; one that does not end by itself is killed."""
        for share in self._shares:
            share.ask_to_end()
        for share in self._shares:
            share.join()
        self._shares = []

    def _ask(self, command: str, *arguments: list[Any]) -> list[Any]:
        """What each share answers, all at work at the same time."""
        for share, own in zip(self._shares, arguments or [[]] * len(self._shares), strict=True):
            share.send(command, *own)
        return [share.receive() for share in self._shares]

    def _observation(self) -> Observations:
        return {
            name: {key: self._copy('observation', name, key) for key in group.observation}
            for name, group in self.descriptor.groups.items()
        }

    def _copy(self, *path: str) -> np.ndarray:
        # the workers write into theirs at the next step
        return self._arrays[path].copy()


class _SharedArrays:
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


class _Own:
    """The share that this process steps, when its answer is asked for."""

    def __init__(self, env: MultiAgentVectorEnv, arrays: dict[Path, np.ndarray]) -> None:
        self._env = env
        self._work = _Work(env, arrays)

    def send(self, command: str, *arguments: Any) -> None:
        self._call = partial(getattr(self._work, command), *arguments)

    def receive(self) -> Any:
        return self._call()

    def ask_to_end(self) -> None:
        """The workers end meanwhile."""

    def join(self) -> None:
        self._env.close()


class _Worker:
    """The share of another process."""

    def __init__(
        self,
        context: SpawnContext,
        make: Make,
        seed: int,
        shared: _SharedArrays,
        rows: tuple[int, int],
        spin_s: float,
    ) -> None:
        self._name = f'the worker of environments {rows[0]} to {rows[1] - 1}'
        self._spin_s = spin_s
        self._connection, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=_serve, args=(theirs, make, seed, shared, rows, spin_s), daemon=True
        )
        self._process.start()
        theirs.close()

    def send(self, command: str, *arguments: Any) -> None:
        try:
            self._connection.send((command, arguments))
        except OSError:
            raise self._gone() from None

    def receive(self) -> Any:
        try:
            failure, answer = _receive(self._connection, self._spin_s)
        except (EOFError, OSError):
            raise self._gone() from None
        if failure:
            raise WorkerError(f'{self._name}: {failure}')
        return answer

    def _gone(self) -> WorkerError:
        self._process.join(_CLOSE_S)
        return WorkerError(f'{self._name} ended with exit code {self._process.exitcode}')

    def ask_to_end(self) -> None:
        # it ends where nobody holds the other end of its connection
        self._connection.close()

    def join(self) -> None:
        self._process.join(_CLOSE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _receive(connection: Connection, spin_s: float) -> Any:
    until = time.perf_counter() + spin_s
    while not connection.poll() and time.perf_counter() < until:
        pass
    return connection.recv()


def _serve(
    connection: Connection,
    make: Make,
    seed: int,
    shared: _SharedArrays,
    rows: tuple[int, int],
    spin_s: float,
) -> None:
    """The life of a worker."""
    # Ctrl-C goes to all processes of a terminal; the one that asks decides
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    env = None
    try:
        env = make(rows[1] - rows[0], seed)
        work = _Work(env, shared.rows(*rows))
        while True:
            command, arguments = _receive(connection, spin_s)
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
        self.stagger = env.stagger
        self.render = env.render
        self.state_dict = env.state_dict
        self.load_state_dict = env.load_state_dict

    def ready(self) -> None:
        """The environments are there."""

    def rewards(self, rewards: RewardSpec) -> None:
        self._env.rewards = rewards

    def reset(self, seed: int | None) -> None:
        self._write(_observation_parts(self._env.reset(seed)))

    def step(self) -> tuple[Observations, dict[str, np.ndarray]] | None:
        """The last observations and the statistics of the episodes that ended, if any did."""
        actions = {path[1]: array for path, array in self._arrays.items() if path[0] == 'action'}
        step = self._env.step(actions)
        self._write(_parts(step))
        if step.final_observation is None:
            return None
        return step.final_observation, step.episode

    def _write(self, parts: Mapping[Path, np.ndarray]) -> None:
        for path, value in parts.items():
            self._arrays[path][...] = value


def _action_parts(actions: Mapping[str, np.ndarray]) -> dict[Path, np.ndarray]:
    return {('action', name): values for name, values in actions.items()}


def _observation_parts(observation: Observations) -> dict[Path, np.ndarray]:
    return {
        ('observation', name, key): values
        for name, arrays in observation.items()
        for key, values in arrays.items()
    }


def _parts(step: Step) -> dict[Path, np.ndarray]:
    """What of a step is passed through shared memory; the rest follows from it or is rare."""
    return {
        **_observation_parts(step.observation),
        **{
            ('signals', name, key): values
            for name, signals in step.signals.items()
            for key, values in signals.items()
        },
        **{('active', name): values for name, values in step.active.items()},
        ('terminated',): step.terminated,
        ('truncated',): step.truncated,
    }


def _joined(each: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([arrays[key] for arrays in each]) for key in each[0]}
