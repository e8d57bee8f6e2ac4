"""ArmsEnv: a cell of arms in any World as a multi-agent environment, one agent an arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opentinker import registry
from opentinker.envs.descriptor import EnvDescriptor
from opentinker.envs.rewards import RewardSpec
from opentinker.envs.vector import MultiAgentVectorEnv, Observations, Step
from opentinker_ros.arms.actions import to_targets
from opentinker_ros.arms.cell import ArmsSettings, Cell, make_cell
from opentinker_ros.arms.gate import CommandGate
from opentinker_ros.arms.observer import GROUP, Observer
from opentinker_ros.worlds.world import Start, World

__all__ = ['GROUP', 'ArmsEnv', 'ArmsSettings', 'Cell', 'make_cell', 'make_env']

_EPISODES = (
    '_last_command', '_action', '_action_change', '_measured', '_length', '_cut_by', '_return',
    '_held', '_success', '_contact',
)  # fmt: skip
"""What the running episodes have come to."""


class ArmsEnv(MultiAgentVectorEnv):
    """The environment of all worlds and tasks.

    In process, :meth:`reset` and :meth:`step` do everything. Where a world takes its time, its
    driver calls the parts as events come: ``begin_reset``, ``finish_reset``, then ``act_targets``
    and ``observe`` in turn.
    """

    def __init__(self, world: World, cell: Cell, settings: ArmsSettings, seed: int = 0) -> None:
        self.num_envs = world.num_envs
        self.world = world
        self.task = cell.task
        self._period, self._limit = settings.control_period, settings.step_limit
        self._observer = Observer(cell)
        self.gate = CommandGate(cell.scene.robot, settings.arms, settings.control_period)
        self.descriptor = EnvDescriptor(
            name=f'arms/{settings.task}',
            groups={GROUP: self._observer.group},
            control_period=settings.control_period,
            step_limit=settings.step_limit,
        )
        self.rewards = RewardSpec.of(self.task.reward_terms)
        shape = (self.num_envs, settings.arms, len(cell.joint_names[0]))
        self._last_command = np.zeros(shape)
        self._action = np.zeros(shape, np.float32)
        self._action_change = np.zeros(shape[:2], np.float32)
        self._measured = np.zeros((*shape[:2], shape[2] - 1))
        self._length = np.zeros(self.num_envs, int)
        self._cut_by = np.zeros(self.num_envs, int)
        self._return = np.zeros(self.num_envs)
        self._held = np.zeros(self.num_envs, int)
        self._success = np.zeros(self.num_envs, bool)
        self._contact = np.zeros(self.num_envs, bool)
        self._cut = False
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Make all episodes from the next reset on repeatable; each cell has its own stream."""
        streams = np.random.SeedSequence(seed).spawn(self.num_envs)
        self._rngs = [np.random.default_rng(stream) for stream in streams]

    @property
    def rewards(self) -> RewardSpec:
        """The rewards of the next step; ones whose signals are not there raise RewardError."""
        return self._rewards

    @rewards.setter
    def rewards(self, rewards: RewardSpec) -> None:
        rewards.check_signals(self.descriptor.groups[GROUP].signals)
        self._rewards = rewards

    # at once

    def reset(self, seed: int | None = None) -> Observations:
        """Start a new episode everywhere."""
        if seed is not None:
            self.seed(seed)
        everywhere = np.arange(self.num_envs)
        self.begin_reset(everywhere)
        self.world.advance(0.0)
        return self.finish_reset(everywhere)

    def step(self, actions: dict[str, np.ndarray]) -> Step:
        """One control period with normalised actions ``[env, arm, joint + 1]``."""
        self.act(actions)
        self.world.advance(self._period)
        step = self.observe()
        if step.ended.size:
            if step.ended[0] == 0:
                self.on_end()
            self.begin_reset(step.ended)
            self.world.advance(0.0)
            first = self.finish_reset(step.ended)
            for key, values in step.observation[GROUP].items():
                values[step.ended] = first[GROUP][key]
        return step

    def stagger(self) -> None:
        """Spread the ends of the running episodes evenly over the step limit."""
        self._cut_by = np.arange(self.num_envs) * self._limit // self.num_envs

    def state_dict(self) -> dict[str, Any] | None:
        """World, running episodes and random streams; None where the world has no such state."""
        world = self.world.state_dict()
        return world and {
            'world': world,
            'episodes': {name: getattr(self, name).copy() for name in _EPISODES},
            'random': [rng.bit_generator.state for rng in self._rngs],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self.world.load_state_dict(state['world'])
        for name, values in state['episodes'].items():
            setattr(self, name, values.copy())
        for rng, own in zip(self._rngs, state['random'], strict=True):
            rng.bit_generator.state = own

    def render(self) -> np.ndarray:
        """The first cell as a picture ``[height, width, 3]``, uint8."""
        return self.world.render()

    def close(self) -> None:
        """Close the world."""
        self.world.close()

    # in parts

    def begin_reset(self, envs: np.ndarray) -> None:
        """Draw the next episodes of these environments and ask the world for their start."""
        starts = [self.task.start(self._rngs[env]) for env in envs]
        positions, objects = (np.stack(values) for values in zip(*starts, strict=True))
        self.world.reset(envs, Start(positions, objects))

    def finish_reset(self, envs: np.ndarray) -> Observations:
        """The first observations ``[k, arm, ...]``, once the world is at its start."""
        state = self.world.read()
        self._measured[envs] = state.joint_positions[envs]
        self._last_command[envs, :, :-1] = self._measured[envs]
        self._last_command[envs, :, -1] = 0
        self._action[envs] = 0
        self._length[envs] = self._held[envs] = self._cut_by[envs] = 0
        self._return[envs] = 0
        self._success[envs] = self._contact[envs] = False
        self._cut = False
        return {GROUP: self._observer.look(state, envs).observation(self._last_command[envs])}

    def act(self, actions: dict[str, np.ndarray]) -> np.ndarray:
        """Command the arms by normalised actions; returns as :meth:`act_targets` does."""
        action = self._checked('actions', actions)
        return self.act_targets({GROUP: to_targets(self._last_command, action)}, actions)

    def act_targets(
        self, targets: dict[str, np.ndarray], actions: dict[str, np.ndarray]
    ) -> np.ndarray:
        """Command the arms by the targets that :func:`actions.to_targets` made of ``actions``.

        Both are ``[env, arm, joint + 1]``. Returns the targets that the gate let through. Raises
        ValueError for a wrong shape.
        """
        action = np.clip(np.nan_to_num(self._checked('actions', actions)), -1, 1).astype(np.float32)
        self._action_change = np.square(action - self._action).sum(axis=-1)
        self._action = action
        self._last_command = self.gate(
            self._checked('targets', targets), self._last_command, self._measured
        )
        self.world.command(self._last_command)
        return self._last_command

    def _checked(self, what: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
        values = np.asarray(arrays[GROUP])
        if values.shape != self._last_command.shape:
            raise ValueError(
                f'{what} of group {GROUP!r} have shape {values.shape}, '
                f'expected {self._last_command.shape}'
            )
        return values

    def hold(self) -> None:
        """Command the arms to stay at their last commands."""
        self.world.command(self._last_command)

    def truncate(self) -> None:
        """Let the next :meth:`observe` end all episodes, as a time limit does."""
        self._cut = True

    def observe(self) -> Step:
        """The step that the last command led to. Ended episodes are not begun anew."""
        self.look()
        return self.score()

    def look(self) -> Observations:
        """The observation that the last command led to; :meth:`score` gives the rest."""
        state = self.world.read()
        self._measured = state.joint_positions
        self._view = self._observer.look(state)
        self._length += 1
        self._seen = {GROUP: self._view.observation(self._last_command)}
        return self._seen

    @property
    def ending(self) -> np.ndarray:
        """``[env]`` bool: the episode ends with the step that was looked at."""
        return (self._length >= self._limit - self._cut_by) | self._cut

    def score(self) -> Step:
        """The step whose observation :meth:`look` gave, under the rewards of now."""
        observation = self._seen[GROUP]
        signals = {**self._view.signals, 'action_change': self._action_change}
        truncated = self.ending
        step = Step.scored(
            self._rewards,
            observation={GROUP: observation},
            signals={GROUP: signals},
            active={GROUP: np.ones(self._last_command.shape[:2], bool)},
            terminated=np.zeros(self.num_envs, bool),
            truncated=truncated,
        )
        self._count(signals, step.reward[GROUP])
        if step.ended.size:
            step.final_observation = {
                GROUP: {key: values[step.ended] for key, values in observation.items()}
            }
            step.episode = self._statistics(step.ended)
        return step

    def _count(self, signals: dict[str, np.ndarray], reward: np.ndarray) -> None:
        self._return += reward.mean(axis=1)
        self._held = np.where(self.task.achieved(signals), self._held + 1, 0)
        self._success |= self._held >= self.task.hold_steps
        self._contact |= signals['contact'].any(axis=1)

    def _statistics(self, ended: np.ndarray) -> dict[str, Any]:
        return {
            'return': self._return[ended],
            'length': self._length[ended],
            'success': self._success[ended].astype(np.float32),
            'contact': self._contact[ended].astype(np.float32),
        }


@registry.register('env', 'arms')
def make_env(num_envs: int, seed: int, render: bool = False, **settings: Any) -> ArmsEnv:
    """Simulated arms in this process. Raises pydantic's ValidationError for wrong settings."""
    from opentinker_ros.worlds.mujoco import MujocoWorld

    checked = ArmsSettings(**settings)
    cell = make_cell(checked)
    return ArmsEnv(MujocoWorld(cell.scene, num_envs, checked.threads), cell, checked, seed)
