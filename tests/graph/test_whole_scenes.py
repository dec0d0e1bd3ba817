"""Edits with whole scenes: mounting, merging, extracting, folding; and what moved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import configurations, edits
from support.scene_model import RejectedError, SceneModel

from tmkit.errors import (
    ConfigurationError,
    DuplicateNameError,
    SceneError,
    TmkitError,
    UnknownNameError,
)
from tmkit.graph import (
    AttachedShape,
    Box,
    Fixed,
    Free,
    Inertia,
    Mimic,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
    Unstated,
    collapse_fixed_frames,
    common_ancestor,
    diff,
    is_rigid,
    joints_between,
    moved_frames,
)
from tmkit.graph.nodes import nodes_with_attributes
from tmkit.motion import CollisionWorld
from tmkit.spatial import Pose


def gripper() -> SceneGraph:
    """Return a hand with two fingers, a mimic rule, an allowed pair and a group."""
    scene = SceneGraph(root="palm").add_shape("palm", AttachedShape(Box([0.1, 0.05, 0.02])))
    with scene.edit() as edit:
        slide = Prismatic([1, 0, 0], lower=0.0, upper=0.04, name="left_slide")
        edit.add_frame(
            "left",
            "palm",
            pose=Pose([0, 0, 0.05]),
            joint=slide,
            shapes=[AttachedShape(Sphere(0.01))],
        )
        follow = Prismatic(
            [-1, 0, 0], lower=0.0, upper=0.04, name="right_slide", mimic=Mimic("left_slide")
        )
        edit.add_frame(
            "right",
            "palm",
            pose=Pose([0, 0, 0.05]),
            joint=follow,
            shapes=[AttachedShape(Sphere(0.01))],
        )
        edit.set_inertia("palm", Inertia(0.5))
        edit.allow_collision("left", "right", reason="they meet")
        edit.set_group("fingers", frames=["left", "right"])
        edit.set_group("hand", frames=["palm"], groups=["fingers"])
    return edit.finish()


def test_a_template_is_mounted_twice() -> None:
    """Names get the prefix, references follow, shapes are shared, the template is unchanged."""
    hand = gripper()
    scene = SceneGraph()
    for side, y in (("l/", 0.3), ("r/", -0.3)):
        scene = scene.mount(hand, "world", prefix=side, pose=Pose([0, y, 1]))
    assert scene.frame_names == (
        "world",
        "l/palm",
        "l/left",
        "l/right",
        "r/palm",
        "r/left",
        "r/right",
    )
    assert scene.joint_names == ("l/left_slide", "r/left_slide")
    q = scene.configuration({"r/left_slide": 0.02})
    assert scene.pose("r/right", relative_to="r/palm", q=q).translation.tolist() == pytest.approx(
        [-0.02, 0, 0.05]
    )
    assert scene.pose("l/palm", relative_to="r/palm").translation.tolist() == pytest.approx(
        [0, 0.6, 0]
    )
    assert scene.is_allowed("l/left", "l/right")
    assert not scene.is_allowed("l/left", "r/right")
    assert scene.frames_of_group("l/hand") == ("l/palm", "l/left", "l/right")
    assert scene.inertia("r/palm") == Inertia(0.5)
    assert hand == gripper()
    assert scene._defects() == ""


def test_mounting_is_all_or_nothing() -> None:
    """A name that is taken rejects the whole, also in a builder, whose other edits stay."""
    scene = SceneGraph().add_frame("x/right", "world")
    with scene.edit() as edit:
        edit.set_pose("x/right", Pose([1, 0, 0]))
        with pytest.raises(
            DuplicateNameError, match="a frame named 'x/right' is already in the scene"
        ):
            edit.mount(gripper(), "world", prefix="x/")
    assert edit.finish() == scene.set_pose("x/right", Pose([1, 0, 0]))
    with pytest.raises(UnknownNameError, match="wrld"):
        scene.mount(gripper(), "wrld")
    with pytest.raises(DuplicateNameError, match="a group named 'x/fingers'"):
        SceneGraph().set_group("x/fingers").mount(gripper(), "world", prefix="x/")


def test_mounting_on_a_joint() -> None:
    """The mounted root may hang on a joint of its own."""
    turn = Revolute([0, 0, 1], lower=-1, upper=1, name="wrist")
    scene = SceneGraph().mount(gripper(), "world", prefix="h/", joint=turn)
    assert scene.joint("h/palm").name == "wrist"
    assert scene.joint_names == ("wrist", "h/left_slide")


def test_merging_scenes_of_one_world() -> None:
    """Frames below the other world are moved to this one; duplicate names are rejected."""
    a = SceneGraph().add_frame("cup", "world").set_group("things", frames=["cup"])
    b = (
        SceneGraph()
        .add_frame("plate", "world", pose=Pose([1, 0, 0]))
        .add_root("moon")
        .set_group("things", frames=["plate"])
    )
    merged = a.merge(b)
    assert merged.frame_names == ("world", "cup", "plate", "moon")
    assert merged.root_names == ("world", "moon")
    assert merged.pose("plate", relative_to="cup").translation.tolist() == [1, 0, 0]
    assert merged.group("things").frames == ("cup", "plate")
    with pytest.raises(DuplicateNameError, match="'cup'"):
        a.merge(SceneGraph().add_frame("cup", "world"))
    with pytest.raises(SceneError, match="their content differs"):
        a.merge(SceneGraph().set_classes("world", ["surface"]))


def test_extracting_and_mounting_again() -> None:
    """A subtree taken out and mounted where it stood says the same."""
    hand = gripper()
    scene = (
        SceneGraph()
        .add_frame("table", "world", pose=Pose([0, 0, 0.7]))
        .mount(hand, "table", pose=Pose([0.1, 0, 0]))
    )
    assert scene.extract("palm") == hand
    emptied = scene.remove_frame("palm", subtree=True).remove_group("hand").remove_group("fingers")
    again = emptied.mount(scene.extract("palm"), "table", pose=Pose([0.1, 0, 0]))
    assert again == scene
    with pytest.raises(
        SceneError, match="joint 'right_slide' mimics joint 'left_slide', which is not below"
    ):
        scene.extract("right")
    assert scene.extract("left").frame_names == ("left",)


@settings(max_examples=scaled_examples(0.5))
@given(st.data())
def test_mounting_random_scenes(data: st.DataObject) -> None:
    """A mounted and extracted scene equals the original with a prefix."""
    scene, model = SceneGraph(), SceneModel().add_root("world")
    for _ in range(12):
        edit = data.draw(edits(model))
        try:
            changed = edit.apply_to_model(model)
            result = edit.apply_to(scene)
        except (RejectedError, TmkitError):
            continue
        assert isinstance(result, SceneGraph)
        scene, model = result, changed
        if edit.q is not None and edit.positional[0] in scene:
            name = edit.positional[0]
            model = model.with_exact_pose(name, scene.local_pose(name))
    places = {(scene.body(name), scene.root(name)) for name in scene.frame_names}
    # a body with frames in two trees, which would become one
    if len(places) > len(scene.body_names):
        with pytest.raises(SceneError, match=r"body 'p/.*' is already in this tree"):
            SceneGraph(root="hall").mount(scene, "hall", prefix="p/")
        return
    mounted = SceneGraph(root="hall").mount(scene, "hall", prefix="p/", pose=Pose([1, 2, 3]))
    assert mounted._defects() == ""
    values = data.draw(configurations(model))
    q = mounted.configuration({f"p/{joint}": value for joint, value in values.items()})
    for name in scene.frame_names:
        root = scene.root(name)
        assert mounted.pose(f"p/{name}", relative_to=f"p/{root}", q=q) == scene.pose(
            name, relative_to=root, q=scene.configuration(values)
        )
    for root in scene.root_names:
        part = mounted.extract(f"p/{root}") if not _follows_outside(mounted, f"p/{root}") else None
        if part is not None:
            assert part.frame_names == tuple(
                f"p/{name}" for name in scene.frame_names if scene.root(name) == root
            )
            assert part._defects() == ""


def _follows_outside(scene: SceneGraph, frame: str) -> bool:
    inside = set(scene.subtree(frame))
    mimics = [rule for name in inside if (rule := scene.joint(name).mimic) is not None]
    return any(scene.joint_frame(rule.joint) not in inside for rule in mimics)


# --- folding


def robot() -> SceneGraph:
    """Return two joints with chains of fixed frames between and behind them."""
    box = AttachedShape(Box([0.1, 0.1, 0.1]))
    turn = Revolute([0, 0, 1], lower=-2, upper=2)
    with SceneGraph().edit() as edit:
        edit.add_frame("base", "world", pose=Pose([0, 0, 0.1]), shapes=[box])
        edit.add_frame("link", "base", pose=Pose([0.2, 0, 0]), joint=turn, shapes=[box])
        edit.add_frame("mount", "link", pose=Pose.from_rpy([0.2, 0, 0], [0.3, 0, 0]), shapes=[box])
        edit.add_frame("adapter", "mount", pose=Pose.from_rpy([0.1, 0, 0], [0, 0.5, 0]))
        edit.add_frame(
            "hand",
            "adapter",
            pose=Pose([0.1, 0, 0]),
            joint=Revolute([0, 1, 0], lower=-1, upper=1),
            shapes=[box],
        )
        edit.add_frame("tip", "hand", pose=Pose([0, 0, 0.2]))
        edit.set_inertia("link", Inertia(2.0, [0.1, 0, 0], matrix=np.diag([0.1, 0.2, 0.2])))
        edit.set_inertia("mount", Inertia(1.0, [0, 0, 0], matrix=np.diag([0.01, 0.02, 0.02])))
    return edit.finish()


def test_fixed_chains_fold() -> None:
    """Frames between joints are collapsed with their shapes and masses."""
    scene = robot()
    folded = collapse_fixed_frames(scene)
    assert folded.frame_names == ("world", "link", "hand")
    assert [len(folded.shapes(name)) for name in folded.frame_names] == [1, 2, 1]
    assert folded.joint_names == scene.joint_names
    inertia = folded.inertia("link")
    assert inertia is not None
    assert inertia.mass == 3.0
    assert inertia.center.tolist() == pytest.approx([(2 * 0.1 + 1 * 0.2) / 3, 0, 0])
    assert collapse_fixed_frames(scene, keep=["tip", "mount"]).frame_names == (
        "world",
        "link",
        "mount",
        "hand",
        "tip",
    )
    assert collapse_fixed_frames(folded) is folded
    with pytest.raises(UnknownNameError, match="did you mean 'tip'"):
        collapse_fixed_frames(scene, keep=["tips"])


def test_frames_that_twists_lead_over_stay() -> None:
    """A post without a twist moves with the lamp relative to the world."""
    scene = (
        SceneGraph()
        .add_frame("post", "world", shapes=[Sphere(0.1)])
        .add_frame("lamp", "post", pose=Pose([1, 0, 0]))
    )
    scene = scene.set_twist("lamp", [1, 0, 0, 0, 0, 0], relative_to_body="world")
    assert collapse_fixed_frames(scene).frame_names == ("world", "post", "lamp")


def test_frames_with_a_meaning_stay() -> None:
    """A class, an attribute or a group keeps a frame; so do pairs that only it may touch."""
    scene = robot()
    for changed in (
        scene.set_classes("mount", ["surface"]),
        scene.set_attribute("mount", "maker", "us"),
        scene.set_group("tools", frames=["mount"]),
        scene.allow_collision("mount", "hand"),
    ):
        assert "mount" in collapse_fixed_frames(changed)
    both = collapse_fixed_frames(
        scene.allow_collision("mount", "hand").allow_collision("link", "hand")
    )
    assert "mount" not in both
    assert both.is_allowed("link", "hand")


@settings(max_examples=scaled_examples(0.3), deadline=None)
@given(st.data())
def test_folding_changes_no_answer(data: st.DataObject) -> None:
    """Collapsing preserves poses, contacts and masses."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scene = SceneGraph()
    for number in range(14):
        parent = scene.frame_names[int(rng.integers(len(scene)))]
        revolute = Revolute(rng.normal(size=3), lower=-3, upper=3)
        joint = [revolute, Free(), Unstated(), *[Fixed()] * 4][int(rng.integers(7))]
        pose = Pose.from_rpy(rng.uniform(-0.4, 0.4, 3), rng.uniform(-3, 3, 3))
        shapes = [AttachedShape(Box(rng.uniform(0.05, 0.3, 3)))] if rng.random() < 0.7 else []
        scene = scene.add_frame(f"f{number}", parent, pose=pose, joint=joint, shapes=shapes)
        if rng.random() < 0.4:
            scene = scene.set_inertia(
                f"f{number}", Inertia(rng.uniform(0.1, 2), rng.uniform(-0.1, 0.1, 3))
            )
        if number and rng.random() < 0.2:
            other = scene.frame_names[int(rng.integers(1, len(scene) - 1))]
            scene = scene.allow_collision(f"f{number}", other)
    keep = [name for name in scene.frame_names if rng.random() < 0.1]
    folded = collapse_fixed_frames(scene, keep=keep)
    assert folded._defects() == ""
    assert set(keep) <= set(folded.frame_names)
    movable = [name for name in scene.frame_names if scene.joint(name).type == "free"]
    before, after = (CollisionWorld(s, movable=movable) for s in (scene, folded))
    for _ in range(5):
        q = rng.uniform(-3, 3, len(scene.joint_names))
        for name in folded.frame_names:
            assert folded.at(q).pose(name).is_close(scene.at(q).pose(name))
            assert all(
                is_rigid(folded, name, f) == is_rigid(scene, name, f) for f in folded.frame_names
            )
        assert before.is_in_collision(q) == after.is_in_collision(q)
        # One contact is told for a pair of frames, its deepest: of those that were folded together
        # one is left.
        depths = [contact.distance for contact in before.contacts(q)]
        left = [contact.distance for contact in after.contacts(q)]
        assert min(left, default=0.0) == pytest.approx(min(depths, default=0.0), abs=1e-5)
        assert all(any(abs(depth - other) < 1e-5 for other in depths) for depth in left)
    assert _mass(folded) == pytest.approx(_mass(scene))


