"""USD with the physics schema, as Isaac Sim writes it.

A rigid body is a frame of its prim's name (its path where the name is taken). So is an ``Xform``
without children, and, outside of rigid bodies, one with shapes right in it; other prims only place
what is in them. Joints join the bodies to trees, as in SDF; a body without a joint is free, a
kinematic one is fixed. Transforms, shapes and masses of prims are converted to metres and
kilograms, and the axis that is up to z, by the units of the stage. Sizes include the scales of
prims; shear is omitted.

USD stores joints and masses in single precision. What tmkit's writer puts beside them as ``tmkit:``
attributes is exact and takes precedence. Layers that a file names are opened only where a scene may
read; missing ones are omitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tmkit._support.elementary import dot, norm, product
from tmkit._support.extras import importing
from tmkit._support.limits import ReadingLimits, is_file, read_bytes
from tmkit._support.source_location import Note, SourceLocation, reported
from tmkit.errors import FileFormatError
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.mesh.solids import ellipsoid
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import GeometrySpec, InertiaSpec, JointSpec, MimicSpec, PrimitiveSpec
from tmkit.formats.spec.values import JointEdge, build_forest, frames_on_joint, spec_of_pose
from tmkit.formats.urdf.reader import UNIT_AXES, adjacent_pairs, inverted_limits_reason
from tmkit.formats.usd.prim_counter import PrimCounter
from tmkit.graph import Mesh, Plane, Shape
from tmkit.spatial import Pose

if TYPE_CHECKING:
    from pxr import Usd

Array = np.ndarray[Any, np.dtype[np.float64]]


class StageValues:
    """Reads prims of a stage."""

    def __init__(self, stage: Any, path: Path, limits: ReadingLimits, note: Note) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.usd, self.geom, self.physics = Usd, UsdGeom, UsdPhysics
        self.stage, self.path, self.limits, self.note = stage, path, limits, note
        self.cache = UsdGeom.XformCache()
        self.unit, self.kilograms = (
            UsdGeom.GetStageMetersPerUnit(stage),
            UsdPhysics.GetStageKilogramsPerUnit(stage),
        )
        self.base = np.diag([self.unit] * 3 + [1.0])
        if UsdGeom.GetStageUpAxis(stage) == "Y":
            self.base = product(
                np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]), self.base
            )

    def place(self, prim: Usd.Prim) -> SourceLocation:
        """Return where a prim is, for messages."""
        return SourceLocation(f"{self.path} (prim {prim.GetPath()})")

    def matrix(self, prim: Usd.Prim) -> Array:
        """Return the transform (4, 4) from a prim to the world in metres."""
        return product(self.base, np.array(self.cache.GetLocalToWorldTransform(prim)).T)

    def pose(self, prim: Usd.Prim) -> Pose:
        """Return the pose of a prim in the world."""
        return self.rigid(self.matrix(prim), prim)[0]

    def rigid(self, matrix: Array, prim: Usd.Prim) -> tuple[Pose, Array]:
        """Return the pose and the scales (3,) of a transform."""
        scale = np.sqrt((matrix[:3, :3] ** 2).sum(axis=0))
        if not np.isfinite(matrix).all() or not np.isfinite(scale).all() or not scale.min() > 0.0:
            raise self.place(prim).error("the transform has a scale of 0, or is no number")
        turn = matrix[:3, :3] / scale
        if np.linalg.det(turn) < 0.0:
            turn[:, 0], scale[0] = -turn[:, 0], -scale[0]
        if np.abs(product(turn.T, turn) - np.eye(3)).max() > 1e-6:
            self.note(self.place(prim), "the transform has shear, which is omitted")
            x, y = turn[:, 0], turn[:, 1] - dot(turn[:, 0], turn[:, 1]) * turn[:, 0]
            y = y / norm(y)
            turn = np.stack([x, y, np.cross(x, y)], axis=1)
        scale = np.where(np.abs(np.abs(scale) - 1.0) < 1e-12, np.sign(scale), scale)
        return Pose.from_rotation_matrix(matrix[:3, 3], turn), scale

    @staticmethod
    def numbers(prim: Usd.Prim, name: str) -> Array | None:
        """Return the numbers of an attribute, exactly where our writer gave them so; a quaternion as xyzw."""
        exact = prim.GetAttribute(f"tmkit:{name}").Get()
        value = exact if exact is not None else prim.GetAttribute(name).Get()
        if value is None:
            return None
        if hasattr(value, "GetImaginary"):
            value = [*value.GetImaginary(), value.GetReal()]
        return np.atleast_1d(np.array(value, dtype=np.float64))

    def number(self, prim: Usd.Prim, name: str, otherwise: float) -> float:
        """Return the number of an attribute, ``otherwise`` without one."""
        found = self.numbers(prim, name)
        return otherwise if found is None else float(found[0])

    def shapes(self, prim: Usd.Prim, frame: Pose, top: Usd.Prim) -> Iterator[GeometrySpec]:
        """Yield the shape of a prim on the frame of the prim ``top``, if it is drawn or collides."""
        looks = self.geom.Imageable(prim)
        is_drawn = looks.ComputeVisibility() != "invisible" and looks.ComputePurpose() in (
            "default",
            "render",
        )
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
            shown, opacity = (
                self.geom.Gprim(prim).GetPrim().GetAttribute(f"primvars:display{word}").Get()
                for word in ("Color", "Opacity")
            )
            color = (
                None
                if not shown
                else np.array([*shown[0], opacity[0] if opacity else 1.0], dtype=np.float64)
            )
        friction = self.numbers(prim, "friction")
        approximation = prim.GetAttribute("physics:approximation").Get()
        level = prim.GetAttribute("tmkit:level").Get() or (
            "hull" if approximation == "convexHull" else None
        )
        r, g, b, a = np.clip(color, 0.0, 1.0).tolist() if color is not None else (0.0,) * 4
        yield GeometrySpec(
            shape,
            self.place(prim),
            spec_of_pose(pose),
            color=(r, g, b, a) if color is not None else None,
            visual=is_drawn,
            collision=collides,
            level=level or None,
            friction=None if friction is None else float(friction[0]),
        )

    def shape(self, prim: Usd.Prim, scale: Array) -> PrimitiveSpec | Shape | None:
        """Return the shape of a prim of these scales (3,), ``None`` for one that is omitted."""
        kind, sizes = str(prim.GetTypeName()), np.abs(scale)
        if kind == "Mesh":
            return self.mesh(prim, scale)
        if kind == "Plane":
            return Plane()
        if kind == "Cube":
            size = self.numbers(prim, "size")
            return PrimitiveSpec(
                "box",
                tuple((size if size is not None and len(size) == 3 else size * sizes).tolist()),
            )
        radius = self.number(prim, "radius", 1.0)
        if kind == "Sphere":
            x, y, z = (radius * sizes).tolist()
            return (
                PrimitiveSpec("sphere", (x,))
                if math.isclose(x, y) and math.isclose(y, z)
                else ellipsoid((x, y, z))
            )
        if kind not in ("Cylinder", "Capsule", "Cone"):
            self.note(self.place(prim), f"a prim of type {kind} has no shape here, and is omitted")
            return None
        along = "XYZ".index(prim.GetAttribute("axis").Get() or "Z")
        across = np.delete(sizes, along)
        if not math.isclose(*across):
            self.note(self.place(prim), "the scales across the axis differ; the greater is taken")
        height = self.number(prim, "height", 2.0) * float(sizes[along])
        return PrimitiveSpec(kind.lower(), (radius * float(across.max()), height))

    def mesh(self, prim: Usd.Prim, scale: Array) -> Shape | None:
        """Return the triangles of a mesh, whose faces become fans."""
        points, counts, corners = (
            self.numbers(prim, key) for key in ("points", "faceVertexCounts", "faceVertexIndices")
        )
        if points is None or counts is None or corners is None or not len(counts):
            self.note(self.place(prim), "the mesh has no faces, and is omitted")
            return None
        number, corner = counts.astype(np.int64), corners.astype(np.int64)
        if (
            number.min() < 3
            or number.sum() != len(corner)
            or number.sum() > 3 * self.limits.mesh_triangles
        ):
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

    def inertia(self, prim: Usd.Prim, frame: Pose, *, has_shapes: bool) -> InertiaSpec | None:
        """Return the mass of a prim at the pose of its frame."""
        mass = self.number(prim, "physics:mass", 0.0) * self.kilograms
        if not prim.HasAPI(self.physics.MassAPI) or not mass > 0.0:
            return None
        center, axes = (
            self.numbers(prim, "physics:centerOfMass"),
            self.numbers(prim, "physics:principalAxes"),
        )
        exact, diagonal = (
            self.numbers(prim, "inertia"),
            self.numbers(prim, "physics:diagonalInertia"),
        )
        if center is None or not np.isfinite(center).all():
            center = np.zeros(3)
        moved = product(self.matrix(prim), np.array([*center, 1.0]))[:3]
        turn = (
            (0.0, 0.0, 0.0, 1.0)
            if axes is None or not axes.any() or exact is not None
            else tuple(axes.tolist())
        )
        origin = spec_of_pose(Pose(frame.inverse().apply(moved), turn))
        if exact is not None:
            a, b, c, d, e, f = exact.tolist()
            return InertiaSpec(mass, self.place(prim), origin, (a, b, c, d, e, f))
        if diagonal is None or not diagonal.any():
            return InertiaSpec(mass, self.place(prim), origin, None if has_shapes else (0.0,) * 6)
        x, y, z = (diagonal * self.kilograms * self.unit**2).tolist()
        return InertiaSpec(mass, self.place(prim), origin, (x, 0.0, 0.0, y, 0.0, z))


KINDS = {
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsFixedJoint": "fixed",
    "PhysicsSphericalJoint": "ball",
}
_HALF = math.sqrt(0.5)
# turns of z
_TO_AXIS = {
    "X": (0.0, _HALF, 0.0, _HALF),
    "Y": (-_HALF, 0.0, 0.0, _HALF),
    "Z": (0.0, 0.0, 0.0, 1.0),
}


def read_usd(path: Path, *, packages: PackageResolver, note: Note) -> SceneSpecification:
    """Read a stage with all its layers; ``usd-core`` must be installed and take it."""
    with importing("pxr", "formats", f"{path}: reading USD needs"):
        from pxr import Tf, Usd

    try:
        layers = _layers(path, packages, note)
        PrimCounter(packages.limits.frames, SourceLocation(str(path))).require_few(layers[0])
        stage = Usd.Stage.Open(layers[0])
        return _Reader(stage, path, packages.limits, note).specification()
    except Tf.ErrorException as error:
        reason = " ".join(str(error).rpartition(" : '")[2].split()).rstrip(" '")
        raise FileFormatError.at(path, f"USD refuses the file: {reason}") from None


def _layers(path: Path, packages: PackageResolver, note: Note) -> list[Any]:
    """Return the open layers of a file, the file's first, without references to those that are missing."""
    from pxr import Sdf

    found: dict[str, Any] = {}
    waiting = [str(path)]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        # refuses devices and large files
        read_bytes(Path(file.partition("[")[0]), limit=packages.limits.mesh_bytes)
        layer = found[file] = Sdf.Layer.FindOrOpen(file)
        place = SourceLocation(file)
        if layer is None:
            raise place.error("is no USD file")
        for asset in sorted(layer.GetCompositionAssetDependencies()):
            other = layer.ComputeAbsolutePath(asset)
            if is_file(Path(other.partition("[")[0])):
                packages.resolve(other.partition("[")[0], folder=path.parent, place=place)
                waiting.append(other)
            else:
                note(place, f"the layer '{asset}' is missing, and is omitted")
                layer.UpdateCompositionAssetDependency(asset, "")
    return [*found.values()]


