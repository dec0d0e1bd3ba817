"""Edits and queries of the scene graph: errors, invariants and value semantics."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from tmkit._core import StampedPoses
from tmkit.errors import (
    ConfigurationError,
    CycleError,
    DisconnectedError,
    DuplicateNameError,
    SceneError,
    TmkitError,
    UnknownNameError,
)
from tmkit.graph import (
    AttachedShape,
    Box,
    Continuous,
    Fixed,
    FrameSpecification,
    Free,
    Inertia,
    Mesh,
    Mimic,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
    Unstated,
)
from tmkit.spatial import Pose


def kitchen() -> SceneGraph:
    """Return a table with a two-frame cup, and an arm with a hand and its mount."""
    return (
        SceneGraph()
        .add_frame("table", "world", pose=Pose([1, 0, 0]), classes=["surface"])
        .add_frame("cup", "table", pose=Pose([0, 0, 0.1]), joint=Free(), classes=["movable"])
        .add_frame("handle", "cup", pose=Pose([0.05, 0, 0]), body="cup")
        .add_frame(
            "arm",
            "world",
            joint=Revolute([0, 0, 1], lower=-1.0, upper=2.0, velocity=3.0, effort=4.0),
        )
        .add_frame("mount", "arm", pose=Pose([0, 0, 0.2]), body="arm")
        .add_frame(
            "hand",
            "mount",
            pose=Pose([0.5, 0, 0]),
            joint=Prismatic([1, 0, 0], lower=0.0, upper=0.1),
        )
        .add_frame("finger", "hand", joint=Continuous([0, 1, 0], mimic=Mimic("hand", 2.0, 0.5)))
    )


# --- rejections

_REFUSALS: list[tuple[Callable[[SceneGraph], object], type[TmkitError], str]] = [
    (
        lambda s: s.add_root("table"),
        DuplicateNameError,
        "a frame named 'table' is already in the scene",
    ),
    (lambda s: s.add_root(""), SceneError, "a frame needs a name that is not empty"),
    (
        lambda s: s.add_frame("cup", "table"),
        DuplicateNameError,
        "a frame named 'cup' is already in the scene",
    ),
    (
        lambda s: s.add_frame("lid", "cups"),
        UnknownNameError,
        "unknown frame 'cups'; did you mean 'cup'?",
    ),
    (lambda s: s.add_frame("", "table"), SceneError, "a frame needs a name that is not empty"),
    (
        lambda s: s.add_frame("lid", "cup", body=""),
        SceneError,
        "a body needs a name that is not empty",
    ),
    (
        lambda s: s.add_frame("lid", "table", body="cup"),
        SceneError,
        (
            "body 'cup' is already in this tree, with frame 'cup'; put frame 'lid' under a frame of"
            " that body"
        ),
    ),
    (
        lambda s: s.add_frame("lid", "cup", body="cup", joint=Revolute([0, 0, 1])),
        SceneError,
        (
            "frame 'lid' and its parent 'cup' are on one body 'cup', so the edge between them must"
            " be fixed"
        ),
    ),
    (
        lambda s: s.rename_frame("cup", "mug").add_frame("cup", "table"),
        DuplicateNameError,
        "a body named 'cup' is already in the scene",
    ),
    (
        lambda s: s.add_frame("lid", "cup", joint=Revolute([0, 0, 1], name="arm")),
        DuplicateNameError,
        "a joint named 'arm' is already in the scene",
    ),
    (
        lambda s: s.add_frame("lid", "cup", joint=Revolute([0, 0, 1], mimic=Mimic("arn"))),
        UnknownNameError,
        "unknown joint 'arn'; did you mean 'arm'?",
    ),
    (
        lambda s: s.add_frame("lid", "cup", joint=Revolute([0, 0, 1], mimic=Mimic("lid"))),
        CycleError,
        "joint 'lid' cannot mimic itself",
    ),
    (
        lambda s: s.set_joint("hand", Revolute([0, 0, 1], mimic=Mimic("finger"))),
        CycleError,
        "joint 'hand' mimics 'finger', which mimics it in turn",
    ),
    (
        lambda s: s.remove_frame("cups"),
        UnknownNameError,
        "unknown frame 'cups'; did you mean 'cup'?",
    ),
    (
        lambda s: s.remove_frame("cup"),
        SceneError,
        "first is 'handle'; remove them first, or the whole subtree with subtree=True",
    ),
    (
        lambda s: s.reparent("finger", "world", pose=Pose()).remove_frame("hand"),
        SceneError,
        "joint 'hand' cannot be removed while joint 'finger' mimics it",
    ),
    (
        lambda s: s.set_joint("hand", Fixed()),
        SceneError,
        "joint 'hand' cannot be removed while joint 'finger' mimics it",
    ),
    (
        lambda s: s.set_joint("hand", Prismatic([1, 0, 0], name="slider")),
        SceneError,
        "joint 'hand' cannot be removed while joint 'finger' mimics it",
    ),
    (
        lambda s: s.rename_frame("cup", "table"),
        DuplicateNameError,
        "a frame named 'table' is already in the scene",
    ),
    (lambda s: s.rename_frame("cup", ""), SceneError, "a frame needs a name that is not empty"),
    (
        lambda s: s.reparent("arm", "finger", pose=Pose()),
        CycleError,
        "frame 'arm' cannot have parent 'finger', which is itself or its descendant",
    ),
    (
        lambda s: s.reparent("arm", "arm", q=[0, 0]),
        CycleError,
        "frame 'arm' cannot have parent 'arm'",
    ),
    (
        lambda s: s.add_root("moon").reparent("moon", "arm", pose=Pose()),
        SceneError,
        "frame 'moon' is a root, which has no parent to change",
    ),
    (
        lambda s: s.add_root("moon").reparent("cup", "moon"),
        DisconnectedError,
        (
            r"frames 'cup' and 'moon' are in different trees \('world' and 'moon'\), so no pose"
            r" between them is known"
        ),
    ),
    (
        lambda s: s.reparent("cup", "table", pose=Pose(), q=[0, 0]),
        SceneError,
        "give either pose or q to reparent, not both",
    ),
    (
        lambda s: s.reparent("cup", "hand"),
        ConfigurationError,
        "joint 'arm' is on the path, so a configuration q is needed",
    ),
    (
        lambda s: s.reparent("cup", "hand", q=[0]),
        ConfigurationError,
        r"q must hold 2 numbers, but has shape \(1,\)",
    ),
    (
        lambda s: s.reparent("handle", "table", q=[0, 0]),
        SceneError,
        (
            "frame 'handle' is fixed on body 'cup' and cannot leave it; reparent the topmost frame"
            " of the body"
        ),
    ),
    (
        lambda s: (
            s.add_root("moon")
            .add_frame("shard", "moon", body="cup")
            .reparent("cup", "moon", pose=Pose())
        ),
        SceneError,
        (
            "moving frame 'cup' under 'moon' would give body 'cup' two paths: that tree already has"
            " its frame 'shard'"
        ),
    ),
    (
        lambda s: s.set_pose("handle", Pose([1, 0, 0])),
        SceneError,
        "frames 'handle' and 'cup' are on one body, so the pose between them cannot change",
    ),
    (
        lambda s: s.set_pose("mount", Pose([1, 0, 0])),
        SceneError,
        "frames 'mount' and 'arm' are on one body, so the pose between them cannot change",
    ),
    (
        lambda s: s.set_pose("world", Pose()),
        SceneError,
        "frame 'world' is a root, which has no pose",
    ),
    (
        lambda s: s.set_joint("world", Fixed()),
        SceneError,
        "frame 'world' is a root, which has no joint",
    ),
    (
        lambda s: s.set_joint("handle", Free()),
        SceneError,
        "frame 'handle' and its parent are on one body, so the edge between them must be fixed",
    ),
    (
        lambda s: s.allow_collision("cup", "cup"),
        SceneError,
        "frame 'cup' cannot collide with itself; name two frames",
    ),
    (
        lambda s: s.allow_collision("cup", "tabel"),
        UnknownNameError,
        "unknown frame 'tabel'; did you mean 'table'?",
    ),
    (lambda s: s.forbid_collision("cup", "x"), UnknownNameError, "unknown frame 'x'"),
    (lambda s: s.joint_frame("sholder"), UnknownNameError, "unknown joint 'sholder'"),
    (
        lambda s: s.configuration({"amr": 0.0}),
        UnknownNameError,
        "unknown joint 'amr'; did you mean 'arm'?",
    ),
    (
        lambda s: s.configuration({"finger": 0.0}),
        ConfigurationError,
        "joint 'finger' mimics 'hand', so it has no value; set 'hand'",
    ),
    (
        lambda s: s.configuration({"arm": np.nan}),
        ConfigurationError,
        "joint 'arm' needs a finite number, not nan",
    ),
    (
        lambda s: s.configuration({"arm": "up"}),
        ConfigurationError,
        "joint 'arm' needs a finite number, not 'up'",
    ),  # type: ignore[dict-item]  # that it fails is the test
    (lambda s: s.configuration({3: 0.0}), ConfigurationError, "joint names are text, not 3"),  # type: ignore[dict-item]  # that it fails is the test
    (
        lambda s: s.configuration({}, base=[0]),
        ConfigurationError,
        r"base must hold 2 numbers, but has shape \(1,\)",
    ),
    (
        lambda _: SceneGraph(root=None).parent("a"),
        UnknownNameError,
        "unknown frame 'a'; there is no frame at all",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), _REFUSALS)
def test_rejections(
    call: Callable[[SceneGraph], object], error: type[TmkitError], message: str
) -> None:
    """A rejected edit or query raises the documented error and changes nothing."""
    scene, same = kitchen(), kitchen()
    with pytest.raises(error, match=message) as caught:
        call(scene)
    assert type(caught.value) is error
    assert scene == same
    assert scene._defects() == ""


@pytest.mark.parametrize(
    "query",
    [
        "parent",
        "children",
        "subtree",
        "ancestors",
        "root",
        "body",
        "joint",
        "local_pose",
        "shapes",
        "classes",
        "inertia",
        "specification",
    ],
)
def test_queries_of_unknown_frames(query: str) -> None:
    """Every query of a frame names the nearest frame when there is none of that name."""
    with pytest.raises(
        UnknownNameError, match="unknown frame 'tabel'; did you mean 'table'"
    ) as caught:
        getattr(kitchen(), query)("tabel")
    assert (caught.value.kind, caught.value.name, caught.value.nearest) == (
        "frame",
        "tabel",
        "table",
    )
    assert isinstance(caught.value, KeyError)


def test_facts_of_errors() -> None:
    """Errors carry their facts as attributes."""
    scene = kitchen()
    with pytest.raises(CycleError) as cycle:
        scene.reparent("arm", "finger", pose=Pose())
    assert (cycle.value.frame, cycle.value.parent) == ("arm", "finger")
    with pytest.raises(DuplicateNameError) as duplicate:
        scene.add_frame("cup", "table")
    assert (duplicate.value.kind, duplicate.value.name) == ("frame", "cup")
    with pytest.raises(UnknownNameError) as unknown:
        scene.parent("zzzzzzzz")
    assert unknown.value.nearest is None
    with pytest.raises(ConfigurationError) as mimic:
        scene.configuration({"finger": 0.0})
    assert mimic.value.joint == "finger"


def test_text_is_not_a_list_of_texts() -> None:
    """A class given as a bare text is a TypeError, not a list of letters."""
    with pytest.raises(TypeError):
        kitchen().set_classes("cup", "movable")


def test_arguments_after_the_second_are_named() -> None:
    """Poses and joints are keyword-only when a frame is added."""
    with pytest.raises(TypeError):
        SceneGraph().add_frame("a", "world", Pose())  # type: ignore[misc]  # that it fails is the test


# --- what edits do


def test_a_new_scene_has_the_root_world() -> None:
    """SceneGraph() has the root world on its own body; None gives an empty scene."""
    assert (
        SceneGraph().frame_names == SceneGraph().body_names == SceneGraph().root_names == ("world",)
    )
    assert SceneGraph(root="base").frame_names == ("base",)
    assert (len(SceneGraph(root=None)), SceneGraph(root=None).root_names) == (0, ())


def test_reparenting_keeps_the_place_in_the_world() -> None:
    """A picked object keeps its pose at q and moves with the hand; the order is unchanged."""
    scene = kitchen()
    q, moved = (
        scene.configuration({"arm": 0.3, "hand": 0.05}),
        scene.configuration({"arm": 1.3, "hand": 0.05}),
    )
    held = scene.reparent("cup", "hand", q=q)
    for frame in ("cup", "handle"):
        assert held.pose(frame, relative_to="world", q=q).is_close(
            scene.pose(frame, relative_to="world", q=q)
        )
        assert not held.pose(frame, relative_to="world", q=moved).is_close(
            scene.pose(frame, relative_to="world", q=moved)
        )
        assert held.pose(frame, relative_to="hand") == held.pose(frame, relative_to="hand", q=moved)
    assert held.frame_names == scene.frame_names
    assert scene.parent("cup") == "table"
    back = held.reparent("cup", "table", q=q)
    assert back.local_pose("cup").is_close(scene.local_pose("cup"))


def test_reparenting_a_joint_keeps_its_place_at_its_value() -> None:
    """An edge with a joint keeps its joint, and its frame stands at q where it stood."""
    scene = kitchen()
    q = scene.configuration({"arm": 0.7, "hand": 0.02})
    moved = scene.reparent("hand", "table", q=q)
    for frame in ("hand", "finger"):
        assert moved.pose(frame, relative_to="world", q=q).is_close(
            scene.pose(frame, relative_to="world", q=q)
        )
    assert moved.joint("hand") == scene.joint("hand")


def test_edges_inside_a_body_under_a_joint() -> None:
    """Frames of one body are rearranged without a configuration, also below a joint."""
    scene = kitchen().add_frame("flange", "mount", pose=Pose([0, 0.1, 0]), body="arm")
    moved = scene.reparent("flange", "arm")
    assert moved.parent("flange") == "arm"
    assert moved.local_pose("flange").is_close(Pose([0, 0.1, 0.2]))
    assert moved.reparent("flange", "mount", pose=Pose([0, 0.1, 0])) == scene
    assert scene.set_pose("flange", Pose([1e-12, 0.1, 0])) is scene


def test_parts_of_one_body_in_two_trees_can_be_joined() -> None:
    """A frame of a body may hang off the same body in another tree, but only by a fixed edge."""
    scene = (
        kitchen().add_root("moon").add_frame("shard", "moon", body="cup").add_frame("dust", "shard")
    )
    joined = scene.reparent("shard", "cup", pose=Pose([0, 0, 1]))
    assert joined.root("dust") == "world"
    assert joined.pose("shard", relative_to="handle") == Pose([-0.05, 0, 1])
    assert joined._defects() == ""
    with pytest.raises(
        SceneError,
        match="frame 'shard' and its new parent are on one body, so the edge between them",
    ):
        scene.set_joint("shard", Free()).reparent("shard", "cup", pose=Pose())
    assert joined.remove_frame("shard", subtree=True).body("cup") == "cup"


def test_joints_and_entries_are_in_the_order_of_frames() -> None:
    """The configuration has one entry a joint, mimics have none, whenever the joint was set."""
    scene = kitchen()
    assert scene.joint_names == ("arm", "hand")
    with_early = scene.set_joint("table", Continuous([0, 0, 1], name="spin"))
    assert with_early.joint_names == ("spin", "arm", "hand")
    assert with_early.joint_frames == ("table", "arm", "hand")
    assert with_early.configuration({"hand": 0.1, "spin": 2}).tolist() == [2, 0, 0.1]
    assert with_early.configuration({"arm": 1.0}, base=[5, 6, 7]).tolist() == [5, 1, 7]
    assert with_early.zero_configuration().tolist() == [0, 0, 0]
    assert with_early.joint_limits.tolist() == [[-np.inf, np.inf], [-1.0, 2.0], [0.0, 0.1]]
    assert with_early.velocity_limits.tolist() == [np.inf, 3.0, np.inf]
    assert with_early.effort_limits.tolist() == [np.inf, 4.0, np.inf]


def test_a_joint_keeps_its_name() -> None:
    """A joint has its frame's name by default, and keeps it through renames and set_joint."""
    scene = kitchen().rename_frame("arm", "upper_arm")
    assert scene.joint("upper_arm").name == "arm"
    assert scene.joint_frame("arm") == "upper_arm"
    assert scene.set_joint("upper_arm", Continuous([0, 0, 1])).joint("upper_arm").name == "arm"
    assert scene.set_joint("upper_arm", Continuous([0, 0, 1], name="shoulder")).joint_names == (
        "shoulder",
        "hand",
    )


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s.rename_frame("cup", "cup"),
        lambda s: s.reparent("cup", "table"),
        lambda s: s.reparent("cup", "table", pose=Pose([0, 0, 0.1])),
        lambda s: s.set_pose("cup", Pose([0, 0, 0.1])),
        lambda s: s.set_joint("cup", Free()),
        lambda s: s.set_joint("hand", Prismatic([2, 0, 0], lower=0.0, upper=0.1)),
        lambda s: s.set_classes("cup", ["movable"]),
        lambda s: s.set_shapes("cup", []),
        lambda s: s.set_inertia("cup", None),
        lambda s: s.forbid_collision("cup", "table"),
    ],
)
def test_an_edit_that_changes_nothing_returns_the_same_object(
    edit: Callable[[SceneGraph], SceneGraph],
) -> None:
    """Not an equal scene but the very same one."""
    scene = kitchen()
    assert edit(scene) is scene