def _mass(scene: SceneGraph) -> float:
    masses = [
        said.mass
        for name in scene.frame_names
        if (said := scene.specification(name).inertia) is not None
    ]
    return sum(masses)


# --- what moved, and the difference in words


def test_what_moved() -> None:
    """A frame moves with its parent; renamed and restored frames do not count as moved."""
    scene = robot()
    q = scene.configuration({"link": 0.3})
    turned = scene.set_pose("mount", Pose([0.2, 0, 0.05]))
    assert moved_frames(scene, turned, q=q) == ("mount", "adapter", "hand", "tip")
    renamed = turned.rename_frame("tip", "point")
    assert moved_frames(scene, renamed, q=q) == ("mount", "adapter", "hand", "point")
    carried = scene.reparent("tip", "base", q=q)
    assert (
        moved_frames(scene, carried, q=q, translation_tolerance=1e-12, rotation_tolerance=1e-12)
        == ()
    )
    assert moved_frames(
        scene, carried, q=scene.configuration({"link": 0.5}), translation_tolerance=1e-9
    ) == ("tip",)
    with pytest.raises(ConfigurationError):
        moved_frames(scene, turned)
    with pytest.raises(SceneError, match="different joints"):
        moved_frames(scene, scene.set_joint("hand", Fixed()), q=q)


