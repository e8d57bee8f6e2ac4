"""Pictures of a simulated cell without a display, by EGL or else by OSMesa (software)."""

from __future__ import annotations

import importlib
import os
import weakref
from typing import Any

import mujoco
import numpy as np

from opentinker_ros.arms.scene import Scene

BACKENDS = ('egl', 'osmesa')


class RenderError(RuntimeError):
    """No way to draw on this machine: what was tried, and what to install."""


def _context(width: int, height: int) -> Any:
    """A current OpenGL context of the back end in ``MUJOCO_GL``, else of the first that works."""
    wanted = os.environ.get('MUJOCO_GL', '')
    errors = []
    for backend in (wanted,) if wanted in BACKENDS else BACKENDS:
        try:
            context = importlib.import_module(f'mujoco.{backend}').GLContext(width, height)
            context.make_current()
            return context
        except Exception as error:  # each back end and driver raises its own
            errors.append(f'{backend}: {error}')
    raise RenderError(
        'cannot draw without a display; install libegl1 and libgl1-mesa-dri, or libosmesa6 '
        f'({"; ".join(errors)})'
    )


class Renderer:
    """Draws one simulation at a time; keep it, since to make one takes longer than many pictures.

    ``azimuth`` and ``elevation`` are in degrees, ``distance`` in m from the middle of the ring.
    Raises :class:`RenderError`.
    """

    def __init__(
        self,
        scene: Scene,
        width: int = 640,
        height: int = 480,
        *,
        azimuth: float = 135.0,
        elevation: float = -28.0,
        distance: float = 3.0,
    ) -> None:
        model = scene.model
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        self._context = _context(width, height)
        self._model = model
        self._view = mujoco.MjrRect(0, 0, width, height)
        self._scene = mujoco.MjvScene(model, maxgeom=model.ngeom + 100)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._camera.lookat = [0, 0, 0.2]
        self._camera.azimuth, self._camera.elevation, self._camera.distance = (
            azimuth,
            elevation,
            distance,
        )
        self._draw = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._draw)
        # once: when it is called, when nobody has the renderer any more, or at exit
        self.close = weakref.finalize(self, _free, self._draw, self._context)

    def picture(self, data: mujoco.MjData) -> np.ndarray:
        """The cell as an image ``[height, width, 3]`` uint8."""
        self._context.make_current()
        mujoco.mj_forward(self._model, data)
        mujoco.mjv_updateScene(
            self._model,
            data,
            self._option,
            None,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        mujoco.mjr_render(self._view, self._scene, self._draw)
        image = np.empty((self._view.height, self._view.width, 3), np.uint8)
        mujoco.mjr_readPixels(image, None, self._view, self._draw)
        return np.flipud(image)


def _free(drawing: mujoco.MjrContext, context: Any) -> None:
    # what is freed belongs to the current context, which may be another renderer's
    context.make_current()
    drawing.free()
    context.free()
