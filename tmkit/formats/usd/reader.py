"""Reader of USD stages with the physics schema, as Isaac Sim writes them.

A rigid body becomes a frame with the name of its prim, or the path of the prim if the name is in
use. An ``Xform`` without children also becomes a frame. So does an ``Xform`` outside of rigid
bodies whose children are shapes. Other prims only place their content.

Joints connect bodies to trees, as in SDF. A body without a joint is free, and a kinematic body is
fixed. Transforms, shapes and masses are converted from the units and the up axis of the stage to
[m], [kg] and z. Scales of prims are applied to sizes. Shear is omitted.

USD stores joints and masses in single precision. The exact values of the writer, in ``tmkit:``
attributes, take precedence. A layer is only opened in folders that the scene may read. Missing
layers are omitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tmkit._support.elementary import dot, norm, product
from tmkit._support.extras import importing
from tmkit._support.limits import ReadingLimits, is_file, read_bytes
from tmkit._support.source_location import Note, SourceLocation, locate_errors
from tmkit.errors import FileFormatError
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.mesh.solids import ellipsoid
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import (
    GeometrySpec,
    InertiaSpec,
    JointSpec,
    MimicSpec,
    PrimitiveSpec,
    Quadruple,
    Triple,
)
from tmkit.formats.spec.values import JointEdge, build_forest, frames_on_joint, spec_of_pose
from tmkit.formats.urdf.reader import UNIT_AXES, adjacent_pairs, inverted_limits_reason
from tmkit.formats.usd.prim_counter import PrimCounter
from tmkit.graph import Mesh, Plane, Shape
from tmkit.spatial import Pose

if TYPE_CHECKING:
    from pxr import Usd

Array = np.ndarray[Any, np.dtype[np.float64]]

_Y_UP_TO_Z_UP = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Transform from a stage whose y axis points up."""

_MAX_SHEAR = 1e-6
"""Largest deviation from orthogonal axes that is not noted as shear."""

_MAX_SCALE_ERROR = 1e-12
"""Largest deviation of a scale from 1 that is rounded."""

_DRAWN_PURPOSES = ("default", "render")
"""Purposes of prims that are drawn."""


