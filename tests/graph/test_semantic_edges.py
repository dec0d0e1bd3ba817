"""Relations in a scene: accepted and rejected edges, and queries against matrices."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.replay import replay_example, replay_graph_script
from support.twist_rules import unambiguous

import tmkit as tk
from tmkit.errors import CycleError, SceneError, UnknownNameError
from tmkit.formats.json.scene import scene_from_dict, scene_to_dict
from tmkit.graph import (
    Revolute,
    SceneArrays,
    SceneGraph,
    add_edge,
    add_pose,
    add_twist,
    collapse_fixed_frames,
    diff,
    integrate,
    relate,
    transport,
    update_pose,
)
from tmkit.graph.semantic_edges.edges import Node, update_twist
from tmkit.graph.traversal import twist_path
from tmkit.relations import (
    AngularVelocityCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticPose,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.representations import HomogeneousMatrix, RotationVector, TwistVector
from tmkit.spatial import Pose

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "semantics.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "script", CASES["accept_reject_scene_graph"], ids=lambda script: script["id"]
)
def test_graph_scripts(script: dict[str, Any]) -> None:
    """Each step of the paper's figures is accepted or rejected by its rules."""
    happened = replay_graph_script(script)
    assert [said["accept"] for said in happened] == [op["accept"] for op in script["ops"]]
    assert all(said["rule"] for said in happened if not said["accept"])


def test_spray_painting() -> None:
    """Listings 1 and 2 of the paper: poses and twists in any order, point and axes."""
    example = CASES["worked_example_spray_painting"]
    for said, query in zip(replay_example(example), example["queries"], strict=True):
        if "expected_error" in query:
            assert "error" in said
        elif query["kind"] == "pose":
            np.testing.assert_allclose(said["result"], query["expected"]["homogeneous"], atol=1e-9)
        else:
            for part in ("linear", "angular"):
                np.testing.assert_allclose(said["result"][part], query["expected"][part], atol=1e-9)


# --- random scenes against plain matrices

NUMBERS = st.integers(-2_000_000, 2_000_000).map(lambda number: number / 1e6)
POSES = st.tuples(*[NUMBERS] * 6).map(lambda xi: Pose.exp(list(xi)))
SIX = st.tuples(*[NUMBERS] * 6).map(np.array)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[SceneGraph, dict[str, Pose], dict[str, np.ndarray]]:
    """Draw a tree of bodies with one or two frames each, and their motions.

    The twist of every body is that of an observer in the first body's frame, at its origin, in its
    axes: the model.
    """
    count = draw(st.integers(2, 5))
    scene = SceneGraph(root=None).add_body("B0").add_root("f0", body="B0")
    world = {"f0": Pose()}
    moves = {"B0": np.zeros(6)}
    for i in range(1, count):
        below = draw(st.integers(0, i - 1))
        pose, twist = draw(POSES), draw(SIX)
        scene = (
            scene.add_body(f"B{i}")
            .add_root(f"f{i}", body=f"B{i}")
            .attach(f"f{i}", f"f{below}", pose=pose)
        )
        world[f"f{i}"] = world[f"f{below}"] @ pose
        if draw(st.booleans()):
            offset = draw(POSES)
            scene = scene.add_frame(f"g{i}", f"f{i}", pose=offset, body=f"B{i}")
            world[f"g{i}"] = world[f"f{i}"] @ offset
        scene = scene.set_twist(f"f{i}", twist, relative_to_body=f"B{below}")
        moves[f"B{i}"] = moves[f"B{below}"] + in_world(twist, world[f"f{i}"])
    return scene, world, moves


def in_world(twist: np.ndarray, frame: Pose) -> np.ndarray:
    """Return a twist at the world's origin, in its axes, of one at a frame's origin in its axes."""
    v, w = frame.rotate(twist[:3]), frame.rotate(twist[3:])
    return np.concatenate([v + np.cross(w, -frame.translation), w])