def test_a_difference_in_words() -> None:
    """Names, fields, pairs and groups, both ways round."""
    a = robot()
    with a.edit() as edit:
        edit.rename_frame("tip", "point")
        edit.set_pose("mount", Pose([0.2, 0, 0.1]))
        edit.set_classes("mount", ["surface"])
        edit.add_frame("camera", "base")
        edit.allow_collision("base", "hand", reason="near")
        edit.set_group("tools", frames=["hand"])
    b = edit.finish()
    change = diff(a, b)
    assert (change.added, change.removed, change.changed) == (("camera",), (), ("mount", "point"))
    assert [frame.fields for frame in change.frames] == [("pose", "classes"), ("name",), ()]
    assert change.pairs == (("base", "hand", None, "near"),)
    assert change.groups == ("tools",)
    assert len(change) == 5
    assert (
        repr(change)
        == "SceneDifference('mount': pose, classes, 'point': name, added 'camera', 1 allowed pairs,"
        " 1 groups)"
    )
    assert change.reversed().removed == ("camera",)
    assert not diff(a, a)
    moved = a.set_pose("base", Pose([1, 0, 0])).apply(change)
    assert moved.local_pose("base") == Pose([1, 0, 0])
    assert moved.local_pose("mount") == Pose([0.2, 0, 0.1])
    with pytest.raises(SceneError, match="does not fit this scene: frame 'mount' is not there"):
        SceneGraph().apply(change)
    with pytest.raises(SceneError, match="frame 'camera' is already there"):
        b.apply(diff(a, a.add_frame("camera", "base")))