class StageValues:
    """Values of the prims of a stage.

    Args:
        stage: the ``Usd.Stage``.
        path: path of the file, for messages.
        limits: limits of the load.
        note: receiver of import notes.
    """

    def __init__(self, stage: Any, path: Path, limits: ReadingLimits, note: Note) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.usd, self.geom, self.physics = Usd, UsdGeom, UsdPhysics
        self.stage, self.path = stage, path
        self.limits, self.note = limits, note
        self.cache = UsdGeom.XformCache()
        self.unit = UsdGeom.GetStageMetersPerUnit(stage)  # [m]
        self.kilograms = UsdPhysics.GetStageKilogramsPerUnit(stage)
        self.world_from_stage = np.diag([self.unit] * 3 + [1.0])
        if UsdGeom.GetStageUpAxis(stage) == "Y":
            self.world_from_stage = product(_Y_UP_TO_Z_UP, self.world_from_stage)

    def place(self, prim: Usd.Prim) -> SourceLocation:
        """Return the location of a prim."""
        return SourceLocation(f"{self.path} (prim {prim.GetPath()})")

    def matrix(self, prim: Usd.Prim) -> Array:
        """Return the (4, 4) transform from a prim to the world [m]."""
        stage_from_prim = np.array(self.cache.GetLocalToWorldTransform(prim)).T
        return product(self.world_from_stage, stage_from_prim)

    def pose(self, prim: Usd.Prim) -> Pose:
        """Return the pose of a prim in the world."""
        return self.split_transform(self.matrix(prim), prim)[0]

    def split_transform(self, matrix: Array, prim: Usd.Prim) -> tuple[Pose, Array]:
        """Return the pose and the (3,) scales of a (4, 4) transform.

        Raises:
            FileFormatError: if a scale is 0 or a number is not finite, at the prim.
        """
        scale = np.sqrt((matrix[:3, :3] ** 2).sum(axis=0))
        if not np.isfinite(matrix).all() or not np.isfinite(scale).all() or not scale.min() > 0.0:
            raise self.place(prim).error("the transform has a scale of 0, or is not a number")
        rotation = matrix[:3, :3] / scale
        if np.linalg.det(rotation) < 0.0:
            rotation[:, 0], scale[0] = -rotation[:, 0], -scale[0]
        if np.abs(product(rotation.T, rotation) - np.eye(3)).max() > _MAX_SHEAR:
            self.note(self.place(prim), "the transform has shear, which is omitted")
            x, y = rotation[:, 0], rotation[:, 1]
            y = y - dot(x, y) * x
            y = y / norm(y)
            rotation = np.stack([x, y, np.cross(x, y)], axis=1)
        is_one = np.abs(np.abs(scale) - 1.0) < _MAX_SCALE_ERROR
        scale = np.where(is_one, np.sign(scale), scale)
        return Pose.from_rotation_matrix(matrix[:3, 3], rotation), scale

    @staticmethod
    def numbers(prim: Usd.Prim, name: str) -> Array | None:
        """Return the numbers of an attribute, or None if it is missing.

        The exact numbers of the writer take precedence. A quaternion has the order xyzw.
        """
        exact = prim.GetAttribute(f"tmkit:{name}").Get()
        value = exact if exact is not None else prim.GetAttribute(name).Get()
        if value is None:
            return None
        if hasattr(value, "GetImaginary"):
            value = [*value.GetImaginary(), value.GetReal()]
        return np.atleast_1d(np.array(value, dtype=np.float64))

    def number(self, prim: Usd.Prim, name: str, otherwise: float) -> float:
        """Return the number of an attribute, or ``otherwise`` if it is missing."""
        numbers = self.numbers(prim, name)
        return otherwise if numbers is None else float(numbers[0])

    def shapes(self, prim: Usd.Prim, frame: Pose, top: Usd.Prim) -> Iterator[GeometrySpec]:
        """Yield the shape of a prim if it is drawn or collides.

        Args:
            prim: the prim.
            frame: pose of the frame in the world.
            top: prim of the frame.
        """
        is_drawn, is_solid = self.is_drawn(prim), self.is_solid(prim, top)
        if not (is_drawn or is_solid):
            return
        frame_from_prim = product(frame.inverse().as_matrix(), self.matrix(prim))
        pose, scale = self.split_transform(frame_from_prim, prim)
        shape = self.shape(prim, scale)
        if shape is None:
            return
        axis = prim.GetAttribute("axis").Get()
        if axis:
            pose = pose @ Pose((0.0, 0.0, 0.0), _QUAT_FROM_Z[axis])
        friction = self.numbers(prim, "friction")
        level = prim.GetAttribute("tmkit:level").Get() or None
        if level is None and prim.GetAttribute("physics:approximation").Get() == "convexHull":
            level = "hull"
        yield GeometrySpec(
            shape,
            self.place(prim),
            spec_of_pose(pose),
            color=self.color(prim),
            visual=is_drawn,
            collision=is_solid,
            level=level,
            friction=None if friction is None else float(friction[0]),
        )

    def is_drawn(self, prim: Usd.Prim) -> bool:
        """Return whether a prim is drawn."""
        imageable = self.geom.Imageable(prim)
        is_visible = imageable.ComputeVisibility() != "invisible"
        return is_visible and imageable.ComputePurpose() in _DRAWN_PURPOSES

    def is_solid(self, prim: Usd.Prim, top: Usd.Prim) -> bool:
        """Return whether a prim, or a prim above it up to ``top``, collides."""
        while prim:
            has_collision = prim.HasAPI(self.physics.CollisionAPI)
            if has_collision and prim.GetAttribute("physics:collisionEnabled").Get():
                return True
            if prim == top:
                return False
            prim = prim.GetParent()
        return False

    def color(self, prim: Usd.Prim) -> Quadruple | None:
        """Return red, green, blue and alpha of a prim, in [0, 1], or None."""
        color = self.numbers(prim, "color")
        if color is None:
            gprim = self.geom.Gprim(prim).GetPrim()
            colors = gprim.GetAttribute("primvars:displayColor").Get()
            opacities = gprim.GetAttribute("primvars:displayOpacity").Get()
            if not colors:
                return None
            color = np.array([*colors[0], opacities[0] if opacities else 1.0], dtype=np.float64)
        r, g, b, a = np.clip(color, 0.0, 1.0).tolist()
        return r, g, b, a

    def shape(self, prim: Usd.Prim, scale: Array) -> PrimitiveSpec | Shape | None:
        """Return the shape of a prim with (3,) scales, or None with a note to omit it."""
        prim_type, sizes = str(prim.GetTypeName()), np.abs(scale)
        if prim_type == "Mesh":
            return self.mesh(prim, scale)
        if prim_type == "Plane":
            return Plane()
        if prim_type == "Cube":
            size = self.numbers(prim, "size")
            has_three_sizes = size is not None and len(size) == 3
            dimensions = size if size is not None and has_three_sizes else size * sizes
            return PrimitiveSpec("box", tuple(dimensions.tolist()))
        radius = self.number(prim, "radius", 1.0)
        if prim_type == "Sphere":
            x, y, z = (radius * sizes).tolist()
            is_sphere = math.isclose(x, y) and math.isclose(y, z)
            return PrimitiveSpec("sphere", (x,)) if is_sphere else ellipsoid((x, y, z))
        if prim_type not in ("Cylinder", "Capsule", "Cone"):
            text = f"a prim of type {prim_type} has no shape here, and is omitted"
            self.note(self.place(prim), text)
            return None
        axis = "XYZ".index(prim.GetAttribute("axis").Get() or "Z")
        radial_scales = np.delete(sizes, axis)
        if not math.isclose(*radial_scales):
            self.note(self.place(prim), "the scales across the axis differ; the greater is taken")
        height = self.number(prim, "height", 2.0) * float(sizes[axis])
        return PrimitiveSpec(prim_type.lower(), (radius * float(radial_scales.max()), height))

    def mesh(self, prim: Usd.Prim, scale: Array) -> Shape | None:
        """Return a mesh with (3,) scales, whose faces are split into fans of triangles.

        Returns:
            None with a note if there are no faces.

        Raises:
            FileFormatError: if a face is invalid, or there are too many.
        """
        points = self.numbers(prim, "points")
        counts = self.numbers(prim, "faceVertexCounts")
        indices = self.numbers(prim, "faceVertexIndices")
        if points is None or counts is None or indices is None or not len(counts):
            self.note(self.place(prim), "the mesh has no faces, and is omitted")
            return None
        vertices = points.reshape(-1, 3)
        n_corners, corners = counts.astype(np.int64), indices.astype(np.int64)
        total = n_corners.sum()
        is_too_large = total > 3 * self.limits.mesh_triangles
        if n_corners.min() < 3 or total != len(corners) or is_too_large:
            raise self.place(prim).error(
                "the mesh has faces without three corners, or too many, or not those it counts"
            )
        n_triangles, starts = n_corners - 2, np.cumsum(n_corners) - n_corners
        first = np.repeat(starts, n_triangles)
        first_triangles = np.cumsum(n_triangles) - n_triangles
        step = np.arange(n_triangles.sum()) - np.repeat(first_triangles, n_triangles)
        faces = corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise self.place(prim).error("the mesh has a face whose corner is not a point of it")
        is_left_handed = prim.GetAttribute("orientation").Get() == "leftHanded"
        if is_left_handed != (np.prod(scale) < 0.0):
            faces = faces[:, ::-1]
        return Mesh(vertices * scale, np.ascontiguousarray(faces).astype(np.int32))

    def inertia(self, prim: Usd.Prim, frame: Pose, *, has_shapes: bool) -> InertiaSpec | None:
        """Return the mass properties of a prim, or None if it has no mass.

        Args:
            prim: the prim.
            frame: pose of its frame in the world.
            has_shapes: whether the frame has shapes, over which a mass without inertia is spread.
        """
        mass = self.number(prim, "physics:mass", 0.0) * self.kilograms
        if not prim.HasAPI(self.physics.MassAPI) or not mass > 0.0:
            return None
        center, axes = (
            self.numbers(prim, f"physics:{word}") for word in ("centerOfMass", "principalAxes")
        )
        exact = self.numbers(prim, "inertia")
        diagonal = self.numbers(prim, "physics:diagonalInertia")
        if center is None or not np.isfinite(center).all():
            center = np.zeros(3)
        world_center = product(self.matrix(prim), np.array([*center, 1.0]))[:3]
        has_axes = axes is not None and axes.any() and exact is None
        quat_xyzw = tuple(axes.tolist()) if axes is not None and has_axes else (0.0, 0.0, 0.0, 1.0)
        origin = spec_of_pose(Pose(frame.inverse().apply(world_center), quat_xyzw))
        place = self.place(prim)
        if exact is not None:
            ixx, ixy, ixz, iyy, iyz, izz = exact.tolist()
            return InertiaSpec(mass, place, origin, (ixx, ixy, ixz, iyy, iyz, izz))
        if diagonal is None or not diagonal.any():
            return InertiaSpec(mass, place, origin, None if has_shapes else (0.0,) * 6)
        ixx, iyy, izz = (diagonal * self.kilograms * self.unit**2).tolist()
        return InertiaSpec(mass, place, origin, (ixx, 0.0, 0.0, iyy, 0.0, izz))