def body_of(frame: str) -> str:
    """Return the body of a frame of a drawn world."""
    return f"B{frame[1:]}"


@settings(max_examples=scaled_examples(0.6))
@given(worlds(), st.data())
def test_queries_agree_with_plain_matrices(
    drawn: tuple[SceneGraph, dict[str, Pose], dict[str, np.ndarray]], data: st.DataObject
) -> None:
    """Pose, position, orientation and velocities of any frames, at any point, in any axes."""
    scene, world, moves = drawn
    frames = st.sampled_from(sorted(world))
    a, b, r = data.draw(frames), data.draw(frames), data.draw(frames)
    expected = world[b].inverse() @ world[a]
    pose = relate(
        scene,
        PoseCoord(f"{{{a}}}|{body_of(a)}", f"{{{b}}}|{body_of(b)}", f"[{b}]"),
        representation=HomogeneousMatrix,
    )
    np.testing.assert_allclose(pose.representation.matrix, expected.as_matrix(), atol=1e-9)
    way = relate(scene, PositionCoord(f"{a}|{body_of(a)}", f"{b}|{body_of(b)}", f"[{r}]"))
    world_way = world[a].translation - world[b].translation
    np.testing.assert_allclose(way.numbers[0], world[r].inverse().rotate(world_way), atol=1e-9)
    turned = relate(
        scene,
        OrientationCoord(f"[{a}]|{body_of(a)}", f"[{b}]|{body_of(b)}", f"[{r}]"),
        representation=RotationVector,
    )
    axes = (world[r].inverse() @ world[b]).rotation
    np.testing.assert_allclose(turned.numbers[0], axes @ expected.rotation @ axes.T, atol=1e-9)
    twist = relate(scene, TwistCoord(f"{a}|{body_of(a)}", body_of(b), f"[{r}]"))
    relative = moves[body_of(a)] - moves[body_of(b)]
    v = relative[:3] + np.cross(relative[3:], world[a].translation)
    np.testing.assert_allclose(twist.numbers[0], world[r].inverse().rotate(v), atol=1e-9)
    np.testing.assert_allclose(twist.numbers[1], world[r].inverse().rotate(relative[3:]), atol=1e-9)
    linear = relate(scene, LinearVelocityCoord(f"{a}|{body_of(a)}", body_of(b), f"[{r}]"))
    angular = relate(scene, AngularVelocityCoord(body_of(a), body_of(b), f"[{r}]"))
    np.testing.assert_allclose(linear.numbers[0], twist.numbers[0], atol=1e-12)
    np.testing.assert_allclose(angular.numbers[0], twist.numbers[1], atol=1e-12)


@settings(max_examples=scaled_examples(0.4))
@given(worlds())
def test_twists_are_part_of_the_scene(
    drawn: tuple[SceneGraph, dict[str, Pose], dict[str, np.ndarray]],
) -> None:
    """They come through pickle, JSON, arrays and differences, and count in equality and digest."""
    scene = drawn[0].add_body("bare")
    assert scene._defects() == ""
    for again in (
        pickle.loads(pickle.dumps(scene)),
        scene_from_dict(json.loads(json.dumps(scene_to_dict(scene)))),
        SceneArrays(scene, capacity=32).freeze(),
    ):
        assert again == scene
        assert again.digest() == scene.digest()
        assert again._defects() == ""
    frame = scene.twist_frames[0]
    other = scene.remove_twist(frame).remove_body("bare")
    assert other != scene
    assert other.digest() != scene.digest()
    assert scene.apply(diff(scene, other)) == other
    assert other.apply(diff(other, scene)) == scene
    assert scene.twist_edge(frame) is not None
    copy = SceneGraph().mount(scene, "world", prefix="x/")
    assert copy.twist_edge(f"x/{frame}")[0] == f"x/{scene.twist_edge(frame)[0]}"  # type: ignore[index]
    assert copy._defects() == ""


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["attach", "twist", "untwist"]), st.integers(0, 7), st.integers(0, 7)
    ),
    max_size=30,
)


