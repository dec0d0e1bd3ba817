"""Pictures of a simulation, made without a screen.

pybullet's TinyRenderer draws on the processor, with shadows but without smooth edges and before a white nothing. So a
picture is drawn at twice its size and reduced, and stands in a small studio: a pale floor below the scene that takes
shadows and fades into a soft backdrop. The floor is a body without a collision shape, made for the moment of drawing;
the physics never sees it.

:func:`fit_camera` finds a view: it looks from in front and above, on the side from which no wall hides the objects,
from as near as shows the mechanisms, the objects and what they stand on. Of larger things (a wall, a floor) only the
neighbourhood counts.

Limits of the renderer: no transparency; the shadow map covers what is within a few metres of the origin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import SimulationError
from tmkit.simulation.world import Simulation
from tmkit.spatial.plain import plain_numbers

_NEAR, _FAR = 0.02, 20.0
_SKY_TOP, _SKY_BOTTOM = np.array([0.78, 0.85, 0.93]), np.array([0.965, 0.972, 0.98])
_FLOOR = np.array([0.925, 0.935, 0.945])
_LIGHT = (-0.6, 0.95, 1.8)  # towards the light: right, back to the camera and up in the picture, over the left shoulder
_AMBIENT, _DIFFUSE, _SPECULAR = 0.55, 0.45, 0.15
_FLOOR_SIZE = 1.0  # half a side of the floor that takes shadows, in radii of the scene; more takes time to draw
_NEIGHBOURHOOD = 0.5  # metres around mechanisms and objects within which fixed things are part of the picture
_MARGIN = 1.1  # how much wider the view is than what it must show
_VIEWS = (-40.0, 40.0, -65.0, 65.0, -20.0, 20.0, -90.0, 90.0, 150.0, -150.0)  # degrees from straight ahead, best first
_ELEVATION = math.radians(27.0)


@dataclass(frozen=True, slots=True)
class Camera:
    """Where a picture is taken from. Poses are those of the root frame.

    Attributes:
        position: the eye, metres.
        target: the point in the middle of the picture, metres.
        up: the direction that is up in the picture.
        field_of_view: vertical opening angle, radians.
        width: pixels.
        height: pixels.
    """

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    field_of_view: float = math.radians(40.0)
    width: int = 1280
    height: int = 960

    def __post_init__(self) -> None:
        eye, target, up = (plain_numbers(v, "vectors of a camera") for v in (self.position, self.target, self.up))
        if not all(vector.shape == (3,) and np.all(np.isfinite(vector)) for vector in (eye, target, up)):
            raise SimulationError("a camera needs position, target and up of three finite numbers each")
        if np.linalg.norm(np.cross(target - eye, up)) < 1e-9:
            raise SimulationError("a camera must look somewhere, and not along its own up direction")
        if not 0.0 < self.field_of_view < math.pi:
            raise SimulationError(f"field_of_view must be between 0 and pi radians, not {self.field_of_view}")
        if not (1 <= self.width <= 4096 and 1 <= self.height <= 4096):
            raise SimulationError(f"a picture is 1 to 4096 pixels wide and high, not {self.width} x {self.height}")

    def resized(self, width: int, height: int) -> Camera:
        """Return the same view with another size of the picture.

        Args:
            width: pixels.
            height: pixels.
        """
        return Camera(self.position, self.target, self.up, self.field_of_view, width, height)

    def axes(self) -> NDArray[np.float64]:
        """Return root_from_camera as rotation (3, 3): columns right, up and backwards."""
        back = np.subtract(self.position, self.target)
        back /= np.linalg.norm(back)
        right = np.cross(np.asarray(self.up, dtype=float), back)
        right /= np.linalg.norm(right)
        return np.column_stack([right, np.cross(back, right), back])


class Studio:
    """A fixed view of a simulation with floor, backdrop and light, for one picture or the frames of a film.

    What does not depend on the moment (the size of the studio, the height of its floor, the backdrop) is computed once:
    frames are cheap and do not flicker.

    Args:
        simulation: the simulation.
        camera: where from.
        supersampling: how many times larger pictures are drawn before they are reduced; 1 has hard edges.

    Raises:
        SimulationError: a supersampling below 1.
    """

    def __init__(self, simulation: Simulation, camera: Camera, *, supersampling: float = 2.0) -> None:
        if not 1.0 <= supersampling <= 8.0:
            raise SimulationError(f"supersampling must be between 1 and 8, not {supersampling}")
        self._simulation = simulation
        self._camera = camera
        self._width = round(supersampling * camera.width)
        self._height = round(supersampling * camera.height)
        points = _interesting_points(simulation)
        lower, upper = points.min(axis=0), points.max(axis=0)
        self._middle = (lower[:2] + upper[:2]) / 2.0
        self._floor_height = float(lower[2]) - 0.001
        self._radius = max(1.0, 0.65 * float(np.linalg.norm(upper[:2] - lower[:2])))
        self._light = _towards_light(camera)
        self._backdrop, self._floor_light = self._plain_backdrop()

    def picture(self) -> NDArray[np.uint8]:
        """Draw the simulation as it is now.

        Returns:
            (height, width, 3) red, green, blue.
        """
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
        return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX), dtype=np.uint8)

    def _add_floor(self) -> int:
        bullet, client = self._simulation.bullet, self._simulation.client
        half = _FLOOR_SIZE * self._radius
        shape = bullet.createVisualShape(
            bullet.GEOM_BOX, halfExtents=[half, half, 0.0005], rgbaColor=[0.9, 0.9, 0.9, 1.0], physicsClientId=client
        )
        position = [float(self._middle[0]), float(self._middle[1]), self._floor_height - 0.0005]
        index: int = bullet.createMultiBody(0.0, -1, shape, basePosition=position, physicsClientId=client)
        return index

    def _draw(self) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Return colours (height, width, 3) and the body behind each pixel (-1 none)."""
        bullet, camera = self._simulation.bullet, self._camera
        _, _, rgba, _, segments = bullet.getCameraImage(
            self._width,
            self._height,
            viewMatrix=bullet.computeViewMatrix(camera.position, camera.target, camera.up),
            projectionMatrix=bullet.computeProjectionMatrixFOV(
                math.degrees(camera.field_of_view), self._width / self._height, _NEAR, _FAR
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

    def _compose(self, colors: NDArray[np.uint8], bodies: NDArray[np.int32], floor: int) -> NDArray[np.uint8]:
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
            pixels[rows, columns] = np.clip(pixels[rows, columns] - lost, 0.0, 255.0).astype(np.uint8)
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
        x = (2.0 * (np.arange(self._width) + 0.5) / self._width - 1.0) * half * self._width / self._height
        y = (1.0 - 2.0 * (np.arange(self._height) + 0.5) / self._height) * half
        rays = np.stack(np.broadcast_arrays(x[None, :], y[:, None], np.float64(-1.0)), axis=-1) @ camera.axes().T
        eye = plain_numbers(camera.position, "position")
        drop = (self._floor_height - eye[2]) / np.where(rays[..., 2] == 0.0, 1e-12, rays[..., 2])
        points: NDArray[np.float64] = eye[:2] + drop[..., None] * rays[..., :2]
        points[drop <= 0.0] = np.inf
        return points


def render(simulation: Simulation, camera: Camera, *, supersampling: float = 2.0) -> NDArray[np.uint8]:
    """Draw a simulation as it is now; for many pictures from one place keep a :class:`Studio`.

    Args:
        simulation: the simulation.
        camera: where from.
        supersampling: how many times larger it is drawn before it is reduced; 1 is fast and has hard edges.

    Returns:
        (height, width, 3) red, green, blue.
    """
    return Studio(simulation, camera, supersampling=supersampling).picture()


def _towards_light(camera: Camera) -> list[float]:
    """Return the direction to the light, which stands behind the camera and lights the visible sides."""
    axes = camera.axes()
    level = np.array([[0.0, 0.0, 1.0]]).T
    right = axes[:, :1] - level * axes[2, 0]
    back = np.cross(right, level, axis=0)
    light = np.column_stack([right, back, level]) @ _LIGHT
    return [float(value) for value in light]


def _smooth_step(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return 0 up to ``low``, 1 from ``high`` on, and a smooth transition between; 1 for what is infinite."""
    share = np.clip((np.where(np.isfinite(values), values, high) - low) / (high - low), 0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)


def _interesting_points(simulation: Simulation) -> NDArray[np.float64]:
    """Return corners (n, 3) of boxes around what a picture should show."""
    clouds: list[NDArray[np.float64]] = []
    fixed: list[NDArray[np.float64]] = []
    for body in simulation.bodies:
        for frame in body.links:
            (fixed if body.kind == "fixed" else clouds).extend(_corners_of_shapes(simulation, frame))
    if clouds:
        near = np.concatenate(clouds)
        low, high = near.min(axis=0) - _NEIGHBOURHOOD, near.max(axis=0) + _NEIGHBOURHOOD
        fixed = [
            np.clip(cloud, low, high)
            for cloud in fixed
            if np.all(cloud.min(axis=0) <= high) and np.all(cloud.max(axis=0) >= low)
        ]
    clouds += fixed
    return np.concatenate(clouds) if clouds else np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]])


def _corners_of_shapes(simulation: Simulation, frame: str) -> list[NDArray[np.float64]]:
    """Return the corners (8, 3) of the boxes around the visible shapes of a frame, in the root."""
    corners = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=float)
    result = []
    for attached in simulation.scene.shapes(frame):
        if attached.visual and attached.shape.kind != "plane":  # which has no corners
            lower, upper = (np.asarray(bound, dtype=float) for bound in attached.shape.bounds)
            pose = simulation.pose(frame) @ attached.pose
            result.append(np.asarray(pose.apply(lower + corners * (upper - lower)), dtype=float))
    return result


def fit_camera(simulation: Simulation, *, include: ArrayLike = (), width: int = 1280, height: int = 960) -> Camera:
    """Return a view of a simulation that shows its mechanisms, objects and surfaces well.

    Args:
        simulation: the simulation.
        include: (n, 3) further points that are to be in view, metres in the root frame.
        width: pixels of the picture.
        height: pixels of the picture.
    """
    points = np.concatenate([_interesting_points(simulation), np.reshape(plain_numbers(include, "include"), (-1, 3))])
    ahead = _direction_of_work(simulation)
    cameras = [_framing(points, ahead + math.radians(turn), width, height) for turn in _VIEWS]
    hidden = [_hidden_share(simulation, camera) for camera in cameras]
    return cameras[int(np.argmin(np.round(hidden, 2)))]


def _direction_of_work(simulation: Simulation) -> float:
    """Return the direction, an angle about z, from the mechanisms to the objects."""
    bases = [simulation.pose(body.base).translation for body in simulation.bodies if body.kind == "mechanism"]
    goals = [simulation.pose(name).translation for name in simulation.objects]
    if not bases or not goals:
        return 0.0
    offset = np.mean(goals, axis=0) - np.mean(bases, axis=0)
    return math.atan2(offset[1], offset[0]) if np.linalg.norm(offset[:2]) > 1e-3 else 0.0


def _framing(points: ArrayLike, azimuth: float, width: int, height: int) -> Camera:
    """Return the nearest camera in a direction that sees all points, with the middle of them in its middle."""
    cloud = plain_numbers(points, "points")
    target = (cloud.min(axis=0) + cloud.max(axis=0)) / 2.0
    direction = np.array(
        [math.cos(_ELEVATION) * math.cos(azimuth), math.cos(_ELEVATION) * math.sin(azimuth), math.sin(_ELEVATION)]
    )
    camera = Camera(_triple(target + direction), _triple(target), width=width, height=height)
    axes, half = camera.axes(), math.tan(camera.field_of_view / 2.0)
    halves = np.array([half * width / height, half]) / _MARGIN
    distance = 1.0
    for _ in range(8):
        x, y, back = ((cloud - target) @ axes).T
        distance = float(np.max([np.abs(x) / halves[0] + back, np.abs(y) / halves[1] + back]))
        seen = np.column_stack([x, y]) / (distance - back)[:, None]
        middle = (seen.min(axis=0) + seen.max(axis=0)) / 2.0
        target = target + distance * (middle[0] * axes[:, 0] + middle[1] * axes[:, 1])
    return Camera(_triple(target + distance * direction), _triple(target), width=width, height=height)


def _hidden_share(simulation: Simulation, camera: Camera) -> float:
    """Return the share of the objects that something fixed hides from the camera; shapes count as their boxes."""
    goals = np.array([simulation.pose(name).translation for name in simulation.objects]).reshape(-1, 3)
    if len(goals) == 0:
        return 0.0
    hidden = np.zeros(len(goals), dtype=bool)
    for body in simulation.bodies:
        if body.kind == "fixed":
            for attached in simulation.scene.shapes(body.base):
                if attached.shape.kind in ("plane", "point_cloud", "height_field"):
                    continue  # their boxes hide too much
                lower, upper = (np.asarray(bound, dtype=float) for bound in attached.shape.bounds)
                shape_from_root = (simulation.pose(body.base) @ attached.pose).inverse()
                eye = np.asarray(shape_from_root.apply(camera.position), dtype=float)
                ends = np.asarray(shape_from_root.apply(goals), dtype=float)
                hidden |= _crosses_box(eye, ends, lower, upper)
    return float(np.mean(hidden))


def _crosses_box(
    start: NDArray[np.float64], ends: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Say of each segment from ``start`` (3,) to ``ends`` (n, 3) whether it meets the box between two corners."""
    along = np.where(np.abs(ends - start) < 1e-12, 1e-12, ends - start)
    first, second = (lower - start) / along, (upper - start) / along
    enter = np.minimum(first, second).max(axis=1)
    leave = np.maximum(first, second).min(axis=1)
    meets: NDArray[np.bool_] = (enter <= leave) & (leave >= 0.0) & (enter <= 1.0)
    return meets


def _triple(vector: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(vector[0]), float(vector[1]), float(vector[2])
