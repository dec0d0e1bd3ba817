"""Scenes as MuJoCo models: bodies, joints and geoms, with the same indices as in pybullet.

MuJoCo uses the larger friction of two surfaces, and pybullet their product. The surfaces of an
object therefore have the friction of the object on a fixed body. A finger has the product of its
own friction and that of an object. An object with a friction in the scene has the product of that
and a finger's friction against all bodies.

With the default settings of MuJoCo, a held mug slips from the fingers. Elliptic cones, ``impratio``
100, torsional contacts (``condim`` 4) and twenty iterations without slip hold it. With weaker
settings, an object at an edge creeps. The contacts of MuJoCo neglect the centripetal acceleration
of a rotating hand, so that a held object creeps in proportion to the time step. Contacts are
therefore stiff, and MuJoCo runs two steps for each one of pybullet.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit.errors import SimulationError
from tmkit.graph import Joint, Kinematics
from tmkit.manipulation.grasps.holding import torsion_arm
from tmkit.motion.masses import lumped_inertia
from tmkit.robots import Manipulator
from tmkit.simulation.engines.pybullet.bodies import Body, require_collision_shape, rigid_groups
from tmkit.simulation.engines.pybullet.body_world import PROBE_RADIUS
from tmkit.simulation.engines.pybullet.motors import Drives
from tmkit.simulation.engines.pybullet.shapes import PlacedShape, bounding_box, hull, triangles_of
from tmkit.simulation.pieces import Piece, partition
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose

SUBSTEPS = 2
"""Steps of MuJoCo in one time step of the simulation."""

SPARE_WELDS = 4
"""Number of welds for attached objects, in addition to one for each arm."""

_RELATIVE_TIME_CONSTANT = 2.1 / SUBSTEPS
"""Time constant of contacts, gears and welds in time steps, at least two steps of MuJoCo."""

_FINGERTIP_ARMATURE = 0.3
"""Inertia of a gripper's motor at the fingertip, which lets it hold thin objects [kg]."""

_ROLLING_FRICTION = 1e-5
"""Rolling friction of all contacts, and torsional friction of hard ones [m]."""


class _BodyView(Protocol):
    """Body of a compiled model."""

    @property
    def id(self) -> int:
        """Index of the body."""
        ...


class _CompiledModel(Protocol):
    """Compiled MuJoCo model."""

    def body(self, name: str, /) -> _BodyView:
        """Return a body by name."""
        ...


def _name(frame: str) -> str:
    """Return the name of the body of a frame. MuJoCo reserves the name 'world'."""
    return f"{frame}/body"


def load_mujoco() -> Any:
    """Import MuJoCo and return the module.

    Raises:
        MissingExtraError: if MuJoCo is not installed.
    """
    with importing("mujoco", "engines", "the engine 'mujoco' needs"):
        return importlib.import_module("mujoco")


