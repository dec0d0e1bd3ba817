"""Random edits of a scene, applied to the core's scene, its builder, its arrays and the model.

Names are drawn from a small pool and mostly from those that exist, so that sequences go deep, yet
many edits must be rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from support.scene_model import InertiaSpec, JointSpec, PoseSpec, RejectedError, SceneModel
from tmkit.graph import (
    AttachedShape,
    Box,
    Cylinder,
    Mesh,
    SceneArrays,
    SceneEdit,
    SceneGraph,
    Shape,
    Sphere,
    Stamped,
)
from tmkit.spatial import Pose

__all__ = ["FRAME_NAMES", "Edit", "configurations", "edits", "scenes"]

FRAME_NAMES = ("world", *"abcdefghij")
_JOINT_NAMES = ("", "", "", "j1", "j2", "a", "b")
_BODY_NAMES = (None, None, None, "world", *"abcdXY")

_coordinate = st.floats(-2.0, 2.0, width=32)
_angle = st.floats(-3.0, 3.0, width=32)
_triple = st.tuples(_coordinate, _coordinate, _coordinate)
_poses = st.one_of(
    st.just(PoseSpec()),
    st.just(PoseSpec((0.5, 0.0, 0.25), (0.0, 0.0, 1.5))),
    st.builds(PoseSpec, _triple, st.tuples(_angle, _angle, _angle)),
)
_axes = st.sampled_from([(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, -2.0, 0.0), (0.3, 0.5, -0.7)])
_SHAPES: tuple[Shape, ...] = (
    Box([0.1, 0.2, 0.3]),
    Sphere(0.05),
    Cylinder(0.04, 0.2),
    Mesh(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
        source="corner",
    ),
)
_attached = st.builds(
    AttachedShape,
    st.sampled_from(_SHAPES),
    st.sampled_from([Pose(), Pose([0.0, 0.0, 0.1])]),
    color=st.sampled_from([None, (1.0, 0.0, 0.0, 1.0)]),
    visual=st.booleans(),
    collision=st.booleans(),
    friction=st.sampled_from([None, 0.5]),
)
_shape_tuples = st.lists(_attached, max_size=2).map(tuple)
_class_tuples = st.lists(st.sampled_from(["movable", "surface"]), max_size=2, unique=True).map(
    tuple
)
_inertias = st.one_of(
    st.none(),
    st.builds(
        InertiaSpec,
        st.sampled_from([0.5, 2.0]),
        st.sampled_from([(0.0, 0.0, 0.0), (0.1, -0.2, 0.3)]),
        st.sampled_from([(0.0, 0.0, 0.0), (0.1, 0.2, 0.25)]),
    ),
)


_groups = st.sampled_from(["tableware", "cutlery", "kitchen"])
_attributes = st.dictionaries(
    st.sampled_from(["colour", "mass", "tags"]),
    st.sampled_from(["red", 1, 2.5, False, None, ["a", "b"], {"x": 1, "y": [2]}]),
    max_size=2,
)
_entries = st.sampled_from(
    [("colour", "red"), ("mass", 1), ("tags", "a @1"), ("mass", 2.5), ("tags", ["x", "@2"])]
)


def _members(names: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(names, max_size=3).map(tuple)


@dataclass(frozen=True)
class Edit:
    """One edit: the method's name, its positional names, and keyword arguments as specifications.

    ``positional`` arguments that are specifications (a pose, a joint, an inertia) are turned into
    the core's values for the core, and left as they are for the model. ``q`` is a configuration by
    joint name.
    """

    method: str
    positional: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    q: dict[str, float] | None = None

    def apply_to(self, target: SceneGraph | SceneEdit | SceneArrays) -> SceneGraph | None:
        """Apply the edit to a scene, which returns the new one, or to a builder or arrays."""
        scene = target if isinstance(target, SceneGraph | SceneArrays) else target.scene
        keywords = {name: _core_value(value) for name, value in self.keywords.items()}
        if self.q is not None:
            keywords["q"] = [self.q[joint] for joint in scene.joint_names]
        call: Callable[..., SceneGraph | None] = getattr(target, self.method)
        return call(*map(_core_value, self.positional), **keywords)

    def apply_to_model(self, model: SceneModel) -> SceneModel:
        """Do the edit to the plain model."""
        if self.q is not None:
            return model.reparent_keeping_pose(*self.positional, self.q)
        call: Callable[..., SceneModel] = getattr(model, self.method)
        return call(*self.positional, **self.keywords)


def _core_value(value: Any) -> Any:
    return value.make() if isinstance(value, PoseSpec | JointSpec | InertiaSpec) else value


def configurations(model: SceneModel) -> st.SearchStrategy[dict[str, float]]:
    """Return a strategy of joint values by name."""
    return st.fixed_dictionaries(dict.fromkeys(model.joint_names(), _angle))


def _joints(model: SceneModel) -> st.SearchStrategy[JointSpec]:
    leaders = st.sampled_from(["", "", "", "j9", *model.joints()])
    moving = st.builds(
        JointSpec,
        st.sampled_from(["revolute", "continuous", "prismatic"]),
        _axes,
        st.sampled_from([-1.5, -0.5]),
        st.sampled_from([0.5, 2.5]),
        st.sampled_from([1.0, 2.0]),
        st.sampled_from(_JOINT_NAMES),
        leaders,
        st.sampled_from([1.0, -0.5, 2.0, 0.0]),
        st.sampled_from([0.0, 0.25, 3.0]),
    )
    plain = moving.map(
        lambda j: j if j.mimic else JointSpec(j.type, j.axis, j.lower, j.upper, j.velocity, j.name)
    )
    specs = [JointSpec(), JointSpec("free"), JointSpec("unstated")]
    return st.one_of(st.sampled_from(specs), plain.map(_without_redundant_limits))


def _without_redundant_limits(joint: JointSpec) -> JointSpec:
    """A continuous joint has no limits of position."""
    if joint.type != "continuous":
        return joint
    return JointSpec(
        joint.type,
        joint.axis,
        velocity=joint.velocity,
        name=joint.name,
        mimic=joint.mimic,
        multiplier=joint.multiplier,
        offset=joint.offset,
    )


@st.composite
def edits(draw: st.DrawFn, model: SceneModel) -> Edit:
    """Return a strategy of edits that make sense, or nearly, for a model."""
    existing = st.sampled_from(tuple(model.frames) or FRAME_NAMES)
    frame = st.one_of(existing, existing, existing, st.sampled_from(FRAME_NAMES))
    free_names = tuple(name for name in FRAME_NAMES if name not in model.frames) or FRAME_NAMES
    new_name = st.one_of(
        st.sampled_from(free_names), st.sampled_from(free_names), st.sampled_from(FRAME_NAMES)
    )
    match draw(st.sampled_from(_KINDS)):
        case "add_root":
            return Edit("add_root", (draw(new_name),))
        case "add_frame":
            keywords = {
                "pose": draw(_poses),
                "joint": draw(_joints(model)),
                "body": draw(
                    st.one_of(
                        existing.map(lambda f: _body_of(model, f)), st.sampled_from(_BODY_NAMES)
                    )
                ),
                "classes": draw(_class_tuples),
                "shapes": draw(_shape_tuples),
            }
            return Edit("add_frame", (draw(new_name), draw(frame)), keywords)
        case "remove_frame":
            return Edit("remove_frame", (draw(frame),), {"subtree": draw(st.booleans())})
        case "rename_frame":
            return Edit("rename_frame", (draw(frame), draw(st.one_of(new_name, frame))))
        case "reparent":
            return Edit("reparent", (draw(frame), draw(frame)), {"pose": draw(_poses)})
        case "reparent_keeping_pose":
            return Edit("reparent", (draw(frame), draw(frame)), q=draw(configurations(model)))
        case "set_pose":
            return Edit("set_pose", (draw(frame), draw(_poses)))
        case "set_joint":
            return Edit("set_joint", (draw(frame), draw(_joints(model))))
        case "set_classes":
            return Edit("set_classes", (draw(frame), draw(_class_tuples)))
        case "set_shapes":
            return Edit("set_shapes", (draw(frame), draw(_shape_tuples)))
        case "add_shape":
            return Edit("add_shape", (draw(frame), draw(_attached)))
        case "set_inertia":
            return Edit("set_inertia", (draw(frame), draw(_inertias)))
        case "set_attributes":
            return Edit("set_attributes", (draw(frame), draw(_attributes)))
        case "set_group":
            members = {"frames": draw(_members(frame)), "groups": draw(_members(_groups))}
            more = {"parents": _members(frame), "attributes": _attributes}
            options = {key: draw(values) for key, values in more.items() if draw(st.booleans())}
            return Edit("set_group", (draw(_groups),), members | options)
        case kind if kind in ("set_attribute", "set_group_attribute"):
            key, value = draw(_entries)
            stamp = draw(st.sampled_from([None, 0.0, 2.5, -1e300]))
            name = draw(frame if kind == "set_attribute" else _groups)
            return Edit(kind, (name, key, value if stamp is None else Stamped(value, stamp)))
        case "remove_group":
            return Edit("remove_group", (draw(_groups),))
        case "allow_collision":
            reason = draw(st.sampled_from(["user", "srdf"]))
            return Edit("allow_collision", (draw(frame), draw(frame)), {"reason": reason})
        case _:
            pair = draw(
                st.sampled_from([tuple(sorted(pair)) for pair in model.allowed] or [("a", "b")])
            )
            return Edit(
                "forbid_collision",
                draw(st.sampled_from([pair, pair[::-1], (draw(frame), draw(frame))])),
            )


def _body_of(model: SceneModel, frame: str) -> str | None:
    return model.frames[frame].body if frame in model.frames else None


_KINDS = (
    *["add_frame"] * 6,
    *["reparent", "reparent_keeping_pose", "remove_frame", "set_pose", "set_joint"] * 2,
    *[
        "add_root",
        "rename_frame",
        "set_classes",
        "set_shapes",
        "add_shape",
        "set_inertia",
        "set_attributes",
        "set_attribute",
        "set_group_attribute",
        "remove_group",
    ],
    *["set_group"] * 2,
    *["allow_collision"] * 2,
    "forbid_collision",
)


@st.composite
def scenes(draw: st.DrawFn) -> SceneGraph:
    """Draw the result of random edits."""
    model, scene = SceneModel().add_root("world"), SceneGraph()
    for _ in range(draw(st.integers(0, 25))):
        edit = draw(edits(model))
        try:
            model = edit.apply_to_model(model)
        except RejectedError:
            continue
        changed = edit.apply_to(scene)
        assert changed is not None
        scene = changed
    return scene
