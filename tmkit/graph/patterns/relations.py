"""The relations that patterns are made of: how two frames stand to each other, each within a tolerance.

Tolerances are metres, and radians where said. Directions and places are those at the configuration,
in the axes of the root; where a relation speaks of above and below, the direction is the search's
``up``. A relation of places does not hold between frames of different trees. None depends on how
the world as a whole, with ``up``, is placed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from tmkit._core import Pose, Shape
from tmkit._support.initialization import initialize
from tmkit.errors import SceneError
from tmkit.graph.patterns.pattern import Relation
from tmkit.graph.patterns.placed import PlacedScene

Axis = tuple[float, float, float]


@dataclass(frozen=True)
class _BuiltIn(Relation):
    """A relation whose tolerances are checked; one of places does not hold between frames of different trees."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name.endswith("tolerance") and not 0.0 <= value < math.inf:
                raise SceneError(
                    f"{type(self).__name__}: {entry.name} is a finite number from 0, not {value}"
                )

    def holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        """Return whether the relation holds between two frames."""
        return (not self.is_geometric or placed.are_related(a, b)) and self._holds(placed, a, b)

    @abstractmethod
    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        """Tell the same of two frames, of one tree if the relation is one of places."""


@dataclass(frozen=True)
class Touching(_BuiltIn):
    """The nearest points of ``a`` and ``b`` are at most ``tolerance`` metres apart; what overlaps touches."""

    tolerance: float = field(default=0.001, kw_only=True)
    is_symmetric = True

    def holds_with(
        self, placed: PlacedScene, frame: str, others: Sequence[str], *, frame_is_a: bool
    ) -> list[bool]:
        """Return for each of several frames whether it touches ``frame``."""
        del frame_is_a  # the same both ways
        near = placed.are_near(frame, others, limit=self.tolerance)
        return [
            is_near and self.holds(placed, frame, other)
            for other, is_near in zip(others, near, strict=True)
        ]

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return placed.distance(a, b, limit=self.tolerance) <= self.tolerance


@dataclass(frozen=True)
class Above(_BuiltIn):
    """``a`` is over ``b``: no point of it is below b's highest, and their shadows overlap; both up to ``tolerance``."""

    tolerance: float = field(default=0.001, kw_only=True)

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        if placed.heights(a)[0] < placed.heights(b)[1] - self.tolerance:
            return False
        return placed.horizontal_distance(a, b) <= self.tolerance


@dataclass(frozen=True)
class RestsOn(_BuiltIn):
    """``a`` stands on ``b``.

    Its lowest point is as high as b's highest, up to ``tolerance``, and the middle of ``a`` is over
    b's shadow.
    """

    tolerance: float = field(default=0.001, kw_only=True)

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        if abs(placed.heights(a)[0] - placed.heights(b)[1]) > self.tolerance:
            return False
        return placed.horizontal_distance_of_center(a, b) <= self.tolerance


@dataclass(frozen=True)
class At(_BuiltIn):
    """Frame ``a`` is at ``pose``, which is b_from_a, up to ``tolerance`` metres and ``rotation_tolerance`` radians."""

    pose: Pose
    tolerance: float = field(default=0.001, kw_only=True)
    rotation_tolerance: float = field(default=0.01, kw_only=True)

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        metres, radians = placed.pose(a, relative_to=b).distance(self.pose)
        return metres <= self.tolerance and radians <= self.rotation_tolerance


@dataclass(frozen=True)
class Distance(_BuiltIn):
    """The origins of frames ``a`` and ``b`` are between ``lower`` and ``upper`` metres apart."""

    lower: float = field(default=0.0, kw_only=True)
    upper: float = field(default=math.inf, kw_only=True)
    is_symmetric = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.lower <= self.upper:
            raise SceneError(f"Distance: a range from 0 upwards, not {self.lower} to {self.upper}")

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        origin_a, origin_b = (placed.kinematics.pose(frame).translation for frame in (a, b))
        return self.lower <= float(np.linalg.norm(origin_a - origin_b)) <= self.upper


@dataclass(frozen=True)
class _OfAxes(_BuiltIn):
    axis_a: Axis = field(default=(0.0, 0.0, 1.0), kw_only=True)
    axis_b: Axis = field(default=(0.0, 0.0, 1.0), kw_only=True)
    tolerance: float = field(default=0.01, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("axis_a", "axis_b"):
            axis = tuple(float(value) for value in getattr(self, name))
            if len(axis) != 3 or not 1e-9 < math.hypot(*axis) < math.inf:
                raise SceneError(
                    f"{type(self).__name__}: {name} is a direction of three numbers, not {axis}"
                )
            initialize(self, **{name: axis})

    @property
    def is_symmetric(self) -> bool:
        """It is, for the same axis of both."""
        return self.axis_a == self.axis_b

    def _angle(self, placed: PlacedScene, a: str, b: str) -> float:
        """Return the angle between the axes as lines, 0 to a right angle."""
        x, y = placed.direction(a, self.axis_a), placed.direction(b, self.axis_b)
        return math.atan2(float(np.linalg.norm(np.cross(x, y))), abs(float(x @ y)))


@dataclass(frozen=True)
class Parallel(_OfAxes):
    """``axis_a`` of frame ``a`` and ``axis_b`` of ``b`` are parallel, either way round, up to ``tolerance`` radians."""

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return self._angle(placed, a, b) <= self.tolerance


@dataclass(frozen=True)
class Perpendicular(_OfAxes):
    """``axis_a`` of frame ``a`` and ``axis_b`` of ``b`` are at a right angle, up to ``tolerance`` radians."""

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return math.pi / 2 - self._angle(placed, a, b) <= self.tolerance


@dataclass(frozen=True)
class EqualDimensions(_BuiltIn):
    """``a`` and ``b`` have as many shapes, in order of the same kinds, and all dimensions equal up to ``tolerance``.

    A box may be turned over: its dimensions are compared by size. Of meshes, clouds and fields the
    bounds count.
    """

    tolerance: float = field(default=0.001, kw_only=True)
    is_symmetric = True
    is_geometric = False

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        shapes_a, shapes_b = (
            [attached.shape for attached in placed.scene.shapes(frame)] for frame in (a, b)
        )
        return len(shapes_a) == len(shapes_b) and all(
            x.kind == y.kind and bool(np.all(np.abs(_sizes(x) - _sizes(y)) <= self.tolerance))
            for x, y in zip(shapes_a, shapes_b, strict=True)
        )


@dataclass(frozen=True)
class ChildOf(_BuiltIn):
    """Frame ``b`` is the parent of frame ``a``."""

    is_geometric = False

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return placed.scene.parent(a) == b


@dataclass(frozen=True)
class AncestorOf(_BuiltIn):
    """Frame ``b`` is a descendant of frame ``a``."""

    is_geometric = False

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return a in placed.scene.ancestors(b)


def _sizes(shape: Shape) -> NDArray[np.float64]:
    if shape.kind in ("box", "mesh", "point_cloud", "height_field"):
        lower, upper = shape.bounds
        return np.sort(upper - lower)
    return np.array(shape.dimensions)