KINDS = {
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsFixedJoint": "fixed",
    "PhysicsSphericalJoint": "ball",
}
"""Kind of a joint by type of the prim."""

_SQRT_HALF = math.sqrt(0.5)
"""Sine and cosine of a quarter of pi."""

_QUAT_FROM_Z = {
    "X": (0.0, _SQRT_HALF, 0.0, _SQRT_HALF),
    "Y": (-_SQRT_HALF, 0.0, 0.0, _SQRT_HALF),
    "Z": (0.0, 0.0, 0.0, 1.0),
}
"""Quaternion xyzw of the rotation from z, by letter of the axis."""

_MAX_JOINT_GAP = 1e-5
"""Largest distance between the two frames of a joint that is ignored as rounding [m, rad]."""


def read_usd(path: Path, *, packages: PackageResolver, note: Note) -> SceneSpecification:
    """Read a stage with all its layers.

    Args:
        path: the file.
        packages: resolver of layers, with the limits of the load.
        note: receiver of import notes.

    Raises:
        FileFormatError: if the stage is invalid or USD rejects it.
        MissingExtraError: if ``usd-core`` is not installed.
    """
    with importing("pxr", "formats", f"{path}: reading USD needs"):
        from pxr import Tf, Usd

    try:
        layers = _layers(path, packages, note)
        PrimCounter(packages.limits.frames, SourceLocation(str(path))).check(layers[0])
        stage = Usd.Stage.Open(layers[0])
        return _Reader(stage, path, packages.limits, note).specification()
    except Tf.ErrorException as error:
        reason = " ".join(str(error).rpartition(" : '")[2].split()).rstrip(" '")
        raise FileFormatError.at(path, f"USD rejects the file: {reason}") from None


