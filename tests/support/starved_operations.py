"""Operations of the core under failing allocations: the k-th fails, for k = 1, 2, ..., in turn.

A program: it is run with the library of ``failing_new.cpp`` preloaded, whose path is its first
argument; further arguments choose operations by the beginnings of their names. Each operation runs
in a fork, so that one that ends the process is reported like every other defect. Prints one line
for each defect, and at last how much was tried.
"""

from __future__ import annotations

import copy
import ctypes
import math
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmkit import _core as core, formats
from tmkit._core import path_noise, sample_poses, twist_noise
from tmkit.errors import SceneError
from tmkit.graph import (
    SceneArrays,
    SceneEdit,
    SceneGraph,
    Stamped,
    collapse_fixed_frames,
    common_ancestor,
    contributions,
    innovation,
    joint_gaussian,
    joints_between,
    tree_text,
)
from tmkit.graph.traversal import twist_covariance, twist_path
from tmkit.spatial import GaussianPose, Pose

_LONG = " whose name is too long for a small string"
TABLE, CUP, ARM, HAND, LID, LOOSE = (
    name + _LONG for name in ("table", "cup", "arm", "hand", "lid", "loose")
)
JOINT, FOLLOWER, GROUP, BODY = (name + _LONG for name in ("joint", "follower", "group", "body"))
NEW = "new" + _LONG
COVARIANCE = np.diag([1e-4] * 6)
BOX = core.AttachedShape(core.Box([0.1, 0.1, 0.1]))
CUBE = core.Mesh(
    [[x, y, z] for x in (0, 0.1) for y in (0, 0.1) for z in (0, 0.1)],
    [
        [0, 1, 3],
        [0, 3, 2],
        [4, 6, 7],
        [4, 7, 5],
        [0, 4, 5],
        [0, 5, 1],
        [2, 3, 7],
        [2, 7, 6],
        [0, 2, 6],
        [0, 6, 4],
        [1, 5, 7],
        [1, 7, 3],
    ],
)
SOURCE = core.NoiseSource(2, "source" + _LONG)
MAPS = {SOURCE: 0.01 * np.ones((6, 2))}
MEASURED = core.Measurement.of_pose(
    CUP, Pose([0.1, 0.0, -0.2]), relative_to=HAND, covariance=COVARIANCE
)
STAMPS = core.StampedPoses(
    [0.0, 1.0, 2.0],
    [Pose(), Pose([0.1, 0, 0]), Pose([0.2, 0, 0])],
    covariances=[np.eye(6), None, 2.0 * np.eye(6)],
)
Q = [0.1, 0.2]


def make_scene() -> SceneGraph:
    """Return a scene that has some of everything, newly made, so that no layout is there."""
    scene = SceneGraph("world" + _LONG)
    world = scene.frame_names[0]
    scene = scene.add_frame(
        TABLE, world, pose=Pose([0.5, 0, 0.4]), classes=["surface" + _LONG], shapes=[BOX]
    )
    scene = scene.add_frame(
        ARM,
        world,
        joint=core.Revolute([0, 0, 1], lower=-2, upper=2, name=JOINT),
        pose=GaussianPose(covariance=COVARIANCE),
    )
    scene = scene.add_frame(
        HAND,
        ARM,
        pose=GaussianPose(Pose([0.5, 0, 0.6]), COVARIANCE),
        shapes=[core.AttachedShape(CUBE)],
    )
    scene = scene.add_frame(LID, HAND, joint=core.Prismatic([0, 0, 1], name="slide" + _LONG))
    scene = scene.add_frame(
        "finger", LID, joint=core.Revolute([0, 1, 0], name=FOLLOWER, mimic=core.Mimic(JOINT, 0.5))
    )
    scene = scene.add_frame(
        CUP,
        TABLE,
        pose=GaussianPose(Pose([0, 0, 0.05]), COVARIANCE),
        classes=["movable" + _LONG],
        shapes=[BOX],
    )
    scene = scene.set_inertia(CUP, core.Inertia(0.2, matrix=np.eye(3))).set_attributes(
        CUP, {"colour" + _LONG: ["red" + _LONG]}
    )
    scene = (
        scene.set_stamped_poses(CUP, STAMPS).set_group(GROUP, frames=[CUP, TABLE]).add_body(BODY)
    )
    scene = scene.add_root(LOOSE).set_twist(
        LOOSE, [0.1, 0, 0, 0, 0, 0.1], relative_to_body=TABLE, covariance=COVARIANCE
    )
    return scene.allow_collision(CUP, TABLE, reason="it stands there" + _LONG).set_noise(LID, MAPS)