def test_names_that_swap() -> None:
    """Frames that swap names or parents are differences like any other."""
    a = (
        SceneGraph()
        .add_frame("x", "world", joint=Free())
        .add_frame("y", "x", pose=Pose([1, 0, 0]), joint=Free())
    )
    swapped = a.rename_frame("x", "z").rename_frame("y", "x").rename_frame("z", "y")
    assert a.apply(diff(a, swapped)) == swapped
    turned = a.reparent("y", "world").reparent("x", "y")
    assert a.apply(diff(a, turned)) == turned


def test_inertia_goes_with_the_frames_that_a_difference_removes() -> None:
    """The body of a removed frame keeps its inertia only if the difference states it."""
    bare = SceneGraph(root="base")
    inertia = Inertia(2.0, [0.0, 0.0, 0.1])
    loaded = bare.add_frame("load", "base", body="base").add_frame("beside", "base", body="base")
    loaded = loaded.set_inertia("load", inertia)
    left = bare.set_inertia("base", inertia)
    passed = loaded.set_inertia("base", inertia)
    others = [bare, left, passed, loaded.remove_frame("load")]
    for a, b in [(loaded, other) for other in others] + [(left, passed)]:
        assert a.apply(diff(a, b)) == b
        assert b.apply(diff(b, a)) == a


