"""Pictures by pybullet's TinyRenderer, without a screen.

TinyRenderer runs on the processor. It draws shadows, but has aliased edges and a white background.
A picture is therefore drawn at twice its size and reduced. A pale floor below the scene receives
shadows and fades into a soft backdrop. The floor is a body without a collision shape that exists
only while a picture is drawn, so that it does not affect the physics.

Limits of the renderer: it has no transparency, and the shadow map covers a region of limited size
around the origin.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit.simulation.camera import NEAR_PLANE, Camera, surroundings, towards_light
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.spatial.plain import plain_numbers

_FAR_PLANE = 20.0
"""Distance of the far clipping plane [m]."""

_SKY_TOP_COLOR = np.array([0.78, 0.85, 0.93])
"""(3,) colour of the backdrop at the upper edge."""

_SKY_BOTTOM_COLOR = np.array([0.965, 0.972, 0.98])
"""(3,) colour of the backdrop at the lower edge."""

_FLOOR_COLOR = np.array([0.925, 0.935, 0.945])
"""(3,) colour of the floor without shadows."""

_AMBIENT_COEFFICIENT = 0.55
"""Coefficient of ambient light."""

_DIFFUSE_COEFFICIENT = 0.45
"""Coefficient of diffuse reflection."""

_SPECULAR_COEFFICIENT = 0.15
"""Coefficient of specular reflection."""

_RELATIVE_FLOOR_SIZE = 1.0
"""Half a side of the floor that receives shadows, in radii of the scene. It costs drawing time."""


class TinyStudio:
    """A fixed view of a simulation with floor, backdrop and light, for one picture or a film.

    Size, floor height and backdrop are computed once, so that the frames of a film do not flicker.

    Args:
        simulation: simulation to draw.
        camera: camera of the view.
        supersampling: ratio of the size of drawn pictures to that of the result. 1 has hard edges.
    """

    renderer = "tiny"

    def __init__(self, simulation: Simulation, camera: Camera, *, supersampling: float) -> None:
        self._simulation = simulation
        self._camera = camera
        self._width = round(supersampling * camera.width)
        self._height = round(supersampling * camera.height)
        self._middle, self._floor_height, self._radius = surroundings(simulation)
        self._light = towards_light(camera)
        self._backdrop, self._floor_light = self._make_backdrop()

    def picture(self) -> NDArray[np.uint8]:
        """Return the current state as (height, width, 3) red, green, blue."""
        with importing("PIL", "pictures", "pictures need"):
            from PIL import Image

        floor = self._add_floor()
        try:
            colors, bodies = self._draw()
        finally:
            self._simulation.bullet.removeBody(floor, physicsClientId=self._simulation.client)
        pixels = self._compose(colors, bodies, floor)
        if pixels.shape[:2] == (self._camera.height, self._camera.width):
            return pixels
        size = (self._camera.width, self._camera.height)
        return np.asarray(
            Image.fromarray(pixels).resize(size, Image.Resampling.BOX), dtype=np.uint8
        )

    def _add_floor(self) -> int:
        """Add the floor, and return its body."""
        bullet, client = self._simulation.bullet, self._simulation.client
        half = _RELATIVE_FLOOR_SIZE * self._radius
        shape = bullet.createVisualShape(
            bullet.GEOM_BOX,
            halfExtents=[half, half, 0.0005],
            rgbaColor=[0.9, 0.9, 0.9, 1.0],
            physicsClientId=client,
        )
        position = [float(self._middle[0]), float(self._middle[1]), self._floor_height - 0.0005]
        index: int = bullet.createMultiBody(
            0.0, -1, shape, basePosition=position, physicsClientId=client
        )
        return index

    def _draw(self) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Return colours (height, width, 3), and the body of each pixel or -1."""
        bullet, camera = self._simulation.bullet, self._camera
        _, _, rgba, _, segments = bullet.getCameraImage(
            self._width,
            self._height,
            viewMatrix=bullet.computeViewMatrix(camera.position, camera.target, camera.up),
            projectionMatrix=bullet.computeProjectionMatrixFOV(
                math.degrees(camera.field_of_view),
                self._width / self._height,
                NEAR_PLANE,
                _FAR_PLANE,
            ),
            lightDirection=self._light,
            lightDistance=4.0 * self._radius,
            lightColor=[1.0, 1.0, 1.0],
            shadow=1,
            lightAmbientCoeff=_AMBIENT_COEFFICIENT,
            lightDiffuseCoeff=_DIFFUSE_COEFFICIENT,
            lightSpecularCoeff=_SPECULAR_COEFFICIENT,
            renderer=bullet.ER_TINY_RENDERER,
            physicsClientId=self._simulation.client,
        )
        shape = (self._height, self._width)
        colors = np.asarray(rgba, dtype=np.uint8).reshape(*shape, 4)[..., :3]
        return colors, np.asarray(segments, dtype=np.int32).reshape(shape)

    def _compose(
        self, colors: NDArray[np.uint8], bodies: NDArray[np.int32], floor: int
    ) -> NDArray[np.uint8]:
        """Return the picture with the backdrop behind the scene and its shadows on the floor."""
        on_floor = bodies == floor
        pixels = np.where((on_floor | (bodies < 0))[..., None], self._backdrop, colors)
        green = colors[..., 1]
        sample = green[on_floor][::7]
        if len(sample):
            brightness = max(float(np.percentile(sample, 75)), 1.0)
            rows, columns = np.nonzero(on_floor & (green < 0.98 * brightness))
            darkness = 1.0 - green[rows, columns, None] / brightness
            shadow = darkness * self._floor_light[rows, columns]
            shaded = np.clip(pixels[rows, columns] - shadow, 0.0, 255.0)
            pixels[rows, columns] = shaded.astype(np.uint8)
        return pixels

    def _make_backdrop(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return the backdrop without shadows, and the part of it that shadows reduce.

        Both are (height, width, 3), in [0, 255].
        """
        height = np.linspace(0.0, 1.0, self._height)[:, None, None]
        sky = (1.0 - height) * _SKY_TOP_COLOR + height * _SKY_BOTTOM_COLOR
        distance = np.linalg.norm(self._floor_points() - self._middle, axis=-1) / self._radius
        fade = _smooth_step(distance, 0.9, 2.0)[..., None]
        floor = 255.0 * _FLOOR_COLOR * (1.0 - fade)
        # Shadows end before the edge of the floor body.
        shadow_end = 0.97 * _RELATIVE_FLOOR_SIZE
        floor_light = floor * (1.0 - _smooth_step(distance, 0.7, shadow_end)[..., None])
        return (floor + 255.0 * sky * fade + 0.5).astype(np.uint8), floor_light.astype(np.float32)

    def _floor_points(self) -> NDArray[np.float64]:
        """Return the point (height, width, 2) of the floor plane of each pixel, or inf."""
        camera = self._camera
        half = math.tan(camera.field_of_view / 2.0)
        x = (
            (2.0 * (np.arange(self._width) + 0.5) / self._width - 1.0)
            * half
            * self._width
            / self._height
        )
        y = (1.0 - 2.0 * (np.arange(self._height) + 0.5) / self._height) * half
        rays = (
            np.stack(np.broadcast_arrays(x[None, :], y[:, None], np.float64(-1.0)), axis=-1)
            @ camera.axes().T
        )
        eye = plain_numbers(camera.position, "position")
        drop = (self._floor_height - eye[2]) / np.where(rays[..., 2] == 0.0, 1e-12, rays[..., 2])
        points: NDArray[np.float64] = eye[:2] + drop[..., None] * rays[..., :2]
        points[drop <= 0.0] = np.inf
        return points


def _smooth_step(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return 0 up to ``low``, 1 from ``high`` on and at infinity, and a smooth step between."""
    finite = np.where(np.isfinite(values), values, high)
    fraction = np.clip((finite - low) / (high - low), 0.0, 1.0)
    return fraction * fraction * (3.0 - 2.0 * fraction)