def test_the_same_twist_again_returns_the_same_object() -> None:
    """An equal twist returns the same version; another value returns a new one."""
    scene = kitchen().set_twist("cup", [0.1, 0, 0, 0, 0, 0], relative_to_body="world")
    assert scene.set_twist("cup", [0.1, 0, 0, 0, 0, 0], relative_to_body="world") is scene
    other = scene.set_twist("cup", [0.2, 0, 0, 0, 0, 0], relative_to_body="world")
    assert other != scene
    assert other.twist_frames == ("cup",)
    assert other._defects() == ""  # type: ignore[attr-defined]


def test_allowed_pairs() -> None:
    """Allowed pairs are unordered, have a reason, follow renames and are removed with frames."""
    scene = kitchen().allow_collision("hand", "cup", reason="grasp")
    assert scene.is_allowed("cup", "hand")
    assert scene.is_allowed("hand", "cup")
    assert not scene.is_allowed("hand", "table")
    assert scene.allowed_pairs == (("cup", "hand", "grasp"),)
    assert scene.allow_collision("cup", "hand", reason="grasp") is scene
    assert scene.allow_collision("cup", "hand").allowed_pairs == (("cup", "hand", "user"),)
    assert scene.rename_frame("cup", "mug").allowed_pairs == (("mug", "hand", "grasp"),)
    assert scene.remove_frame("cup", subtree=True).allowed_pairs == ()
    assert scene.forbid_collision("cup", "hand") == kitchen()
    with pytest.raises(UnknownNameError, match="unknown frame 'hnad'; did you mean 'hand'"):
        scene.is_allowed("hnad", "cup")