@settings(max_examples=scaled_examples(1.5))
@given(OPERATIONS)
def test_rules_of_edges_against_their_words(operations: list[tuple[str, int, int]]) -> None:
    """Random edges on four bodies are accepted exactly if a plain model accepts them."""
    bodies = {f"f{i}": f"B{i % 4}" for i in range(8)}
    scene = SceneGraph(root=None)
    for frame, body in bodies.items():
        scene = (scene if body in scene.body_names else scene.add_body(body)).add_root(
            frame, body=body
        )
    parent: dict[str, str] = {}
    twists: dict[str, str] = {}

    def root(frame: str) -> str:
        while frame in parent:
            frame = parent[frame]
        return frame

    def accepted_together() -> bool:
        return unambiguous(bodies, {f: root(f) for f in bodies}, twists)

    for kind, i, j in operations:
        frame, other = f"f{i}", f"f{j}"
        if kind == "attach":
            tree = [g for g in bodies if root(g) == root(frame)]
            there = [g for g in bodies if root(g) == root(other)]
            shared = {bodies[g] for g in tree} & {bodies[g] for g in there}
            wanted = {bodies[frame]} if bodies[frame] == bodies[other] else set()
            ok = frame not in parent and root(frame) != root(other) and shared == wanted
            if ok:
                parent[frame] = other
                if not accepted_together():
                    ok = False
                    del parent[frame]
        elif kind == "twist":
            reference = bodies[other]
            ok = reference != bodies[frame] and twists.get(frame, reference) == reference
            if ok and frame not in twists:
                twists[frame] = reference
                ok = accepted_together()
                if not ok:
                    del twists[frame]
        else:
            ok = True
            twists.pop(frame, None)
        try:
            if kind == "attach":
                scene = scene.attach(frame, other, pose=Pose([0.1, 0, 0]))
            elif kind == "twist":
                scene = scene.set_twist(frame, np.ones(6), relative_to_body=bodies[other])
            else:
                scene = scene.remove_twist(frame)
            accepted = True
        except SceneError:
            accepted = False
        assert accepted == ok, (kind, frame, other)
        assert {f: scene.parent(f) for f in bodies if scene.parent(f)} == parent
        assert {f: scene.twist_edge(f)[0] for f in scene.twist_frames} == twists  # type: ignore[index]
    assert scene._defects() == ""


# --- conversions and rejections


def arm_and_cup() -> SceneGraph:
    """Return two trees: a two-link arm with a tool, and a cup with a handle."""
    scene = (
        SceneGraph(root=None)
        .add_body("Base")
        .add_body("Link")
        .add_body("Cup")
        .add_root("base", body="Base")
    )
    scene = scene.add_frame(
        "link", "base", pose=Pose([0, 0, 0.5]), joint=Revolute([0, 0, 1]), body="Link"
    )
    scene = scene.add_frame(
        "tool", "link", pose=Pose.from_rpy([0.3, 0, 0], [0, 0.4, 0]), body="Link"
    )
    return scene.add_root("cup", body="Cup").add_frame(
        "handle", "cup", pose=Pose([0.05, 0, 0]), body="Cup"
    )


def test_poses_are_converted_on_entry() -> None:
    """A pose of other points in the axes of a third frame is converted to the frames."""
    scene = arm_and_cup()
    q = [0.7]
    wanted = Pose.from_rpy([0.1, 0.2, 0.3], [0.3, -0.2, 0.5])
    whole = add_pose(scene, SemanticPose(PoseCoord("{cup}|Cup", "{tool}|Link", "[tool]"), wanted))
    coord = PoseCoord("(handle,[cup])|Cup", "(link,[tool])|Link", "[tool]")
    given_pose = relate(whole, coord)
    again = add_pose(scene, given_pose, q=q)
    assert again.pose("cup", relative_to="tool").is_close(wanted)
    moved = update_pose(again, SemanticPose(PoseCoord("{tool}|Link", "{cup}|Cup", "[cup]"), wanted))
    assert moved.pose("tool", relative_to="cup").is_close(wanted)
    elsewhere = relate(whole, PoseCoord("{cup}|Cup", "{tool}|Link", "[tool]")).with_representation(
        HomogeneousMatrix
    )
    assert add_pose(whole, elsewhere).pose("cup", relative_to="tool").is_close(wanted)


