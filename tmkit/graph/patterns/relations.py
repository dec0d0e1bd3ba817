"""Built-in relations between two frames of a pattern, each within a tolerance.

Tolerances are lengths [m], or angles [rad] where stated. Directions and positions are those at the
configuration, in the axes of the root. The vertical direction is the ``up`` of the search. A
geometric relation does not hold between frames of different trees. All relations are invariant
under motions of the whole world together with ``up``.
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
    """Relation with validated tolerances; a geometric one requires frames of one tree."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name.endswith("tolerance") and not 0.0 <= value < math.inf:
                raise SceneError(
                    f"{type(self).__name__}: {entry.name} must be finite and at least 0,"
                    f" not {value}"
                )

    def holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        """Return whether the relation holds between two frames."""
        return (not self.is_geometric or placed.are_related(a, b)) and self._holds(placed, a, b)

    @abstractmethod
    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        """Return whether the relation holds; frames of a geometric relation are in one tree."""


@dataclass(frozen=True)
class Touching(_BuiltIn):
    """The shapes of ``a`` and ``b`` overlap or have a distance of at most ``tolerance`` [m]."""

    tolerance: float = field(default=0.001, kw_only=True)
    is_symmetric = True

    def holds_with(
        self, placed: PlacedScene, frame: str, others: Sequence[str], *, frame_is_a: bool
    ) -> list[bool]:
        """Return for each of several frames whether it touches ``frame``."""
        del frame_is_a  # the relation is symmetric
        are_near = placed.are_near(frame, others, limit=self.tolerance)
        return [
            is_near and self.holds(placed, frame, other)
            for other, is_near in zip(others, are_near, strict=True)
        ]

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return placed.distance(a, b, limit=self.tolerance) <= self.tolerance


@dataclass(frozen=True)
class Above(_BuiltIn):
    """``a`` is above ``b``, up to ``tolerance``.

    No point of ``a`` is below the highest of ``b``, and their projections along ``up`` overlap.
    """

    tolerance: float = field(default=0.001, kw_only=True)

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        if placed.heights(a)[0] < placed.heights(b)[1] - self.tolerance:
            return False
        return placed.horizontal_distance(a, b) <= self.tolerance


@dataclass(frozen=True)
class RestsOn(_BuiltIn):
    """``a`` rests on ``b``, up to ``tolerance``.

    The lowest point of ``a`` is as high as the highest of ``b``, and the center of ``a`` is above
    the projection of ``b`` along ``up``.
    """

    tolerance: float = field(default=0.001, kw_only=True)

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        if abs(placed.heights(a)[0] - placed.heights(b)[1]) > self.tolerance:
            return False
        return placed.horizontal_distance_of_center(a, b) <= self.tolerance


@dataclass(frozen=True)
class At(_BuiltIn):
    """Frame ``a`` is at ``pose``, which is b_from_a, up to two tolerances.

    Args:
        pose: b_from_a.
        tolerance: largest translation from ``pose`` [m].
        rotation_tolerance: largest rotation from ``pose`` [rad].
    """

    pose: Pose
    tolerance: float = field(default=0.001, kw_only=True)
    rotation_tolerance: float = field(default=0.01, kw_only=True)

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        translation, rotation = placed.pose(a, relative_to=b).distance(self.pose)
        return translation <= self.tolerance and rotation <= self.rotation_tolerance


@dataclass(frozen=True)
class Distance(_BuiltIn):
    """Distance between ``lower`` and ``upper`` [m] of the origins of frames ``a`` and ``b``."""

    lower: float = field(default=0.0, kw_only=True)
    upper: float = field(default=math.inf, kw_only=True)
    is_symmetric = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.lower <= self.upper:
            raise SceneError(
                f"Distance: expected 0 <= lower <= upper, not {self.lower} to {self.upper}"
            )

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
                    f"{type(self).__name__}: {name} must be a direction of three numbers,"
                    f" not {axis}"
                )
            initialize(self, **{name: axis})

    @property
    def is_symmetric(self) -> bool:
        """True if both frames have the same axis."""
        return self.axis_a == self.axis_b

    def _angle(self, placed: PlacedScene, a: str, b: str) -> float:
        """Return the angle between the axes as undirected lines [rad], from 0 to pi/2."""
        x, y = placed.direction(a, self.axis_a), placed.direction(b, self.axis_b)
        return math.atan2(float(np.linalg.norm(np.cross(x, y))), abs(float(x @ y)))


@dataclass(frozen=True)
class Parallel(_OfAxes):
    """``axis_a`` of ``a`` and ``axis_b`` of ``b`` are parallel, up to ``tolerance`` [rad].

    Opposite directions are parallel too.
    """

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return self._angle(placed, a, b) <= self.tolerance


@dataclass(frozen=True)
class Perpendicular(_OfAxes):
    """``axis_a`` of ``a`` and ``axis_b`` of ``b`` are perpendicular, up to ``tolerance`` [rad]."""

    def _holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        return math.pi / 2 - self._angle(placed, a, b) <= self.tolerance


@dataclass(frozen=True)
class EqualDimensions(_BuiltIn):
    """Equal kinds and dimensions of the shapes of ``a`` and ``b``, up to ``tolerance`` [m].

    Shapes are compared in order. Dimensions of a box are compared by size, so it may be turned.
    Meshes, clouds and fields are compared by their bounds.
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
