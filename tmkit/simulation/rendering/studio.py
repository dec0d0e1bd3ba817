"""Pictures of simulations and of scenes at a configuration, made without a screen.

Two renderers draw the same scenes: ``filament`` (:mod:`.filament`, the extra ``engines``), and
``tiny`` (:mod:`.tiny`), which comes with pybullet. ``auto`` takes the first that is there. Nothing
but pixels depends on the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import MissingExtraError, SimulationError
from tmkit.graph import SceneGraph
from tmkit.simulation.camera import Camera, Posed, fit_camera
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.rendering.filament import FilamentStudio, is_available
from tmkit.simulation.rendering.tiny import TinyStudio
from tmkit.spatial import Pose

Renderer = Literal["auto", "filament", "tiny"]
_RENDERERS = ("auto", "filament", "tiny")


class StillScene:
    """A scene at a configuration, to be drawn without physics.

    Args:
        scene: the scene.
        q: (n_joints,) configuration; zeros by default.
    """

    def __init__(self, scene: SceneGraph, q: ArrayLike | None = None) -> None:
        self._scene = scene
        self._at = scene.at(scene.zero_configuration() if q is None else q)

    @property
    def scene(self) -> SceneGraph:
        """The scene."""
        return self._scene

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) configuration."""
        return np.array(self._at.q, dtype=float)

    def pose(self, frame: str) -> Pose:
        """Return root_from_frame."""
        return self._at.pose(frame)

    def move(self, scene: SceneGraph, q: ArrayLike) -> None:
        """Go on to another version of the scene, with the same frames and shapes, and to a configuration.

        Args:
            scene: the version.
            q: (n_joints,) configuration.
        """
        self._at = scene.at(q)


def chosen_renderer(renderer: str = "auto") -> str:
    """Return the renderer that draws: ``filament`` or ``tiny``.

    Args:
        renderer: ``auto`` for the best that is there, or one by name.

    Raises:
        SimulationError: no such renderer.
        MissingExtraError: ``filament`` is wanted where MuJoCo or a Vulkan device is missing.
    """
    if renderer not in _RENDERERS:
        raise SimulationError(f"renderer must be one of {', '.join(_RENDERERS)}, not {renderer!r}")
    if renderer == "tiny":
        return renderer
    if is_available():
        return "filament"
    if renderer == "auto":
        return "tiny"
    hint = " and a Vulkan driver, such as Debian's mesa-vulkan-drivers"
    raise MissingExtraError.of("the renderer 'filament' needs", "engines", "mujoco", hint=hint)


class _FollowingStudio(TinyStudio):
    """Draws a scene by a simulation that is put where the scene is."""

    def __init__(
        self, world: Posed, simulation: Simulation, camera: Camera, *, supersampling: float
    ) -> None:
        super().__init__(simulation, camera, supersampling=supersampling)
        self._world, self._still = world, simulation

    def picture(self) -> NDArray[np.uint8]:
        if isinstance(self._world, StillScene | Simulation):
            self._still.set_configuration(self._world.q)
        for name in self._still.objects:
            self._still.set_object_pose(name, self._world.pose(name))
        return super().picture()


@contextmanager
def open_studio(
    world: Posed, camera: Camera, *, supersampling: float = 2.0, renderer: str = "auto"
) -> Iterator[FilamentStudio | TinyStudio]:
    """Open a fixed view of a scene with floor, backdrop and light, for one picture or the frames of a film.

    Args:
        world: a simulation or a :class:`StillScene`, which may move between pictures.
        camera: the camera.
        supersampling: how many times larger pictures are drawn before they are reduced; 1 is fast.
        renderer: ``auto``, ``filament`` or ``tiny``; the studio's attribute ``renderer`` is the one
            that draws.

    Raises:
        SimulationError: a supersampling below 1, or no such renderer.
        MissingExtraError: the renderer is not there.
    """
    if not 1.0 <= supersampling <= 8.0:
        raise SimulationError(f"supersampling must be between 1 and 8, not {supersampling}")
    if chosen_renderer(renderer) == "filament":
        yield FilamentStudio(world, camera, supersampling=supersampling)
    elif isinstance(world, Simulation) and world.engine_name == "pybullet":
        yield TinyStudio(world, camera, supersampling=supersampling)
    else:
        with Simulation.from_scene(
            world.scene, world.q if isinstance(world, StillScene | Simulation) else None
        ) as simulation:
            yield _FollowingStudio(world, simulation, camera, supersampling=supersampling)


def render(
    world: Simulation | StillScene | SceneGraph,
    camera: Camera | None = None,
    *,
    q: ArrayLike | None = None,
    supersampling: float = 2.0,
    renderer: Renderer = "auto",
) -> NDArray[np.uint8]:
    """Draw a simulation as it is now, or a scene at a configuration; for many pictures see :func:`open_studio`.

    Args:
        world: a simulation or a scene, such as the one after a step of a plan.
        camera: the camera; :func:`fit_camera` by default.
        q: (n_joints,) the configuration of a scene; zeros by default.
        supersampling: how many times larger it is drawn before it is reduced; 1 is fast.
        renderer: ``filament``, ``tiny``, or the better that is there.

    Returns:
        (height, width, 3) red, green, blue.

    Raises:
        SimulationError: a supersampling below 1, or no such renderer.
        MissingExtraError: the renderer is not there.
    """
    shown = StillScene(world, q) if isinstance(world, SceneGraph) else world
    view = fit_camera(shown) if camera is None else camera
    with open_studio(shown, view, supersampling=supersampling, renderer=renderer) as studio:
        return studio.picture()
