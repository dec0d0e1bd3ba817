"""Packings: places for several objects in one region, chosen together.

Objects are inserted one after the other. Each goes to the point that is farthest in one direction,
among the corners of the polygons in which it fits and the points where these cross, as
:mod:`tmkit.manipulation.placements.sampling` places one object. The order and the direction vary
from packing to packing; objects that did not fit come earlier next time ("squeaky wheel"
optimisation; Joslin & Clements 1999).

Invariants: each object's outline lies in the region and keeps the spacing to the others. Equal
arguments and generators in equal states give equal packings.
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
from tmkit.motion.regions.polygons import ConvexPolygon, blocking
from tmkit.motion.regions.solids import collision_solids, outline
from tmkit.motion.regions.surfaces import SupportSurface, region_surface
from tmkit.robots import Manipulator

_AVOIDED = 0.01
"""Distance to a place that an object avoids [m]."""

_POINT_DIGITS = 9
"""Decimals to which points are rounded [m]."""

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Shape:
    """An object as it could stand in the region.

    Attributes:
        posture: orientation, with the positions at which it fits.
        footprint: outline around the origin.
    """

    posture: Posture
    footprint: ConvexPolygon


@dataclass(frozen=True, eq=False)
class _Placed:
    """An object that has a place.

    Attributes:
        shape: the object in its orientation.
        point: (2,) position.
    """

    shape: _Shape
    point: Points


class RegionPacker:
    """Packs objects into one region.

    Args:
        scene: the scene. Its objects in the region are obstacles, but for those that are packed.
        objects: frames of the objects that are packed.
        region: frame of the region.
        q: (n_joints,) configuration; None where no joint is between the frames.
        manipulator: the arm, whose links are no obstacles, and which fills the region from its far
            side.

    Raises:
        SceneError: if the frame is no region, or an object cannot rest.
        UnknownNameError: if a frame does not exist.
    """

    def __init__(
        self,
        scene: SceneGraph,
        objects: Sequence[str],
        region: str,
        *,
        q: ArrayLike | None,
        manipulator: Manipulator,
    ) -> None:
        self.objects = tuple(objects)
        surface = region_surface(scene, region, q=q)
        self._surface = surface
        settings = PlacementSettings()
        self._spacing = settings.spacing
        self._shapes: dict[str, tuple[_Shape, ...]] = {}
        for name in self.objects:
            bare = scene
            for other in self.objects:
                if other != name and other in bare:
                    bare = bare.remove_frame(other, subtree=True)
            solids = collision_solids(bare, name, q)
            postures = postures_on(bare, name, surface, q, manipulator, settings, parts=())
            shapes = (_Shape(posture, outline(solids, posture.rotation)) for posture in postures)
            unique = {
                np.round(shape.footprint.vertices, _POINT_DIGITS).tobytes(): shape
                for shape in reversed([*shapes])
            }
            self._shapes[name] = tuple(reversed(unique.values()))
        self._sizes = {name: _size(shapes) for name, shapes in self._shapes.items()}
        self._avoided = np.zeros((0, 2))
        self._away = self._away_from(scene, manipulator, surface, q)

    @staticmethod
    def _away_from(
        scene: SceneGraph, manipulator: Manipulator, surface: SupportSurface, q: ArrayLike | None
    ) -> Points:
        """Return the direction (2,) in the surface away from the base of an arm."""
        if scene.root(manipulator.base) != scene.root(surface.support):
            return np.array([1.0, 0.0])
        base = surface.support_from_surface.inverse() @ scene.pose(
            manipulator.base, relative_to=surface.support, q=q
        )
        direction = surface.polygon.centroid - base.translation[:2]
        length = norm(direction)
        return np.asarray(direction / length) if length > INSIDE_TOLERANCE else np.array([1.0, 0.0])

    def avoid(self, places: Sequence[Placement]) -> None:
        """Keep all objects a centimetre away from places."""
        support_from_surface = self._surface.support_from_surface
        points = [
            (support_from_surface.inverse() @ place.support_from_object).translation[:2]
            for place in places
        ]
        self._avoided = np.array(points).reshape(-1, 2)

    def packings(self, rng: np.random.Generator, *, count: int) -> Iterator[dict[str, Placement]]:
        """Yield packings, each with the places of the objects that fit into it, in the order of insertion.

        The first inserts the objects in the given order. O(n^3) each for n objects.

        Args:
            rng: random generator of the variation.
            count: number of packings.
        """
        priority = np.arange(len(self.objects), dtype=float)
        direction = self._away
        for number in range(count):
            order = np.argsort(priority, kind="stable").tolist()
            placed: dict[str, _Placed] = {}
            too_large: list[tuple[float, float]] = []
            for index in order:
                name = self.objects[index]
                width, depth = self._sizes[name]
                is_larger = any(width >= least[0] and depth >= least[1] for least in too_large)
                found = None if is_larger else self._insert(name, [*placed.values()], direction)
                if found is not None:
                    placed[name] = found
                    continue
                priority[index] -= len(order) / 4.0
                if not is_larger:
                    too_large.append((width, depth))
            yield {name: self._placement(each) for name, each in placed.items()}
            priority += rng.normal(0.0, 1.0 + len(order) / 16.0, len(order))
            if number % 2:
                direction = circle([rng.uniform(-np.pi, np.pi)])[0]

    def place(self, name: str, others: Mapping[str, Placement]) -> Iterator[Placement]:
        """Yield places of one object beside others that have theirs, those far from the arm first."""
        placed = [
            self._placed(other, placement) for other, placement in others.items() if other != name
        ]
        for shape in self._shapes[name]:
            for point in self._points(shape, placed, self._away):
                yield self._placement(_Placed(shape, point))

    def _insert(self, name: str, others: Sequence[_Placed], direction: Points) -> _Placed | None:
        """Return the place of an object that is farthest in a direction; None if it does not fit."""
        best: tuple[float, _Placed] | None = None
        for shape in self._shapes[name]:
            points = self._points(shape, others, direction)
            if len(points):
                reach = round(float(product(points[:1], direction)[0]), _POINT_DIGITS)
                if best is None or reach > best[0]:
                    best = reach, _Placed(shape, points[0])
        return None if best is None else best[1]

    def _points(self, shape: _Shape, placed: Sequence[_Placed], direction: Points) -> Points:
        """Return the points (n, 2) at which an object fits beside others, the farthest in a direction first."""
        fit = shape.posture.fit
        blocks = [*shape.posture.blocks]
        blocks += [
            blocking(other.shape.footprint, shape.footprint, spacing=self._spacing).moved(
                other.point
            )
            for other in placed
        ]
        outlines = [polygon.vertices for polygon in (fit, *blocks)]
        points = np.concatenate([*outlines, convex.crossings(outlines)])
        points = np.unique(np.round(points, _POINT_DIGITS), axis=0)
        kept = fit.depth(points) >= -INSIDE_TOLERANCE
        for block in blocks:
            kept[kept] = block.depth(points[kept]) <= INSIDE_TOLERANCE
        points = points[kept]
        for avoided in self._avoided:
            points = points[norms(points - avoided) > _AVOIDED]
        distances = (
            np.round(product(points, direction), _POINT_DIGITS) if len(points) else np.zeros(0)
        )
        return points[np.lexsort((points[:, 1], points[:, 0], -distances))]

    def _placement(self, placed: _Placed) -> Placement:
        x, y = placed.point.tolist()
        posture = placed.shape.posture
        support_from_object = self._surface.support_from_surface @ posture.at(placed.point)
        return Placement(
            self._surface.support,
            support_from_object,
            f"packed at ({x:.3f}, {y:.3f}), {posture.name}",
        )

    def _placed(self, name: str, placement: Placement) -> _Placed:
        """Return an object at a place that was found before."""
        pose = self._surface.support_from_surface.inverse() @ placement.support_from_object
        shape = min(
            self._shapes[name],
            key=lambda each: pose.distance(each.posture.at(pose.translation[:2])),
        )
        return _Placed(shape, np.asarray(pose.translation[:2]))


def _size(shapes: Sequence[_Shape]) -> tuple[float, float]:
    """Return the lesser and the greater side of the rectangle around an object; none for one without a place."""
    if not shapes:
        return math.inf, math.inf
    vertices = shapes[0].footprint.vertices
    sides = sorted((vertices.max(axis=0) - vertices.min(axis=0)).tolist())
    return sides[0], sides[1]
