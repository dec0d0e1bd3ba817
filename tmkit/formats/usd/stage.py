"""What the prims of a stage have, in metres and kilograms: transforms, numbers, shapes, masses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._support.elementary import dot, norm, product
from tmkit._support.import_notes import Note
from tmkit._support.limits import ReadingLimits
from tmkit._support.source_location import SourceLocation
from tmkit.formats.mesh.frustum import ellipsoid
from tmkit.formats.spec.model import GeometrySpec, InertiaSpec, PrimitiveSpec
from tmkit.formats.spec.values import spec_of_pose
from tmkit.graph import Mesh, Plane, Shape
from tmkit.spatial import Pose

Array = np.ndarray[Any, np.dtype[np.float64]]
_HALF = math.sqrt(0.5)
_TO_AXIS = {"X": (0.0, _HALF, 0.0, _HALF), "Y": (-_HALF, 0.0, 0.0, _HALF), "Z": (0.0, 0.0, 0.0, 1.0)}  # turns of z


class StageValues:
    """Reads prims of a stage."""

    def __init__(self, stage: Any, path: Path, limits: ReadingLimits, note: Note) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.usd, self.geom, self.physics = Usd, UsdGeom, UsdPhysics
        self.stage, self.path, self.limits, self.note = stage, path, limits, note
        self.cache = UsdGeom.XformCache()
        self.unit, self.kilograms = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
        self.base = np.diag([self.unit] * 3 + [1.0])
        if UsdGeom.GetStageUpAxis(stage) == "Y":
            self.base = product(np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]), self.base)

    def place(self, prim: Any) -> SourceLocation:
        """Return where a prim is, for messages."""
        return SourceLocation(f"{self.path} (prim {prim.GetPath()})")

    def matrix(self, prim: Any) -> Array:
        """Return the transform (4, 4) from a prim to the world in metres."""
        return product(self.base, np.array(self.cache.GetLocalToWorldTransform(prim)).T)

    def pose(self, prim: Any) -> Pose:
        """Return the pose of a prim in the world."""
        return self.rigid(self.matrix(prim), prim)[0]

    def rigid(self, matrix: Array, prim: Any) -> tuple[Pose, Array]:
        """Return the pose and the scales (3,) of a transform."""
        scale = np.sqrt((matrix[:3, :3] ** 2).sum(axis=0))
        if not np.isfinite(matrix).all() or not scale.min() > 0.0:
            raise self.place(prim).error("the transform has a scale of 0, or is no number")
        turn = matrix[:3, :3] / scale
        if np.linalg.det(turn) < 0.0:
            turn[:, 0], scale[0] = -turn[:, 0], -scale[0]
        if np.abs(product(turn.T, turn) - np.eye(3)).max() > 1e-6:
            self.note(self.place(prim), "the transform has shear, which is left out")
            x, y = turn[:, 0], turn[:, 1] - dot(turn[:, 0], turn[:, 1]) * turn[:, 0]
            y = y / norm(y)
            turn = np.stack([x, y, np.cross(x, y)], axis=1)
        scale = np.where(np.abs(np.abs(scale) - 1.0) < 1e-12, np.sign(scale), scale)
        return Pose.from_rotation_matrix(matrix[:3, 3], turn), scale

    @staticmethod
    def numbers(prim: Any, name: str) -> Array | None:
        """Return the numbers of an attribute, exactly where our writer gave them so; a quaternion as xyzw."""
        exact = prim.GetAttribute(f"tmkit:{name}").Get()
        value = exact if exact is not None else prim.GetAttribute(name).Get()
        if value is None:
            return None
        if hasattr(value, "GetImaginary"):
            value = [*value.GetImaginary(), value.GetReal()]
        return np.atleast_1d(np.array(value, dtype=np.float64))

    def number(self, prim: Any, name: str, otherwise: float) -> float:
        """Return the number of an attribute, ``otherwise`` without one."""
        found = self.numbers(prim, name)
        return otherwise if found is None else float(found[0])

    def shapes(self, prim: Any, frame: Pose, top: Any) -> Iterator[GeometrySpec]:
        """Yield the shape of a prim on the frame of the prim ``top``, if it is drawn or collides."""
        looks = self.geom.Imageable(prim)
        is_drawn = looks.ComputeVisibility() != "invisible" and looks.ComputePurpose() in ("default", "render")
        collides, above = False, prim
        while above and not collides:
            is_solid = above.HasAPI(self.physics.CollisionAPI)
            collides = bool(is_solid and above.GetAttribute("physics:collisionEnabled").Get())
            above = None if above == top else above.GetParent()
        if not (is_drawn or collides):
            return
        local = product(frame.inverse().as_matrix(), self.matrix(prim))
        pose, scale = self.rigid(local, prim)
        shape = self.shape(prim, scale)
        if shape is None:
            return
        axis = prim.GetAttribute("axis").Get()
        if axis:
            pose = pose @ Pose((0.0, 0.0, 0.0), _TO_AXIS[axis])
        color = self.numbers(prim, "color")
        if color is None:
            shown, opacity = (self.geom.Gprim(prim).GetPrim().GetAttribute(f"primvars:display{word}").Get()
                              for word in ("Color", "Opacity"))  # fmt: skip
            color = None if not shown else np.array([*shown[0], opacity[0] if opacity else 1.0], dtype=np.float64)
        friction = self.numbers(prim, "friction")
        approximation = prim.GetAttribute("physics:approximation").Get()
        level = prim.GetAttribute("tmkit:level").Get() or ("hull" if approximation == "convexHull" else None)
        r, g, b, a = np.clip(color, 0.0, 1.0).tolist() if color is not None else (0.0,) * 4
        yield GeometrySpec(
            shape, self.place(prim), spec_of_pose(pose), color=(r, g, b, a) if color is not None else None,
            visual=is_drawn, collision=collides, level=level or None,
            friction=None if friction is None else float(friction[0]),
        )  # fmt: skip

    def shape(self, prim: Any, scale: Array) -> PrimitiveSpec | Shape | None:
        """Return the shape of a prim of these scales (3,), ``None`` for one that is left out."""
        kind, sizes = str(prim.GetTypeName()), np.abs(scale)
        if kind == "Mesh":
            return self.mesh(prim, scale)
        if kind == "Plane":
            return Plane()
        if kind == "Cube":
            size = self.numbers(prim, "size")
            return PrimitiveSpec("box", tuple((size if size is not None and len(size) == 3 else size * sizes).tolist()))
        radius = self.number(prim, "radius", 1.0)
        if kind == "Sphere":
            x, y, z = (radius * sizes).tolist()
            return PrimitiveSpec("sphere", (x,)) if math.isclose(x, y) and math.isclose(y, z) else ellipsoid((x, y, z))
        if kind not in ("Cylinder", "Capsule", "Cone"):
            self.note(self.place(prim), f"a prim of type {kind} has no shape here, and is left out")
            return None
        along = "XYZ".index(prim.GetAttribute("axis").Get() or "Z")
        across = np.delete(sizes, along)
        if not math.isclose(*across):
            self.note(self.place(prim), "the scales across the axis differ; the greater is taken")
        height = self.number(prim, "height", 2.0) * float(sizes[along])
        return PrimitiveSpec(kind.lower(), (radius * float(across.max()), height))

    def mesh(self, prim: Any, scale: Array) -> Shape | None:
        """Return the triangles of a mesh, whose faces become fans."""
        points, counts, corners = (
            self.numbers(prim, key) for key in ("points", "faceVertexCounts", "faceVertexIndices")
        )
        if points is None or counts is None or corners is None or not len(counts):
            self.note(self.place(prim), "the mesh has no faces, and is left out")
            return None
        number, corner = counts.astype(np.int64), corners.astype(np.int64)
        if number.min() < 3 or number.sum() != len(corner) or number.sum() > 3 * self.limits.mesh_triangles:
            raise self.place(prim).error(
                "the mesh has faces without three corners, or too many, or not those it counts"
            )
        fans, starts = number - 2, np.cumsum(number) - number
        first = np.repeat(starts, fans)
        step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
        faces = corner[np.stack([first, first + step + 1, first + step + 2], axis=1)]
        if faces.min() < 0 or faces.max() >= len(points.reshape(-1, 3)):
            raise self.place(prim).error("the mesh has a face whose corner is no point of it")
        if (prim.GetAttribute("orientation").Get() == "leftHanded") != (np.prod(scale) < 0.0):
            faces = faces[:, ::-1]
        return Mesh(points.reshape(-1, 3) * scale, np.ascontiguousarray(faces).astype(np.int32))

    def inertia(self, prim: Any, frame: Pose, *, has_shapes: bool) -> InertiaSpec | None:
        """Return the mass of a prim at the pose of its frame."""
        mass = self.number(prim, "physics:mass", 0.0) * self.kilograms
        if not prim.HasAPI(self.physics.MassAPI) or not mass > 0.0:
            return None
        center, axes = self.numbers(prim, "physics:centerOfMass"), self.numbers(prim, "physics:principalAxes")
        exact, diagonal = self.numbers(prim, "inertia"), self.numbers(prim, "physics:diagonalInertia")
        if center is None or not np.isfinite(center).all():
            center = np.zeros(3)
        moved = product(self.matrix(prim), np.array([*center, 1.0]))[:3]
        turn = (0.0, 0.0, 0.0, 1.0) if axes is None or not axes.any() or exact is not None else tuple(axes.tolist())
        origin = spec_of_pose(Pose(frame.inverse().apply(moved), turn))
        if exact is not None:
            a, b, c, d, e, f = exact.tolist()
            return InertiaSpec(mass, self.place(prim), origin, (a, b, c, d, e, f))
        if diagonal is None or not diagonal.any():
            return InertiaSpec(mass, self.place(prim), origin, None if has_shapes else (0.0,) * 6)
        x, y, z = (diagonal * self.kilograms * self.unit**2).tolist()
        return InertiaSpec(mass, self.place(prim), origin, (x, 0.0, 0.0, y, 0.0, z))
