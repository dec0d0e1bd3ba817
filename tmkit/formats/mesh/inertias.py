"""Mass properties of solids of uniform density.

Used when a scene file gives only a mass. The formulas are the textbook integrals over each solid; a capsule is a
cylinder with two half balls, and a mesh the sum of the signed tetrahedra between its faces and the origin, which is
right when the mesh is closed and its faces look outwards. Kilograms, metres, kg m^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import dot, product
from tmkit.errors import ShapeError
from tmkit.graph import Inertia, Shape
from tmkit.spatial import Pose

Matrix = npt.NDArray[np.float64]


def solid_inertia(shape: Shape, mass: float) -> tuple[Matrix, Matrix]:
    """Return the mass properties of a uniform solid of a mass in kilograms.

    Returns:
        The centre of mass (3,) and the inertia about it (3, 3), both in the shape's axes.

    Raises:
        ShapeError: a mesh that encloses no volume, or a plane, a point cloud or a height field.
    """
    if shape.kind in ("plane", "point_cloud", "height_field"):
        raise ShapeError(f"a {shape.kind.replace('_', ' ')} has no mass of its own; give the frame an inertia")
    if shape.kind == "mesh":
        return _mesh(shape, mass)
    center = np.zeros(3)
    if shape.kind == "box":
        squares = np.square(shape.dimensions)
        return center, np.diag(mass / 12.0 * (squares.sum() - squares))
    if shape.kind == "sphere":
        return center, np.diag([0.4 * mass * shape.dimensions[0] * shape.dimensions[0]] * 3)
    radius, length = shape.dimensions
    radius2, length2 = radius * radius, length * length
    if shape.kind == "cylinder":
        across, along = mass * (radius2 / 4.0 + length2 / 12.0), mass * radius2 / 2.0
    elif shape.kind == "cone":
        center = np.array([0.0, 0.0, -length / 4.0])
        across, along = mass * (0.15 * radius2 + 0.0375 * length2), 0.3 * mass * radius2
    else:
        across, along = _capsule(radius, length, mass)
    return center, np.diag([across, across, along])


def _capsule(radius: float, length: float, mass: float) -> tuple[float, float]:
    """Return the moments of a capsule across and along its axis."""
    radius2, length2 = radius * radius, length * length
    tube, ball = math.pi * radius2 * length, 4.0 / 3.0 * math.pi * radius2 * radius
    tube_mass, ball_mass = mass * tube / (tube + ball), mass * ball / (tube + ball)
    along = tube_mass * radius2 / 2.0 + 0.4 * ball_mass * radius2
    across = tube_mass * (radius2 / 4.0 + length2 / 12.0)
    across += ball_mass * (0.4 * radius2 + length2 / 4.0 + 0.375 * length * radius)
    return across, along


def _mesh(shape: Shape, mass: float) -> tuple[Matrix, Matrix]:
    """Return the mass properties of a closed mesh."""
    corners = shape.vertices[shape.faces]
    middle = shape.vertices.mean(axis=0)  # integrals about a point inside lose fewer digits
    a, b, c = (corners[:, k] - middle for k in range(3))
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    lower, upper = shape.bounds
    if volume <= 1e-9 * float(np.prod(np.maximum(upper - lower, 1e-9))):
        raise ShapeError(
            "the mesh encloses no volume (open, or its faces look inwards), so a mass cannot be spread over it"
        )
    center = np.einsum("i,ij->j", volumes, a + b + c) / (4.0 * volume)
    total = a + b + c
    second = sum(np.einsum("i,ij,ik->jk", volumes, p, p) for p in (a, b, c, total)) / 20.0
    covariance = mass * (second / volume - np.outer(center, center))
    return center + middle, np.trace(covariance) * np.eye(3) - covariance


def united_inertia(parts: Sequence[tuple[Shape, Pose, float]]) -> Inertia:
    """Return the inertia, in the frame, of uniform solids as one; parts have poses frame_from_shape and masses.

    Raises:
        ShapeError: a mesh that encloses no volume, or sizes and masses beyond what numbers hold.
    """
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return _united(parts)
    except (FloatingPointError, OverflowError):
        raise ShapeError("sizes and masses are so large that the inertia cannot be computed") from None


def _united(parts: Sequence[tuple[Shape, Pose, float]]) -> Inertia:
    total = sum(mass for _, _, mass in parts)
    centers, matrices = [], []
    for shape, pose, mass in parts:
        center, matrix = solid_inertia(shape, mass)
        if not np.all(np.isfinite(matrix)):
            raise OverflowError
        centers.append(pose.apply(center))
        matrices.append(product(pose.rotation, matrix, pose.rotation.T))
    middle = sum((mass * center for center, (_, _, mass) in zip(centers, parts, strict=True)), np.zeros(3)) / total
    moment = np.zeros((3, 3))
    for center, matrix, (_, _, mass) in zip(centers, matrices, parts, strict=True):
        offset = center - middle
        moment += matrix + mass * (dot(offset, offset) * np.eye(3) - np.outer(offset, offset))
    return Inertia(total, middle, matrix=0.5 * (moment + moment.T))