def _layers(path: Path, packages: PackageResolver, note: Note) -> list[Any]:
    """Return the layer of a file and all layers below it.

    References to missing layers are removed, with a note.

    Raises:
        FileFormatError: if a layer is invalid, too large or outside the folders that may be read.
    """
    from pxr import Sdf

    layers: dict[str, Any] = {}
    pending = [str(path)]
    while pending:
        file = pending.pop()
        if file in layers:
            continue
        # This rejects devices and large files.
        read_bytes(Path(_package_path(file)), limit=packages.limits.mesh_bytes)
        layer = layers[file] = Sdf.Layer.FindOrOpen(file)
        place = SourceLocation(file)
        if layer is None:
            raise place.error("is not a USD file")
        for asset in sorted(layer.GetCompositionAssetDependencies()):
            target = layer.ComputeAbsolutePath(asset)
            if is_file(Path(_package_path(target))):
                packages.resolve(_package_path(target), folder=path.parent, place=place)
                pending.append(target)
            else:
                note(place, f"the layer '{asset}' is missing, and is omitted")
                layer.UpdateCompositionAssetDependency(asset, "")
    return [*layers.values()]


def _package_path(file: str) -> str:
    """Return the path of a file, or of the package (``.usdz``) with the file."""
    return file.partition("[")[0]


