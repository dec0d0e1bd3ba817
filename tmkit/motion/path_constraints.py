"""Path constraints on a frame along a whole path.

The three kinds correspond to MoveIt's orientation and position constraints. An *orientation* keeps
an axis of a frame within an angle of a direction, for a cup that must not spill. A *line* or a
*plane* keeps a point of a frame within a distance, for a tool that wipes a table. Directions and
points are in the root of the frame's tree.

The core's search projects onto constraints (:class:`tmkit.motion.RrtConnect`). :func:`path_fault`
checks a path independently of the search.

Invariants: a constraint depends only on the poses of its frame. Equal constraints have equal
representations in plan files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import check_argument, degrees_hint
from tmkit._support.elementary import atan2, norms
from tmkit._support.initialization import initialize
from tmkit.errors import ConfigurationError, SceneError, UnknownNameError
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import SceneGraph
from tmkit.spatial.plain import plain_number, plain_numbers

_KEYS = {"orientation": ("axis", "direction"), "line": ("offset", "point", "direction")}
"""Keys of each kind of constraint in plan files, after kind, frame and tolerance."""
_KEYS["plane"] = _KEYS["line"]

_UPRIGHT_CLASSES = ("upright", "filled")
"""Classes of objects that a hand carries upright."""

_UPRIGHT_ATTRIBUTE = "upright_tolerance"
"""Attribute of an object with its own tolerance [rad]."""

_UPRIGHT_TOLERANCE = math.radians(10.0)
"""Default tolerance of carried upright objects [rad]."""

_MIN_TOLERANCE = 1e-4
"""Smallest tolerance [rad or m]: a smaller one would require too many configurations."""

_MIN_DIRECTION_LENGTH = 1e-9
"""Length below which a vector has no direction."""


@dataclass(frozen=True)
class PathConstraint:
    """Constraint on a frame along a path.

    * ``"orientation"``: ``axis`` of the frame stays within ``tolerance`` [rad] of ``direction``.
    * ``"line"``: the point ``offset`` of the frame stays within ``tolerance`` [m] of the line
      through ``point`` along ``direction``.
    * ``"plane"``: the point stays within ``tolerance`` [m] of the plane through ``point`` with
      normal ``direction``.

    Args:
        kind: one of these kinds.
        frame: constrained frame.
        tolerance: allowed angle [rad] or distance [m], at least 1e-4.
        axis: (3,) vector in the frame, of any length. Defaults to z.
        offset: (3,) point in the frame [m]. Defaults to its origin.
        direction: (3,) vector in the root of the frame's tree, of any length. Defaults to z.
        point: (3,) point in the root [m].

    Raises:
        UnknownNameError: if the kind is unknown.
        ConfigurationError: if the tolerance is out of range, or a vector is not finite or has no
            direction.
    """

    kind: str
    frame: str
    _: KW_ONLY
    tolerance: float
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_argument(self.frame, str, "frame", function="PathConstraint")
        if self.kind not in _KEYS:
            raise UnknownNameError.of("kind of path constraint", self.kind, _KEYS)
        is_angle = self.kind == "orientation"
        unit = "rad" if is_angle else "m"
        initialize(self, tolerance=plain_number(self.tolerance, "tolerance", unit))
        largest = math.pi if is_angle else math.inf
        if not (_MIN_TOLERANCE <= self.tolerance <= largest and math.isfinite(self.tolerance)):
            expected = "at least 1e-4 m, and finite"
            if is_angle:
                expected = "an angle from 1e-4 to pi radians"
            hint = degrees_hint(self.tolerance) if is_angle else ""
            raise ConfigurationError(f"tolerance must be {expected}, not {self.tolerance:g}{hint}")
        for name in ("axis", "offset", "direction", "point"):
            is_direction = name in ("axis", "direction")
            vector = plain_numbers(getattr(self, name), name, "1" if is_direction else "m")
            length = float(norms(vector)) if vector.shape == (3,) else math.nan
            if not math.isfinite(length) or (is_direction and length < _MIN_DIRECTION_LENGTH):
                expected = "three finite numbers" + (", not all 0" if is_direction else "")
                raise ConfigurationError(f"{name} must be {expected}, not {getattr(self, name)}")
            # A unit vector is stored unchanged.
            if is_direction and abs(length - 1.0) > 1e-12:
                vector = vector / length
            initialize(self, **{name: tuple(vector.tolist())})

    def values(self, scene: SceneGraph, q: ArrayLike) -> NDArray[np.float64]:
        """Return the angle [rad] or distance [m] that ``tolerance`` bounds.

        Args:
            scene: the scene.
            q: (m, n_joints) configurations.

        Returns:
            (m,) values, 0 where the constraint is satisfied exactly.

        Raises:
            UnknownNameError: if the scene has no such frame.
        """
        poses = scene.pose_batch(self.frame, q=q)
        local = np.array(self.axis if self.kind == "orientation" else self.offset)
        # Rotate the vector by the quaternions of the frame.
        cross = 2.0 * np.cross(poses[:, 3:6], local)
        vectors = local + poses[:, 6:] * cross + np.cross(poses[:, 3:6], cross)
        direction = np.array(self.direction)
        if self.kind == "orientation":
            sines = norms(np.cross(vectors, direction))
            cosines = np.sum(vectors * direction, axis=1)
            return np.array(
                [atan2(*pair) for pair in zip(sines.tolist(), cosines.tolist(), strict=True)]
            )
        offsets = poses[:, :3] + vectors - self.point
        heights = np.sum(offsets * direction, axis=1)
        if self.kind == "plane":
            return np.asarray(np.abs(heights))
        return np.asarray(norms(offsets - heights[:, None] * direction))

    def fault(self, scene: SceneGraph, q: ArrayLike) -> str | None:
        """Return a description of the largest violation, or None without a violation.

        Args:
            scene: the scene.
            q: (n_joints,) configuration, or (m, n_joints).
        """
        worst = float(np.max(self.values(scene, np.atleast_2d(plain_numbers(q, "q"))), initial=0.0))
        if worst <= self.tolerance:
            return None
        if self.kind == "orientation":
            degrees = (
                f"{math.degrees(worst):.1f} degrees of {math.degrees(self.tolerance):.4g} allowed"
            )
            return f"'{self.frame}' tilts by {degrees}"
        return (
            f"'{self.frame}' is {worst * 1000:.1f} mm off its {self.kind} of"
            f" {self.tolerance * 1000:.4g} allowed"
        )

    def __str__(self) -> str:
        tolerance = f"{self.tolerance * 1000:.4g} mm"
        if self.kind == "orientation":
            tolerance = f"{math.degrees(self.tolerance):.4g} degrees"
        return f"{self.kind} of '{self.frame}' within {tolerance}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values in the format of plan files."""
        vectors = {key: list(getattr(self, key)) for key in _KEYS[self.kind]}
        return {"kind": self.kind, "frame": self.frame, "tolerance": self.tolerance, **vectors}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "constraint") -> PathConstraint:
        """Create a constraint from the values of :meth:`to_dict`.

        Args:
            values: the values.
            source: name of the file in error messages.

        Raises:
            FileFormatError: if a value is missing or invalid.
        """
        return read_constraint(JsonNode(dict(values), source))


