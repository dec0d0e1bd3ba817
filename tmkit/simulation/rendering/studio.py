"""Pictures of simulations and of scenes at a configuration, rendered without a screen.

Two renderers draw the same scenes: ``filament`` (:mod:`.filament`, the extra ``engines``), and
``tiny`` (:mod:`.tiny`), which is part of pybullet. ``auto`` selects the first that is installed.
The choice affects only pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.extras import is_installed
from tmkit.errors import MissingExtraError, SimulationError
from tmkit.graph import SceneGraph
from tmkit.simulation.camera import Camera, Posed, fit_camera
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.rendering.filament import FilamentStudio, is_available
from tmkit.simulation.rendering.tiny import TinyStudio
from tmkit.spatial import Pose

Renderer = Literal["auto", "filament", "tiny"]
"""Name of a renderer, or ``auto`` for the better one that is installed."""

_RENDERERS = ("auto", "filament", "tiny")
"""Names that arguments accept."""


class StillScene:
    """Scene at a configuration, for pictures without physics.

    Args:
        scene: the scene.
        q: (n_joints,) configuration. Defaults to zeros.
    """

    def __init__(self, scene: SceneGraph, q: ArrayLike | None = None) -> None:
        self._scene = scene
        self._state = scene.at(scene.zero_configuration() if q is None else q)

    @property
    def scene(self) -> SceneGraph:
        """Scene with the shapes to draw."""
        return self._scene

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) configuration."""
        return np.array(self._state.q, dtype=float)

    def pose(self, frame: str) -> Pose:
        """Return root_from_frame."""
        return self._state.pose(frame)

    def move(self, scene: SceneGraph, q: ArrayLike) -> None:
        """Change the poses to those of another scene with the same frames and shapes.

        Args:
            scene: scene with the new poses.
            q: (n_joints,) configuration.
        """
        self._state = scene.at(q)


def select_renderer(renderer: str = "auto") -> str:
    """Return the name of the renderer to use: ``filament`` or ``tiny``.

    Args:
        renderer: name of a renderer, or ``auto`` for the better one that is installed.

    Raises:
        SimulationError: if the name is unknown.
        MissingExtraError: if the renderer is not installed. ``filament`` needs MuJoCo and a Vulkan
            device, ``tiny`` needs pybullet.
    """
    if renderer not in _RENDERERS:
        expected = ", ".join(_RENDERERS)
        raise SimulationError(f"renderer must be one of {expected}, got {renderer!r}")
    if renderer != "tiny" and is_available():
        return "filament"
    if renderer != "filament" and is_installed("pybullet"):
        return "tiny"
    if renderer == "tiny":
        message = "the renderer 'tiny' needs pybullet: pip install pybullet"
        raise MissingExtraError(message, extra="pybullet", module="pybullet")
    need = "pictures need" if renderer == "auto" else "the renderer 'filament' needs"
    hint = " and a Vulkan driver, such as Debian's mesa-vulkan-drivers"
    if renderer == "auto":
        hint += "; or pybullet"
    raise MissingExtraError.of(need, "engines", "mujoco", hint=hint)


class _ScratchStudio(TinyStudio):
    """Studio that draws a scene through a second simulation with the same poses."""

    def __init__(
        self, world: Posed, simulation: Simulation, camera: Camera, *, supersampling: float
    ) -> None:
        super().__init__(simulation, camera, supersampling=supersampling)
        self._world, self._scratch = world, simulation

    def picture(self) -> NDArray[np.uint8]:
        if isinstance(self._world, StillScene | Simulation):
            self._scratch.set_configuration(self._world.q)
        for name in self._scratch.objects:
            self._scratch.set_object_pose(name, self._world.pose(name))
        return super().picture()


@contextmanager
def open_studio(
    world: Posed, camera: Camera, *, supersampling: float = 2.0, renderer: str = "auto"
) -> Iterator[FilamentStudio | TinyStudio]:
    """Open a fixed view of a scene with floor, backdrop and light, for one picture or a film.

    Args:
        world: a simulation or a :class:`StillScene`, which may move between pictures.
        camera: camera of the view.
        supersampling: ratio of the size of drawn pictures to that of the result. 1 is fast.
        renderer: ``auto``, ``filament`` or ``tiny``. The attribute ``renderer`` of the studio has
            the selected one.

    Raises:
        SimulationError: if ``supersampling`` is not in [1, 8], or the renderer is unknown.
        MissingExtraError: if the renderer is not installed.
    """
    if not 1.0 <= supersampling <= 8.0:
        raise SimulationError(f"supersampling must be between 1 and 8, got {supersampling}")
    if select_renderer(renderer) == "filament":
        yield FilamentStudio(world, camera, supersampling=supersampling)
    elif isinstance(world, Simulation) and world.engine_name == "pybullet":
        yield TinyStudio(world, camera, supersampling=supersampling)
    else:
        with Simulation.from_scene(
            world.scene, world.q if isinstance(world, StillScene | Simulation) else None
        ) as simulation:
            yield _ScratchStudio(world, simulation, camera, supersampling=supersampling)


def render(
    world: Simulation | StillScene | SceneGraph,
    camera: Camera | None = None,
    *,
    q: ArrayLike | None = None,
    supersampling: float = 2.0,
    renderer: Renderer = "auto",
) -> NDArray[np.uint8]:
    """Draw the current state of a simulation, or a scene at a configuration.

    :func:`open_studio` is faster for several pictures.

    Args:
        world: a simulation or a scene, such as the one after a step of a plan.
        camera: camera of the view. Defaults to :func:`fit_camera`.
        q: (n_joints,) configuration of a scene. Defaults to zeros.
        supersampling: ratio of the size of the drawn picture to that of the result. 1 is fast.
        renderer: ``filament``, ``tiny``, or ``auto`` for the better one that is installed.

    Returns:
        (height, width, 3) red, green, blue.

    Raises:
        SimulationError: if ``supersampling`` is not in [1, 8], or the renderer is unknown.
        MissingExtraError: if the renderer is not installed.
    """
    content = StillScene(world, q) if isinstance(world, SceneGraph) else world
    view = fit_camera(content) if camera is None else camera
    with open_studio(content, view, supersampling=supersampling, renderer=renderer) as studio:
        return studio.picture()