def test_removing_a_subtree() -> None:
    """A removed subtree takes its frames, joints and bodies; the names are free again."""
    scene = kitchen().remove_frame("arm", subtree=True)
    assert scene.frame_names == ("world", "table", "cup", "handle")
    assert scene.joint_names == ()
    assert scene.body_names == ("world", "table", "cup")
    assert scene.add_frame("arm", "world", joint=Revolute([0, 0, 1], name="hand")).joint_names == (
        "hand",
    )
    assert scene.remove_frame("world", subtree=True) == SceneGraph(root=None)


def test_contents_of_frames() -> None:
    """Classes, shapes and the counts come back as they were given, as tuples."""
    box = AttachedShape(Box([1, 2, 3]))
    scene = (
        kitchen()
        .set_shapes("cup", [box])
        .add_shape("cup", AttachedShape(Sphere(0.1), Pose([1, 0, 0])))
    )
    assert scene.shapes("cup") == (box, AttachedShape(Sphere(0.1), Pose([1, 0, 0])))
    assert scene.shapes("table") == ()
    assert (scene.classes("cup"), scene.classes("world")) == (("movable",), ())
    assert scene.frames_of_class("movable") == ("cup",)
    assert scene.frames_of_class("nothing") == ()
    assert scene.ancestors("handle") == ("cup", "table", "world")
    assert scene.children("world") == ("table", "arm")
    assert scene.subtree("arm") == ("arm", "mount", "hand", "finger")
    assert "cup" in scene
    assert "mug" not in scene
    assert 3 not in scene  # type: ignore[operator]  # any object may be asked for
    assert "\ud800" not in scene
    assert repr(scene) == "SceneGraph(8 frames, 2 joints)"


