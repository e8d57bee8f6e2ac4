"""MujocoWorld: cells of arms simulated in this process, many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from mujoco.rollout import Rollout

from opentinker_ros.arms.scene import Scene
from opentinker_ros.worlds.render import Renderer
from opentinker_ros.worlds.world import Start, World, WorldError, WorldState

_STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
"""All that the next step depends on but the controls: time, positions, velocities, actuators."""


class MujocoWorld(World):
    """Independent copies of one scene, stepped by MuJoCo's own ``threads``.

    The same resets and commands give the same states bit for bit, whatever the number of threads
    and of other copies. Every advance starts its solver anew.
    """

    def __init__(self, scene: Scene, num_envs: int, threads: int = 1) -> None:
        model = scene.model
        self.num_envs = num_envs
        self.object_names = scene.object_names
        self._scene = scene
        self.state = np.zeros((num_envs, mujoco.mj_stateSize(model, _STATE)))
        self._control = np.zeros((num_envs, 1, model.nu))
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        self._start = np.empty(self.state.shape[1])
        mujoco.mj_getState(model, self._data[0], self._start, _STATE)
        self.state[:] = self._start
        # after the time, which is ours
        self._qpos = self.state[:, 1 : 1 + model.nq]
        self._qvel = self.state[:, 1 + model.nq : 1 + model.nq + model.nv]
        self._steps = 0
        self._objects = np.zeros((num_envs, len(scene.object_names), 7))
        self._grippers = np.zeros((num_envs, scene.arms))
        # without threads of its own it steps in this one
        self._rollout = Rollout(nthread=threads if threads > 1 else 0)
        self._renderer: Renderer | None = None

    def reset(self, envs: np.ndarray, start: Start) -> None:
        """Put cells at rest at their start."""
        self.state[envs] = self._start
        self._qpos[envs] = self._scene.qpos(start.joint_positions)
        self._controls[envs, :, :-1] = start.joint_positions
        self._controls[envs, :, -1] = 0
        self._grippers[envs] = 0
        self._objects[envs] = start.objects

    @property
    def _controls(self) -> np.ndarray:
        """``[env, arm, joint + 1]``."""
        return self._control.reshape(self.num_envs, self._scene.arms, -1)

    def command(self, targets: np.ndarray) -> None:
        """Set the drives."""
        self._controls[:] = targets
        self._grippers[:] = targets[..., -1]

    def advance(self, seconds: float) -> None:
        """Step all cells by a whole number of physics steps."""
        steps = round(seconds / self._scene.model.opt.timestep)
        if steps:
            states, _ = self._rollout.rollout(
                self._scene.model, self._data, self.state, self._control, nstep=steps
            )
            self.state[:] = states[:, -1]
        self._steps += steps

    def read(self) -> WorldState:
        """Joints, grippers, objects. Raises :class:`WorldError` for a simulation that diverged."""
        sound = np.isfinite(self.state).all(axis=1)
        if not sound.all():
            env = int(np.argmin(sound))
            raise WorldError(f'the simulation of environment {env} diverged; reset it')
        time = self._steps * self._scene.model.opt.timestep
        return WorldState(
            np.full(self.num_envs, time),
            self._qpos[:, self._scene.qpos_index],
            self._qvel[:, self._scene.qvel_index],
            self._grippers.copy(),
            self._objects.copy(),
        )

    def data(self) -> mujoco.MjData:
        """The simulation of the first cell, objects included, for a renderer."""
        data = self._data[0]
        mujoco.mj_setState(self._scene.model, data, self.state[0], _STATE)
        data.mocap_pos, data.mocap_quat = np.split(self._objects[0], [3], axis=1)
        return data

    def render(self) -> np.ndarray:
        """The first cell as a picture ``[height, width, 3]``, uint8."""
        if self._renderer is None:
            farthest = np.linalg.norm(self._scene.base_position, axis=1).max()
            self._renderer = Renderer(self._scene, distance=2.2 * (farthest + 1))
        return self._renderer.picture(self.data())

    def state_dict(self) -> dict[str, Any]:
        """The states of the simulations."""
        return {
            'physics': self.state.copy(),
            'control': self._control.copy(),
            'steps': self._steps,
            'objects': self._objects.copy(),
            'grippers': self._grippers.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        self.state[:], self._control[:] = state['physics'], state['control']
        self._steps = state['steps']
        self._objects[:], self._grippers[:] = state['objects'], state['grippers']

    def close(self) -> None:
        """Stop the threads, and let the picture go."""
        self._rollout.close()
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
