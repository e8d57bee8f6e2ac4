"""MujocoWorld: cells of arms simulated in this process, many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np

from opentinker_ros.arms.scene import Scene
from opentinker_ros.worlds.render import Renderer
from opentinker_ros.worlds.world import Start, World, WorldError, WorldState

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
"""All that the next step depends on, warm starts of the solver included."""


class MujocoWorld(World):
    """Independent copies of one scene.

    The same resets and commands give the same states bit for bit, whatever the number of
    ``threads`` (MuJoCo steps without Python's global lock) and of other copies.
    """

    def __init__(self, scene: Scene, num_envs: int, threads: int = 1) -> None:
        self.num_envs = num_envs
        self.object_names = scene.object_names
        self._scene = scene
        self.data = [mujoco.MjData(scene.model) for _ in range(num_envs)]
        # views into the simulations, made once
        self._views = [(data.qpos, data.qvel, data.ctrl) for data in self.data]
        self._qpos = np.zeros((num_envs, scene.model.nq))
        self._qvel = np.zeros((num_envs, scene.model.nv))
        self._steps = 0
        self._objects = np.zeros((num_envs, len(scene.object_names), 7))
        self._grippers = np.zeros((num_envs, scene.arms))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._renderer: Renderer | None = None
        self._chunks = [self.data[index::threads] for index in range(threads)]

    def reset(self, envs: np.ndarray, start: Start) -> None:
        """Put cells at rest at their start."""
        qpos = self._scene.qpos(start.joint_positions)
        for row, env in enumerate(envs):
            data = self.data[env]
            mujoco.mj_resetData(self._scene.model, data)
            data.qpos = qpos[row]
            data.mocap_pos, data.mocap_quat = np.split(start.objects[row], [3], axis=1)
            data.ctrl.reshape(self._scene.arms, -1)[:, :-1] = start.joint_positions[row]
        self._grippers[envs] = 0
        self._objects[envs] = start.objects

    def command(self, targets: np.ndarray) -> None:
        """Set the drives."""
        for (_, _, ctrl), values in zip(
            self._views, targets.reshape(self.num_envs, -1), strict=True
        ):
            ctrl[:] = values
        self._grippers[:] = targets[..., -1]

    def advance(self, seconds: float) -> None:
        """Step all cells by a whole number of physics steps."""
        steps = round(seconds / self._scene.model.opt.timestep)
        if self._pool is None:
            self._advance(self.data, steps)
        else:
            list(self._pool.map(self._advance, self._chunks, [steps] * len(self._chunks)))
        self._steps += steps

    def _advance(self, cells: list[mujoco.MjData], steps: int) -> None:
        for data in cells:
            mujoco.mj_step(self._scene.model, data, steps)

    def read(self) -> WorldState:
        """Joints, grippers, objects. Raises :class:`WorldError` for a simulation that diverged."""
        for env, (qpos, qvel, _) in enumerate(self._views):
            self._qpos[env], self._qvel[env] = qpos, qvel
        if not (np.isfinite(self._qpos).all() and np.isfinite(self._qvel).all()):
            env = int(
                np.argmin(np.isfinite(self._qpos).all(axis=1) & np.isfinite(self._qvel).all(axis=1))
            )
            raise WorldError(f'the simulation of environment {env} diverged; reset it')
        time = self._steps * self._scene.model.opt.timestep
        return WorldState(
            np.full(self.num_envs, time),
            self._qpos[:, self._scene.qpos_index],
            self._qvel[:, self._scene.qvel_index],
            self._grippers.copy(),
            self._objects.copy(),
        )

    def render(self) -> np.ndarray:
        """The first cell as a picture ``[height, width, 3]``, uint8."""
        if self._renderer is None:
            farthest = np.linalg.norm(self._scene.base_position, axis=1).max()
            self._renderer = Renderer(self._scene, distance=2.2 * (farthest + 1))
        return self._renderer.picture(self.data[0])

    def state_dict(self) -> dict[str, Any]:
        """The states of the simulations."""
        model = self._scene.model
        physics = np.empty((self.num_envs, mujoco.mj_stateSize(model, _STATE)))
        for data, row in zip(self.data, physics, strict=True):
            mujoco.mj_getState(model, data, row, _STATE)
        return {
            'physics': physics,
            'steps': self._steps,
            'objects': self._objects.copy(),
            'grippers': self._grippers.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`."""
        for data, row in zip(self.data, state['physics'], strict=True):
            mujoco.mj_setState(self._scene.model, data, row, _STATE)
        self._steps = state['steps']
        self._objects[:], self._grippers[:] = state['objects'], state['grippers']

    def close(self) -> None:
        """Stop the threads, and let the picture go."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