def _edits(of_arrays: bool) -> dict[str, Callable[[Any], object]]:
    """Edits by name, each of a scene, a builder or arrays."""
    edits: dict[str, Callable[[Any], object]] = {
        "add_root": lambda s: s.add_root(NEW, body=BODY),
        "add_body": lambda s: s.add_body(NEW),
        "remove_body": lambda s: s.remove_body(BODY),
        "attach": lambda s: s.attach(LOOSE, HAND, joint=core.Prismatic([1, 0, 0], name=NEW)),
        "set_twist": lambda s: s.set_twist(
            LOOSE, [0.2, 0, 0, 0, 0, 0.1], relative_to_body=TABLE, covariance=COVARIANCE
        ),
        "set_new_twist": lambda s: s.set_twist(
            CUP, [0.2, 0, 0, 0, 0, 0.1], relative_to_body=LOOSE, covariance=COVARIANCE
        ),
        "remove_twist": lambda s: s.remove_twist(LOOSE),
        "add_stamped_pose": lambda s: s.add_stamped_pose(CUP, Pose([0.3, 0, 0]), stamp=3.0),
        "add_uncertain_pose": lambda s: s.add_stamped_pose(
            CUP, Pose([0.3, 0, 0]), stamp=4.0, covariance=np.eye(6)
        ),
        "set_stamped_poses": lambda s: s.set_stamped_poses(TABLE, STAMPS),
        "add_frame": lambda s: s.add_frame(
            NEW,
            HAND,
            joint=core.Revolute([0, 0, 1], name=NEW),
            body=NEW,
            classes=[NEW, LID],
            shapes=[BOX, BOX],
        ),
        "remove_frame": lambda s: s.remove_frame(HAND, subtree=True),
        "remove_leaf": lambda s: s.remove_frame(CUP),
        "rename_frame": lambda s: s.rename_frame(CUP, NEW),
        "reparent": lambda s: s.reparent(CUP, HAND, pose=Pose([0, 0, 0.1])),
        "reparent_keeping": lambda s: s.reparent(CUP, HAND, q=Q),
        "set_pose": lambda s: s.set_pose(CUP, Pose([0, 0.1, 0.1])),
        "set_joint": lambda s: s.set_joint(
            TABLE, core.Revolute([0, 0, 1], name=NEW, mimic=core.Mimic(JOINT))
        ),
        "set_classes": lambda s: s.set_classes(CUP, [NEW, LID]),
        "set_shapes": lambda s: s.set_shapes(CUP, [BOX, BOX, BOX]),
        "add_shape": lambda s: s.add_shape(CUP, BOX),
        "set_inertia": lambda s: s.set_inertia(
            TABLE, core.Inertia(1.0, [0, 0, 1], matrix=np.eye(3))
        ),
        "allow_collision": lambda s: s.allow_collision(HAND, TABLE, reason=NEW),
        "forbid_collision": lambda s: s.forbid_collision(CUP, TABLE),
        "set_attributes": lambda s: s.set_attributes(TABLE, {NEW: [1.0, NEW], LID: None}),
        "set_attribute": lambda s: s.set_attribute(CUP, NEW, {"x": NEW}),
        "set_group": lambda s: s.set_group(NEW, frames=[CUP, LID], groups=[GROUP], parents=[TABLE]),
        "set_group_attribute": lambda s: s.set_group_attribute(
            GROUP, "colour" + _LONG, Stamped(["red"], 2.5)
        ),
        "remove_group": lambda s: s.remove_group(GROUP),
        "set_covariance": lambda s: s.set_covariance(CUP, 2 * COVARIANCE),
        "set_noise": lambda s: s.set_noise(CUP, core.EdgeNoise(MAPS)),
        "set_twist_noise": lambda s: s.set_twist_noise(LOOSE, core.EdgeNoise(MAPS)),
        "unknown_frame": lambda s: _refused(lambda: s.set_pose(NEW, Pose())),
    }
    if of_arrays:
        return edits | {
            "forward": lambda s: s.forward([0.3, 0.4]),
            "gaussian_pose": lambda s: s.gaussian_pose(CUP, relative_to=HAND, q=Q),
            "standard_deviation": lambda s: s.standard_deviation(CUP, relative_to=HAND, q=Q),
            "freeze": lambda s: s.freeze(),
        }
    return edits | {
        "mount": lambda s: s.mount(_other, HAND, prefix="second "),
        "merge": lambda s: s.merge(_plain),
        "extract": lambda s: s.extract(TABLE),
        "apply": lambda s: s.apply(_difference),
        "set_noise_maps": lambda s: s.set_noise(CUP, MAPS),
        "add_noise": lambda s: s.add_noise(CUP, MAPS),
        "set_twist_noise_maps": lambda s: s.set_twist_noise(LOOSE, MAPS),
        "add_joint_noise": lambda s: s.add_joint_noise(JOINT, 1e-4),
        "condition": lambda s: s.condition(MEASURED, q=Q),
    }


