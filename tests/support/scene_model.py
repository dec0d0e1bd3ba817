"""Plain model of the scene graph, a dict of frames and 4x4 matrices: the oracle of the core.

The model implements every rule of the scene graph in the most direct way. An edit is done on a
copy of the dict, and then *all* rules are checked over the whole scene from nothing; nothing here
is incremental, indexed or shared. So a mistake in the core's bookkeeping (which body is where,
which joint has which entry) cannot be repeated here.

An edit that must be rejected raises :class:`RejectedError` with the possible classes of
error: where several rules are violated, the core may name any of them first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from tmkit.errors import (
    CycleError,
    DisconnectedError,
    DuplicateNameError,
    SceneError,
    UnknownNameError,
)
from tmkit.graph import (
    AttachedShape,
    Continuous,
    Fixed,
    Free,
    Inertia,
    Joint,
    Mimic,
    Prismatic,
    Revolute,
    Stamped,
    Unstated,
)
from tmkit.spatial import Pose

Matrix = NDArray[np.float64]

__all__ = ["FrameModel", "InertiaSpec", "JointSpec", "PoseSpec", "RejectedError", "SceneModel"]

_SAME_POSE = 1e-9


class RejectedError(Exception):
    """Rejection of an edit; ``classes`` are the errors of which the core must raise one."""

    def __init__(self, *classes: type[Exception]) -> None:
        super().__init__(", ".join(c.__name__ for c in classes))
        self.classes = frozenset(classes)


@dataclass(frozen=True)
class PoseSpec:
    """A pose as numbers: xyz [m] and fixed-axis roll, pitch, yaw [rad]."""

    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def make(self) -> Pose:
        """Return the core's pose."""
        return Pose.from_rpy(self.translation, self.rpy)

    def matrix(self) -> Matrix:
        """Return the 4x4 matrix, computed without the core."""
        result = np.eye(4)
        result[:3, :3] = Rotation.from_euler("xyz", self.rpy).as_matrix()
        result[:3, 3] = self.translation
        return result


@dataclass(frozen=True)
class JointSpec:
    """A joint as numbers; ``name`` and ``mimic`` may be empty."""

    type: str = "fixed"
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    name: str = ""
    mimic: str = ""
    multiplier: float = 1.0
    offset: float = 0.0

    @property
    def moves(self) -> bool:
        """Return whether the joint has a value."""
        return self.type in ("revolute", "continuous", "prismatic")

    def make(self) -> Joint:
        """Return the core's joint."""
        mimic = Mimic(self.mimic, self.multiplier, self.offset) if self.mimic else None
        match self.type:
            case "fixed":
                return Fixed()
            case "free":
                return Free()
            case "unstated":
                return Unstated()
            case "continuous":
                return Continuous(self.axis, velocity=self.velocity, name=self.name, mimic=mimic)
            case _:
                maker = Revolute if self.type == "revolute" else Prismatic
                limits = {"lower": self.lower, "upper": self.upper}
                return maker(
                    self.axis, **limits, velocity=self.velocity, name=self.name, mimic=mimic
                )

    def motion(self, value: float) -> Matrix:
        """Return the 4x4 matrix of the motion at a joint value."""
        result = np.eye(4)
        unit = np.asarray(self.axis) / np.linalg.norm(self.axis)
        if self.type == "prismatic":
            result[:3, 3] = value * unit
        else:
            result[:3, :3] = Rotation.from_rotvec(value * unit).as_matrix()
        return result


@dataclass(frozen=True)
class InertiaSpec:
    """Mass [kg], centre [m] and diagonal of the matrix about the centre [kg m^2]."""

    mass: float
    center: tuple[float, float, float]
    diagonal: tuple[float, float, float]

    def make(self) -> Inertia:
        """Return the core's inertia."""
        return Inertia(self.mass, self.center, matrix=np.diag(self.diagonal))