class ModelBuilder:
    """Builder of the MuJoCo model of a scene.

    The index of a link or joint is its position in ``links`` or ``joints``.

    Args:
        start: scene at the start configuration.
        robots: arms with hands.
        settings: physical parameters.
    """

    def __init__(
        self, start: Kinematics, robots: Sequence[Manipulator], settings: PhysicsSettings
    ) -> None:
        self.mujoco = load_mujoco()
        self.scene, self._start, self._settings = start.scene, start, settings
        self.spec = self._make_spec()
        self._solref = [_RELATIVE_TIME_CONSTANT * settings.time_step, 1.0]
        self.links: list[str] = []
        self.joints: list[str] = []
        self._meshes: dict[str, str] = {}
        self._fingers = {
            link: number for number, robot in enumerate(robots) for link in robot.contact_links
        }
        self._every_finger = sum(2 << number for number in range(len(robots)))
        self.bodies = list(self._bodies())
        for body in self.bodies:  # Links of one mechanism do not collide.
            if body.joints:
                for first, second in combinations(sorted(body.links), 2):
                    self.exclude(first, second)

    def _make_spec(self) -> Any:
        """Return an empty specification with the options of the solver."""
        settings, spec = self._settings, self.mujoco.MjSpec()
        spec.compiler.degree, spec.compiler.balanceinertia = False, True
        # Specifications of MuJoCo have no constructor arguments.
        spec.option.timestep = settings.time_step / SUBSTEPS
        spec.option.gravity = [0.0, 0.0, -settings.gravity]
        spec.option.cone, spec.option.impratio = self.mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
        spec.option.noslip_iterations = 20
        spec.option.iterations = settings.solver_iterations
        return spec

    def _bodies(self) -> Iterator[Body]:
        """Add the bodies of all pieces, and yield them."""
        pieces = partition(self.scene)
        fixed = [
            Piece(frame, (frame,), (), ()) for frame in pieces.fixed if self.scene.shapes(frame)
        ]
        for kind, group in (
            ("fixed", fixed),
            ("mechanism", pieces.mechanisms),
            ("object", pieces.objects),
        ):
            for piece in group:
                if kind == "object":
                    require_collision_shape(self.scene, piece)
                yield self._mechanism(kind, piece) if piece.moving else self._rigid(kind, piece)

    def _rigid(self, kind: str, piece: Piece) -> Body:
        """Add the body of a piece without joints."""
        offsets = {frame: self.scene.pose(frame, relative_to=piece.base) for frame in piece.frames}
        body = self._base(kind, piece)
        if kind != "fixed":
            self._set_inertia(body, piece.frames)
        for frame, offset in offsets.items():
            self._add_shapes(body, frame, offset, kind)
        links = dict.fromkeys(piece.frames, len(self.links) - 1)
        return Body(len(self.links) - 1, kind, piece.base, links, offsets, {}, Pose())

    def _mechanism(self, kind: str, piece: Piece) -> Body:
        """Add the bodies of a piece with joints."""
        scene = self.scene
        spec_bodies, joints = {piece.base: self._base(kind, piece)}, {}
        links = {piece.base: len(self.links) - 1}
        for frame in piece.frames[1:]:
            parent = spec_bodies[str(scene.parent(frame))]
            body = self._body(parent, frame, scene.local_pose(frame))
            spec_bodies[frame], links[frame] = body, len(self.links) - 1
            if frame in piece.moving:
                joint = scene.joint(frame)
                self._add_joint(body, joint)
                joints[joint.name] = len(self.joints) - 1
        for group in rigid_groups(scene, piece):
            self._set_inertia(spec_bodies[group[0]], group)
        for frame, body in spec_bodies.items():
            self._add_shapes(body, frame, Pose(), kind)
        return Body(
            links[piece.base],
            kind,
            piece.base,
            links,
            dict.fromkeys(piece.frames, Pose()),
            joints,
            Pose(),
        )

    def _base(self, kind: str, piece: Piece) -> Any:
        """Add the body of the base of a piece."""
        body = self._body(self.spec.worldbody, piece.base, self._start.pose(piece.base))
        if kind == "object":
            body.add_freejoint(name=f"{piece.base} moves freely")
        return body

    def _body(self, parent: Any, frame: str, pose: Pose) -> Any:
        """Add the body of a frame to a parent body."""
        self.links.append(frame)
        quat = np.roll(pose.quat_xyzw, 1)
        return parent.add_body(
            name=_name(frame), pos=pose.translation, quat=quat, explicitinertial=True
        )

    def _set_inertia(self, spec_body: Any, frames: Sequence[str]) -> None:
        """Set the inertia of a body to that of some frames."""
        inertia = lumped_inertia(self.scene, frames, density=self._settings.density)
        matrix = np.asarray(inertia.matrix, dtype=float)
        off_diagonal = [matrix[0, 1], matrix[0, 2], matrix[1, 2]]
        spec_body.mass, spec_body.ipos = inertia.mass, inertia.center
        spec_body.fullinertia = [*np.diagonal(matrix), *off_diagonal]

    def _add_joint(self, body: Any, joint: Joint) -> None:
        """Add a joint to a body."""
        kinds = self.mujoco.mjtJoint
        kind = kinds.mjJNT_SLIDE if joint.type == "prismatic" else kinds.mjJNT_HINGE
        self.joints.append(joint.name)
        spec_joint = body.add_joint(name=joint.name, type=kind, axis=joint.axis)
        has_limits = math.isfinite(joint.upper - joint.lower) and joint.lower < joint.upper
        if joint.type != "continuous" and has_limits:
            spec_joint.range = [joint.lower, joint.upper]
            spec_joint.limited = self.mujoco.mjtLimited.mjLIMITED_TRUE

    def _contact_options(self, frame: str, kind: str) -> dict[str, Any]:
        """Return friction, stiffness and collision bits of the geoms of a frame."""
        settings = self._settings
        values = [part.friction for part in self.scene.shapes(frame) if part.collision]
        own_friction = max((value for value in values if value is not None), default=None)
        is_finger, is_object = frame in self._fingers, kind == "object"
        if own_friction is not None and not is_object:
            friction = own_friction
        elif is_finger:
            friction = settings.finger_friction
        else:
            is_mechanism = kind == "mechanism"
            friction = settings.robot_friction if is_mechanism else settings.fixed_friction
        friction *= settings.object_friction
        bits = (1, 1 | self._every_finger)
        if is_finger:  # A suction cup disables contacts with the object it handles.
            bit = 2 << self._fingers[frame]
            bits = (bit, self._every_finger & ~bit)
        options: dict[str, Any] = {
            "condim": 4,
            "solref": self._solref,
            "contype": bits[0],
            "conaffinity": bits[1],
        }
        is_soft = is_finger
        if is_object and own_friction is not None:
            friction, options["priority"], is_soft = (
                own_friction * settings.finger_friction,
                1,
                True,
            )
        torsion = torsion_arm(settings.pad_radius) * friction if is_soft else _ROLLING_FRICTION
        options["friction"] = [friction, torsion, _ROLLING_FRICTION]
        return options

    def _add_shapes(self, body: Any, frame: str, offset: Pose, kind: str) -> None:
        """Add the geoms of the collision shapes of a frame."""
        options = self._contact_options(frame, kind)
        for part in self.scene.shapes(frame):
            if part.collision:
                placed = PlacedShape(part, offset @ part.pose, frame)
                for pose, geom in self._geoms(placed, is_fixed=kind == "fixed"):
                    quat = np.roll(pose.quat_xyzw, 1)
                    body.add_geom(pos=pose.translation, quat=quat, **options, **geom)

    def _geoms(
        self, placed: PlacedShape, *, is_fixed: bool
    ) -> Iterator[tuple[Pose, dict[str, Any]]]:
        """Yield poses and arguments of the geoms of a shape.

        Raises:
            SimulationError: if the shape is a plane on a moving body.
        """
        types, shape, pose = self.mujoco.mjtGeom, placed.attached.shape, placed.pose
        has_detail = is_fixed and placed.attached.level != "box"
        sizes = [float(size) for size in shape.dimensions]
        if shape.kind == "plane":
            if not is_fixed:
                raise SimulationError(
                    f"frame '{placed.frame}': a plane cannot be simulated on a body that moves"
                )
            yield pose, {"type": types.mjGEOM_PLANE, "size": [0.0, 0.0, 1.0]}
        elif shape.kind == "box":
            yield pose, {"type": types.mjGEOM_BOX, "size": [0.5 * size for size in sizes]}
        elif shape.kind == "sphere":
            yield pose, {"type": types.mjGEOM_SPHERE, "size": [sizes[0], 0.0, 0.0]}
        elif shape.kind == "capsule":
            yield pose, {"type": types.mjGEOM_CAPSULE, "size": [sizes[0], 0.5 * sizes[1], 0.0]}
        elif shape.kind == "point_cloud" and has_detail:
            ball = {"type": types.mjGEOM_SPHERE, "size": [sizes[0], 0.0, 0.0]}
            for point in np.asarray(shape.points, dtype=float):
                yield pose @ Pose(point), dict(ball)
        elif shape.kind == "height_field" and has_detail:
            heights = np.asarray(shape.heights, dtype=float)
            low, span = float(heights.min()), max(float(np.ptp(heights)), 1e-6)
            name = f"field {len(self.spec.hfields)}"
            size = [sizes[0] / 2, sizes[1] / 2, span, max(low - sizes[2], 1e-3)]
            rows, columns = heights.shape
            data = ((heights - low) / span).ravel()
            self.spec.add_hfield(name=name, nrow=rows, ncol=columns, size=size, userdata=data)
            yield pose @ Pose([0.0, 0.0, low]), {"type": types.mjGEOM_HFIELD, "hfieldname": name}
        else:
            yield pose, {"type": types.mjGEOM_MESH, "meshname": self._mesh(placed)}

    def _mesh(self, placed: PlacedShape) -> str:
        """Return the name of the mesh of the hull of a shape, added once for equal shapes."""
        shape, is_box = placed.attached.shape, placed.attached.level == "box"
        key = f"{shape.digest}-{is_box}"
        if key not in self._meshes:
            vertices = (bounding_box if is_box else triangles_of)(shape)[0]
            vertices = hull(vertices, placed.frame)[0]
            self._meshes[key] = f"mesh {len(self._meshes)}"
            convex = self.mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
            self.spec.add_mesh(name=self._meshes[key], uservert=vertices.ravel(), inertia=convex)
        return self._meshes[key]

    def finish(
        self,
        drives: Drives,
        passive: Mapping[str, float],
        robots: Sequence[Manipulator],
        welds: int,
    ) -> Any:
        """Add gears, armatures, friction and welds, and return the model.

        Args:
            drives: motors of the joints.
            passive: friction by joint without motor [N or N m].
            robots: arms with hands.
            welds: number of inactive welds for attached objects.
        """
        for gear in drives.gears:
            self.spec.add_equality(
                type=self.mujoco.mjtEq.mjEQ_JOINT,
                name1=gear.joint,
                name2=gear.first,
                solref=self._solref,
                objtype=self.mujoco.mjtObj.mjOBJ_JOINT,
                data=[gear.shift, gear.ratio, *[0.0] * 10],
            )
        for robot in robots:
            for drive in drives.hands[robot.name]:
                for index, entry in zip(drive.indices, drive.entries, strict=True):
                    lever = robot.finger_lever(self.scene.joint_names[entry])
                    armature = _FINGERTIP_ARMATURE * lever**2
                    self.spec.joint(self.joints[index]).armature = armature
        for name, friction in passive.items():
            self.spec.joint(name).frictionloss = friction
        names = [_name(frame) for frame in (self.links * 2)[:2]]
        for number in range(welds if self.links else 0):
            self.spec.add_equality(
                type=self.mujoco.mjtEq.mjEQ_WELD,
                name=f"weld {number}",
                name1=names[0],
                name2=names[-1],
                objtype=self.mujoco.mjtObj.mjOBJ_BODY,
                active=False,
                solref=self._solref,
            )
        sphere = self.mujoco.mjtGeom.mjGEOM_SPHERE
        self.spec.worldbody.add_geom(
            name="probe", type=sphere, size=[PROBE_RADIUS] * 3, contype=0, conaffinity=0
        )
        return self.compile()

    def exclude(self, first: str, second: str) -> None:
        """Disable collisions of two links."""
        self.spec.add_exclude(bodyname1=_name(first), bodyname2=_name(second))

    def body_ids(self, compiled: _CompiledModel) -> NDArray[np.intp]:
        """Return the body index (n_links,) of each link in a compiled model."""
        ids = [compiled.body(_name(frame)).id for frame in self.links]
        return np.array(ids, dtype=np.intp)

    def compile(self) -> Any:
        """Compile the specification.

        Raises:
            SimulationError: if MuJoCo rejects it.
        """
        try:
            return self.spec.compile()
        except ValueError as error:
            raise SimulationError(f"MuJoCo rejects the scene: {error}") from error