def _refused(call: Callable[[], object]) -> None:
    try:
        call()
    except MemoryError:
        raise
    except Exception:
        return
    raise AssertionError("it was not refused")


def _of_each_frame(
    method: str, *more: object, names: tuple[str, ...] = (CUP, HAND, LOOSE)
) -> Callable[[Any], object]:
    return lambda s: [getattr(s, method)(name, *more) for name in names]


_QUERIES: dict[str, Callable[[Any], object]] = {
    **{
        name: _of_each_frame(name)
        for name in (
            "parent",
            "children",
            "ancestors",
            "root",
            "body",
            "local_pose",
            "twist_edge",
            "stamped_poses",
            "noise",
            "edge_covariance",
            "specification",
        )
    },
    **{
        name: lambda s, name=name: getattr(s, name)
        for name in (
            "frame_names",
            "joint_names",
            "body_names",
            "bodies_without_frames",
            "twist_frames",
            "group_names",
        )
    },
    "group": lambda s: (s.group(GROUP), s.group(GROUP).frames, s.group(GROUP).attribute_stamps),
    "is_allowed": lambda s: s.is_allowed(CUP, TABLE),
    "twist_noise": lambda s: twist_noise(s, LOOSE),
    "twist_covariance": lambda s: twist_covariance(s, LOOSE),
    "twist_path": lambda s: twist_path(s, LOOSE, relative_to_body=TABLE),
    "pose_at": lambda s: s.pose(CUP, relative_to=HAND, stamp=0.5, q=Q),
    "twist_from_stamps": lambda s: s.twist_from_stamps(
        CUP, relative_to=TABLE, first=0.2, second=0.7
    ),
    "zero_configuration": lambda s: s.zero_configuration(),
    "pose": lambda s: s.pose(CUP, relative_to=HAND, q=Q),
    "contains": lambda s: (CUP in s, NEW in s),
    "repr": repr,
    "unknown": lambda s: _refused(lambda: s.parent(NEW)),
    "disconnected": lambda s: _refused(lambda: s.pose(CUP, relative_to=LOOSE, q=Q)),
    "wrong_q": lambda s: _refused(lambda: s.pose(CUP, relative_to=HAND, q=[1.0])),
}
_ARRAY_QUERIES: dict[str, Callable[[Any], object]] = {
    **{name: lambda s, name=name: getattr(s, name) for name in ("q", "poses", "capacities")},
    "jacobian": lambda s: s.jacobian(LID),
    "write_poses": lambda s: s.write_poses(np.zeros((30, 7))),
}
_SCENE_QUERIES: dict[str, Callable[[Any], object]] = {
    **{
        name: _of_each_frame(name)
        for name in (
            "subtree",
            "joint",
            "shapes",
            "classes",
            "inertia",
            "attributes",
            "groups_of",
            "frame_id",
        )
    },
    **{
        name: lambda s, name=name: getattr(s, name)
        for name in (
            "noisy_frames",
            "joint_frames",
            "root_names",
            "allowed_pairs",
            "digest",
            "joint_limits",
            "velocity_limits",
            "effort_limits",
        )
    },
    "gaussian_pose": lambda s: s.gaussian_pose(CUP, relative_to=HAND, q=Q),
    "standard_deviation": lambda s: s.standard_deviation(CUP, relative_to=HAND, q=Q),
    "expected": lambda s: MEASURED.expected(s, q=Q),
    "joint_gaussian": lambda s: joint_gaussian(s, [(CUP, HAND), (LID, TABLE)], q=Q),
    "contributions": lambda s: contributions(s, CUP, relative_to=HAND, q=Q),
    "path_noise": lambda s: path_noise(s, CUP, relative_to=HAND, q=Q),
    "sample_poses": lambda s: sample_poses(s, CUP, relative_to=HAND, count=3, seed=0, q=Q),
    "innovation": lambda s: innovation(s, MEASURED, q=Q),
    "joint_frame": lambda s: s.joint_frame(JOINT),
    "frames_of_body": lambda s: s.frames_of_body(s.body_names[0]),
    "frames_of_class": lambda s: s.frames_of_class("movable" + _LONG),
    "attribute_stamps": lambda s: (s.attribute_stamps(CUP), s.groups_of(CUP, nested=True)),
    "frames_of_group": lambda s: s.frames_of_group(GROUP),
    "frame_of_id": lambda s: s.frame_of_id(3),
    "common_ancestor": lambda s: common_ancestor(s, CUP, HAND),
    "path": lambda s: s.path(CUP, HAND),
    "joints_between": lambda s: joints_between(s, CUP, LID),
    "transform_points": lambda s: s.transform_points([[1, 2, 3]], source=CUP, target=TABLE),
    "transform_vectors": lambda s: s.transform_vectors([[1, 2, 3]], source=CUP, target=TABLE),
    "poses": lambda s: s.poses([CUP, LID, TABLE], relative_to=HAND, q=Q),
    "pose_batch": lambda s: s.pose_batch(CUP, relative_to=HAND, q=[Q, Q]),
    "poses_batch": lambda s: s.poses_batch([Q, Q]),
    "configuration": lambda s: s.configuration({JOINT: 0.2}),
    "at": lambda s: (
        lambda k: (
            k.poses,
            k.q,
            k.qd,
            k.pose(CUP, relative_to=HAND),
            k.jacobian(LID),
            k.twist(LID, relative_to=CUP),
            k.scene,
            repr(k),
        )
    )(s.at(Q, [0.1, 0.2])),
    "tree": lambda s: tree_text(s),
    "consolidated": lambda s: collapse_fixed_frames(s),
    "equal": lambda s: s == _other,
    "hash": hash,
    "difference": lambda s: (
        lambda d: (
            d.frames,
            d.added,
            d.removed,
            d.changed,
            d.pairs,
            d.groups,
            d.reversed(),
            repr(d),
            [f.before for f in d.frames],
            [f.after for f in d.frames],
            [f.fields for f in d.frames],
        )
    )(core.diff(s, _other)),
    "copy": copy.copy,
    "pickle": pickle.dumps,
    "json": formats.scene_to_dict,
    "arrays": lambda s: SceneArrays(s, capacity={"frames": 30, "noise": 20}),
    "no_room": lambda s: _refused(lambda: SceneArrays(s, 1)),
    "specifications": lambda s: (
        lambda f: (
            f.name,
            f.parent,
            f.pose,
            f.joint,
            f.body,
            f.classes,
            f.shapes,
            f.inertia,
            f.attributes,
            f.twist,
            f.twist_noise,
            f.stamps,
            f.noise,
            repr(f),
        )
    )(s.specification(CUP)),
    "from_frames": lambda s: SceneGraph.from_frames(
        [s.specification(f) for f in s.frame_names],
        allowed=[(CUP, TABLE, NEW)],
        bodies_without_frames=[BODY],
    ),
    "world": lambda s: core.CollisionWorld(
        s, movable=[CUP], margin=0.01, pair_margins={(CUP, HAND): -0.01}, level="exact"
    ),
    "inverse_kinematics": lambda s: core.inverse_kinematics(
        s,
        LID,
        target_pose=s.pose(LID, relative_to=s.root(LID), q=Q),
        joints=s.joint_names,
        q=[0.0, 0.0],
        settings=core.IkSettings(restarts=2, rotation_tolerance=math.inf),
    ),
    "inverse_kinematics_solutions": lambda s: core.inverse_kinematics_solutions(
        core.CollisionWorld(s),
        LID,
        target_pose=s.pose(LID, relative_to=s.root(LID), q=Q),
        joints=s.joint_names,
        q=[0.0, 0.0],
        settings=core.IkSettings(max_solutions=2, restarts=2, rotation_tolerance=math.inf),
    ),
    "straight_line": lambda s: core.straight_line(
        core.CollisionWorld(s),
        LID,
        start=[0.0, 0.0],
        target_pose=s.pose(LID, relative_to=s.root(LID), q=[0.0, 0.02]),
        joints=s.joint_names,
    ),
}
_WORLD_QUERIES: dict[str, Callable[[Any], object]] = {
    **{
        name: lambda w, name=name: getattr(w, name)
        for name in ("scene", "level", "movable", "pairs")
    },
    "moved_to": lambda w: w.moved_to(_moved, pair_margins={(CUP, HAND): 0.0}).is_in_collision(Q),
    "moved_everything": lambda w: (lambda m: (m.pairs, m.distance(Q), m.nearest(Q)))(
        w.moved_to(_moved)
    ),
    "is_in_collision": lambda w: w.is_in_collision(Q),
    "in_collision_batch": lambda w: w.in_collision_batch([Q] * 130, threads=2),
    "distance_batch": lambda w: w.distance_batch([Q] * 130, threads=2),
    "contacts_batch": lambda w: w.contacts_batch([Q] * 3),
    "find_collision": lambda w: w.find_collision(Q),
    "contacts": lambda w: [(c.point, c.normal, repr(c)) for c in w.contacts(Q)],
    "nearest": lambda w: w.nearest(Q),
    "distance": lambda w: w.distance(Q),
    "distance_between": lambda w: w.distance(CUP, HAND, Q),
    "is_edge_free": lambda w: w.is_edge_free([0.0, 0.0], Q),
    "find_edge_collision": lambda w: w.find_edge_collision([0.0, 0.0], Q),
    "search_path": lambda w: (lambda r: (r.path, repr(r), r.blocking_pairs))(
        core.search_path(w, w.scene.joint_names, start=[-1.0, 0.0], goals=[[1.0, 0.1], [1.1, 0.1]])
    ),
    "recheck_path": lambda w: core.recheck_path(w, [[-1.0, 0.0], [1.0, 0.1]], tool_frame=LID),
}
_VALUES: dict[str, Callable[[Any], object]] = {
    "pose": lambda _: (
        Pose([1, 2, 3]),
        Pose.from_matrix(np.eye(4)),
        Pose().as_matrix(),
        Pose().as_array(),
        repr(Pose()),
        Pose().log(),
        Pose.from_array([0] * 6 + [1]),
        Pose().apply([[1, 2, 3]]),
        Pose.from_rpy([0, 0, 0], [1, 2, 3]),
        Pose() @ Pose(),
        hash(Pose()),
    ),
    "bad_pose": lambda _: _refused(lambda: Pose([np.inf, 0, 0])),
    "gaussian": lambda _: (
        lambda g: (
            g @ g,
            g.compose(g, order=4),
            g.covariance,
            g.left_covariance,
            repr(g),
            core.compose([g, Pose(), g]),
            GaussianPose.from_left(Pose(), COVARIANCE),
        )
    )(GaussianPose(Pose(), COVARIANCE)),
    "lie": lambda _: (
        core.adjoint(Pose()),
        core.left_jacobian([1] * 6),
        core.exp_each([[1] * 6]),
        core.log_each([[0] * 6 + [1]]),
        core.compose_each([[0] * 6 + [1]], [[0] * 6 + [1]]),
    ),
    "shapes": lambda _: [
        (
            s.digest,
            s.dimensions,
            s.bounds,
            s.vertices,
            s.faces,
            s.points,
            s.heights,
            repr(s),
            s.source,
        )
        for s in (
            core.Box([1, 2, 3]),
            core.Sphere(1),
            core.Mesh(CUBE.vertices, CUBE.faces, source=NEW),
            core.PointCloud([[0, 0, 0]], radius=1, source=NEW),
            core.HeightField(np.zeros((3, 3)), size=[1, 1]),
            core.Plane(),
        )
    ],
    "bad_shape": lambda _: _refused(lambda: core.Box([-1, 2, 3])),
    "attached": lambda _: (
        BOX.replace(pose=Pose()),
        repr(BOX),
        BOX.shape,
        BOX.color,
        core.AttachedShape(CUBE, color=[0, 0, 0, 1], level="hull").level,
    ),
    "joint": lambda _: (lambda j: (repr(j), j.name, j.mimic, j.axis, hash(j), j.type))(
        core.Revolute([0, 0, 1], name=NEW, mimic=core.Mimic(JOINT))
    ),
    "inertia": lambda _: (lambda i: (repr(i), i.center, i.matrix))(
        core.Inertia(1.0, [0, 0, 1], matrix=np.eye(3))
    ),
    "stamps": lambda _: (
        STAMPS.stamps,
        STAMPS.poses,
        STAMPS.at(0.5),
        STAMPS.covariances,
        STAMPS.gaussian_at(1.5),
        STAMPS.with_covariance(1.0, np.eye(6)),
        STAMPS.moved(Pose()),
        repr(STAMPS),
        hash(STAMPS),
        core.StampedPoses([0, 1], [Pose(), Pose()]),
    ),
    "noise": lambda _: (lambda n: (n.covariance, n.sources, n.map(SOURCE), repr(n), hash(n)))(
        core.EdgeNoise({core.NoiseSource(2, NEW): np.ones((6, 2)), **MAPS})
    ),
    "measurements": lambda _: [
        (m.covariance, m.kind, m.frame, repr(m))
        for m in (
            core.Measurement.of_pose(CUP, Pose(), relative_to=HAND, covariance=COVARIANCE),
            core.Measurement.of_position(CUP, [0, 0, 1], relative_to=HAND, covariance=np.eye(3)),
            core.Measurement.of_bearing(CUP, [0, 0, 1], relative_to=HAND, deviation=0.1),
            core.Measurement.of_range(CUP, 1.0, relative_to=HAND, deviation=0.1),
        )
    ],
    "specification": (
        lambda _: core.FrameSpecification(NEW, CUP, body=LID, classes=[NEW], shapes=[BOX]).replace(
            attributes={NEW: NEW}, twist=(CUP, [0] * 6), stamps=STAMPS
        )
    ),
    "unpickle_scene": lambda _: pickle.loads(_pickled_scene),
    **{
        f"unpickle_{index}": lambda _, value=value: pickle.loads(pickle.dumps(value))
        for index, value in enumerate(
            (
                Pose([1, 2, 3]),
                GaussianPose(Pose(), COVARIANCE),
                CUBE,
                BOX,
                core.Revolute([0, 0, 1], name=NEW, mimic=core.Mimic(JOINT)),
                core.Mimic(JOINT),
                core.Inertia(1.0),
                STAMPS,
            )
        )
    },
    "json_reading": lambda _: formats.scene_from_dict(_json),
}