def test_pickles_of_other_versions_are_rejected() -> None:
    """A state of another format is rejected with its number."""
    format_, *content = robot().__getstate__()
    assert format_ == 9
    for other in (8, 10):
        with pytest.raises(
            SceneError,
            match=f"format {other}, written by another version of tmkit; format 9 is read",
        ):
            SceneGraph.__new__(SceneGraph).__setstate__((other, *content))


def test_attributes_are_values() -> None:
    """JSON values are stored and returned as immutable values; others are rejected."""
    scene = SceneGraph().set_attributes(
        "world", {"colour": "red", "sizes": [1, 2.5], "nested": {"a": None}}
    )
    assert scene.attributes("world") == {"colour": "red", "sizes": [1, 2.5], "nested": {"a": None}}
    with pytest.raises(TypeError, match="does not support item assignment"):
        scene.attributes("world")["colour"] = "blue"  # type: ignore[index]  # which is what is tested
    assert scene.attributes("world")["colour"] == "red"
    assert scene.set_attribute("world", "colour", "red") is scene
    assert nodes_with_attributes(scene, {"colour": ...}) == (("frame", "world"),)
    assert nodes_with_attributes(scene, {"colour": "blue"}) == ()
    assert nodes_with_attributes(scene, {"sizes": [1, 2.5]}) == (("frame", "world"),)
    for bad in (float("nan"), object(), {1, 2}):
        with pytest.raises(SceneError, match="attribute 'x' must be text, a finite number"):
            scene.set_attribute("world", "x", bad)
    with pytest.raises(SceneError, match="key that is not empty"):
        scene.set_attribute("world", "", 1)