def test_rejected_and_inverted_poses() -> None:
    """A frame has one parent; turned round, the pose fits where the other frame is a root."""
    scene = arm_and_cup().add_body("Tray").add_root("tray", body="Tray")
    scene = add_pose(
        scene, SemanticPose(PoseCoord("{cup}|Cup", "{tool}|Link", "[tool]"), Pose([0, 0, 0.1]))
    )
    on_tray = SemanticPose(PoseCoord("{cup}|Cup", "{tray}|Tray", "[tray]"), Pose([0.2, 0, 0]))
    with pytest.raises(
        SceneError, match="frame 'cup' already has parent 'tool' and can have only one"
    ):
        add_pose(scene, on_tray)
    turned = add_pose(scene, on_tray, on_conflict="invert")
    assert turned.parent("tray") == "cup"
    assert turned.pose("cup", relative_to="tray").is_close(Pose([0.2, 0, 0]))
    with pytest.raises(
        CycleError,
        match="frame 'base' cannot have parent 'tray', which is itself or its descendant",
    ):
        add_pose(turned, SemanticPose(PoseCoord("{base}|Base", "{tray}|Tray", "[tray]"), Pose()))
    with pytest.raises(CycleError, match="cannot be its own parent"):
        add_pose(scene, SemanticPose(PoseCoord("{cup}|Cup", "{cup}|Cup", "[cup]"), Pose()))
    with pytest.raises(
        SceneError, match="there is no edge between 'cup' and 'base' whose pose could be set"
    ):
        update_pose(scene, SemanticPose(PoseCoord("{cup}|Cup", "{base}|Base", "[base]"), Pose()))
    with pytest.raises(SceneError, match="on one body, so the pose between them cannot change"):
        update_pose(
            scene, SemanticPose(PoseCoord("{handle}|Cup", "{cup}|Cup", "[cup]"), Pose([1, 0, 0]))
        )


def test_edges_of_poses_need_names_of_the_scene_and_a_choice() -> None:
    """Frames must be on the bodies of a pose; a conflict is rejected or inverted."""
    scene = arm_and_cup().add_body("Tray").add_root("tray", body="Tray")
    held = add_pose(scene, SemanticPose(PoseCoord("{cup}|Cup", "{tool}|Link", "[tool]"), Pose()))
    for change in (add_pose, update_pose):
        with pytest.raises(
            SemanticError, match="frame 'cup' is on body 'Cup' and body 'Tray' is named"
        ):
            change(held, SemanticPose(PoseCoord("{cup}|Tray", "{tool}|Link", "[tool]"), Pose()))
        with pytest.raises(UnknownNameError, match="unknown frame 'lid'"):
            change(held, SemanticPose(PoseCoord("{lid}|Cup", "{tool}|Link", "[tool]"), Pose()))
    on_tray = SemanticPose(PoseCoord("{cup}|Cup", "{tray}|Tray", "[tray]"), Pose([0.2, 0, 0]))
    with pytest.raises(SceneError) as rejected:
        add_pose(held, on_tray)
    assert rejected.value.rule == "PE3"
    with pytest.raises(
        SceneError, match="a pose with a joint cannot be inverted: frame 'cup' has a parent"
    ):
        add_pose(
            held,
            on_tray,
            joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j"),
            on_conflict="invert",
        )
    with pytest.raises(UnknownNameError, match="unknown on_conflict 'maybe'"):
        add_pose(scene, on_tray, on_conflict="maybe")  # type: ignore[arg-type]


