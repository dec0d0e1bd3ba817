"""A scene as a model of MuJoCo: bodies, joints and geoms, numbered as pybullet's are.

MuJoCo takes the larger friction of two surfaces, where pybullet takes their product. So the
surfaces of an object have that of an object on what stands still, and a finger has the product of
its own and an object's. An object whose shapes give a friction has that times a finger's against
everything.

MuJoCo's own settings drop a mug. Elliptic cones, ``impratio`` 100, contacts that bear torsion
(``condim`` 4) and twenty iterations without slip hold it; with less of these, what is held by an
edge creeps. Its contacts omit the acceleration by which a turning hand pulls inwards, so that what
is held creeps by that times a step: hence stiff contacts, and two steps where pybullet makes one.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit.errors import SimulationError
from tmkit.graph import Joint, Kinematics
from tmkit.manipulation.grasps.holding import torsion_arm
from tmkit.motion.masses import lumped_inertia
from tmkit.robots import Manipulator
from tmkit.simulation.engines.pybullet.bodies import Body, require_collision_shape, rigid_groups
from tmkit.simulation.engines.pybullet.motors import Drives
from tmkit.simulation.engines.pybullet.shapes import PlacedShape, bounding_box, hull, triangles_of
from tmkit.simulation.pieces import Piece, partition
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose

SUBSTEPS = 2
"""Steps of MuJoCo in one of the simulation."""

SPARE_WELDS = 4
"""Objects that can be fixed besides one for each arm."""

# steps of the time constant of contacts, gears and what is fixed; at least 2 of MuJoCo's own
_STIFF = 2.1 / SUBSTEPS
# kilograms at a fingertip: the inertia of a gripper's motor, which lets it squeeze what is thin
_ARMATURE = 0.3


def _name(frame: str) -> str:
    """Return what the body of a frame is called, since 'world' is MuJoCo's."""
    return f"{frame}/body"


def load_mujoco() -> Any:
    """Return the module.

    Raises:
        MissingExtraError: it is not installed.
    """
    with importing("mujoco", "engines", "the engine 'mujoco' needs"):
        return importlib.import_module("mujoco")