# --- inertia


def test_inertia_is_of_the_body_in_the_axes_of_the_frame() -> None:
    """An inertia given in one frame of a body is returned in the axes of another."""
    turned = Pose.from_rpy([0, 0, 0.3], [0, 0, np.pi / 2])
    scene = SceneGraph().add_frame("a", "world").add_frame("b", "a", pose=turned, body="a")
    scene = scene.set_inertia("a", Inertia(2.0, [1, 0, 0], matrix=np.diag([0.1, 0.2, 0.25])))
    seen = scene.inertia("b")
    assert seen is not None
    assert seen.mass == 2.0
    assert np.allclose(seen.center, [0, -1, -0.3])
    assert np.allclose(seen.matrix, np.diag([0.2, 0.1, 0.25]))
    assert scene.inertia("world") is None
    assert scene.set_inertia("b", None).inertia("a") is None


def test_inertia_stays_with_the_body() -> None:
    """An inertia moves to another frame of its body, and is removed with the last frame."""
    scene = SceneGraph().add_frame("a", "world").add_frame("b", "a", pose=Pose([0, 0, 1]), body="a")
    scene = scene.set_inertia("b", Inertia(1.0, [0, 0, 0.5]))
    left = scene.remove_frame("b").inertia("a")
    assert left is not None
    assert left.center.tolist() == [0, 0, 1.5]
    apart = scene.add_root("moon").add_frame("c", "moon", body="a")
    with pytest.raises(DisconnectedError, match="frames 'b' and 'c' are in different trees"):
        apart.inertia("c")
    assert apart.remove_frame("a", subtree=True).inertia("c") is None
    without = SceneGraph().add_root("moon").add_body("a").add_frame("c", "moon", body="a")
    assert apart.remove_frame("a", subtree=True) == without