@dataclass(slots=True, eq=False)
class _Frame:
    """A prim that becomes a frame.

    Attributes:
        name: name of the frame.
        prim: the prim.
        pose: pose in the world.
        above: frame above, or None for the world.
        body: body with which the frame moves, or None for the world.
        shapes: shapes of the frame.
    """

    name: str
    prim: Usd.Prim
    pose: Pose
    above: _Frame | None
    body: _Frame | None
    shapes: list[GeometrySpec] = field(default_factory=list)
    is_body: InitVar[bool] = False

    def __post_init__(self, is_body: bool) -> None:
        if is_body:
            self.body = self

    def add_shapes(self, shapes: Iterable[GeometrySpec]) -> None:
        """Add shapes of prims in the frame."""
        self.shapes.extend(shapes)


@dataclass(slots=True, eq=False)
class _Joint(JointEdge):
    """A joint prim.

    Attributes:
        prim: the prim.
        name: name of the joint.
        frames: parent and child frame.
        poses: poses in the world of the joint's frames at the parent and the child.
    """

    prim: Usd.Prim
    name: str
    frames: tuple[_Frame, _Frame]
    poses: tuple[Pose, Pose]
    ends: InitVar[tuple[_Frame, _Frame]]

    def __post_init__(self, ends: tuple[_Frame, _Frame]) -> None:
        self.top, self.bottom = ends