def test_names_have_to_be_those_of_the_scene() -> None:
    """A frame on another body, an unknown frame and an unknown body are rejected by name."""
    scene = arm_and_cup()
    with pytest.raises(
        SemanticError, match="frame 'cup' is on body 'Cup' and body 'Link' is named"
    ):
        relate(scene, PoseCoord("{cup}|Link", "{base}|Base", "[base]"))
    with pytest.raises(UnknownNameError, match="unknown frame 'cupp'; did you mean 'cup'"):
        relate(scene, PoseCoord("{cupp}|Cup", "{base}|Base", "[base]"))
    with pytest.raises(UnknownNameError, match="unknown body 'Bas'; did you mean 'Base'"):
        relate(scene, TwistCoord("cup|Cup", "Bas", "[cup]"))
    with pytest.raises(SemanticError, match="a path of poses leads there"):
        relate(scene, PoseCoord("{cup}|Cup", "{base}|Base", "[base]"))
    with pytest.raises(
        SemanticError, match="a path of twists leads from body 'Base' to body 'Cup'"
    ):
        relate(scene, TwistCoord("cup|Cup", "Base", "[cup]"))
    with pytest.raises(SemanticError, match="a scene relates positions"):
        relate(scene, WrenchCoord("cup|Cup", "Base", "[cup]"))


def test_twists_are_converted_on_entry() -> None:
    """A twist is stored in its frame's axes; without a path of poses it is rejected."""
    scene = arm_and_cup()
    q, six = [0.4], np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    twist = SemanticTwist(TwistCoord("tool|Link", "Base", "[base]"), six)
    moving = add_twist(scene, twist, q=q)
    edge = moving.twist_edge("tool")
    assert edge is not None
    axes = scene.pose("base", relative_to="tool", q=q)
    np.testing.assert_allclose(edge[1], [*axes.rotate(six[:3]), *axes.rotate(six[3:])], atol=1e-12)
    np.testing.assert_allclose(
        relate(moving, twist.coord, q=q).representation.vector, six, atol=1e-12
    )
    with pytest.raises(SemanticError, match="poses join 'tool' and 'cup'"):
        add_twist(scene, SemanticTwist(TwistCoord("tool|Link", "Base", "[cup]"), six))
    changed = update_twist(moving, SemanticTwist(TwistCoord("tool|Link", "Base", "[tool]"), six))
    np.testing.assert_allclose(changed.twist_edge("tool")[1], six)  # type: ignore[index]
    with pytest.raises(
        SceneError, match="has no twist relative to body 'Cup' to set: it is relative to 'Base'"
    ):
        update_twist(moving, SemanticTwist(TwistCoord("tool|Link", "Cup", "[tool]"), six))
    with pytest.raises(SceneError, match="would close a cycle"):
        add_twist(moving, SemanticTwist(TwistCoord("base|Base", "Link", "[base]"), six))


def test_a_rejected_twist_is_inverted() -> None:
    """Where a frame has its twist already, that of the reference body relative to it may fit."""
    scene = arm_and_cup().attach("cup", "tool", pose=Pose([0, 0, 0.1]))
    scene = scene.set_twist("cup", np.zeros(6), relative_to_body="Base")
    six = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    twist = SemanticTwist(TwistCoord("cup|Cup", "Link", "[cup]"), six)
    with pytest.raises(SceneError, match="has a twist relative to body 'Base' already") as caught:
        add_twist(scene, twist)
    turned = add_twist(scene, twist, on_conflict="invert")
    error: Any = caught.value
    assert repr(error.inverse.coord) == "TwistCoord('link|Link', 'Cup', '[link]')"
    assert add_twist(scene, error.inverse) == turned
    assert turned.twist_edge("link")[0] == "Cup"  # type: ignore[index]
    np.testing.assert_allclose(relate(turned, twist.coord).representation.vector, six, atol=1e-12)