# --- a value


def test_equality_of_versions_looks_at_what_names_mean() -> None:
    """A new frame with the name and parent of an old one is another frame."""
    plain = SceneGraph().add_frame("below", "world")
    for name in ("a", "b", "c"):
        plain = plain.add_frame(name, "world", body="world")
    plain = plain.reparent("below", "b", pose=Pose())
    moved_up = plain.remove_frame("a").rename_frame("b", "a").rename_frame("c", "b")
    moved_up = moved_up.add_frame("c", "world", body="world")
    assert moved_up.frame_names == plain.frame_names
    assert moved_up.parent("below") == "a"
    assert moved_up != plain
    assert moved_up.reparent("below", "b", pose=Pose()) == plain

    with SceneGraph().edit() as edit:
        for name in ("a", "b", "c"):
            edit.add_frame(name, "world", body="world")
        edit.add_frame("below", "b")
        edit.allow_collision("b", "below", reason="touch")
        edit.set_group("pair", frames=["b"])
    scene = edit.finish()
    # Places and names of frames stay, ids shift: `b`, with all that is said of it, comes to stand
    # where `a` was.
    with scene.edit() as edit:
        edit.remove_frame("a")
        edit.rename_frame("b", "a")
        edit.rename_frame("c", "b")
        edit.remove_frame("below")
        edit.add_frame("c", "world", body="world")
        edit.add_frame("below", "b")
    shifted = edit.finish()
    assert shifted.frame_names == scene.frame_names
    assert shifted != scene  # the pair is gone, and the group holds what is `a` now
    shifted = shifted.allow_collision("b", "below", reason="touch")
    assert shifted != scene
    assert shifted.group("pair").frames == ("a",)
    again = scene.remove_frame("below").add_frame("below", "b")
    assert again != scene
    assert again.allow_collision("b", "below", reason="touch") == scene
    assert again.allow_collision("b", "below", reason="other") != scene
    assert hash(again.allow_collision("b", "below", reason="touch")) == hash(scene)


