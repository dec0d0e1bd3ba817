"""Scenes as USD text with the physics schema, for Isaac Sim and others.

Frames that move, or that have a mass, are rigid bodies below ``/World``, all where their joints are
at zero; the others are in the prim of the frame above. What USD stores in single precision, or has
no word for, is beside it as ``tmkit:`` attributes, which the reader prefers;
:func:`tmkit.formats.convert_scene` refuses a scene that has more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmkit._support.elementary import eigen
from tmkit._support.extras import importing
from tmkit.errors import SceneError
from tmkit.formats.spec.build import parents_first
from tmkit.formats.usd.reader import KINDS
from tmkit.graph import AttachedShape, FrameSpecification, SceneGraph
from tmkit.spatial import Pose

_TYPES = {kind: name for name, kind in KINDS.items()}


def usd_from_scene(scene: SceneGraph) -> str:
    """Return the text of a ``.usda`` file; a point cloud or a height field is refused, and a missing ``usd-core``."""
    with importing("pxr", "formats", "writing USD needs"):
        from pxr import Usd
    return _Writer(Usd.Stage.CreateInMemory(), scene).text()


class _Writer:
    """Fills a stage."""

    def __init__(self, stage: Any, scene: SceneGraph) -> None:
        from pxr import Gf, Sdf, Tf, UsdGeom, UsdPhysics

        self.stage, self.scene, self.taken = stage, scene, set[str]()
        self.gf, self.types, self.tf, self.geom, self.physics = (
            Gf,
            Sdf.ValueTypeNames,
            Tf,
            UsdGeom,
            UsdPhysics,
        )
        self.frames = {name: scene.specification(name) for name in scene.frame_names}
        self.paths, self.poses = {"world": "/World"}, {"world": Pose.identity()}

    def text(self) -> str:
        self.geom.SetStageUpAxis(self.stage, "Z")
        self.geom.SetStageMetersPerUnit(self.stage, 1.0)
        world = self.geom.Xform.Define(self.stage, "/World").GetPrim()
        self.stage.SetDefaultPrim(world)
        self.put(world, "tmkit:frame", self.types.String, "world")
        allowed = [part for pair in self.scene.allowed_pairs for part in pair]
        self.put(world, "tmkit:allowed", self.types.StringArray, allowed)
        index = {name: number for number, name in enumerate(self.frames)}
        for name in parents_first(self.frames, lambda name: self.frames[name].parent):
            self.frame(name, self.frames[name], index[name])
        if self.scene.joint_names:
            self.physics.ArticulationRootAPI.Apply(world)
        for first, second, _ in self.scene.allowed_pairs:
            pairs = self.physics.FilteredPairsAPI.Apply(self.stage.GetPrimAtPath(self.paths[first]))
            pairs.CreateFilteredPairsRel().AddTarget(self.paths[second])
        text: str = self.stage.GetRootLayer().ExportToString()
        return text

    def free_path(self, folder: str, name: str) -> str:
        """Return a path in a folder that no prim has."""
        path = first = f"{folder}/{self.tf.MakeValidIdentifier(name)}"
        number = 1
        while path in self.taken:
            number += 1
            path = f"{first}_{number}"
        self.taken.add(path)
        return path

    @staticmethod
    def put(prim: Any, name: str, kind: Any, value: Any) -> None:
        if isinstance(value, np.ndarray):
            value = kind.type.pythonClass.FromNumpy(
                value.astype(np.float32 if value.dtype == np.float64 else np.int32)
            )
        prim.CreateAttribute(name, kind).Set(
            kind.type.pythonClass(value) if isinstance(value, list) else value
        )

    def single(self, prim: Any, name: str, kind: Any, value: Any) -> None:
        """Set an attribute of single precision, and beside it the exact numbers, where that rounds them."""
        self.put(prim, name, kind, value)
        exact = np.ravel(np.asarray(value, dtype=np.float64))
        if not np.array_equal(exact.astype(np.float32).astype(np.float64), exact):
            self.put(prim, f"tmkit:{name}", self.types.DoubleArray, exact.tolist())

    def place(self, prim: Any, pose: Pose) -> None:
        self.geom.Xformable(prim).AddTransformOp().Set(
            self.gf.Matrix4d(pose.as_matrix().T.tolist())
        )

    def frame(self, name: str, frame: FrameSpecification, index: int) -> None:
        if name != "world":
            above = frame.parent or "world"
            self.poses[name] = self.poses[above] @ frame.pose
            is_body = frame.joint.type != "fixed" or frame.inertia is not None
            path = self.paths[name] = self.free_path(
                "/World" if is_body else self.paths[above], name
            )
            prim = self.geom.Xform.Define(self.stage, path).GetPrim()
            self.place(prim, self.poses[name] if is_body else frame.pose)
            self.put(prim, "tmkit:frame", self.types.String, name)
            self.put(prim, "tmkit:index", self.types.Int, index)
            if frame.body != name:
                self.put(prim, "tmkit:body", self.types.String, frame.body)
            if frame.classes:
                self.put(prim, "tmkit:classes", self.types.StringArray, list(frame.classes))
            if is_body:
                self.physics.RigidBodyAPI.Apply(prim)
            if frame.inertia is not None:
                self.mass(prim, frame)
            if frame.joint.type == "free":
                self.put(prim, "tmkit:parent", self.types.String, above)
            elif is_body:
                self.joint(name, above, frame)
        for part in frame.shapes:
            self.shape(self.paths[name], name, part)

    def mass(self, prim: Any, frame: FrameSpecification) -> None:
        inertia = frame.inertia
        assert inertia is not None
        self.physics.MassAPI.Apply(prim)
        self.single(prim, "physics:mass", self.types.Float, inertia.mass)
        self.single(prim, "physics:centerOfMass", self.types.Point3f, inertia.center.tolist())
        matrix = inertia.matrix
        moments, axes = (np.array(part) for part in eigen(matrix))
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] *= -1.0
        self.put(prim, "physics:diagonalInertia", self.types.Float3, moments.tolist())
        turn = Pose.from_rotation_matrix([0.0, 0.0, 0.0], axes)
        self.put(prim, "physics:principalAxes", self.types.Quatf, self.quaternion(turn))
        self.put(prim, "tmkit:inertia", self.types.DoubleArray, matrix[np.triu_indices(3)].tolist())

    def quaternion(self, pose: Pose) -> Any:
        return self.gf.Quatf(*pose.quat_wxyz.tolist())

    def joint(self, name: str, above: str, frame: FrameSpecification) -> None:
        joint = frame.joint
        is_turn, is_fixed = joint.type in ("revolute", "continuous"), joint.type == "fixed"
        kind = _TYPES["revolute" if joint.type == "continuous" else joint.type]
        prim = self.stage.DefinePrim(
            self.free_path("/World/Joints", name if is_fixed else joint.name), kind
        )
        for end, body in enumerate((above, name)):
            if body != "world":
                prim.CreateRelationship(f"physics:body{end}").SetTargets([self.paths[body]])
        turn = Pose.identity() if is_fixed else _from_x(joint.axis.tolist())
        for end, pose in enumerate((frame.pose @ turn, turn)):
            self.put(prim, f"physics:localPos{end}", self.types.Point3f, pose.translation.tolist())
            self.put(prim, f"physics:localRot{end}", self.types.Quatf, self.quaternion(pose))
        self.put(
            prim,
            "tmkit:axis",
            self.types.DoubleArray,
            [0.0, 0.0, 1.0] if is_fixed else joint.axis.tolist(),
        )
        if is_fixed:
            return
        unit, drive = math.degrees(1.0) if is_turn else 1.0, "angular" if is_turn else "linear"
        self.put(prim, "tmkit:joint", self.types.String, joint.name)
        self.put(prim, "physics:axis", self.types.Token, "X")
        self.physics.DriveAPI.Apply(prim, drive)
        for key, value in {
            "physics:lowerLimit": unit * joint.lower,
            "physics:upperLimit": unit * joint.upper,
            "physxJoint:maxJointVelocity": unit * joint.velocity,
            "physxJoint:jointFriction": joint.friction,
            f"drive:{drive}:physics:maxForce": joint.effort,
            f"drive:{drive}:physics:damping": joint.damping / unit,
        }.items():
            self.single(prim, key, self.types.Float, value)
        if joint.mimic is not None:
            self.put(prim, "tmkit:mimic", self.types.String, joint.mimic.joint)
            for key in ("multiplier", "offset"):
                self.put(prim, f"tmkit:{key}", self.types.DoubleArray, [getattr(joint.mimic, key)])

    def shape(self, folder: str, frame: str, part: AttachedShape) -> None:
        shape, sizes = part.shape, part.shape.dimensions
        path, make = self.free_path(folder, shape.kind), self.geom
        if shape.kind == "box":
            prim = make.Cube.Define(self.stage, path).GetPrim()
            self.put(prim, "size", self.types.Double, 1.0)
            self.put(prim, "tmkit:size", self.types.DoubleArray, list(sizes))
        elif shape.kind == "mesh":
            prim = make.Mesh.Define(self.stage, path).GetPrim()
            self.single(prim, "points", self.types.Point3fArray, np.asarray(shape.vertices))
            self.put(prim, "faceVertexCounts", self.types.IntArray, [3] * len(shape.faces))
            self.put(prim, "faceVertexIndices", self.types.IntArray, shape.faces.reshape(-1))
            self.put(prim, "subdivisionScheme", self.types.Token, "none")
        elif shape.kind in ("sphere", "cylinder", "capsule", "cone", "plane"):
            prim = getattr(make, shape.kind.capitalize()).Define(self.stage, path).GetPrim()
            for key, size in zip(("radius", "height"), sizes, strict=False):
                self.put(prim, key, self.types.Double, size)
            if len(sizes) != 1:
                self.put(prim, "axis", self.types.Token, "Z")
        else:
            kind = shape.kind.replace("_", " ")
            raise SceneError(f"USD has no {kind}, as on frame '{frame}'; write .json")
        self.place(prim, part.pose)
        if shape.kind == "box":
            self.geom.Xformable(prim).AddScaleOp(precision=self.geom.XformOp.PrecisionDouble).Set(
                self.gf.Vec3d(*sizes)
            )
        self.look(prim, part)

    def look(self, prim: Any, part: AttachedShape) -> None:
        if part.collision:
            self.physics.CollisionAPI.Apply(prim)
            if part.shape.kind == "mesh":
                self.physics.MeshCollisionAPI.Apply(prim)
                self.put(prim, "physics:approximation", self.types.Token, "convexHull")
                self.put(prim, "tmkit:level", self.types.String, part.level or "")
        if not part.visual:
            prim.GetAttribute("purpose").Set("guide" if part.collision else "proxy")
        if part.color is not None:
            self.put(prim, "tmkit:color", self.types.DoubleArray, list(part.color))
            self.put(
                prim, "primvars:displayColor", self.types.Color3fArray, np.array([part.color[:3]])
            )
            self.put(prim, "primvars:displayOpacity", self.types.FloatArray, [part.color[3]])
        if part.friction is not None:
            self.put(prim, "tmkit:friction", self.types.DoubleArray, [part.friction])


def _from_x(axis: Sequence[float]) -> Pose:
    """Return the short turn that takes x to a direction of length 1."""
    x, y, z = axis
    return Pose(
        [0.0, 0.0, 0.0], (0.0, -z, y, 1.0 + x) if x > -1.0 + 1e-12 else (0.0, 0.0, 1.0, 0.0)
    )