class _Reader(StageValues):
    """Conversion of the frames and joints of a stage to a specification.

    Attributes:
        world: the world.
        frames: frame by path of the prim.
        joints: joints in the order of the stage.
    """

    def __init__(self, stage: Any, path: Path, limits: ReadingLimits, note: Note) -> None:
        super().__init__(stage, path, limits, note)
        self.world = _Frame("world", stage.GetPseudoRoot(), Pose.identity(), None, None)
        self.frames: dict[Any, _Frame] = {stage.GetPseudoRoot().GetPath(): self.world}
        self.joints: list[_Joint] = []

    def specification(self) -> SceneSpecification:
        """Return the specification of the stage.

        Raises:
            FileFormatError: if a prim is invalid, or there are too many.
        """
        predicate = self.usd.TraverseInstanceProxies(self.usd.PrimDefaultPredicate)
        prims = [*self.stage.Traverse(predicate)]
        self.limits.check_frame_count(len(prims), self.place(self.world.prim).error)
        for prim in prims:
            self.add_prim(prim)
        for prim in prims:
            if prim.IsA(self.physics.Joint) and prim.GetAttribute("physics:jointEnabled").Get():
                self.add_joint(prim)
        return self.build()

    def add_prim(self, prim: Usd.Prim) -> None:
        """Add the frame and the shape of a prim, if it has them."""
        above = self.nearest_frame(prim)
        if prim.GetAttribute("tmkit:frame").Get() == "world":
            self.frames[prim.GetPath()] = self.world
        elif self.is_frame(prim, above):
            names = {frame.name for frame in self.frames.values()}
            name, pose = self.prim_name(prim, "tmkit:frame", names), self.pose(prim)
            is_body = prim.HasAPI(self.physics.RigidBodyAPI)
            self.frames[prim.GetPath()] = _Frame(
                name, prim, pose, above, above.body, is_body=is_body
            )
        if prim.IsA(self.geom.Gprim):
            frame = self.nearest_frame(prim)
            with locate_errors(self.place(prim)):
                frame.add_shapes(self.shapes(prim, frame.pose, frame.prim))

    def prim_name(self, prim: Usd.Prim, attribute: str, names: set[str]) -> str:
        """Return the name of a frame or joint.

        Args:
            prim: the prim.
            attribute: attribute with the name of the writer, which takes precedence.
            names: names in use, in place of which the path of the prim is returned.
        """
        written_name: str | None = prim.GetAttribute(attribute).Get()
        if written_name:
            return written_name
        name = str(prim.GetName())
        return name if name not in names else str(prim.GetPath()).lstrip("/")

    def nearest_frame(self, prim: Usd.Prim) -> _Frame:
        """Return the frame of a prim, or of the nearest prim above it."""
        path = prim.GetPath()
        while path not in self.frames:
            path = path.GetParentPath()
        return self.frames[path]

    def is_frame(self, prim: Usd.Prim, above: _Frame) -> bool:
        """Return whether a prim below a frame becomes a frame."""
        if prim.HasAPI(self.physics.RigidBodyAPI) or prim.GetAttribute("tmkit:frame"):
            return True
        if prim.GetTypeName() != "Xform":
            return False
        predicate = self.usd.TraverseInstanceProxies(self.usd.PrimDefaultPredicate)
        children = prim.GetFilteredChildren(predicate)
        has_shapes = any(child.IsA(self.geom.Gprim) for child in children)
        return not children or (above.body is None and has_shapes)

    def add_joint(self, prim: Usd.Prim) -> None:
        """Add a joint, or note that its type is omitted.

        Raises:
            FileFormatError: if the joint names an unknown prim.
        """
        if prim.GetTypeName() not in KINDS:
            self.note(self.place(prim), f"a joint of type {prim.GetTypeName()} is omitted")
            return
        frames, poses = [], []
        for end in "01":
            targets = prim.GetRelationship(f"physics:body{end}").GetForwardedTargets()
            body = self.stage.GetPrimAtPath(targets[0]) if targets else self.world.prim
            if not body:
                raise self.place(prim).error(f"the joint names the unknown prim {targets[0]}")
            position = self.numbers(prim, f"physics:localPos{end}")
            quat_xyzw = self.numbers(prim, f"physics:localRot{end}")
            body_from_joint = Pose(
                np.zeros(3) if position is None else position,
                (0, 0, 0, 1) if quat_xyzw is None else quat_xyzw,
            )
            world_from_joint = product(self.matrix(body), body_from_joint.as_matrix())
            frames.append(self.nearest_frame(body))
            poses.append(self.split_transform(world_from_joint, prim)[0])
        tolerances = {"translation_tolerance": _MAX_JOINT_GAP, "rotation_tolerance": _MAX_JOINT_GAP}
        if prim.GetAttribute("tmkit:axis"):
            poses = [frames[1].pose] * 2
        elif poses[0].is_close(poses[1], **tolerances):
            poses[1] = poses[0]
        name = self.prim_name(prim, "tmkit:joint", {joint.name for joint in self.joints})
        top, bottom = (frame.body or self.world for frame in frames)
        self.joints.append(
            _Joint(prim, name, (frames[0], frames[1]), (poses[0], poses[1]), (top, bottom))
        )

    def steps(self, joint: _Joint) -> list[tuple[str, JointSpec]]:
        """Return the joints with at most one degree of freedom, with their names."""
        name, place = joint.name, self.place(joint.prim)
        kind = KINDS[joint.prim.GetTypeName()]
        if kind == "fixed":
            return [(name, JointSpec(place=place))]
        if kind == "ball":
            self.note(
                place, f"the spherical joint is read as three turns, '{name}/x', '/y' and '/z'"
            )
            return [
                (f"{name}/{key}", JointSpec("continuous", f"{name}/{key}", axis, place=place))
                for key, axis in UNIT_AXES.items()
            ]
        return [(name, self.joint_spec(joint, kind))]

    def joint_spec(self, joint: _Joint, kind: str) -> JointSpec:
        """Return a revolute, continuous or prismatic joint. USD has angles in degrees.

        Raises:
            FileFormatError: if the lower limit is above the upper limit.
        """
        prim, name, place = joint.prim, joint.name, self.place(joint.prim)
        is_revolute = kind == "revolute"
        unit = math.radians(1.0) if is_revolute else self.unit
        drive = f"drive:{'angular' if is_revolute else 'linear'}:physics"
        lower = unit * self.number(prim, "physics:lowerLimit", -math.inf)
        upper = unit * self.number(prim, "physics:upperLimit", math.inf)
        if lower > upper:
            reason = inverted_limits_reason(
                f"the {kind} joint '{name}'", lower / unit, upper / unit
            )
            raise place.error(reason)
        is_unlimited = is_revolute and math.isinf(lower) and math.isinf(upper)
        is_damper = self.number(prim, f"{drive}:stiffness", 0.0) == 0.0
        return JointSpec(
            "continuous" if is_unlimited else kind,
            name,
            self.axis(prim),
            lower,
            upper,
            velocity=unit * self.number(prim, "physxJoint:maxJointVelocity", math.inf),
            effort=self.number(prim, f"{drive}:maxForce", math.inf),
            damping=self.number(prim, f"{drive}:damping", 0.0) / unit if is_damper else 0.0,
            friction=self.number(prim, "physxJoint:jointFriction", 0.0),
            mimic=self.mimic(prim, place),
            place=place,
        )

    def axis(self, prim: Usd.Prim) -> Triple:
        """Return the axis of a joint prim in the frame of the joint."""
        axis = self.numbers(prim, "axis")
        if axis is None or len(axis) != 3:
            return UNIT_AXES[prim.GetAttribute("physics:axis").Get().lower()]
        x, y, z = axis.tolist()
        return x, y, z

    def mimic(self, prim: Usd.Prim, place: SourceLocation) -> MimicSpec | None:
        """Return the mimic rule of a joint prim, or None."""
        leader = prim.GetAttribute("tmkit:mimic").Get()
        if not leader:
            return None
        multiplier = self.number(prim, "multiplier", 0.0)
        return MimicSpec(leader, multiplier, self.number(prim, "offset", 0.0), place)

    def build(self) -> SceneSpecification:
        """Return the specification of everything that was read."""
        frames = [*dict.fromkeys(self.frames.values())][1:]
        bodies = [frame for frame in frames if frame.body is frame]
        static = {
            frame for frame in bodies if frame.prim.GetAttribute("physics:kinematicEnabled").Get()
        }
        build_forest(self.world, bodies, static, self.joints)
        joints = self.joints_by_child()
        by_name = {frame.name: frame for frame in reversed(frames)}
        world_place = self.place(self.world.prim)
        specs = [FrameSpec("world", None, world_place, geometry=tuple(self.world.shapes))]
        for frame in frames:
            if frame in joints:
                specs += self.frames_on_joint(frame, joints[frame])
            else:
                specs.append(self.root_frame(frame, by_name, is_static=frame in static))
        index = {frame.name: frame.prim.GetAttribute("tmkit:index").Get() for frame in frames}
        if None not in index.values():
            specs[1:] = sorted(specs[1:], key=lambda spec: index.get(spec.name, 0))
        return SceneSpecification(tuple(specs), tuple(self.allowed_pairs(specs)))

    def joints_by_child(self) -> dict[_Frame, _Joint]:
        """Return the joints of the forest by the body below, and note the omitted joints."""
        joints: dict[_Frame, _Joint] = {}
        for joint in self.joints:
            if joint.top is joint.bottom:
                self.note(
                    self.place(joint.prim),
                    f"the joint joins '{joint.top.name}' to itself, and is omitted",
                )
            elif joint.above is None:
                self.note(self.place(joint.prim), "the joint closes a loop, and is omitted")
            else:
                joints[joint.top if joint.is_reversed else joint.bottom] = joint
        return joints

    def root_frame(
        self, frame: _Frame, frames: Mapping[str, _Frame], *, is_static: bool
    ) -> FrameSpec:
        """Return a frame without a joint: a free or static body, or a frame fixed to another.

        Args:
            frame: the frame.
            frames: frames by name.
            is_static: whether the frame is a body that does not move.
        """
        is_body = frame.body is frame
        parent = self.world if is_body or frame.above is None else frame.above
        # USD has free frames below the world; the writer stores their parent.
        parent = frames.get(frame.prim.GetAttribute("tmkit:parent").Get(), parent)
        spec = self.frame_spec(frame)
        joint = JointSpec("free" if is_body and not is_static else "fixed", place=spec.place)
        pose = spec_of_pose(parent.pose.inverse() @ frame.pose)
        return replace(spec, parent=parent.name, pose=pose, joint=joint)

    def frames_on_joint(self, frame: _Frame, joint: _Joint) -> list[FrameSpec]:
        """Return the intermediate frames of a joint, and the frame of the body below it."""
        above, below = (1, 0) if joint.is_reversed else (0, 1)
        above_from_joint = joint.frames[above].pose.inverse() @ joint.poses[above]
        joint_from_frame = joint.poses[below].inverse() @ frame.pose
        return frames_on_joint(
            self.frame_spec(frame),
            joint.frames[above].name,
            above_from_joint,
            joint_from_frame,
            self.steps(joint),
            is_reversed=joint.is_reversed,
            place=self.place(joint.prim),
        )

    def frame_spec(self, frame: _Frame) -> FrameSpec:
        """Return the specification of a frame without parent and pose."""
        prim = frame.prim
        return FrameSpec(
            frame.name,
            None,
            self.place(prim),
            body=prim.GetAttribute("tmkit:body").Get(),
            classes=tuple(prim.GetAttribute("tmkit:classes").Get() or ()),
            geometry=tuple(frame.shapes),
            inertia=self.inertia(prim, frame.pose, has_shapes=bool(frame.shapes)),
        )

    def allowed_pairs(self, specs: list[FrameSpec]) -> Iterator[AllowedPairSpec]:
        """Yield the pairs of the writer, or else adjacent and filtered pairs."""
        for prim in self.stage.GetPseudoRoot().GetChildren():
            values = prim.GetAttribute("tmkit:allowed").Get()
            if values is not None:
                words = [*values]  # slices of an empty array would be None
                for pair in zip(words[::3], words[1::3], words[2::3], strict=False):
                    yield AllowedPairSpec(*pair, self.place(self.world.prim))
                return
        yield from adjacent_pairs(specs)
        for frame in [*dict.fromkeys(self.frames.values())][1:]:
            for target in frame.prim.GetRelationship("physics:filteredPairs").GetForwardedTargets():
                prim = self.stage.GetPrimAtPath(target)
                other = self.nearest_frame(prim) if prim else self.world
                if other not in (frame, self.world):
                    place = self.place(frame.prim)
                    yield AllowedPairSpec(frame.name, other.name, "filtered", place)