class ModelBuilder:
    """Makes MuJoCo's model of a scene: its bodies and joints by our numbers, which are those of their names' lists."""

    def __init__(
        self, at: Kinematics, robots: Sequence[Manipulator], settings: PhysicsSettings
    ) -> None:
        self.mujoco = load_mujoco()
        self.scene, self._at, self._settings = at.scene, at, settings
        self.spec = self.mujoco.MjSpec()
        self.spec.compiler.degree, self.spec.compiler.balanceinertia = False, True
        # of MuJoCo, whose specifications are built by setting their attributes
        option = self.spec.option
        option.timestep, option.gravity = (
            settings.time_step / SUBSTEPS,
            [0.0, 0.0, -settings.gravity],
        )
        option.cone, option.impratio = self.mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
        option.noslip_iterations, option.iterations = 20, settings.solver_iterations
        self._stiff = [_STIFF * settings.time_step, 1.0]
        self.links: list[str] = []
        self.joints: list[str] = []
        self._meshes: dict[str, str] = {}
        self._fingers = {
            link: number for number, robot in enumerate(robots) for link in robot.contact_links
        }
        self._every_finger = sum(2 << number for number in range(len(robots)))
        self.bodies = list(self._bodies())
        for body in self.bodies:  # links of one mechanism do not collide
            if body.joints:
                for first, second in combinations(sorted(body.links), 2):
                    self.exclude(first, second)

    def _bodies(self) -> Iterator[Body]:
        pieces = partition(self.scene)
        still = [
            Piece(frame, (frame,), (), ()) for frame in pieces.fixed if self.scene.shapes(frame)
        ]
        for kind, group in (
            ("fixed", still),
            ("mechanism", pieces.mechanisms),
            ("object", pieces.objects),
        ):
            for piece in group:
                if kind == "object":
                    require_collision_shape(self.scene, piece)
                yield self._mechanism(kind, piece) if piece.moving else self._rigid(kind, piece)

    def _rigid(self, kind: str, piece: Piece) -> Body:
        offsets = {frame: self.scene.pose(frame, relative_to=piece.base) for frame in piece.frames}
        body = self._base(kind, piece)
        if kind != "fixed":
            self._weigh(body, piece.frames)
        for frame, offset in offsets.items():
            self._add_shapes(body, frame, offset, kind)
        links = dict.fromkeys(piece.frames, len(self.links) - 1)
        return Body(len(self.links) - 1, kind, piece.base, links, offsets, {}, Pose())

    def _mechanism(self, kind: str, piece: Piece) -> Body:
        scene, made, joints = self.scene, {piece.base: self._base(kind, piece)}, {}
        links = {piece.base: len(self.links) - 1}
        for frame in piece.frames[1:]:
            body = self._body(made[str(scene.parent(frame))], frame, scene.local_pose(frame))
            made[frame], links[frame] = body, len(self.links) - 1
            if frame in piece.moving:
                joint = scene.joint(frame)
                self._add_joint(body, joint)
                joints[joint.name] = len(self.joints) - 1
        for group in rigid_groups(scene, piece):
            self._weigh(made[group[0]], group)
        for frame, body in made.items():
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
        body = self._body(self.spec.worldbody, piece.base, self._at.pose(piece.base))
        if kind == "object":
            body.add_freejoint(name=f"{piece.base} moves freely")
        return body

    def _body(self, above: Any, frame: str, pose: Pose) -> Any:
        self.links.append(frame)
        turn = np.roll(pose.quat_xyzw, 1)
        return above.add_body(
            name=_name(frame), pos=pose.translation, quat=turn, explicitinertial=True
        )

    def _weigh(self, body: Any, frames: Sequence[str]) -> None:
        inertia = lumped_inertia(self.scene, frames, density=self._settings.density)
        matrix = np.asarray(inertia.matrix, dtype=float)
        body.mass, body.ipos = inertia.mass, inertia.center  # as `option` above
        body.fullinertia = [*np.diagonal(matrix), matrix[0, 1], matrix[0, 2], matrix[1, 2]]

    def _add_joint(self, body: Any, joint: Joint) -> None:
        kind = (
            self.mujoco.mjtJoint.mjJNT_SLIDE
            if joint.type == "prismatic"
            else self.mujoco.mjtJoint.mjJNT_HINGE
        )
        self.joints.append(joint.name)
        made = body.add_joint(name=joint.name, type=kind, axis=joint.axis)
        if (
            joint.type != "continuous"
            and math.isfinite(joint.upper - joint.lower)
            and joint.lower < joint.upper
        ):
            made.range, made.limited = (
                [joint.lower, joint.upper],
                self.mujoco.mjtLimited.mjLIMITED_TRUE,
            )

    def _add_shapes(self, body: Any, frame: str, offset: Pose, kind: str) -> None:
        settings, given = (
            self._settings,
            [part.friction for part in self.scene.shapes(frame) if part.collision],
        )
        own = max((value for value in given if value is not None), default=None)
        is_finger = frame in self._fingers
        is_soft = is_finger or (kind == "object" and own is not None)
        usual = {"fixed": settings.fixed_friction, "object": settings.fixed_friction}.get(
            kind, settings.robot_friction
        )
        friction = (
            (settings.finger_friction if is_finger else usual)
            if own is None or kind == "object"
            else own
        )
        friction *= settings.object_friction
        bits = (1, 1 | self._every_finger)
        if is_finger:  # which objects it touches can change: SuctionCup
            bit = 2 << self._fingers[frame]
            bits = (bit, self._every_finger & ~bit)
        common: dict[str, Any] = {
            "condim": 4,
            "solref": self._stiff,
            "contype": bits[0],
            "conaffinity": bits[1],
        }
        if kind == "object" and own is not None:
            friction, common["priority"] = own * settings.finger_friction, 1
        common["friction"] = [
            friction,
            torsion_arm(settings.pad_radius) * friction if is_soft else 1e-5,
            1e-5,
        ]
        for part in self.scene.shapes(frame):
            if part.collision:
                for pose, described in self._described(
                    PlacedShape(part, offset @ part.pose, frame), kind == "fixed"
                ):
                    body.add_geom(
                        pos=pose.translation, quat=np.roll(pose.quat_xyzw, 1), **common, **described
                    )

    def _described(
        self, placed: PlacedShape, is_still: bool
    ) -> Iterator[tuple[Pose, dict[str, Any]]]:
        """Yield poses and descriptions of MuJoCo's geoms for a shape."""
        types, shape, pose = self.mujoco.mjtGeom, placed.attached.shape, placed.pose
        sizes = [float(size) for size in shape.dimensions]
        if shape.kind == "plane":
            if not is_still:
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
        elif shape.kind == "point_cloud" and is_still and placed.attached.level != "box":
            for point in np.asarray(shape.points, dtype=float):
                yield (
                    pose @ Pose(point),
                    {"type": types.mjGEOM_SPHERE, "size": [sizes[0], 0.0, 0.0]},
                )
        elif shape.kind == "height_field" and is_still and placed.attached.level != "box":
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
        shape, boxed = placed.attached.shape, placed.attached.level == "box"
        key = f"{shape.digest}-{boxed}"
        if key not in self._meshes:
            vertices = (bounding_box if boxed else triangles_of)(shape)[0]
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
        """Add gears, armatures, friction and spare welds, and return the model."""
        for gear in drives.gears:
            self.spec.add_equality(
                type=self.mujoco.mjtEq.mjEQ_JOINT,
                name1=gear.joint,
                name2=gear.first,
                solref=self._stiff,
                objtype=self.mujoco.mjtObj.mjOBJ_JOINT,
                data=[gear.shift, gear.ratio, *[0.0] * 10],
            )
        for robot in robots:
            for drive in drives.hands[robot.name]:
                for index, entry in zip(drive.indices, drive.entries, strict=True):
                    name = self.scene.joint_names[entry]
                    self.spec.joint(self.joints[index]).armature = (
                        _ARMATURE * robot.finger_lever(name) ** 2
                    )
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
                solref=self._stiff,
            )
        sphere = self.mujoco.mjtGeom.mjGEOM_SPHERE
        self.spec.worldbody.add_geom(
            name="probe", type=sphere, size=[1e-4] * 3, contype=0, conaffinity=0
        )
        return self.compiled()

    def exclude(self, first: str, second: str) -> None:
        """Let two links not collide."""
        self.spec.add_exclude(bodyname1=_name(first), bodyname2=_name(second))

    def ids(self, model: Any) -> NDArray[np.intp]:
        """Return the numbers (n_links,) that a compiled model has for the links."""
        return np.array([model.body(_name(frame)).id for frame in self.links], dtype=np.intp)

    def compiled(self) -> Any:
        """Return the model.

        Raises:
            SimulationError: MuJoCo refuses it.
        """
        try:
            return self.spec.compile()
        except ValueError as error:
            raise SimulationError(f"MuJoCo refuses the scene: {error}") from error