# Of a world and a frame x one metre along y. It may change only with the version of what a digest
# covers.
DIGEST = "5238f4ce43e5b94f0040fe996a4afb74f903da1663d62d21b77d0ed7c69fa3d1"


def test_the_digest_is_one_of_content() -> None:
    """-0.0 equals 0.0, a quaternion differs from its negative, and processes agree."""
    a = SceneGraph().add_frame("x", "world", pose=Pose([0.0, 1, 0]))
    assert a.digest() == SceneGraph().add_frame("x", "world", pose=Pose([-0.0, 1, 0])).digest()
    negative = SceneGraph().add_frame("x", "world", pose=Pose([0, 1, 0], [0, 0, 0, -1]))
    assert a != negative
    assert a.digest() != negative.digest()
    detour = (
        a.add_frame("y", "x")
        .rename_frame("y", "z")
        .remove_frame("z")
        .set_pose("x", Pose())
        .set_pose("x", Pose([0, 1, 0]))
    )
    assert detour == a
    assert detour.digest() == a.digest() == DIGEST


def test_batches_have_the_bits_of_single_queries() -> None:
    """Rows of a batch are the single answers; shapes of the arrays are checked."""
    scene = robot()
    q = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    rows = scene.pose_batch("tip", relative_to="base", q=q)
    everything = scene.poses_batch(q)
    assert rows.shape == (20, 7)
    assert everything.shape == (20, len(scene), 7)
    for i, row in enumerate(q):
        assert rows[i].tolist() == scene.pose("tip", relative_to="base", q=row).as_array().tolist()
        assert everything[i].tolist() == scene.at(row).poses.tolist()
    assert scene.pose_batch("tip", relative_to="base", q=np.zeros((0, 2))).shape == (0, 7)
    with pytest.raises(ConfigurationError, match=r"q must have shape \(m, 2\)"):
        scene.pose_batch("tip", relative_to="base", q=np.zeros((3, 3)))


def test_jacobian_of_any_point_in_any_axes() -> None:
    """A Jacobian is the difference quotient of the point's place, in whatever axes."""
    scene = robot()
    q, point, step = np.array([0.4, -0.3]), np.array([0.1, 0.2, -0.1]), 1e-6
    at = scene.at(q)
    jacobian = at.jacobian("tip", point=point)
    for joint in range(2):
        delta = np.eye(2)[joint] * step
        ahead, behind = (
            scene.pose("tip", relative_to="world", q=q + sign * delta).apply(point)
            for sign in (1, -1)
        )
        assert jacobian[:3, joint] == pytest.approx((ahead - behind) / (2 * step), abs=1e-8)
    turned = at.jacobian("tip", point=point, axes="hand")
    rotation = at.pose("hand").rotation
    assert turned[:3] == pytest.approx(rotation.T @ jacobian[:3])
    assert turned[3:] == pytest.approx(rotation.T @ jacobian[3:])
    points = np.random.default_rng(1).normal(size=(5, 3))
    there = scene.transform_points(points, source="tip", target="base", q=q)
    assert there == pytest.approx(scene.pose("tip", relative_to="base", q=q).apply(points))
    turned_vectors = scene.transform_vectors(points, source="tip", target="base", q=q)
    assert turned_vectors == pytest.approx(
        points @ scene.pose("tip", relative_to="base", q=q).rotation.T
    )


def test_ways_through_the_tree() -> None:
    """Path, common ancestor and the joints between two frames."""
    scene = robot().add_frame("camera", "base")
    assert scene.path("camera", "tip") == (
        "camera",
        "base",
        "link",
        "mount",
        "adapter",
        "hand",
        "tip",
    )
    assert common_ancestor(scene, "camera", "tip") == "base"
    assert joints_between(scene, "camera", "tip") == ("link", "hand")
    assert joints_between(scene, "link", "tip") == ("hand",)
    assert scene.path("tip", "tip") == ("tip",)