def test_equality_of_versions_with_errors_from_sources_of_their_own() -> None:
    """Noise sources are compared by the edges that share them."""
    scene = SceneGraph().add_frame("a", "world").add_frame("b", "world")
    error = np.eye(6) * 1e-4
    one = scene.set_covariance("a", error).set_covariance("b", error)
    assert one == scene.set_covariance("b", error).set_covariance("a", error)
    shared = scene.set_noise("a", one.noise("a")).set_noise("b", one.noise("a"))
    assert shared != one
    assert shared == scene.set_noise("a", one.noise("b")).set_noise("b", one.noise("b"))
    assert one.set_noise("b", one.noise("a")) == shared


def test_the_hash_is_that_of_the_version() -> None:
    """It is kept with a version, and an edit's is its own, in a builder too."""
    scene = kitchen()
    before = hash(scene)
    moved = scene.set_pose("cup", Pose([0.5, 0.5, 0.5]))
    assert hash(moved) != before == hash(scene)
    with scene.edit() as edit:
        assert hash(edit.scene) == before
        edit.set_pose("cup", Pose([0.5, 0.5, 0.5]))
        assert hash(edit.scene) == hash(moved)
    assert hash(edit.finish()) == hash(moved)


def test_equality_is_by_content_in_insertion_order() -> None:
    """Scenes made in other ways are equal when they say the same in the same order."""
    there_and_back = (
        kitchen().reparent("cup", "world").reparent("cup", "table", pose=Pose([0, 0, 0.1]))
    )
    assert there_and_back == kitchen()
    assert hash(there_and_back) == hash(kitchen())
    assert kitchen().set_pose("cup", Pose([0, 0, 0.2])) != kitchen()
    ab = SceneGraph().add_frame("a", "world").add_frame("b", "world")
    ba = SceneGraph().add_frame("b", "world").add_frame("a", "world")
    assert ab != ba
    assert kitchen() != "a scene"