def test_joint_velocities_are_twists() -> None:
    """Joint velocities agree with finite differences and with equal twist edges."""
    scene = tk.load_scene("panda_table")
    rng = np.random.default_rng(3)
    q, qd = rng.uniform(-1, 1, len(scene.joint_names)), rng.uniform(-1, 1, len(scene.joint_names))
    hand, link = "panda_hand", "panda_link3"
    body, reference = (scene.specification(frame).body for frame in (hand, link))
    coord = TwistCoord(f"{hand}|{body}", reference, f"[{link}]")
    found = relate(scene, coord, q=q, qd=qd).representation.vector
    step = 1e-6
    before, after = (scene.pose(hand, relative_to=link, q=q + sign * step * qd) for sign in (-1, 1))
    np.testing.assert_allclose(
        found[:3], (after.translation - before.translation) / (2 * step), atol=1e-6
    )
    turned = (after.rotation @ before.rotation.T - np.eye(3)) / (2 * step)
    np.testing.assert_allclose(found[3:], [turned[2, 1], turned[0, 2], turned[1, 0]], atol=1e-5)
    edged = add_twist(scene, SemanticTwist(coord, found), q=q)
    at_elbow = TwistCoord(f"{hand}|{body}", reference, f"[{hand}]")
    np.testing.assert_allclose(
        relate(edged, at_elbow, q=q).representation.vector,
        relate(scene, at_elbow, q=q, qd=qd).representation.vector,
        atol=1e-9,
    )


def test_a_scene_moves_by_its_twists() -> None:
    """A constant twist over a time is the exponential; what has none stays."""
    scene = (
        SceneGraph(root=None)
        .add_body("W")
        .add_root("w", body="W")
        .add_frame("a", "w", pose=Pose([1, 0, 0]))
    )
    scene = scene.add_frame("b", "a", pose=Pose([0, 1, 0]))
    six = np.array([0.1, 0, 0, 0, 0, 0.5])
    moved = integrate(scene.set_twist("a", six, relative_to_body="W"), 2.0)
    assert moved.local_pose("a").is_close(Pose([1, 0, 0]) @ Pose.exp(six * 2.0))
    assert moved.local_pose("b") == scene.local_pose("b")


def test_wrenches_are_transported() -> None:
    """The power on a twist is the same before and after."""
    scene = arm_and_cup()
    q, rng = [0.3], np.random.default_rng(1)
    twist = SemanticTwist(TwistCoord("tool|Link", "Base", "[tool]"), rng.normal(size=6))
    wrench = SemanticWrench(WrenchCoord("tool|Link", "Base", "[tool]"), rng.normal(size=6))
    moved = transport(scene, wrench, point="link", axes="base", q=q)
    assert moved.coord == WrenchCoord("link|Link", "Base", "[base]")
    there = relate(add_twist(scene, twist), TwistCoord("link|Link", "Base", "[base]"), q=q)
    assert moved.dot(there) == pytest.approx(wrench.dot(twist))


def test_edges_of_the_wrong_kinds() -> None:
    """Kinds of nodes and values are told apart."""
    scene = arm_and_cup()
    with pytest.raises(
        SemanticError, match=r"a pose edge joins two frames .tail body 'Base' and head frame 'cup'"
    ):
        add_edge(scene, "pose", tail=Node("body", "Base"), head=Node("frame", "cup"), value=Pose())
    with pytest.raises(SemanticError, match="a twist edge joins a body and a frame"):
        add_edge(
            scene, "twist", tail=Node("frame", "base"), head=Node("frame", "cup"), value=np.zeros(6)
        )
    with pytest.raises(SemanticError, match="a twist edge holds six numbers"):
        add_edge(scene, "twist", tail=Node("body", "Base"), head=Node("frame", "cup"), value=Pose())
    with pytest.raises(SemanticError, match="a pose edge holds a pose"):
        add_edge(
            scene, "pose", tail=Node("frame", "base"), head=Node("frame", "cup"), value=np.zeros(6)
        )
    joined = add_edge(
        scene, "pose", tail=Node("frame", "tool"), head=Node("frame", "cup"), value=Pose([0, 0, 1])
    )
    assert joined.parent("cup") == "tool"
    moving = add_edge(
        scene, "twist", tail=Node("body", "Base"), head=Node("frame", "cup"), value=np.ones(6)
    )
    assert twist_path(moving, "Cup", relative_to_body="Base") == ("cup",)