def read_constraint(node: JsonNode) -> PathConstraint:
    """Return the constraint of a node of a JSON document."""
    kind = node.get("kind").one_of(list(_KEYS))
    node.require_keys_among("kind", "frame", "tolerance", *_KEYS[kind])
    vectors: dict[str, Any] = {key: node.get(key).numbers(3) for key in _KEYS[kind]}
    try:
        return PathConstraint(
            kind, node.get("frame").name(), tolerance=node.get("tolerance").number(), **vectors
        )
    except ConfigurationError as error:
        raise node.error(str(error)) from None


def carrying_constraints(scene: SceneGraph, object: str | None) -> tuple[PathConstraint, ...]:
    """Return the constraints of every path on which a hand carries an object.

    The z axis of an object of class ``upright`` or ``filled`` stays within 10 degrees of the root's
    z axis. The object's attribute ``upright_tolerance`` replaces this angle [rad].

    Args:
        scene: the scene.
        object: frame of the object; None for an empty hand.

    Raises:
        SceneError: if the attribute is not an angle.
    """
    if object is None or not set(_UPRIGHT_CLASSES) & set(scene.classes(object)):
        return ()
    tolerance = scene.attributes(object).get(_UPRIGHT_ATTRIBUTE, _UPRIGHT_TOLERANCE)
    try:
        return (PathConstraint("orientation", object, tolerance=tolerance),)
    except (ConfigurationError, TypeError, ValueError) as error:
        raise SceneError(
            f"attribute '{_UPRIGHT_ATTRIBUTE}' of '{object}': {error}", frame=object
        ) from None


def path_fault(
    scene: SceneGraph,
    path: ArrayLike,
    constraints: Iterable[PathConstraint],
    *,
    resolution: float = 0.003,
) -> str | None:
    """Return a description of the largest violation of a path constraint, or None.

    Args:
        scene: scene of the path.
        path: (k, n_joints) configurations, connected by straight joint motions.
        constraints: path constraints. The first one that is violated is described.
        resolution: largest step of any joint between two samples [rad or m]. Smaller steps are used
            for small tolerances.

    Raises:
        UnknownNameError: if the scene does not have the frame of a constraint.
    """
    rows = np.atleast_2d(plain_numbers(path, "path"))
    for constraint in constraints:
        samples = interpolate_path(rows, min(resolution, 0.05 * math.sqrt(constraint.tolerance)))
        if (fault := constraint.fault(scene, samples)) is not None:
            return fault
    return None


def interpolate_path(path: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return configurations along the straight joint motions of a path.

    Args:
        path: (k, n_joints) configurations.
        step: largest step of any joint between two results [rad or m].

    Returns:
        (m, n_joints) configurations.
    """
    counts = np.ceil(np.max(np.abs(np.diff(path, axis=0)), axis=1, initial=0.0) / step).astype(int)
    parts = [
        np.linspace(a, b, count + 1)[:-1]
        for (a, b), count in zip(pairwise(path), counts, strict=True)
    ]
    return np.concatenate([*parts, path[-1:]])