_plain = SceneGraph("world" + _LONG).add_frame(NEW, "world" + _LONG, shapes=[BOX])
_other = (
    make_scene()
    .reparent(CUP, HAND, q=Q)
    .add_frame(NEW, TABLE, shapes=[BOX])
    .remove_group(GROUP)
    .rename_frame("finger", "thumb")
)
_first = make_scene()
_moved = _first.reparent(CUP, HAND, q=Q)
_difference = core.diff(_first, _moved.add_frame(NEW, TABLE, shapes=[BOX]).remove_group(GROUP))
_pickled_scene = pickle.dumps(_other)
_json = formats.scene_to_dict(_other)


@dataclass
class Operation:
    """An operation on a new value of `make` each time, and the `state` of that value."""

    make: Callable[[], Any]
    run: Callable[[Any], object]
    state: Callable[[Any], object]


def _scene_state(scene: SceneGraph) -> object:
    return (scene, scene.digest(), scene.pose(CUP, relative_to=TABLE), scene._defects())


def _edit_state(edit: SceneEdit, begun_with: SceneGraph) -> object:
    """Return the scene before the edit, and after it unless memory ran out during a change."""
    try:
        return _scene_state(begun_with), _scene_state(edit.scene)
    except SceneError as error:
        if "discarded as memory ran out" not in str(error):
            raise
        return _scene_state(begun_with), None


