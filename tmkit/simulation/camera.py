"""Pictures of a simulation, made without a screen.

pybullet's TinyRenderer draws on the processor, with shadows but without smooth edges and before a white nothing. So a
picture is drawn at twice its size and reduced, and stands in a small studio: a pale floor below the scene that takes
shadows and fades into a soft backdrop. The floor is a body without a collision shape, made for the moment of drawing;
the physics never sees it.

:func:`good_camera` finds a view: it looks from in front and above, on the side from which no wall hides the objects,
from as near as shows the mechanisms, the objects and what they stand on. Of larger things (a wall, a floor) only the
neighbourhood counts.

Limits of the renderer: no transparency; the shadow map covers what is within a few metres of the origin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import SimulationError
from tmkit.simulation.world import Simulation

__all__ = ["Camera", "good_camera", "render"]

_NEAR, _FAR = 0.02, 20.0
_SKY_TOP, _SKY_BOTTOM = np.array([0.78, 0.85, 0.93]), np.array([0.965, 0.972, 0.98])
_FLOOR = np.array([0.925, 0.935, 0.945])
_LIGHT = (0.6, -1.0, 2.5)
_NEIGHBOURHOOD = 0.35  # metres around mechanisms and objects within which fixed things are part of the picture
_MARGIN = 1.12  # how much wider the view is than what it must show
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
        eye, target, up = (np.asarray(v, dtype=float) for v in (self.position, self.target, self.up))
        if not all(vector.shape == (3,) and np.all(np.isfinite(vector)) for vector in (eye, target, up)):
            raise SimulationError("a camera needs position, target and up of three finite numbers each")
        if np.linalg.norm(np.cross(target - eye, up)) < 1e-9:
            raise SimulationError("a camera must look somewhere, and not along its own up direction")
        if not 0.0 < self.field_of_view < math.pi:
            raise SimulationError(f"field_of_view must be between 0 and pi radians, not {self.field_of_view}")
        if not (1 <= self.width <= 4096 and 1 <= self.height <= 4096):
            raise SimulationError(f"a picture is 1 to 4096 pixels wide and high, not {self.width} x {self.height}")

    def resized(self, width: int, height: int) -> Camera:
        """Return the same view for a picture of another size."""
        return Camera(self.position, self.target, self.up, self.field_of_view, width, height)

    def axes(self) -> NDArray[np.float64]:
        """Return root_from_camera as rotation (3, 3): columns right, up and backwards."""
        back = np.subtract(self.position, self.target)
        back /= np.linalg.norm(back)
        right = np.cross(np.asarray(self.up, dtype=float), back)
        right /= np.linalg.norm(right)
        return np.column_stack([right, np.cross(back, right), back])


def render(simulation: Simulation, camera: Camera, *, supersampling: int = 2) -> NDArray[np.uint8]:
    """Draw a simulation as it is now.

    Args:
        simulation: the simulation.
        camera: where from.
        supersampling: how many times larger it is drawn before it is reduced; 1 is fast and has hard edges.

    Returns:
        (height, width, 3) red, green, blue.
    """
    from PIL import Image

    if supersampling < 1:
        raise SimulationError(f"supersampling must be at least 1, not {supersampling}")
    width, height = supersampling * camera.width, supersampling * camera.height
    lower, upper = _bounds(simulation)
    floor_height = float(lower[2]) - 0.001
    radius = max(1.0, 1.3 * float(np.linalg.norm(upper[:2] - lower[:2])) / 2.0)
    middle = (lower[:2] + upper[:2]) / 2.0
    floor = _add_floor(simulation, middle, floor_height, 3.0 * radius)
    try:
        colors, bodies = _draw(simulation, camera, width, height, radius)
    finally:
        simulation.bullet.removeBody(floor, physicsClientId=simulation.client)
    distance = np.linalg.norm(_floor_points(camera, width, height, floor_height) - middle, axis=-1)
    picture = _compose(colors, bodies, floor, distance / radius)
    pixels = (255.0 * np.clip(picture, 0.0, 1.0) + 0.5).astype(np.uint8)
    if supersampling == 1:
        return pixels
    reduced = Image.fromarray(pixels).resize((camera.width, camera.height), Image.Resampling.BOX)
    return np.asarray(reduced, dtype=np.uint8)


def _draw(
    simulation: Simulation, camera: Camera, width: int, height: int, radius: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return colours (height, width, 3) and the body behind each pixel (-1 none)."""
    bullet = simulation.bullet
    _, _, rgba, _, segments = bullet.getCameraImage(
        width,
        height,
        viewMatrix=bullet.computeViewMatrix(camera.position, camera.target, camera.up),
        projectionMatrix=bullet.computeProjectionMatrixFOV(
            math.degrees(camera.field_of_view), width / height, _NEAR, _FAR
        ),
        lightDirection=_LIGHT,
        lightDistance=4.0 * radius,
        lightColor=[1.0, 1.0, 1.0],
        shadow=1,
        lightAmbientCoeff=0.5,
        lightDiffuseCoeff=0.5,
        lightSpecularCoeff=0.2,
        renderer=bullet.ER_TINY_RENDERER,
        physicsClientId=simulation.client,
    )
    colors = np.asarray(rgba, dtype=np.uint8).reshape(height, width, 4)[..., :3] / 255.0
    return colors, np.asarray(segments, dtype=np.int64).reshape(height, width)