@dataclass(slots=True, eq=False)
class _Frame:
    """A prim that is a frame: its pose in the world, the frame above, and the body (or world) with which it moves."""

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
    """A joint prim, with the frames and the poses in the world of its two ends."""

    prim: Usd.Prim
    name: str
    frames: tuple[_Frame, _Frame]
    poses: tuple[Pose, Pose]
    ends: InitVar[tuple[_Frame, _Frame]]  # the bodies, or the world, that it joins

    def __post_init__(self, ends: tuple[_Frame, _Frame]) -> None:
        self.top, self.bottom = ends


class _Reader(StageValues):
    """Reads the frames and joints of a stage."""

    def __init__(self, stage: Any, path: Path, limits: ReadingLimits, note: Note) -> None:
        super().__init__(stage, path, limits, note)
        self.world = _Frame("world", stage.GetPseudoRoot(), Pose.identity(), None, None)
        self.frames: dict[Any, _Frame] = {stage.GetPseudoRoot().GetPath(): self.world}
        self.joints: list[_Joint] = []

    def specification(self) -> SceneSpecification:
        prims = [
            *self.stage.Traverse(self.usd.TraverseInstanceProxies(self.usd.PrimDefaultPredicate))
        ]
        self.limits.refuse_frames(len(prims), self.place(self.world.prim).error)
        for prim in prims:
            above = self.nearest(prim)
            if prim.GetAttribute("tmkit:frame").Get() == "world":
                self.frames[prim.GetPath()] = self.world
            elif self.is_frame(prim, above):
                name, pose = (
                    self.named(prim, "tmkit:frame", {one.name for one in self.frames.values()}),
                    self.pose(prim),
                )
                is_body = prim.HasAPI(self.physics.RigidBodyAPI)
                self.frames[prim.GetPath()] = _Frame(
                    name, prim, pose, above, above.body, is_body=is_body
                )
            if prim.IsA(self.geom.Gprim):
                frame = self.nearest(prim)
                with reported(self.place(prim)):
                    frame.add_shapes(self.shapes(prim, frame.pose, frame.prim))
        for prim in prims:
            if prim.IsA(self.physics.Joint) and prim.GetAttribute("physics:jointEnabled").Get():
                self.join(prim)
        return self.built()

    def named(self, prim: Usd.Prim, attribute: str, taken: set[str]) -> str:
        """Return the name that our writer gave, or that of the prim, or its path."""
        given: str | None = prim.GetAttribute(attribute).Get()
        name = given or str(prim.GetName())
        return name if given or name not in taken else str(prim.GetPath()).lstrip("/")

    def nearest(self, prim: Usd.Prim) -> _Frame:
        """Return the frame that a prim is, or is in."""
        path = prim.GetPath()
        while path not in self.frames:
            path = path.GetParentPath()
        return self.frames[path]

    def is_frame(self, prim: Usd.Prim, above: _Frame) -> bool:
        if prim.HasAPI(self.physics.RigidBodyAPI) or prim.GetAttribute("tmkit:frame"):
            return True
        children = prim.GetFilteredChildren(
            self.usd.TraverseInstanceProxies(self.usd.PrimDefaultPredicate)
        )
        if prim.GetTypeName() != "Xform":
            return False
        return not children or (
            above.body is None and any(child.IsA(self.geom.Gprim) for child in children)
        )

    def join(self, prim: Usd.Prim) -> None:
        if prim.GetTypeName() not in KINDS:
            self.note(self.place(prim), f"a joint of type {prim.GetTypeName()} is omitted")
            return
        frames, poses = [], []
        for end in "01":
            targets = prim.GetRelationship(f"physics:body{end}").GetForwardedTargets()
            body = self.stage.GetPrimAtPath(targets[0]) if targets else self.world.prim
            if not body:
                raise self.place(prim).error(
                    f"the joint names the prim {targets[0]}, which is not there"
                )
            position, turn = (
                self.numbers(prim, f"physics:local{word}{end}") for word in ("Pos", "Rot")
            )
            local = Pose(
                np.zeros(3) if position is None else position,
                (0, 0, 0, 1) if turn is None else turn,
            )
            frames.append(self.nearest(body))
            poses.append(self.rigid(product(self.matrix(body), local.as_matrix()), prim)[0])
        if prim.GetAttribute("tmkit:axis"):
            poses = [frames[1].pose] * 2
        elif poses[0].is_close(poses[1], translation_tolerance=1e-5, rotation_tolerance=1e-5):
            poses[1] = poses[0]
        name = self.named(prim, "tmkit:joint", {joint.name for joint in self.joints})
        top, bottom = (frame.body or self.world for frame in frames)
        self.joints.append(
            _Joint(prim, name, (frames[0], frames[1]), (poses[0], poses[1]), (top, bottom))
        )

    def steps(self, joint: _Joint) -> list[tuple[str, JointSpec]]:
        """Return the joints of one degree of freedom that a joint is made of."""
        prim, name, place, kind = (
            joint.prim,
            joint.name,
            self.place(joint.prim),
            KINDS[joint.prim.GetTypeName()],
        )
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
        is_turn = kind == "revolute"
        drive, unit = (
            f"drive:{'angular' if is_turn else 'linear'}:physics",
            math.radians(1.0) if is_turn else self.unit,
        )
        lower, upper = (
            unit * self.number(prim, f"physics:{word}Limit", sign * math.inf)
            for word, sign in (("lower", -1.0), ("upper", 1.0))
        )
        if lower > upper:
            raise place.error(
                inverted_limits_reason(f"the {kind} joint '{name}'", lower / unit, upper / unit)
            )
        x, y, z = (
            found.tolist()
            if (found := self.numbers(prim, "axis")) is not None and len(found) == 3
            else UNIT_AXES[prim.GetAttribute("physics:axis").Get().lower()]
        )
        leader = prim.GetAttribute("tmkit:mimic").Get()
        rule = (self.number(prim, word, 0.0) for word in ("multiplier", "offset"))
        mimic = MimicSpec(leader, next(rule), next(rule), place) if leader else None
        is_endless = is_turn and math.isinf(lower) and math.isinf(upper)
        is_damped = self.number(prim, f"{drive}:stiffness", 0.0) == 0.0
        spec = JointSpec(
            "continuous" if is_endless else kind,
            name,
            (x, y, z),
            lower,
            upper,
            velocity=unit * self.number(prim, "physxJoint:maxJointVelocity", math.inf),
            effort=self.number(prim, f"{drive}:maxForce", math.inf),
            damping=self.number(prim, f"{drive}:damping", 0.0) / unit if is_damped else 0.0,
            friction=self.number(prim, "physxJoint:jointFriction", 0.0),
            mimic=mimic,
            place=place,
        )
        return [(name, spec)]

    def built(self) -> SceneSpecification:
        frames = [*dict.fromkeys(self.frames.values())][1:]
        bodies = [frame for frame in frames if frame.body is frame]
        still = {
            frame for frame in bodies if frame.prim.GetAttribute("physics:kinematicEnabled").Get()
        }
        build_forest(self.world, bodies, still, self.joints)
        moved: dict[_Frame, _Joint] = {}
        for joint in self.joints:
            if joint.top is joint.bottom:
                self.note(
                    self.place(joint.prim),
                    f"the joint joins '{joint.top.name}' to itself, and is omitted",
                )
            elif joint.above is None:
                self.note(self.place(joint.prim), "the joint closes a loop, and is omitted")
            else:
                moved[joint.top if joint.is_reversed else joint.bottom] = joint
        made = [
            FrameSpec("world", None, self.place(self.world.prim), geometry=tuple(self.world.shapes))
        ]
        for frame in frames:
            spec = self.frame(frame)
            if frame not in moved:
                above = self.world if frame.body is frame or frame.above is None else frame.above
                # of a free frame, which USD has in the world
                given = frame.prim.GetAttribute("tmkit:parent").Get()
                above = next((one for one in frames if one.name == given), above)
                moves = JointSpec(
                    "fixed" if frame.body is not frame or frame in still else "free",
                    place=spec.place,
                )
                at = spec_of_pose(above.pose.inverse() @ frame.pose)
                made.append(replace(spec, parent=above.name, pose=at, joint=moves))
                continue
            edge = moved[frame]
            one, other = (1, 0) if edge.is_reversed else (0, 1)
            pose, rest = (
                edge.frames[one].pose.inverse() @ edge.poses[one],
                edge.poses[other].inverse() @ frame.pose,
            )
            place, steps = self.place(edge.prim), self.steps(edge)
            made += frames_on_joint(
                spec,
                edge.frames[one].name,
                pose,
                rest,
                steps,
                is_reversed=edge.is_reversed,
                place=place,
            )
        order = {frame.name: frame.prim.GetAttribute("tmkit:index").Get() for frame in frames}
        if None not in order.values():
            made[1:] = sorted(made[1:], key=lambda spec: order.get(spec.name, 0))
        return SceneSpecification(tuple(made), tuple(self.allowed(made)))

    def frame(self, frame: _Frame) -> FrameSpec:
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

    def allowed(self, made: list[FrameSpec]) -> Iterator[AllowedPairSpec]:
        """Yield the pairs that our writer gave, or those that joints join and that are filtered."""
        ours = next(
            (
                [*found]
                for one in self.stage.GetPseudoRoot().GetChildren()
                if (found := one.GetAttribute("tmkit:allowed").Get()) is not None
            ),
            None,
        )
        if ours is not None:
            for pair in zip(ours[::3], ours[1::3], ours[2::3], strict=False):
                yield AllowedPairSpec(*pair, self.place(self.world.prim))
            return
        yield from adjacent_pairs(made)
        for frame in [*dict.fromkeys(self.frames.values())][1:]:
            for target in frame.prim.GetRelationship("physics:filteredPairs").GetForwardedTargets():
                other = self.stage.GetPrimAtPath(target)
                if other and (found := self.nearest(other)) not in (frame, self.world):
                    yield AllowedPairSpec(
                        frame.name, found.name, "filtered", self.place(frame.prim)
                    )