def test_bodies_without_frames_and_what_keeps_them() -> None:
    """A body may be there before its frames; it cannot go while something is relative to it."""
    scene = SceneGraph().add_body("Cup")
    assert scene.bodies_without_frames == ("Cup",)
    assert scene.body_names == ("world", "Cup")
    with pytest.raises(SceneError, match="a body named 'Cup' is already in the scene"):
        scene.add_body("Cup")
    with_frame = scene.add_frame("cup", "world", body="Cup")
    assert with_frame.bodies_without_frames == ()
    with pytest.raises(SceneError, match="body 'Cup' has frame 'cup'; remove its frames"):
        with_frame.remove_body("Cup")
    moving = with_frame.add_root("saucer").set_twist("saucer", np.zeros(6), relative_to_body="Cup")
    with pytest.raises(
        SceneError,
        match="'Cup' cannot be removed while the twist of frame 'saucer' is relative to it",
    ):
        moving.remove_frame("cup")
    assert moving.remove_twist("saucer").remove_frame("cup").body_names == ("world", "saucer")
    with pytest.raises(SceneError, match="finite"):
        moving.set_twist("saucer", [float("nan")] * 6, relative_to_body="Cup")
    with pytest.raises(UnknownNameError, match="unknown body 'Cap'; did you mean 'Cup'"):
        moving.set_twist("saucer", np.zeros(6), relative_to_body="Cap")


def moving_tray() -> SceneGraph:
    """Return a tray on fixed frames that moves relative to a body, and a body without frames."""
    scene = (
        SceneGraph()
        .add_body("bare")
        .add_frame("stand", "world")
        .add_frame("tray", "stand", pose=Pose([0, 0, 1]))
    )
    return (
        scene.add_frame("rim", "tray")
        .add_body("Eye")
        .add_root("eye", body="Eye")
        .set_twist("tray", np.ones(6), relative_to_body="stand")
    )


def test_folding_keeps_twists() -> None:
    """Frames that move, and the bodies relative to which they do, are not folded away."""
    folded = collapse_fixed_frames(moving_tray())
    assert "rim" not in folded
    assert folded.twist_edge("tray")[0] == "stand"  # type: ignore[index]
    assert folded.bodies_without_frames == ("bare",)


def test_merged_files_keep_twists_and_bodies(tmp_path: Path) -> None:
    """A merged scene from a file keeps its twists, bodies and roots."""
    first, second = tmp_path / "moving.json", tmp_path / "other.json"
    first.write_text(json.dumps(scene_to_dict(moving_tray())), encoding="utf-8")
    second.write_text(
        json.dumps(scene_to_dict(SceneGraph().add_frame("lamp", "world"))), encoding="utf-8"
    )
    merged = tk.load_scene(str(first), str(second))
    assert merged.twist_edge("tray")[0] == "stand"  # type: ignore[index]
    np.testing.assert_array_equal(merged.twist_edge("tray")[1], np.ones(6))  # type: ignore[index]
    assert merged.bodies_without_frames == ("bare",)
    assert merged.specification("eye").body == "Eye"
    assert "lamp" in merged


@pytest.mark.parametrize("representation", [5, "RotationMatrix", None.__class__, TwistVector])
def test_relate_states_which_representation_fits(representation: Any) -> None:
    """What is no representation of the relation is rejected by name, with one that is."""
    coord = PoseCoord("{tool}|Link", "{base}|Base", "[base]")
    with pytest.raises(
        SemanticError, match=r"a representation of a Pose.*such as VectorAndMatrix, or omit it"
    ):
        relate(arm_and_cup(), coord, representation=representation, q=[0.0])