def _compose(
    colors: NDArray[np.float64], bodies: NDArray[np.int64], floor: int, distance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Put the floor with its shadows, and the backdrop, behind the scene.

    Args:
        colors: (height, width, 3) as drawn.
        bodies: (height, width) body of each pixel.
        floor: body of the floor.
        distance: (height, width) of each pixel's floor point from the middle of the scene, in radii; inf above the
            horizon.
    """
    share = np.linspace(0.0, 1.0, len(colors))[:, None, None]
    sky = (1.0 - share) * _SKY_TOP + share * _SKY_BOTTOM
    on_floor = bodies == floor
    shade = np.ones(bodies.shape)
    if on_floor.any():
        brightness = colors.mean(axis=-1)
        lit = np.percentile(brightness[on_floor], 75)
        shade[on_floor] = np.clip(brightness[on_floor] / max(lit, 1e-6), 0.0, 1.0)
    fade = np.clip((distance - 0.9) / 1.1, 0.0, 1.0)
    fade = np.where(np.isfinite(fade), fade * fade * (3.0 - 2.0 * fade), 1.0)[..., None]
    backdrop = _FLOOR * shade[..., None] * (1.0 - fade) + sky * fade
    return np.where((on_floor | (bodies < 0))[..., None], backdrop, colors)


def _floor_points(camera: Camera, width: int, height: int, floor_height: float) -> NDArray[np.float64]:
    """Return the point (height, width, 2) of the floor plane behind each pixel; inf where there is none."""
    half = math.tan(camera.field_of_view / 2.0)
    x = (2.0 * (np.arange(width) + 0.5) / width - 1.0) * half * width / height
    y = (1.0 - 2.0 * (np.arange(height) + 0.5) / height) * half
    rays = np.stack(np.broadcast_arrays(x[None, :], y[:, None], np.float64(-1.0)), axis=-1) @ camera.axes().T
    eye = np.asarray(camera.position, dtype=float)
    drop = (floor_height - eye[2]) / np.where(rays[..., 2] == 0.0, 1e-12, rays[..., 2])
    points: NDArray[np.float64] = eye[:2] + drop[..., None] * rays[..., :2]
    points[drop <= 0.0] = np.inf
    return points


def _add_floor(simulation: Simulation, middle: NDArray[np.float64], height: float, radius: float) -> int:
    bullet = simulation.bullet
    shape = bullet.createVisualShape(
        bullet.GEOM_BOX,
        halfExtents=[radius, radius, 0.005],
        rgbaColor=[0.9, 0.9, 0.9, 1.0],
        physicsClientId=simulation.client,
    )
    index: int = bullet.createMultiBody(
        0.0,
        -1,
        shape,
        basePosition=[float(middle[0]), float(middle[1]), height - 0.005],
        physicsClientId=simulation.client,
    )
    return index


def _body_bounds(simulation: Simulation, index: int, links: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    boxes = [simulation.bullet.getAABB(index, link, physicsClientId=simulation.client) for link in links]
    corners = np.array([box for box in boxes if np.all(np.isfinite(box)) and np.ptp(box, axis=0).max() < 1e3])
    if len(corners) == 0:
        return np.full(3, np.inf), np.full(3, -np.inf)
    return corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)


def _bounds(simulation: Simulation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of what a picture should show: movable things, and the neighbourhood of them."""
    points = _interesting_points(simulation)
    return points.min(axis=0), points.max(axis=0)


def _interesting_points(simulation: Simulation) -> NDArray[np.float64]:
    """Return corners (n, 3) of boxes around what a picture should show."""
    boxes, fixed = [], []
    for body in simulation.bodies:
        links = sorted(set(body.links.values()))
        if body.kind == "fixed":
            fixed.append(_body_bounds(simulation, body.index, links))
        else:
            boxes += [_body_bounds(simulation, body.index, [link]) for link in links]
    boxes = [box for box in boxes if np.all(box[0] <= box[1])]
    if boxes:
        low = np.min([box[0] for box in boxes], axis=0) - _NEIGHBOURHOOD
        high = np.max([box[1] for box in boxes], axis=0) + _NEIGHBOURHOOD
        fixed = [(np.maximum(a, low), np.minimum(b, high)) for a, b in fixed]
    boxes += [(a, b) for a, b in fixed if np.all(a <= b)]
    if not boxes:
        return np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]])
    grid = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=float)
    return np.concatenate([a + grid * (b - a) for a, b in boxes])


def good_camera(simulation: Simulation, *, width: int = 1280, height: int = 960) -> Camera:
    """Return a view of a simulation that shows its mechanisms, objects and surfaces well.

    Args:
        simulation: the simulation.
        width: pixels of the picture.
        height: pixels of the picture.
    """
    points = _interesting_points(simulation)
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
    cloud = np.asarray(points, dtype=float)
    target = (cloud.min(axis=0) + cloud.max(axis=0)) / 2.0
    direction = np.array(
        [
            math.cos(_ELEVATION) * math.cos(azimuth),
            math.cos(_ELEVATION) * math.sin(azimuth),
            math.sin(_ELEVATION),
        ]
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


def _triple(vector: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(vector[0]), float(vector[1]), float(vector[2])


def _hidden_share(simulation: Simulation, camera: Camera) -> float:
    """Return the share of the objects that something fixed hides from the camera."""
    goals = [simulation.pose(name).translation for name in simulation.objects]
    if not goals:
        return 0.0
    kinds = {body.index: body.kind for body in simulation.bodies}
    hits = simulation.bullet.rayTestBatch(
        [list(camera.position)] * len(goals), [list(goal) for goal in goals], physicsClientId=simulation.client
    )
    return float(np.mean([kinds.get(hit[0]) == "fixed" for hit in hits]))
