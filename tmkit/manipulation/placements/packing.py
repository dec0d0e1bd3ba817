"""Packings: placements of several objects in one region.

Objects are inserted in sequence. Each goes to the feasible point that is farthest in one direction,
among the corners and crossings of the polygons of
:mod:`tmkit.manipulation.placements.sampling`. The order and the direction vary from packing to
packing. Objects that did not fit come earlier in the next packing ("squeaky wheel" optimisation;
Joslin & Clements 1999).

Invariants: each object's outline lies in the region and keeps the spacing to the others. Equal
arguments and generators in equal states return equal packings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import circle, norm, norms, product
from tmkit.graph import SceneGraph
from tmkit.manipulation.placements.sampling import (
    INSIDE_TOLERANCE,
    Placement,
    PlacementSettings,
    Posture,
    postures_on,
)
from tmkit.motion.regions import convex
from tmkit.motion.regions.polygons import ConvexPolygon, collision_positions
from tmkit.motion.regions.solids import collision_solids, outline
from tmkit.motion.regions.surfaces import SupportSurface, region_surface
from tmkit.robots import Manipulator

_AVOIDANCE_DISTANCE = 0.01
"""Distance of all objects from an avoided placement [m]."""

_POINT_DIGITS = 9
"""Number of decimals to which points are rounded."""

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Shape:
    """An object in one orientation.

    Attributes:
        posture: orientation, with the positions at which it fits.
        footprint: outline around the origin.
    """

    posture: Posture
    footprint: ConvexPolygon


@dataclass(frozen=True, eq=False)
class _PositionedShape:
    """An object with orientation and position.

    Attributes:
        shape: object in its orientation.
        point: (2,) position on the surface [m].
    """

    shape: _Shape
    point: Points


class RegionPacker:
    """Sampler of packings of objects in one region.

    Args:
        scene: scene with objects and region. Other objects in the region are obstacles.
        objects: frames of the objects to pack.
        region: frame of the region.
        q: (n_joints,) configuration. May be None if no joint is between the frames.
        robot: arm whose links are not obstacles. The region is filled from the side that is
            farthest from its base.

    Raises:
        SceneError: if the frame is not a region, or an object has no stable face.
        UnknownNameError: if a frame is unknown.
    """

    def __init__(
        self,
        scene: SceneGraph,
        objects: Sequence[str],
        region: str,
        *,
        q: ArrayLike | None,
        robot: Manipulator,
    ) -> None:
        self.objects = tuple(objects)
        surface = region_surface(scene, region, q=q)
        self._surface = surface
        settings = PlacementSettings()
        self._spacing = settings.spacing
        self._shapes: dict[str, tuple[_Shape, ...]] = {}
        for name in self.objects:
            object_scene = scene
            for object in self.objects:
                if object != name and object in object_scene:
                    object_scene = object_scene.remove_frame(object, subtree=True)
            solids = collision_solids(object_scene, name, q)
            postures = postures_on(object_scene, name, surface, q, robot, settings, parts=())
            shapes = (_Shape(posture, outline(solids, posture.rotation)) for posture in postures)
            unique = {
                np.round(shape.footprint.vertices, _POINT_DIGITS).tobytes(): shape
                for shape in reversed([*shapes])
            }
            self._shapes[name] = tuple(reversed(unique.values()))
        self._sizes = {name: _size(shapes) for name, shapes in self._shapes.items()}
        self._avoided_points = np.zeros((0, 2))
        self._far_direction = self._direction_from_base(scene, robot, surface, q)

    @staticmethod
    def _direction_from_base(
        scene: SceneGraph, robot: Manipulator, surface: SupportSurface, q: ArrayLike | None
    ) -> Points:
        """Return the unit vector (2,) in the surface away from the base of an arm."""
        if scene.root(robot.base) != scene.root(surface.support):
            return np.array([1.0, 0.0])
        base = surface.support_from_surface.inverse() @ scene.pose(
            robot.base, relative_to=surface.support, q=q
        )
        direction = surface.polygon.centroid - base.translation[:2]
        length = norm(direction)
        return np.asarray(direction / length) if length > INSIDE_TOLERANCE else np.array([1.0, 0.0])

    def avoid(self, placements: Sequence[Placement]) -> None:
        """Keep all objects at least 1 cm away from placements.

        Args:
            placements: placements to avoid, instead of those of an earlier call.
        """
        surface_from_support = self._surface.support_from_surface.inverse()
        points = [
            (surface_from_support @ placement.support_from_object).translation[:2]
            for placement in placements
        ]
        self._avoided_points = np.array(points).reshape(-1, 2)

    def packings(self, rng: np.random.Generator, *, count: int) -> Iterator[dict[str, Placement]]:
        """Yield packings: placements by object, in the order of insertion, where objects fit.

        The first packing inserts the objects in the order of the constructor. O(n^3) for each
        packing of n objects.

        Args:
            rng: random generator of the variation.
            count: number of packings.
        """
        priority = np.arange(len(self.objects), dtype=float)
        direction = self._far_direction
        for number in range(count):
            order = np.argsort(priority, kind="stable").tolist()
            inserted: dict[str, _PositionedShape] = {}
            rejected_sizes: list[tuple[float, float]] = []
            for index in order:
                name = self.objects[index]
                width, depth = self._sizes[name]
                is_too_large = any(width >= w and depth >= d for w, d in rejected_sizes)
                positioned = None
                if not is_too_large:
                    positioned = self._insert(name, [*inserted.values()], direction)
                if positioned is not None:
                    inserted[name] = positioned
                    continue
                priority[index] -= len(order) / 4.0
                if not is_too_large:
                    rejected_sizes.append((width, depth))
            yield {name: self._placement(insertion) for name, insertion in inserted.items()}
            priority += rng.normal(0.0, 1.0 + len(order) / 16.0, len(order))
            if number % 2:
                direction = circle([rng.uniform(-np.pi, np.pi)])[0]

    def place(self, name: str, placements: Mapping[str, Placement]) -> Iterator[Placement]:
        """Yield placements of one object beside other objects, those far from the arm first.

        Args:
            name: frame of the object.
            placements: placements of other objects, by frame.
        """
        neighbours = [
            self._match_shape(neighbour, placement)
            for neighbour, placement in placements.items()
            if neighbour != name
        ]
        for shape in self._shapes[name]:
            for point in self._points(shape, neighbours, self._far_direction):
                yield self._placement(_PositionedShape(shape, point))

    def _insert(
        self, name: str, neighbours: Sequence[_PositionedShape], direction: Points
    ) -> _PositionedShape | None:
        """Return the position of an object that is farthest in a direction (2,), or None."""
        best: tuple[float, _PositionedShape] | None = None
        for shape in self._shapes[name]:
            points = self._points(shape, neighbours, direction)
            if len(points):
                distance = round(float(product(points[:1], direction)[0]), _POINT_DIGITS)
                if best is None or distance > best[0]:
                    best = distance, _PositionedShape(shape, points[0])
        return None if best is None else best[1]

    def _points(
        self, shape: _Shape, neighbours: Sequence[_PositionedShape], direction: Points
    ) -> Points:
        """Return the feasible positions of an object beside its neighbours.

        Args:
            shape: object in its orientation.
            neighbours: objects that have a position.
            direction: (2,) unit vector; positions farthest in this direction come first.

        Returns:
            (n, 2) positions on the surface [m].
        """
        fit = shape.posture.fit
        blocks = [*shape.posture.blocks]
        for neighbour in neighbours:
            block = collision_positions(
                neighbour.shape.footprint, shape.footprint, spacing=self._spacing
            )
            blocks.append(block.translate(neighbour.point))
        outlines = [polygon.vertices for polygon in (fit, *blocks)]
        points = np.concatenate([*outlines, convex.crossings(outlines)])
        points = np.unique(np.round(points, _POINT_DIGITS), axis=0)
        is_feasible = fit.depth(points) >= -INSIDE_TOLERANCE
        for block in blocks:
            is_feasible[is_feasible] = block.depth(points[is_feasible]) <= INSIDE_TOLERANCE
        points = points[is_feasible]
        for avoided_point in self._avoided_points:
            points = points[norms(points - avoided_point) > _AVOIDANCE_DISTANCE]
        distances = (
            np.round(product(points, direction), _POINT_DIGITS) if len(points) else np.zeros(0)
        )
        return points[np.lexsort((points[:, 1], points[:, 0], -distances))]

    def _placement(self, positioned: _PositionedShape) -> Placement:
        """Return the placement of an object with a position."""
        x, y = positioned.point.tolist()
        posture = positioned.shape.posture
        support_from_object = self._surface.support_from_surface @ posture.at(positioned.point)
        name = f"packed at ({x:.3f}, {y:.3f}), {posture.name}"
        return Placement(self._surface.support, support_from_object, name)

    def _match_shape(self, name: str, placement: Placement) -> _PositionedShape:
        """Return an object with the orientation and position of an earlier placement."""
        pose = self._surface.support_from_surface.inverse() @ placement.support_from_object
        shape = min(
            self._shapes[name],
            key=lambda candidate: pose.distance(candidate.posture.at(pose.translation[:2])),
        )
        return _PositionedShape(shape, np.asarray(pose.translation[:2]))


def _size(shapes: Sequence[_Shape]) -> tuple[float, float]:
    """Return the sides of an object's bounding rectangle, shorter first [m], or infinity."""
    if not shapes:
        return math.inf, math.inf
    vertices = shapes[0].footprint.vertices
    sides = sorted((vertices.max(axis=0) - vertices.min(axis=0)).tolist())
    return sides[0], sides[1]