def test_copies_are_the_scene_itself() -> None:
    """An immutable value is its own copy."""
    scene = kitchen()
    assert copy.copy(scene) is scene
    assert copy.deepcopy(scene) is scene


def test_pickling_a_renamed_root_with_shapes() -> None:
    """A root keeps its body, classes and shapes, though its body has another name than it."""
    scene = (
        SceneGraph()
        .rename_frame("world", "ground")
        .add_root("moon")
        .add_body("rock")
        .add_frame("world", "moon", body="rock")
        .set_shapes("ground", [AttachedShape(Box([1, 1, 0.1]))])
        .set_classes("ground", ["surface"])
        .add_frame("pebble", "moon", body="world")
    )
    back = pickle.loads(pickle.dumps(scene))
    assert back == scene
    assert (back.body("ground"), back.body("pebble")) == ("world", "world")
    assert back.body_names == scene.body_names == ("world", "moon", "rock")


def test_a_pickled_scene_holds_each_shape_once() -> None:
    """A mesh on a hundred frames is written once, whatever made the handles."""
    rng = np.random.default_rng(0)
    mesh = Mesh(rng.normal(size=(5000, 3)), rng.integers(0, 5000, size=(9000, 3)))
    scene = SceneGraph().add_frame("a", "world", shapes=[AttachedShape(mesh)])
    one = len(pickle.dumps(scene))
    for i in range(100):
        scene = scene.add_frame(f"f{i}", "world", shapes=scene.shapes("a"))
    assert len(pickle.dumps(scene)) < 2 * one
    assert pickle.loads(pickle.dumps(scene)) == scene