@dataclass(frozen=True)
class FrameModel:
    """A frame: ``pose`` is the core's exact value, ``matrix`` is computed by this model."""

    parent: str | None
    body: str
    joint: JointSpec = JointSpec()
    pose: Pose = field(default_factory=Pose)
    matrix: Matrix = field(default_factory=lambda: np.eye(4), compare=False)
    classes: tuple[str, ...] = ()
    shapes: tuple[AttachedShape, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()  # sorted by key
    attribute_stamps: tuple[tuple[str, float], ...] = ()  # sorted by key


@dataclass(frozen=True)
class GroupModel:
    """A group: its members, the frames above it, and its attributes with stamps, by key."""

    frames: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()
    attribute_stamps: tuple[tuple[str, float], ...] = ()


def _with_attribute(node: Any, key: str, value: Any) -> Any:
    """Return a frame or a group with one attribute changed; without a stamp it loses the old."""
    stamps = {other: old for other, old in node.attribute_stamps if other != key}
    stamps |= {key: value.stamp} if isinstance(value, Stamped) else {}
    attributes = {
        **dict(node.attributes),
        key: value.value if isinstance(value, Stamped) else value,
    }
    return replace(
        node,
        attributes=tuple(sorted(attributes.items())),
        attribute_stamps=tuple(sorted(stamps.items())),
    )


@dataclass(frozen=True, eq=False)
class BodyInertia:
    """Inertia of a body: the frame of its axes and the numbers, compared up to rounding."""

    frame: str
    mass: float
    center: NDArray[np.float64]
    matrix: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BodyInertia):
            return NotImplemented
        return (
            self.frame == other.frame
            and self.mass == other.mass
            and np.allclose(self.center, other.center, atol=1e-12)
            and np.allclose(self.matrix, other.matrix, atol=1e-12)
        )

    __hash__ = None  # type: ignore[assignment]  # equality within rounding has no hash

    def moved(self, frame: str, frame_from_old: Matrix) -> BodyInertia:
        """Return the same inertia in the axes of another frame of the body."""
        rotation = frame_from_old[:3, :3]
        center = rotation @ self.center + frame_from_old[:3, 3]
        return BodyInertia(frame, self.mass, center, rotation @ self.matrix @ rotation.T)


