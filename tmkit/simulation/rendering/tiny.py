"""Pictures by pybullet's TinyRenderer, without a screen.

It draws on the processor, with shadows but without smooth edges and before a white nothing. So a
picture is drawn at twice its size and reduced, and stands in a small studio: a pale floor below the
scene that takes shadows and fades into a soft backdrop. The floor is a body without a collision
shape, made for the moment of drawing; the physics never sees it.

Limits of the renderer: no transparency; the shadow map covers what is within a few metres of the
origin.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit.simulation.camera import Camera, surroundings, towards_light
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.spatial.plain import plain_numbers

_NEAR_PLANE, _FAR_PLANE = 0.02, 20.0
_SKY_TOP, _SKY_BOTTOM = np.array([0.78, 0.85, 0.93]), np.array([0.965, 0.972, 0.98])
_FLOOR = np.array([0.925, 0.935, 0.945])
_AMBIENT, _DIFFUSE, _SPECULAR = 0.55, 0.45, 0.15
# half a side of the floor that takes shadows, in radii of the scene; more takes time to draw
_FLOOR_SIZE = 1.0


class TinyStudio:
    """A fixed view of a simulation with floor, backdrop and light, for one picture or the frames of a film.

    What does not depend on the moment (the size of the studio, the height of its floor, the
    backdrop) is computed once: frames are cheap and do not flicker.

    Args:
        supersampling: how many times larger pictures are drawn before they are reduced; 1 has hard
            edges.
    """

    renderer = "tiny"

    def __init__(self, simulation: Simulation, camera: Camera, *, supersampling: float) -> None:
        self._simulation = simulation
        self._camera = camera
        self._width = round(supersampling * camera.width)
        self._height = round(supersampling * camera.height)
        self._middle, self._floor_height, self._radius = surroundings(simulation)
        self._light = towards_light(camera)
        self._backdrop, self._floor_light = self._plain_backdrop()

    def picture(self) -> NDArray[np.uint8]:
        """Return the simulation as it is now as (height, width, 3) red, green, blue."""
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
        bullet, client = self._simulation.bullet, self._simulation.client
        half = _FLOOR_SIZE * self._radius
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
        """Return colours (height, width, 3) and the body behind each pixel (-1 none)."""
        bullet, camera = self._simulation.bullet, self._camera
        _, _, rgba, _, segments = bullet.getCameraImage(
            self._width,
            self._height,
            viewMatrix=bullet.computeViewMatrix(camera.position, camera.target, camera.up),
            projectionMatrix=bullet.computeProjectionMatrixFOV(
                math.degrees(camera.field_of_view),
                self._width / self._height,
                _NEAR_PLANE,
                _FAR_PLANE,
            ),
            lightDirection=self._light,
            lightDistance=4.0 * self._radius,
            lightColor=[1.0, 1.0, 1.0],
            shadow=1,
            lightAmbientCoeff=_AMBIENT,
            lightDiffuseCoeff=_DIFFUSE,
            lightSpecularCoeff=_SPECULAR,
            renderer=bullet.ER_TINY_RENDERER,
            physicsClientId=self._simulation.client,
        )
        shape = (self._height, self._width)
        colors = np.asarray(rgba, dtype=np.uint8).reshape(*shape, 4)[..., :3]
        return colors, np.asarray(segments, dtype=np.int32).reshape(shape)

    def _compose(
        self, colors: NDArray[np.uint8], bodies: NDArray[np.int32], floor: int
    ) -> NDArray[np.uint8]:
        """Put the backdrop behind the scene, and what the scene casts on the floor into it."""
        on_floor = bodies == floor
        pixels = np.where((on_floor | (bodies < 0))[..., None], self._backdrop, colors)
        green = colors[..., 1]
        sample = green[on_floor][::7]
        if len(sample):
            lit = max(float(np.percentile(sample, 75)), 1.0)
            rows, columns = np.nonzero(on_floor & (green < 0.98 * lit))
            darkness = 1.0 - green[rows, columns, None] / lit
            lost = darkness * self._floor_light[rows, columns]
            pixels[rows, columns] = np.clip(pixels[rows, columns] - lost, 0.0, 255.0).astype(
                np.uint8
            )
        return pixels

    def _plain_backdrop(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return floor and sky without shadows, and the floor's part in it, both (height, width, 3) from 0 to 255."""
        share = np.linspace(0.0, 1.0, self._height)[:, None, None]
        sky = (1.0 - share) * _SKY_TOP + share * _SKY_BOTTOM
        distance = np.linalg.norm(self._floor_points() - self._middle, axis=-1) / self._radius
        fade = _smooth_step(distance, 0.9, 2.0)[..., None]
        floor = 255.0 * _FLOOR * (1.0 - fade)
        shaded = floor * (
            1.0 - _smooth_step(distance, 0.7, 0.97 * _FLOOR_SIZE)[..., None]
        )  # shadows end before the drawn floor does
        return (floor + 255.0 * sky * fade + 0.5).astype(np.uint8), shaded.astype(np.float32)

    def _floor_points(self) -> NDArray[np.float64]:
        """Return the point (height, width, 2) of the floor plane behind each pixel; inf where there is none."""
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
    """Return 0 up to ``low``, 1 from ``high`` on, and a smooth transition between; 1 for what is infinite."""
    share = np.clip((np.where(np.isfinite(values), values, high) - low) / (high - low), 0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)
