"""Path constraints: what a frame keeps along a whole path.

Three kinds, with the words of MoveIt: an *orientation* keeps an axis of a frame within an angle of
a direction, as a cup that must not spill. A *line* or a *plane* keeps a point of a frame within a
distance, as a tool that wipes a table. Directions and points are in the root of the frame's tree.

The core's search projects onto constraints (:class:`tmkit.motion.RrtConnect`). :func:`path_fault`
checks a path, and shares nothing with the search.

Invariants: a constraint depends on the poses of its frame alone; equal constraints are the same in
    plan files.
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
_KEYS["plane"] = _KEYS["line"]
_UPRIGHT_CLASSES = ("upright", "filled")
_UPRIGHT_ATTRIBUTE, _UPRIGHT_TOLERANCE = "upright_tolerance", math.radians(10.0)
_LEAST_TOLERANCE = 1e-4  # metres or radians; a finer path would need too many configurations


@dataclass(frozen=True)
class PathConstraint:
    """What a frame keeps along a path.

    * ``"orientation"``: ``axis`` of the frame stays within ``tolerance`` radians of ``direction``.
    * ``"line"``: the point ``offset`` of the frame stays within ``tolerance`` metres of the line
      through ``point`` along ``direction``.
    * ``"plane"``: the point stays within ``tolerance`` metres of the plane through ``point`` with
      normal ``direction``.

    Args:
        kind: one of these words.
        frame: the frame.
        tolerance: radians or metres, at least 1e-4.
        axis: (3,) vector of the frame, of any length; z by default.
        offset: (3,) metres in the frame; its origin by default.
        direction: (3,) vector of the root of the frame's tree, of any length; z by default.
        point: (3,) metres in the root.

    Raises:
        UnknownNameError: no such kind.
        ConfigurationError: a tolerance or vector that makes no sense.
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
        initialize(self, tolerance=plain_number(self.tolerance, "tolerance"))
        most = math.pi if self.kind == "orientation" else math.inf
        if not (_LEAST_TOLERANCE <= self.tolerance <= most and math.isfinite(self.tolerance)):
            known = (
                "an angle from 1e-4 to pi radians"
                if self.kind == "orientation"
                else "at least 1e-4 m, and finite"
            )
            hint = degrees_hint(self.tolerance) if self.kind == "orientation" else ""
            raise ConfigurationError(f"tolerance must be {known}, not {self.tolerance:g}{hint}")
        for name in ("axis", "offset", "direction", "point"):
            vector = plain_numbers(getattr(self, name), name)
            length = float(norms(vector)) if vector.shape == (3,) else math.nan
            is_direction = name in ("axis", "direction")
            if not math.isfinite(length) or (is_direction and length < 1e-9):
                kind = "three finite numbers, not all 0" if is_direction else "three finite numbers"
                raise ConfigurationError(f"{name} must be {kind}, not {getattr(self, name)}")
            if is_direction and abs(length - 1.0) > 1e-12:  # a unit vector keeps its bits
                vector = vector / length
            initialize(self, **{name: tuple(vector.tolist())})

    def values(self, scene: SceneGraph, q: ArrayLike) -> NDArray[np.float64]:
        """Return the angle or distance that ``tolerance`` bounds, radians or metres.

        Args:
            scene: the scene.
            q: (m, n_joints) configurations.

        Returns:
            (m,) values, 0 where the constraint is kept exactly.

        Raises:
            UnknownNameError: the scene has no such frame.
        """
        poses = scene.pose_batch(self.frame, q=q)
        own = np.array(self.axis if self.kind == "orientation" else self.offset)
        turn = 2.0 * np.cross(poses[:, 3:6], own)  # by the quaternion
        own = own + poses[:, 6:] * turn + np.cross(poses[:, 3:6], turn)
        direction = np.array(self.direction)
        if self.kind == "orientation":
            sines, cosines = norms(np.cross(own, direction)), np.sum(own * direction, axis=1)
            return np.array(
                [atan2(*pair) for pair in zip(sines.tolist(), cosines.tolist(), strict=True)]
            )
        away = poses[:, :3] + own - self.point
        along = np.sum(away * direction, axis=1)
        return np.abs(along) if self.kind == "plane" else norms(away - along[:, None] * direction)

    def fault(self, scene: SceneGraph, q: ArrayLike) -> str | None:
        """Return in words by how much a configuration leaves the constraint; None if it keeps it.

        Args:
            scene: the scene.
            q: (n_joints,) configuration, or (m, n_joints) of which the worst counts.
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
        is_angle = self.kind == "orientation"
        most = (
            f"{math.degrees(self.tolerance):.4g} degrees"
            if is_angle
            else f"{self.tolerance * 1000:.4g} mm"
        )
        return f"{self.kind} of '{self.frame}' within {most}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as plan files have them."""
        vectors = {key: list(getattr(self, key)) for key in _KEYS[self.kind]}
        return {"kind": self.kind, "frame": self.frame, "tolerance": self.tolerance, **vectors}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "constraint") -> PathConstraint:
        """Create a constraint from the values of :meth:`to_dict`.

        Args:
            values: the values.
            source: the file, for messages.

        Raises:
            FileFormatError: a value that is missing or does not fit.
        """
        return constraint_of_node(JsonNode(dict(values), source))


def constraint_of_node(node: JsonNode) -> PathConstraint:
    """Return the constraint that a node of a JSON document describes."""
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
    """Return what an object keeps while a hand carries it, in any plan.

    An object of class ``upright`` or ``filled`` keeps its z axis within 10 degrees of the root's;
    its attribute ``upright_tolerance`` is another angle, in radians.

    Args:
        scene: the scene.
        object: frame of the object; None for an empty hand.

    Raises:
        SceneError: the attribute is no angle.
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
    """Return in words how far a path leaves its constraints; None if it keeps them.

    Args:
        scene: the version of the scene in which the path is.
        path: (k, n_joints) configurations, joined by straight joint motions.
        constraints: what it must keep.
        resolution: largest step of any joint between two samples, radians or metres; smaller for
            fine tolerances.

    Raises:
        UnknownNameError: the scene has no frame of that name.
    """
    rows = np.atleast_2d(plain_numbers(path, "path"))
    for constraint in constraints:
        samples = interpolated(rows, min(resolution, 0.05 * math.sqrt(constraint.tolerance)))
        if (fault := constraint.fault(scene, samples)) is not None:
            return fault
    return None


def interpolated(path: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return configurations (m, n_joints) along the straight motions of a path, no joint more than ``step`` apart."""
    counts = np.ceil(np.max(np.abs(np.diff(path, axis=0)), axis=1, initial=0.0) / step).astype(int)
    parts = [
        np.linspace(a, b, count + 1)[:-1]
        for (a, b), count in zip(pairwise(path), counts, strict=True)
    ]
    return np.concatenate([*parts, path[-1:]])