@dataclass
class SceneModel:
    """Frames by name in insertion order, inertia by body, reasons by pair, members by group."""

    frames: dict[str, FrameModel] = field(default_factory=dict)
    inertias: dict[str, BodyInertia] = field(default_factory=dict)
    allowed: dict[frozenset[str], str] = field(default_factory=dict)
    groups: dict[str, GroupModel] = field(default_factory=dict)

    # --- queries

    def same_content(self, other: SceneModel) -> bool:
        """Return whether two models have equal contents in the same order."""
        return (
            list(self.frames.items()) == list(other.frames.items())
            and self.inertias == other.inertias
            and self.allowed == other.allowed
            and self.groups == other.groups
        )

    def require(self, *names: str) -> None:
        """Refuse names of frames that are not there."""
        if any(name not in self.frames for name in names):
            raise RejectedError(UnknownNameError)

    def chain(self, name: str) -> list[str]:
        """Return the frame and its ancestors, nearest first; reject a cycle."""
        frames = [name]
        while (parent := self.frames[frames[-1]].parent) is not None:
            if parent in frames:
                raise RejectedError(CycleError)
            frames.append(parent)
        return frames

    def root(self, name: str) -> str:
        """Return the root of the tree of a frame."""
        return self.chain(name)[-1]

    def children(self, name: str) -> list[str]:
        """Return the children in insertion order."""
        return [child for child, frame in self.frames.items() if frame.parent == name]

    def subtree(self, name: str) -> set[str]:
        """Return the frame and all its descendants."""
        return {frame for frame in self.frames if name in self.chain(frame)}

    def on_body(self, body: str) -> list[str]:
        """Return the frames of a body in insertion order."""
        return [name for name, frame in self.frames.items() if frame.body == body]

    def bodies(self) -> set[str]:
        """Return the names of all bodies."""
        return {frame.body for frame in self.frames.values()}

    def joints(self) -> dict[str, str]:
        """Return the frame of every joint with a value, mimics included, in frame order."""
        return {frame.joint.name: name for name, frame in self.frames.items() if frame.joint.moves}

    def joint_names(self) -> list[str]:
        """Return the joints with an entry in the configuration."""
        return [
            joint for joint, frame in self.joints().items() if not self.frames[frame].joint.mimic
        ]

    def joint_value(self, joint: str, q: dict[str, float]) -> float:
        """Return the value of a joint at a configuration by joint name."""
        spec = self.frames[self.joints()[joint]].joint
        return (
            spec.multiplier * self.joint_value(spec.mimic, q) + spec.offset
            if spec.mimic
            else q[joint]
        )

    def edge(self, name: str, q: dict[str, float]) -> Matrix:
        """Return parent_from_frame at a configuration."""
        frame = self.frames[name]
        if not frame.joint.moves:
            return frame.matrix
        return frame.matrix @ frame.joint.motion(self.joint_value(frame.joint.name, q))

    def root_pose(self, name: str, q: dict[str, float]) -> Matrix:
        """Return root_from_frame at a configuration."""
        result = np.eye(4)
        for step in self.chain(name)[:-1]:
            result = self.edge(step, q) @ result
        return result

    def pose(self, frame: str, *, relative_to: str, q: dict[str, float]) -> Matrix:
        """Return relative_to_from_frame at a configuration."""
        if self.root(frame) != self.root(relative_to):
            raise RejectedError(DisconnectedError)
        return np.asarray(np.linalg.inv(self.root_pose(relative_to, q)) @ self.root_pose(frame, q))

    def zero(self) -> dict[str, float]:
        """Return the configuration of zeros."""
        return dict.fromkeys(self.joint_names(), 0.0)

    def inertia(self, name: str) -> BodyInertia | None:
        """Return the inertia of a frame's body in the axes of that frame."""
        inertia = self.inertias.get(self.frames[name].body)
        return (
            None
            if inertia is None
            else inertia.moved(name, self.pose(inertia.frame, relative_to=name, q=self.zero()))
        )

    # --- rules

    def violations(self) -> Iterator[type[Exception]]:
        """Yield the error of every violated rule, each checked over the whole scene."""
        for frame in self.frames.values():
            if frame.parent is None:
                continue
            if frame.joint.type != "fixed" and self.frames[frame.parent].body == frame.body:
                yield SceneError  # an edge inside a body is fixed
        for body in self.bodies():
            tops = [name for name in self.on_body(body) if self._tops_body(name)]
            trees = [self.root(name) for name in tops]
            if len(set(trees)) != len(trees):
                yield SceneError  # two paths of poses between two bodies
        names = [frame.joint.name for frame in self.frames.values() if frame.joint.moves]
        if len(set(names)) != len(names):
            yield DuplicateNameError
        yield from self._mimic_violations()

    def _tops_body(self, name: str) -> bool:
        frame = self.frames[name]
        return frame.parent is None or self.frames[frame.parent].body != frame.body

    def _mimic_violations(self) -> Iterator[type[Exception]]:
        joints = self.joints()
        for start in joints:
            seen = [start]
            while leader := self.frames[joints[seen[-1]]].joint.mimic:
                if leader in seen:
                    yield CycleError
                    break
                if leader not in joints:
                    yield UnknownNameError if seen == [start] else SceneError
                    yield SceneError
                    break
                seen.append(leader)
            else:
                low, high, _ = self.leader_limits(seen[-1])
                if low > high + 1e-6:
                    yield SceneError

    def leader_limits(self, leader: str) -> tuple[float, float, float]:
        """Return the lowest value, highest value and speed of a leading joint.

        All three are within the limits of all followers.

        The lowest is infinite if there is no such value.
        """
        joints = self.joints()
        low, high, speed = -np.inf, np.inf, np.inf
        for joint, frame in joints.items():
            multiplier, offset, spec = 1.0, 0.0, self.frames[frame].joint
            for _ in joints:
                if joint == leader or spec.mimic not in joints:
                    break
                offset += multiplier * spec.offset
                multiplier *= spec.multiplier
                joint = spec.mimic
                spec = self.frames[joints[joint]].joint
            own = self.frames[frame].joint
            if joint != leader:
                continue
            lower, upper = (own.lower, own.upper) if own.type != "continuous" else (-np.inf, np.inf)
            if multiplier != 0.0:
                ends = sorted([(lower - offset) / multiplier, (upper - offset) / multiplier])
                low, high = max(low, ends[0]), min(high, ends[1])
                speed = min(speed, own.velocity / abs(multiplier))
            elif not lower - 1e-6 <= offset <= upper + 1e-6:
                low = np.inf
        return low, high, speed

    def _body_poses(self) -> dict[tuple[str, str], Matrix]:
        """Return the pose between every two frames of one body in one tree."""
        zero = self.zero()
        return {
            (a, b): self.pose(a, relative_to=b, q=zero)
            for a, frame_a in self.frames.items()
            for b, frame_b in self.frames.items()
            if a != b and frame_a.body == frame_b.body and self.root(a) == self.root(b)
        }

    def _checked(self, changed: SceneModel) -> SceneModel:
        """Return ``changed`` when it keeps every rule, as a successor of this model."""
        broken = set()
        try:
            for name in changed.frames:
                changed.chain(name)
        except RejectedError as refused:
            raise RejectedError(*refused.classes, SceneError) from None
        broken.update(changed.violations())
        for name in changed.frames.keys() & self.frames.keys():
            if not self._tops_body(name) and changed._tops_body(name):
                # an edge inside a body is not taken apart, not even to move to another tree
                broken.add(SceneError)
        if not broken:
            before, after = self._body_poses(), changed._body_poses()
            if any(
                np.abs(before[pair] - after[pair]).max() > _SAME_POSE
                for pair in before.keys() & after.keys()
            ):
                broken.add(SceneError)
        if broken:
            raise RejectedError(*broken)
        return changed

    def _with_frame(self, name: str, frame: FrameModel) -> SceneModel:
        return SceneModel({**self.frames, name: frame}, self.inertias, self.allowed, self.groups)

    # --- edits

    def add_root(self, name: str) -> SceneModel:
        """Add a root on a body of the same name."""
        if name in self.frames or name in self.bodies():
            raise RejectedError(DuplicateNameError)
        return self._checked(self._with_frame(name, FrameModel(None, name)))

    def add_frame(
        self,
        name: str,
        parent: str,
        *,
        pose: PoseSpec,
        joint: JointSpec,
        body: str | None,
        classes: tuple[str, ...],
        shapes: tuple[AttachedShape, ...],
    ) -> SceneModel:
        """Add a frame under a parent."""
        wrong: set[type[Exception]] = set()
        if name in self.frames:
            wrong.add(DuplicateNameError)
        if parent not in self.frames:
            wrong.add(UnknownNameError)
        if body is None and name in self.bodies():
            wrong.add(DuplicateNameError)
        if body not in (None, name) and body not in self.bodies():
            wrong.add(UnknownNameError)
        if wrong:
            raise RejectedError(*wrong, *self._joint_errors(joint), SceneError)
        named = replace(joint, name=joint.name or name) if joint.moves else JointSpec(joint.type)
        named = self._stated(named) if self.frames[parent].body == (body or name) else named
        frame = FrameModel(parent, body or name, named, pose.make(), pose.matrix(), classes, shapes)
        return self._checked(self._with_frame(name, frame))

    @staticmethod
    def _stated(joint: JointSpec) -> JointSpec:
        """Return the joint of an edge with a known motion: of a grasp, or within one body."""
        return JointSpec() if joint.type == "unstated" else joint

    def _joint_errors(self, joint: JointSpec) -> set[type[Exception]]:
        """Return the errors a joint may cause beside others."""
        errors: set[type[Exception]] = set()
        if joint.moves and joint.name in self.joints():
            errors.add(DuplicateNameError)
        if joint.mimic and joint.mimic not in self.joints():
            errors.add(UnknownNameError)
        return errors

    def remove_frame(self, name: str, *, subtree: bool) -> SceneModel:
        """Remove a frame, or its whole subtree."""
        self.require(name)
        leaving = self.subtree(name)
        if not subtree and len(leaving) > 1:
            raise RejectedError(SceneError)
        frames = {other: frame for other, frame in self.frames.items() if other not in leaving}
        staying_mimics = {frame.joint.mimic for frame in frames.values() if frame.joint.mimic}
        if staying_mimics & {
            self.frames[other].joint.name for other in leaving if self.frames[other].joint.moves
        }:
            raise RejectedError(SceneError)
        allowed = {pair: reason for pair, reason in self.allowed.items() if not pair & leaving}
        inertias = {}
        for body, inertia in self.inertias.items():
            stays = next(
                (f for f in self.chain(inertia.frame) if f in frames and frames[f].body == body),
                None,
            )
            if stays is not None:
                moved = inertia.moved(
                    stays, self.pose(inertia.frame, relative_to=stays, q=self.zero())
                )
                inertias[body] = inertia if stays == inertia.frame else moved

        def left(members: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(frame for frame in members if frame not in leaving)

        groups = {
            name: replace(group, frames=left(group.frames), parents=left(group.parents))
            for name, group in self.groups.items()
        }
        return SceneModel(frames, inertias, allowed, groups)

    def rename_frame(self, name: str, new_name: str) -> SceneModel:
        """Give a frame another name in the same place; bodies and joints keep theirs."""
        self.require(name)
        if name == new_name:
            return self
        if new_name in self.frames:
            raise RejectedError(DuplicateNameError)

        def renamed(other: str) -> str:
            return new_name if other == name else other

        frames = {
            renamed(other): replace(
                frame, parent=None if frame.parent is None else renamed(frame.parent)
            )
            for other, frame in self.frames.items()
        }
        inertias = {
            body: replace(inertia, frame=renamed(inertia.frame))
            for body, inertia in self.inertias.items()
        }
        groups = {
            group: replace(
                old,
                frames=tuple(map(renamed, old.frames)),
                parents=tuple(map(renamed, old.parents)),
            )
            for group, old in self.groups.items()
        }
        return SceneModel(
            frames,
            inertias,
            {frozenset(map(renamed, p)): r for p, r in self.allowed.items()},
            groups,
        )

    def reparent(self, name: str, parent: str, *, pose: PoseSpec) -> SceneModel:
        """Hang a frame under another parent at a pose."""
        self.require(name, parent)
        frame = self.frames[name]
        return self._moved(
            name, replace(frame, parent=parent, joint=self._stated(frame.joint)), pose
        )

    def _moved(self, name: str, frame: FrameModel, pose: PoseSpec) -> SceneModel:
        """Return the model in which a frame, with its new parent and joint, has a pose."""
        if self.frames[name].parent is None:
            raise RejectedError(SceneError)
        frame, moved = self.frames[name], replace(frame, pose=pose.make(), matrix=pose.matrix())
        if moved == frame:
            return self
        return self._checked(self._with_frame(name, moved))

    def reparent_keeping_pose(self, name: str, parent: str, q: dict[str, float]) -> SceneModel:
        """Reparent a frame at its pose at ``q``; the caller fills in the core's exact pose."""
        self.require(name, parent)
        frame = self.frames[name]
        if frame.parent == parent:
            return self._with_frame(name, replace(frame, joint=self._stated(frame.joint)))
        if name in self.chain(parent):
            raise RejectedError(CycleError, SceneError)
        if self.root(name) != self.root(parent):
            raise RejectedError(DisconnectedError)
        if frame.parent is None:
            raise RejectedError(SceneError)
        matrix = self.pose(name, relative_to=parent, q=q)
        if frame.joint.moves:
            matrix = matrix @ np.linalg.inv(
                frame.joint.motion(self.joint_value(frame.joint.name, q))
            )
        return self._checked(
            self._with_frame(
                name, replace(frame, parent=parent, joint=self._stated(frame.joint), matrix=matrix)
            )
        )

    def with_exact_pose(self, name: str, pose: Pose) -> SceneModel:
        """Return the model with the core's value of a pose whose matrix was computed here."""
        assert np.allclose(pose.as_matrix(), self.frames[name].matrix, atol=1e-9)
        return self._with_frame(name, replace(self.frames[name], pose=pose))

    def set_pose(self, name: str, pose: PoseSpec) -> SceneModel:
        """Set a pose."""
        self.require(name)
        parent = self.frames[name].parent
        if parent is None:
            raise RejectedError(SceneError)
        return self._moved(name, self.frames[name], pose)

    def set_joint(self, name: str, joint: JointSpec) -> SceneModel:
        """Set a joint; an empty name keeps the old joint's, or takes the frame's."""
        self.require(name)
        frame = self.frames[name]
        if frame.parent is None:
            raise RejectedError(SceneError)
        named = (
            replace(joint, name=joint.name or frame.joint.name or name)
            if joint.moves
            else JointSpec(joint.type)
        )
        named = self._stated(named) if self.frames[frame.parent].body == frame.body else named
        old = frame.joint.name
        followed = (
            [f for f in self.frames.values() if f.joint.mimic == old and f is not frame]
            if old
            else []
        )
        wrong: set[type[Exception]] = {SceneError} if followed and named.name != old else set()
        try:
            changed = self._checked(self._with_frame(name, replace(frame, joint=named)))
        except RejectedError as refused:
            raise RejectedError(*refused.classes, *wrong) from None
        if wrong:
            raise RejectedError(*wrong)
        return changed

    def set_classes(self, name: str, classes: tuple[str, ...]) -> SceneModel:
        """Set the classes."""
        self.require(name)
        return self._with_frame(name, replace(self.frames[name], classes=classes))

    def set_shapes(self, name: str, shapes: tuple[AttachedShape, ...]) -> SceneModel:
        """Set all shapes."""
        self.require(name)
        return self._with_frame(name, replace(self.frames[name], shapes=shapes))

    def add_shape(self, name: str, shape: AttachedShape) -> SceneModel:
        """Add one shape."""
        self.require(name)
        return self.set_shapes(name, (*self.frames[name].shapes, shape))

    def set_inertia(self, name: str, inertia: InertiaSpec | None) -> SceneModel:
        """Set or take away the inertia of a frame's body."""
        self.require(name)
        body = self.frames[name].body
        inertias = {
            other: mass_properties
            for other, mass_properties in self.inertias.items()
            if other != body
        }
        if inertia is not None:
            center, matrix = np.array(inertia.center), np.diag(inertia.diagonal)
            inertias[body] = BodyInertia(name, inertia.mass, center, matrix)
        return SceneModel(self.frames, inertias, self.allowed, self.groups)

    def allow_collision(self, a: str, b: str, *, reason: str) -> SceneModel:
        """Let two frames touch."""
        self.require(a, b)
        if a == b:
            raise RejectedError(SceneError)
        return SceneModel(
            self.frames, self.inertias, {**self.allowed, frozenset((a, b)): reason}, self.groups
        )

    def forbid_collision(self, a: str, b: str) -> SceneModel:
        """Check a pair again."""
        self.require(a, b)
        allowed = {
            pair: reason for pair, reason in self.allowed.items() if pair != frozenset((a, b))
        }
        return SceneModel(self.frames, self.inertias, allowed, self.groups)

    def set_attributes(self, name: str, attributes: dict[str, Any]) -> SceneModel:
        """Set all free tags."""
        self.require(name)
        items = tuple(sorted(attributes.items()))
        return self._with_frame(
            name, replace(self.frames[name], attributes=items, attribute_stamps=())
        )

    def set_attribute(self, name: str, key: str, value: Any) -> SceneModel:
        """Set one free tag."""
        self.require(name)
        return self._with_frame(name, _with_attribute(self.frames[name], key, value))

    # --- groups

    def nested(self, group: str) -> set[str]:
        """Return a group and all groups in it."""
        return {group}.union(*(self.nested(member) for member in self.groups[group].groups))

    def set_group(
        self,
        name: str,
        *,
        frames: tuple[str, ...],
        groups: tuple[str, ...],
        parents: tuple[str, ...] | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> SceneModel:
        """Make or replace a group."""
        wrong: set[type[Exception]] = set()
        if any(frame not in self.frames for frame in (*frames, *(parents or ()))):
            wrong.add(UnknownNameError)
        if any(group not in self.groups and group != name for group in groups):
            wrong.add(UnknownNameError)
        if name in groups or any(
            group in self.groups and name in self.nested(group) for group in groups
        ):
            wrong.add(CycleError)
        if wrong:
            raise RejectedError(*wrong)
        previous = self.groups.get(name, GroupModel())
        previous = replace(
            previous, frames=tuple(dict.fromkeys(frames)), groups=tuple(dict.fromkeys(groups))
        )
        if parents is not None:
            previous = replace(previous, parents=tuple(dict.fromkeys(parents)))
        if attributes is not None:
            previous = replace(
                previous, attributes=tuple(sorted(attributes.items())), attribute_stamps=()
            )
        return SceneModel(self.frames, self.inertias, self.allowed, {**self.groups, name: previous})

    def set_group_attribute(self, name: str, key: str, value: Any) -> SceneModel:
        """Set one attribute of a group."""
        if name not in self.groups:
            raise RejectedError(UnknownNameError)
        groups = {**self.groups, name: _with_attribute(self.groups[name], key, value)}
        return SceneModel(self.frames, self.inertias, self.allowed, groups)

    def remove_group(self, name: str) -> SceneModel:
        """Remove a group, also from those that hold it."""
        if name not in self.groups:
            raise RejectedError(UnknownNameError)
        groups = {
            group: replace(old, groups=tuple(member for member in old.groups if member != name))
            for group, old in self.groups.items()
            if group != name
        }
        return SceneModel(self.frames, self.inertias, self.allowed, groups)