def test_a_scene_cannot_be_changed() -> None:
    """Attributes can be neither set nor added."""
    with pytest.raises(AttributeError):
        kitchen().frame_names = ()  # type: ignore[misc]  # that it fails is the test
    with pytest.raises(AttributeError):
        kitchen().note = "mine"  # type: ignore[attr-defined]  # that it fails is the test
    for array in (
        kitchen().joint_limits,
        kitchen().zero_configuration(),
        kitchen().configuration({"arm": 1.0}),
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


# --- many edits at once


def test_a_builder_makes_one_new_version() -> None:
    """Its methods are the edits; the scene it began with stays; it may go on after finish."""
    scene = kitchen()
    with scene.edit() as edit:
        assert edit.add_frame("lid", "cup") is None
        edit.set_pose("lid", Pose([0, 0, 0.2]))
        assert edit.scene.local_pose("lid") == Pose([0, 0, 0.2])
    first = edit.finish()
    edit.remove_frame("lid")
    assert first == scene.add_frame("lid", "cup", pose=Pose([0, 0, 0.2]))
    assert edit.finish() == scene == kitchen()
    assert repr(edit) == "SceneEdit(8 frames)"


def test_a_rejected_edit_leaves_the_builder_as_it_was() -> None:
    """An error caught inside the block undoes only its own edit."""
    with kitchen().edit() as edit:
        edit.set_classes("table", [])
        with pytest.raises(SceneError, match="has children"):
            edit.remove_frame("cup")
    assert edit.finish() == kitchen().set_classes("table", [])


def test_an_exception_discards_all_edits() -> None:
    """When the block ends in an exception there is nothing to finish, and no way to go on."""
    edit = kitchen().edit()
    edit.remove_frame("handle")
    with pytest.raises(ZeroDivisionError), edit:
        _ = 1 / 0
    with pytest.raises(SceneError, match="this edit was discarded by an exception"):
        edit.finish()
    with pytest.raises(
        SceneError, match=r"this edit was discarded; begin another with scene.edit\(\)"
    ):
        edit.remove_frame("cup")
    assert repr(edit) == "SceneEdit(7 frames, discarded)"


# --- all frames at once


def test_frames_may_be_given_in_any_order() -> None:
    """A parent or the leader of a mimic may come after; the order given is the insertion order."""
    scene = kitchen().set_inertia("cup", Inertia(0.2)).allow_collision("cup", "table")
    names = scene.frame_names[::-1]
    turned = SceneGraph.from_frames(
        [scene.specification(name) for name in names], allowed=scene.allowed_pairs
    )
    assert turned.frame_names == names
    assert turned._defects() == ""
    q, same_q = (
        scene.configuration({"arm": 0.4, "hand": 0.1}),
        turned.configuration({"arm": 0.4, "hand": 0.1}),
    )
    for name in names:
        assert turned.specification(name).joint == scene.specification(name).joint
        assert turned.pose(name, relative_to="world", q=same_q) == scene.pose(
            name, relative_to="world", q=q
        )
    ordered = SceneGraph.from_frames(
        [turned.specification(n) for n in names[::-1]], allowed=turned.allowed_pairs
    )
    assert ordered == scene


def test_a_specification_says_all_of_a_frame() -> None:
    """Its attributes are what was given, with defaults spelled out."""
    inertia, box = Inertia(2.0), AttachedShape(Box([1, 1, 1]))
    frame = FrameSpecification(
        "a", "b", pose=Pose([1, 0, 0]), joint=Free(), body="c", classes=["d"], shapes=[box]
    ).replace(inertia=inertia)
    assert (frame.name, frame.parent, frame.pose, frame.joint) == (
        "a",
        "b",
        Pose([1, 0, 0]),
        Free(),
    )
    assert (frame.body, frame.classes, frame.shapes, frame.inertia) == (
        "c",
        ("d",),
        (box,),
        inertia,
    )
    assert repr(frame) == "FrameSpecification('a', parent='b')"
    plain = FrameSpecification("a", None)
    assert (plain.parent, plain.pose, plain.joint, plain.body) == (None, Pose(), Fixed(), "a")
    assert (plain.classes, plain.shapes, plain.inertia) == ((), (), None)
    assert repr(plain) == "FrameSpecification('a', parent=None)"
    with pytest.raises(
        SceneError, match="frame 'a' needs a parent and a body whose names are not empty"
    ):
        FrameSpecification("a", "")


@pytest.mark.parametrize(
    ("frames", "error", "message"),
    [
        (
            [("a", None), ("a", None)],
            DuplicateNameError,
            "a frame named 'a' is already in the scene",
        ),
        (
            [("a", "b"), ("b", "a")],
            CycleError,
            "frame 'a' is its own ancestor|frame 'b' is its own ancestor",
        ),
        ([("a", "a")], CycleError, "frame 'a' is its own ancestor"),
        (
            [("world", None), ("a", "wrld")],
            UnknownNameError,
            "unknown frame 'wrld'; did you mean 'world'",
        ),
    ],
)
def test_frames_that_make_no_scene(
    frames: list[tuple[str, str | None]], error: type[TmkitError], message: str
) -> None:
    """Duplicates, cycles and unknown parents are rejected as in single edits."""
    with pytest.raises(error, match=message):
        SceneGraph.from_frames([FrameSpecification(name, parent) for name, parent in frames])


def test_frames_that_contradict_each_other() -> None:
    """A root with a pose or joint, and an inertia given twice for one body, are rejected."""
    with pytest.raises(SceneError, match="frame 'a' is a root, which has no joint and no pose"):
        SceneGraph.from_frames([FrameSpecification("a", None, pose=Pose([1, 0, 0]))])
    twice = [
        FrameSpecification("a", None).replace(inertia=Inertia(1.0)),
        FrameSpecification("b", "a", body="a").replace(inertia=Inertia(1.0)),
    ]
    with pytest.raises(
        SceneError, match="body 'a' has its inertia given twice, on frames 'a' and 'b'"
    ):
        SceneGraph.from_frames(twice)


def test_values_compare_with_anything() -> None:
    """A value is not None and not another kind of value: that is an answer, not an error."""
    scene = SceneGraph().set_group("things", frames=["world"])
    values: list[object] = [
        scene,
        scene.group("things"),
        Pose(),
        Free(),
        Unstated(),
        Mimic("leader"),
        Inertia(1.0),
        Box([1, 1, 1]),
        AttachedShape(Box([1, 1, 1])),
        StampedPoses(),
    ]
    for value in values:
        for other in (None, 3, "text"):
            assert value != other
            assert (value == other) is False