def _is_kept(before: object, after: object) -> bool:
    """Return whether a state is unchanged, or is that of an edit which was discarded."""
    if (
        isinstance(before, tuple)
        and isinstance(after, tuple)
        and len(after) == 2
        and after[1] is None
    ):
        return bool(before[0] == after[0])
    return bool(before == after)


def _fresh() -> SceneGraph:
    return pickle.loads(_pickled)  # type: ignore[no-any-return]


_pickled = pickle.dumps(make_scene())


def operations() -> dict[str, Operation]:
    """Return all of them by name."""
    first = _first
    operations_by_name: dict[str, Operation] = {}
    for name, run in _edits(of_arrays=False).items():
        operations_by_name[f"scene.{name}"] = Operation(lambda: first, run, _scene_state)
        operations_by_name[f"edit.{name}"] = Operation(
            lambda: _grown(first), run, lambda e: _edit_state(e, first)
        )
    for name, run in _edits(of_arrays=True).items():
        operations_by_name[f"arrays.{name}"] = Operation(
            lambda: SceneArrays(first, capacity={"frames": 30, "noise": 30}),
            run,
            lambda a: _scene_state(a.freeze()),
        )
    for name, run in (_QUERIES | _SCENE_QUERIES).items():
        operations_by_name[f"scene.{name}"] = Operation(_fresh, run, _scene_state)
    for name, run in (_QUERIES | _ARRAY_QUERIES).items():
        operations_by_name[f"arrays.{name}"] = Operation(
            lambda: SceneArrays(first, capacity={"frames": 30, "noise": 30}),
            run,
            lambda a: _scene_state(a.freeze()),
        )
    for name, run in _WORLD_QUERIES.items():
        operations_by_name[f"world.{name}"] = Operation(
            lambda: core.CollisionWorld(first, movable=[CUP]),
            run,
            lambda w: (_scene_state(w.scene), w.pairs, w.distance(Q)),
        )
    for name, run in _VALUES.items():
        operations_by_name[f"values.{name}"] = Operation(lambda: None, run, lambda _: None)
    return operations_by_name


