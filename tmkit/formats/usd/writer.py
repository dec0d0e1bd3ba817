"""Writer of USD text with the physics schema, for Isaac Sim and other programs.

Frames that move or have a mass become rigid bodies below ``/World``, at the poses where all joints
are at 0. Other frames become prims below that of the frame above. Values that USD stores in single
precision or not at all are also written as ``tmkit:`` attributes, which the reader prefers.
:func:`tmkit.formats.convert_scene` rejects scenes with other properties.
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
from tmkit.formats.urdf.shapes import MIN_COS_SHORT_ROTATION
from tmkit.formats.usd.reader import KINDS
from tmkit.graph import AttachedShape, FrameSpecification, Inertia, Joint, SceneGraph
from tmkit.spatial import Pose

_PRIM_TYPES = {kind: prim_type for prim_type, kind in KINDS.items()}
"""Type of a joint prim by kind of the joint."""


def usd_from_scene(scene: SceneGraph) -> str:
    """Return a scene as the text of a ``.usda`` file.

    Raises:
        SceneError: if the scene has a point cloud or a height field.
        MissingExtraError: if ``usd-core`` is not installed.
    """
    with importing("pxr", "formats", "writing USD needs"):
        from pxr import Usd
    return _Writer(Usd.Stage.CreateInMemory(), scene).text()


class _Writer:
    """Stage of a scene.

    Attributes:
        paths: path of the prim by name of the frame.
        poses: pose in the world by name of the frame, with all joints at 0.
        used_paths: paths of all prims.
    """

    def __init__(self, stage: Any, scene: SceneGraph) -> None:
        from pxr import Gf, Sdf, Tf, UsdGeom, UsdPhysics

        self.stage, self.scene = stage, scene
        self.gf, self.types, self.tf = Gf, Sdf.ValueTypeNames, Tf
        self.geom, self.physics = UsdGeom, UsdPhysics
        self.frames = {name: scene.specification(name) for name in scene.frame_names}
        self.paths = {"world": "/World"}
        self.poses = {"world": Pose.identity()}
        self.used_paths = set[str]()

    def text(self) -> str:
        """Return the text of the stage."""
        self.geom.SetStageUpAxis(self.stage, "Z")
        self.geom.SetStageMetersPerUnit(self.stage, 1.0)
        world = self.geom.Xform.Define(self.stage, "/World").GetPrim()
        self.stage.SetDefaultPrim(world)
        self.set_attribute(world, "tmkit:frame", self.types.String, "world")
        allowed = [name for pair in self.scene.allowed_pairs for name in pair]
        self.set_attribute(world, "tmkit:allowed", self.types.StringArray, allowed)
        index = {name: number for number, name in enumerate(self.frames)}
        for name in parents_first(self.frames, lambda name: self.frames[name].parent):
            self.add_frame(name, self.frames[name], index[name])
        if self.scene.joint_names:
            self.physics.ArticulationRootAPI.Apply(world)
        for first, second, _ in self.scene.allowed_pairs:
            pairs = self.physics.FilteredPairsAPI.Apply(self.stage.GetPrimAtPath(self.paths[first]))
            pairs.CreateFilteredPairsRel().AddTarget(self.paths[second])
        text: str = self.stage.GetRootLayer().ExportToString()
        return text

    def new_path(self, parent: str, name: str) -> str:
        """Return an unused path for a prim below another, and mark it as used."""
        path = first = f"{parent}/{self.tf.MakeValidIdentifier(name)}"
        number = 1
        while path in self.used_paths:
            number += 1
            path = f"{first}_{number}"
        self.used_paths.add(path)
        return path

    @staticmethod
    def set_attribute(prim: Any, name: str, value_type: Any, value: Any) -> None:
        """Set an attribute of a prim.

        Args:
            prim: the prim.
            name: name of the attribute.
            value_type: type of the attribute (``Sdf.ValueTypeName``).
            value: the value. A list or an array is converted to the type.
        """
        python_class = value_type.type.pythonClass
        if isinstance(value, np.ndarray):
            dtype = np.float32 if value.dtype == np.float64 else np.int32
            value = python_class.FromNumpy(value.astype(dtype))
        elif isinstance(value, list):
            value = python_class(value)
        prim.CreateAttribute(name, value_type).Set(value)

    def set_rounded(self, prim: Any, name: str, value_type: Any, value: Any) -> None:
        """Set an attribute of single precision, and the exact value if it is rounded.

        Args:
            prim: the prim.
            name: name of the attribute. That of the exact value has the prefix ``tmkit:``.
            value_type: type of the attribute (``Sdf.ValueTypeName``).
            value: the value.
        """
        self.set_attribute(prim, name, value_type, value)
        exact = np.ravel(np.asarray(value, dtype=np.float64))
        if not np.array_equal(exact.astype(np.float32).astype(np.float64), exact):
            self.set_attribute(prim, f"tmkit:{name}", self.types.DoubleArray, exact.tolist())

    def set_pose(self, prim: Any, pose: Pose) -> None:
        """Set the pose of a prim relative to the prim above."""
        matrix = self.gf.Matrix4d(pose.as_matrix().T.tolist())
        self.geom.Xformable(prim).AddTransformOp().Set(matrix)

    def add_frame(self, name: str, frame: FrameSpecification, index: int) -> None:
        """Add a frame with its mass, joint and shapes.

        Args:
            name: name of the frame.
            frame: the frame.
            index: position in the order of frames.
        """
        if name != "world":
            self.add_xform(name, frame, index)
        for part in frame.shapes:
            self.add_shape(self.paths[name], name, part)

    def add_xform(self, name: str, frame: FrameSpecification, index: int) -> None:
        """Add the prim of a frame with its mass and joint; see :meth:`add_frame`."""
        parent = frame.parent or "world"
        self.poses[name] = self.poses[parent] @ frame.pose
        is_body = frame.joint.type != "fixed" or frame.inertia is not None
        path = self.new_path("/World" if is_body else self.paths[parent], name)
        self.paths[name] = path
        prim = self.geom.Xform.Define(self.stage, path).GetPrim()
        self.set_pose(prim, self.poses[name] if is_body else frame.pose)
        self.set_attribute(prim, "tmkit:frame", self.types.String, name)
        self.set_attribute(prim, "tmkit:index", self.types.Int, index)
        if frame.body != name:
            self.set_attribute(prim, "tmkit:body", self.types.String, frame.body)
        if frame.classes:
            self.set_attribute(prim, "tmkit:classes", self.types.StringArray, list(frame.classes))
        if is_body:
            self.physics.RigidBodyAPI.Apply(prim)
        if frame.inertia is not None:
            self.set_mass(prim, frame.inertia)
        if frame.joint.type == "free":
            self.set_attribute(prim, "tmkit:parent", self.types.String, parent)
        elif is_body:
            self.add_joint(name, parent, frame)

    def set_mass(self, prim: Any, inertia: Inertia) -> None:
        """Set the mass properties of a prim."""
        types, matrix = self.types, inertia.matrix
        self.physics.MassAPI.Apply(prim)
        self.set_rounded(prim, "physics:mass", types.Float, inertia.mass)
        self.set_rounded(prim, "physics:centerOfMass", types.Point3f, inertia.center.tolist())
        moments, axes = (np.array(values) for values in eigen(matrix))
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] *= -1.0
        self.set_attribute(prim, "physics:diagonalInertia", types.Float3, moments.tolist())
        rotation = self.quaternion(Pose.from_rotation_matrix([0.0, 0.0, 0.0], axes))
        self.set_attribute(prim, "physics:principalAxes", types.Quatf, rotation)
        upper_triangle = matrix[np.triu_indices(3)].tolist()
        self.set_attribute(prim, "tmkit:inertia", types.DoubleArray, upper_triangle)

    def quaternion(self, pose: Pose) -> Any:
        """Return the rotation of a pose as a ``Gf.Quatf``."""
        return self.gf.Quatf(*pose.quat_wxyz.tolist())

    def add_joint(self, name: str, parent: str, frame: FrameSpecification) -> None:
        """Add the joint of a frame that is not free.

        Args:
            name: name of the frame.
            parent: name of its parent.
            frame: the frame.
        """
        joint, types = frame.joint, self.types
        is_fixed = joint.type == "fixed"
        axis = [0.0, 0.0, 1.0] if is_fixed else joint.axis.tolist()
        prim_type = _PRIM_TYPES["revolute" if joint.type == "continuous" else joint.type]
        path = self.new_path("/World/Joints", name if is_fixed else joint.name)
        prim = self.stage.DefinePrim(path, prim_type)
        for end, body in enumerate((parent, name)):
            if body != "world":
                prim.CreateRelationship(f"physics:body{end}").SetTargets([self.paths[body]])
        rotation = Pose.identity() if is_fixed else _rotation_from_x(axis)
        for end, pose in enumerate((frame.pose @ rotation, rotation)):
            position = pose.translation.tolist()
            self.set_attribute(prim, f"physics:localPos{end}", types.Point3f, position)
            self.set_attribute(prim, f"physics:localRot{end}", types.Quatf, self.quaternion(pose))
        self.set_attribute(prim, "tmkit:axis", types.DoubleArray, axis)
        if not is_fixed:
            self.set_joint_properties(prim, joint)

    def set_joint_properties(self, prim: Any, joint: Joint) -> None:
        """Set limits, drive and mimic rule of an actuated joint. USD has angles in degrees."""
        types = self.types
        is_revolute = joint.type in ("revolute", "continuous")
        unit = math.degrees(1.0) if is_revolute else 1.0
        drive = "angular" if is_revolute else "linear"
        self.set_attribute(prim, "tmkit:joint", types.String, joint.name)
        self.set_attribute(prim, "physics:axis", types.Token, "X")
        self.physics.DriveAPI.Apply(prim, drive)
        properties = {
            "physics:lowerLimit": unit * joint.lower,
            "physics:upperLimit": unit * joint.upper,
            "physxJoint:maxJointVelocity": unit * joint.velocity,
            "physxJoint:jointFriction": joint.friction,
            f"drive:{drive}:physics:maxForce": joint.effort,
            f"drive:{drive}:physics:damping": joint.damping / unit,
        }
        for key, value in properties.items():
            self.set_rounded(prim, key, types.Float, value)
        rule = joint.mimic
        if rule is not None:
            self.set_attribute(prim, "tmkit:mimic", types.String, rule.joint)
            self.set_attribute(prim, "tmkit:multiplier", types.DoubleArray, [rule.multiplier])
            self.set_attribute(prim, "tmkit:offset", types.DoubleArray, [rule.offset])

    def add_shape(self, parent: str, frame: str, part: AttachedShape) -> None:
        """Add a shape.

        Args:
            parent: path of the prim of the frame.
            frame: name of the frame, for messages.
            part: the shape.

        Raises:
            SceneError: if USD has no such shape.
        """
        shape, sizes, types = part.shape, part.shape.dimensions, self.types
        path = self.new_path(parent, shape.kind)
        if shape.kind == "box":
            prim = self.geom.Cube.Define(self.stage, path).GetPrim()
            self.set_attribute(prim, "size", types.Double, 1.0)
            self.set_attribute(prim, "tmkit:size", types.DoubleArray, list(sizes))
        elif shape.kind == "mesh":
            prim = self.geom.Mesh.Define(self.stage, path).GetPrim()
            corners = shape.faces.reshape(-1)
            self.set_rounded(prim, "points", types.Point3fArray, np.asarray(shape.vertices))
            self.set_attribute(prim, "faceVertexCounts", types.IntArray, [3] * len(shape.faces))
            self.set_attribute(prim, "faceVertexIndices", types.IntArray, corners)
            self.set_attribute(prim, "subdivisionScheme", types.Token, "none")
        elif shape.kind in ("sphere", "cylinder", "capsule", "cone", "plane"):
            prim = getattr(self.geom, shape.kind.capitalize()).Define(self.stage, path).GetPrim()
            for key, size in zip(("radius", "height"), sizes, strict=False):
                self.set_attribute(prim, key, types.Double, size)
            if len(sizes) != 1:
                self.set_attribute(prim, "axis", types.Token, "Z")
        else:
            kind = shape.kind.replace("_", " ")
            raise SceneError(f"USD has no {kind}, as on frame '{frame}'; write .json")
        self.set_pose(prim, part.pose)
        if shape.kind == "box":
            precision = self.geom.XformOp.PrecisionDouble
            scale = self.geom.Xformable(prim).AddScaleOp(precision=precision)
            scale.Set(self.gf.Vec3d(*sizes))
        self.set_shape_properties(prim, part)

    def set_shape_properties(self, prim: Any, part: AttachedShape) -> None:
        """Set collision, visibility, colour and friction of a shape."""
        types = self.types
        if part.collision:
            self.physics.CollisionAPI.Apply(prim)
            if part.shape.kind == "mesh":
                self.physics.MeshCollisionAPI.Apply(prim)
                self.set_attribute(prim, "physics:approximation", types.Token, "convexHull")
                self.set_attribute(prim, "tmkit:level", types.String, part.level or "")
        if not part.visual:
            prim.GetAttribute("purpose").Set("guide" if part.collision else "proxy")
        if part.color is not None:
            rgb, opacity = np.array([part.color[:3]]), [part.color[3]]
            self.set_attribute(prim, "tmkit:color", types.DoubleArray, list(part.color))
            self.set_attribute(prim, "primvars:displayColor", types.Color3fArray, rgb)
            self.set_attribute(prim, "primvars:displayOpacity", types.FloatArray, opacity)
        if part.friction is not None:
            self.set_attribute(prim, "tmkit:friction", types.DoubleArray, [part.friction])


def _rotation_from_x(axis: Sequence[float]) -> Pose:
    """Return the shortest rotation from x to a unit vector, or the half turn about z."""
    x, y, z = axis
    is_defined = x > MIN_COS_SHORT_ROTATION
    quat_xyzw = (0.0, -z, y, 1.0 + x) if is_defined else (0.0, 0.0, 1.0, 0.0)
    return Pose([0.0, 0.0, 0.0], quat_xyzw)