def _grown(scene: SceneGraph) -> SceneEdit:
    """Return an edit that owns its nodes, so that edits work in place."""
    edit = scene.edit()
    edit.add_frame("grown" + _LONG, HAND)
    edit.set_pose(CUP, Pose([0, 0, 0.06]))
    return edit


def starve(library: ctypes.CDLL, operation: Operation, most: int) -> tuple[int, list[str]]:
    """Run one operation with each allocation failing in turn; return the count and the faults."""
    defects = []
    operation.run(operation.make())  # imports on first use are done
    for k in range(1, most):
        subject = operation.make()
        before = operation.state(subject)
        error: BaseException | None = None
        library.fail_at(k)
        try:
            operation.run(subject)
        except BaseException as caught:
            error = caught
        failed = library.allocations() >= k
        library.fail_at(-1)
        if error is not None and not isinstance(error, MemoryError):
            defects.append(f"k = {k}: {type(error).__name__}: {error}"[:300])
        if not failed:
            return k, defects
        if error is not None and not _is_kept(before, operation.state(subject)):
            defects.append(f"k = {k}: the state is another")
        operation.run(operation.make())  # nothing is left half done that the next could meet
    return most, [*defects, f"still failing at k = {most}"]


def in_fork(library: ctypes.CDLL, operation: Operation, most: int) -> tuple[int, list[str]]:
    """Run the operation in a separate process, whose end by a signal is a defect too."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(starve(library, operation, most), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        return 0, [f"the process ended with status {status}"]
    tried, defects = pickle.loads(report)
    return tried, defects


def main() -> None:
    """Run them all."""
    library = ctypes.CDLL(sys.argv[1])
    library.fail_at.argtypes, library.allocations.restype = [ctypes.c_long], ctypes.c_long
    chosen = tuple(sys.argv[2:])
    total = count = 0
    for name, operation in operations().items():
        if chosen and not name.startswith(chosen):
            continue
        tried, defects = in_fork(library, operation, 3000)
        total += tried
        count += 1
        for defect in defects[:3]:
            sys.stdout.write(f"{name}: {defect}\n")
        sys.stdout.flush()  # before the next fork
    sys.stdout.write(f"tried {count} operations {total} times\n")


if __name__ == "__main__":
    main()
