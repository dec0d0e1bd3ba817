"""Facts in any order: the graph chooses the edges, and answers alike."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit._core import path_noise
from tmkit.errors import SceneError, UnknownNameError
from tmkit.estimation import Fused, resolve_observations
from tmkit.formats import scene_to_dict
from tmkit.graph import (
    Evidence,
    FactPolicy,
    Fixed,
    Free,
    Joint,
    Revolute,
    SceneGraph,
    add_fact,
    innovation,
    is_rigid,
    observations,
    relate,
    twist,
)
from tmkit.relations import (
    OrientationCoord,
    PoseCoord,
    PoseSemantics,
    PositionCoord,
    SemanticError,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    TwistCoord,
)
from tmkit.relations.representations import RotationVector
from tmkit.spatial import GaussianPose, Pose

SEEDS = st.integers(0, 2**32 - 1)
CASES = Path(__file__).parent.parent / "data" / "semantics.json"


def pose_fact(frame: str, reference: str, pose: Pose, bodies: dict[str, str]) -> SemanticPose:
    """Return the pose of a frame relative to another as a fact."""
    return SemanticPose(
        PoseCoord(
            f"{{{frame}}}|{bodies[frame]}", f"{{{reference}}}|{bodies[reference]}", f"[{reference}]"
        ),
        pose,
    )


def scattered(bodies: dict[str, str]) -> SceneGraph:
    """Return all frames as roots: of frames on one body, the others hang below the first."""
    scene, first = SceneGraph(root=None), dict[str, str]()
    for frame, body in bodies.items():
        if body in first:
            scene = scene.add_frame(frame, first[body], pose=Pose([0.1, 0.2, 0.3]), body=body)
        else:
            scene, first[body] = scene.add_body(body).add_root(frame, body=body), frame
    return scene


# --- poses


def test_all_orders_of_two_robots() -> None:
    """All 120 orders of five poses of two robots with objects (De Laet et al.) are equivalent."""
    inputs = json.loads(CASES.read_text())["two_robots"]["inputs"]
    bodies, facts = dict[str, str](), []
    for entry in inputs:
        s = entry["semantics"]
        bodies |= {s["point"]: s["body"], s["ref_point"]: s["ref_body"]}
        facts.append((s["point"], s["ref_point"], Pose.from_matrix(entry["homogeneous"])))
    answers = []
    for order in itertools.permutations(facts):
        scene = scattered(bodies)
        for frame, reference, pose in order:
            scene = add_fact(scene, pose_fact(frame, reference, pose, bodies))
        answers.append([scene.pose(a, relative_to=b).as_matrix() for a in bodies for b in bodies])
    assert len(answers) == 120
    assert np.abs(np.array(answers) - np.array(answers[0])).max() < 1e-9


@settings(max_examples=scaled_examples(1.0))
@given(SEEDS)
def test_the_order_of_facts_that_agree_changes_no_answer(seed: int) -> None:
    """Redundant random facts with errors: every query is within 1e-9 of plain matrices."""
    rng = np.random.default_rng(seed)
    bodies = {f"f{k}": f"B{int(rng.integers(k + 1))}" for k in range(int(rng.integers(2, 9)))}
    scene = scattered(bodies)
    place, root_of = dict[str, Pose](), {frame: scene.root(frame) for frame in bodies}
    for frame, root in root_of.items():
        place.setdefault(root, Pose.exp(rng.normal(size=6)))
        place[frame] = place[root] @ scene.pose(frame, relative_to=root)
    pairs = [
        (str(a), str(b))
        for a, b in (rng.choice(list(bodies), 2) for _ in range(3 * len(bodies)))
        if bodies[a] != bodies[b]
    ]
    # facts with errors are only those that join: fused ones would move others
    spread = np.diag(rng.uniform(1e-6, 1e-4, 6))
    orders = [pairs, [pairs[k] for k in rng.permutation(len(pairs))]]
    found = []
    for order in orders:
        made = scene
        for frame, reference in order:
            is_new = made.root(frame) != made.root(reference)
            fact = pose_fact(frame, reference, place[reference].inverse() @ place[frame], bodies)
            made = (
                add_fact(
                    made,
                    fact,
                    evidence=Evidence(covariance=spread if is_new and rng.random() < 0.3 else None),
                )
                if is_new
                else add_fact(made, fact)
            )
        for a, b in itertools.product(bodies, repeat=2):
            if made.root(a) == made.root(b):
                assert made.pose(a, relative_to=b).is_close(
                    place[b].inverse() @ place[a],
                    translation_tolerance=1e-9,
                    rotation_tolerance=1e-9,
                )
        found.append({frozenset(f for f in bodies if made.root(f) == made.root(g)) for g in bodies})
    assert found[0] == found[1]


def test_the_error_of_a_fact_is_that_of_its_pose() -> None:
    """The pose of a fact has the given covariance, whichever edge it becomes."""
    rng = np.random.default_rng(2)
    bodies = {"base": "Base", "hand": "Hand", "cup": "Cup", "tag": "Cup", "camera": "Camera"}
    root = rng.normal(size=(6, 6))
    covariance = 1e-4 * root @ root.T
    for joined in (("hand", "base"), ("cup", "hand"), ("camera", "cup")):
        for frame, reference in (
            ("tag", "camera"),
            ("camera", "tag"),
            ("tag", "base"),
            ("hand", "tag"),
        ):
            scene = add_fact(
                scattered(bodies), pose_fact(*joined, Pose.exp(rng.normal(size=6)), bodies)
            )
            if scene.root(frame) == scene.root(reference):
                continue
            pose = Pose.exp(rng.normal(size=6))
            made = add_fact(
                scene,
                pose_fact(frame, reference, pose, bodies),
                evidence=Evidence(covariance=covariance),
            )
            assert made.pose(frame, relative_to=reference).is_close(pose)
            np.testing.assert_allclose(
                made.gaussian_pose(frame, relative_to=reference).covariance, covariance, atol=1e-13
            )


def test_a_tag_seen_on_a_cup() -> None:
    """The cup joins the tree by its tag; a second pose with moves= moves the cup alone."""
    bodies = {"table": "Table", "camera": "Camera", "cup": "Cup", "tag": "Cup"}
    scene = add_fact(scattered(bodies), pose_fact("camera", "table", Pose([0, 0, 1]), bodies))
    seen = add_fact(scene, pose_fact("tag", "camera", Pose([0.3, 0.1, -0.9]), bodies))
    assert seen.pose("cup", relative_to="table").translation == pytest.approx([0.2, -0.1, -0.2])
    later = pose_fact("tag", "camera", Pose([0.5, 0.1, -0.9]), bodies)
    with pytest.raises(
        SceneError, match=r"contradicts the scene by 0.2 m and 0 rad, along tag - cup - camera \("
    ):
        add_fact(seen, later)
    moved = add_fact(seen, later, policy=FactPolicy(moves="cup"))
    assert moved.pose("cup", relative_to="table").translation == pytest.approx([0.4, -0.1, -0.2])
    assert moved.pose("camera", relative_to="table") == seen.pose("camera", relative_to="table")
    with pytest.raises(
        SceneError,
        match="the edge above 'table' is not between 'tag' and 'camera': 'tag', 'cup' are",
    ):
        add_fact(seen, later, policy=FactPolicy(moves="table"))
    from_camera = add_fact(
        seen,
        pose_fact("camera", "tag", Pose([-0.5, -0.1, 0.9]), bodies),
        policy=FactPolicy(moves="cup"),
    )
    assert from_camera.pose("cup", relative_to="table").is_close(
        moved.pose("cup", relative_to="table")
    )


def test_what_is_known_with_errors_is_kept_or_fused_within_the_gate() -> None:
    """A second pose is an observation or is fused; an inconsistent one is rejected by the gate."""
    bodies = {"table": "Table", "cup": "Cup"}
    spread = np.eye(6) * 1e-4
    scene = add_fact(
        scattered(bodies),
        pose_fact("cup", "table", Pose([0.5, 0, 0]), bodies),
        evidence=Evidence(covariance=spread),
    )
    later = pose_fact("cup", "table", Pose([0.51, 0, 0]), bodies)
    kept = add_fact(scene, later, evidence=Evidence(covariance=spread, stamp=2.0, tags=["marker"]))
    assert kept.pose("cup", relative_to="table") == scene.pose("cup", relative_to="table")
    first, seen = observations(kept, "cup")
    assert str(first) == "'cup' seen from 'table'"
    # one error, of the fact and of the edge that it made
    assert kept.noise(first.name) == kept.noise("cup")
    assert str(seen) == "'cup' seen from 'table' at 2 s (marker)"
    assert innovation(kept, seen.measurement()).squared_mahalanobis == pytest.approx(0.5)
    twice = add_fact(
        scene, later, evidence=Evidence(covariance=spread), policy=FactPolicy(known="fuse")
    )
    resolved = resolve_observations(kept, "cup", policy=Fused()).scene
    for fused in (twice, resolved):
        assert observations(fused) == ()
        assert fused.pose("cup", relative_to="table").translation[0] == pytest.approx(0.505)
        np.testing.assert_allclose(
            fused.gaussian_pose("cup", relative_to="table").covariance, spread / 2, atol=1e-7
        )
    with pytest.raises(
        SceneError,
        match=r"contradicts the scene by 0.1 m .* squared Mahalanobis distance is 50 of 22.46",
    ):
        add_fact(
            scene,
            pose_fact("cup", "table", Pose([0.6, 0, 0]), bodies),
            evidence=Evidence(covariance=spread),
        )
    exact = add_fact(scattered(bodies), pose_fact("cup", "table", Pose([0.5, 0, 0]), bodies))
    near = pose_fact("cup", "table", Pose([0.505, 0, 0]), bodies)
    assert (
        add_fact(exact, near, evidence=Evidence(covariance=spread), policy=FactPolicy(known="fuse"))
        is exact
    )
    assert add_fact(exact, pose_fact("cup", "table", Pose([0.5, 0, 0]), bodies)) is exact
    with pytest.raises(SceneError, match="tags must be a set of texts"):
        add_fact(scattered(bodies), later, evidence=Evidence(tags="marker"))
    with pytest.raises(UnknownNameError, match="unknown value of known 'ignore'"):
        add_fact(exact, near, policy=FactPolicy(known="ignore"))  # type: ignore[arg-type]


def test_a_plain_pose_is_a_fact_of_two_frames() -> None:
    """A plain pose with both frames equals the semantic pose, also with an error."""
    bodies = {"camera": "Camera", "tag": "Cup", "cup": "Cup"}
    scene, pose = scattered(bodies), Pose.exp([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    error = 1e-4 * np.eye(6)
    said, names = (
        pose_fact("tag", "camera", pose, bodies),
        {"frame": "tag", "relative_to": "camera"},
    )
    assert add_fact(scene, pose, **names) == add_fact(scene, said)
    evidence = Evidence(covariance=error)
    for plain, more in ((pose, evidence), (GaussianPose(pose, error), None)):
        made, expected = (
            add_fact(scene, plain, **names, evidence=more),
            add_fact(scene, said, evidence=evidence),
        )
        assert scene_to_dict(made) == scene_to_dict(expected)
    for wrong, named in ((pose, {}), (pose, {"frame": "tag"}), (said, names), ([0, 0, 1], names)):
        with pytest.raises(SemanticError, match="comes with frame= and relative_to="):
            add_fact(scene, wrong, **named)


# --- positions and orientations


def position_fact(
    frame: str, reference: str, axes: str, place: dict[str, Pose], bodies: dict[str, str]
) -> SemanticPosition:
    """Return the position of a frame's origin relative to another's, in the axes of a third."""
    apart = place[frame].translation - place[reference].translation
    coord = PositionCoord.from_names(
        point=frame, body=bodies[frame], ref_point=reference, ref_body=bodies[reference], coord=axes
    )
    return SemanticPosition(coord, place[axes].rotation.T @ apart)


def orientation_fact(
    frame: str, reference: str, axes: str, place: dict[str, Pose], bodies: dict[str, str]
) -> SemanticOrientation:
    """Return the orientation of a frame in the axes of a third, as a rotation vector."""
    turn = (place[reference].inverse() @ place[frame]).log()[3:]
    coord = OrientationCoord.from_names(
        ori=frame, body=bodies[frame], ref_ori=reference, ref_body=bodies[reference], coord=axes
    )
    return SemanticOrientation(
        coord, RotationVector(place[axes].rotation.T @ place[reference].rotation @ turn)
    )


@settings(max_examples=scaled_examples(1.0))
@given(SEEDS)
def test_a_position_and_an_orientation_make_a_pose(seed: int) -> None:
    """Facts between any frames of two bodies, in any axes and order, have the expected errors."""
    rng = np.random.default_rng(seed)
    bodies = {f"{side}{k}": side for side in "ab" for k in range(3)}
    scene = scattered(bodies)
    place = {root: Pose.exp(rng.normal(size=6)) for root in ("a0", "b0")}
    place |= {frame: place[f"{side}0"] @ scene.pose(frame) for frame, side in bodies.items()}
    one, two = (
        [str(rng.choice([f for f in bodies if bodies[f] == side])) for _ in range(2)]
        for side in "ab"
    )
    p_ends, o_ends = ([(a, b), (b, a)][int(rng.integers(2))] for a, b in zip(one, two, strict=True))
    axes = [str(rng.choice(list(bodies))) for _ in range(2)]
    facts = [
        position_fact(*p_ends, axes[0], place, bodies),
        orientation_fact(*o_ends, axes[1], place, bodies),
    ]
    errors = [1e-6 * np.diag(rng.uniform(1, 2, 3)) if rng.random() < 0.7 else None for _ in facts]
    found = []
    for order in ((0, 1), (1, 0)):
        made = scene
        for k in order:
            made = add_fact(made, facts[k], evidence=Evidence(covariance=errors[k]))
        assert [one.kind for one in observations(made)] == ["pose"] * any(
            error is not None for error in errors
        )
        for a, b in itertools.product(bodies, repeat=2):
            assert made.pose(a, relative_to=b).is_close(
                place[b].inverse() @ place[a], translation_tolerance=1e-9, rotation_tolerance=1e-9
            )
        found.append(made.gaussian_pose(p_ends[0], relative_to=p_ends[1]))
        turn = made.gaussian_pose(o_ends[0], relative_to=o_ends[1]).covariance[3:, 3:]
        np.testing.assert_allclose(
            turn, np.zeros((3, 3)) if errors[1] is None else errors[1], atol=1e-13
        )
        # the error of the position, in its axes
        if axes[0] in bodies and bodies[axes[0]] == bodies[p_ends[1]]:
            inside = place[axes[0]].rotation.T @ place[p_ends[0]].rotation
            there = inside @ found[-1].covariance[:3, :3] @ inside.T
            np.testing.assert_allclose(
                there, np.zeros((3, 3)) if errors[0] is None else errors[0], atol=1e-13
            )
        for k in range(2):  # what is known now
            assert add_fact(made, facts[k]) is made
    np.testing.assert_allclose(found[0].covariance, found[1].covariance, atol=1e-13)


def test_half_a_pose_waits_as_an_observation() -> None:
    """A position alone joins no trees, is listed, and later facts must agree with it."""
    bodies = {"table": "Table", "cup": "Cup", "moon": "Moon"}
    place = {
        "table": Pose(),
        "cup": Pose.from_rpy([0.4, 0, 0.1], [0, 0, 0.5]),
        "moon": Pose([9, 9, 9]),
    }
    scene = add_fact(
        scattered(bodies),
        position_fact("cup", "table", "table", place, bodies),
        evidence=Evidence(stamp=1.0),
    )
    assert scene.root("cup") == "cup"
    assert [str(one) for one in observations(scene)] == [
        "'cup' (position) seen from 'table' at 1 s"
    ]
    joined = add_fact(scene, pose_fact("cup", "table", place["cup"], bodies))
    assert len(observations(joined)) == 1
    moved = Pose([0.1, 0, 0]) @ place["cup"]
    with pytest.raises(
        SceneError,
        match=r"the position of 'cup' relative to 'table' contradicts the scene by 0\.1 m",
    ):
        add_fact(scene, pose_fact("cup", "table", moved, bodies))
    with pytest.raises(SceneError, match=r"the orientation of .* contradicts the scene by 0.5 rad"):
        add_fact(
            joined,
            orientation_fact("cup", "table", "table", place | {"cup": Pose([0.4, 0, 0.1])}, bodies),
        )
    with pytest.raises(
        SemanticError, match="its axes are of a frame that poses join to one of its ends"
    ):
        add_fact(scene, position_fact("cup", "table", "moon", place, bodies))
    with pytest.raises(SceneError, match="position alone does not determine how 'cup' has moved"):
        add_fact(
            joined,
            position_fact("cup", "table", "table", place, bodies),
            policy=FactPolicy(moves="cup"),
        )
    turn = orientation_fact("cup", "table", "table", place, bodies)
    unsure = joined.set_covariance("cup", np.eye(6) * 1e-6)
    with pytest.raises(SceneError, match="of its orientation alone, which is not a measurement"):
        add_fact(
            unsure,
            turn,
            evidence=Evidence(covariance=np.eye(3) * 1e-6),
            policy=FactPolicy(known="fuse"),
        )
    near = position_fact(
        "cup", "table", "table", place | {"cup": Pose([0.001, 0, 0]) @ place["cup"]}, bodies
    )
    fused = add_fact(
        unsure,
        near,
        evidence=Evidence(covariance=np.eye(3) * 1e-6),
        policy=FactPolicy(known="fuse"),
    )
    assert fused.pose("cup", relative_to="table").translation[0] == pytest.approx(0.4005)


def test_joints_are_not_turned_round() -> None:
    """A tree is attached at an end without joints above; otherwise the joints are named."""
    robot = (
        SceneGraph(root=None)
        .add_body("A")
        .add_root("a", body="A")
        .add_frame("hand", "a", joint=Revolute([0, 0, 1]))
    )
    robot = (
        robot.add_body("B")
        .add_root("b", body="B")
        .add_frame("grip", "b", joint=Revolute([0, 1, 0]))
    )
    bodies = {"a": "A", "hand": "hand", "b": "B", "grip": "grip"}
    held = add_fact(robot, pose_fact("b", "hand", Pose([0, 0, 0.1]), bodies))
    assert held.parent("b") == "hand"
    other = add_fact(robot, pose_fact("hand", "b", Pose([0, 0, 0.1]), bodies))
    assert other.parent("b") == "hand"
    with pytest.raises(
        SceneError, match="joint 'grip' is above 'grip' and joint 'hand' is above 'hand'"
    ):
        add_fact(robot, pose_fact("grip", "hand", Pose(), bodies))


def test_facts_that_are_none() -> None:
    """What is no pose or twist, names that are not there, numbers that are no covariance."""
    bodies = {"table": "Table", "cup": "Cup"}
    scene = scattered(bodies)
    with pytest.raises(SemanticError, match="it takes a SemanticPose"):
        add_fact(scene, PoseSemantics("{cup}|Cup", "{table}|Table"))  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="did you mean 'cup'"):
        add_fact(scene, SemanticPose(PoseCoord("{cupp}|Cup", "{table}|Table", "[table]"), Pose()))
    with pytest.raises(SceneError, match="covariance of 'cup'"):
        add_fact(
            scene,
            pose_fact("cup", "table", Pose(), bodies),
            evidence=Evidence(covariance=-np.eye(6)),
        )


# --- another root


@settings(max_examples=scaled_examples(0.5))
@given(SEEDS)
def test_another_root_moves_nothing(seed: int) -> None:
    """Poses, their joint errors, stamped poses and twists are what they were; and back again."""
    rng = np.random.default_rng(seed)
    scene = SceneGraph("w")
    for k in range(int(rng.integers(1, 9))):
        parent = str(rng.choice(scene.frame_names))
        on_body = rng.random() < 0.3
        scene = scene.add_frame(
            f"f{k}",
            parent,
            pose=GaussianPose(
                Pose.exp(rng.normal(size=6)),
                None if on_body or rng.random() < 0.5 else np.diag(rng.uniform(1e-6, 1e-4, 6)),
            ),
            body=scene.body(parent) if on_body else None,
            joint=Free() if not on_body and rng.random() < 0.3 else None or scene.joint("w"),
        )
    heads = [f for f in scene.frame_names[1:] if scene.body(f) != scene.body("w")]
    if heads:
        head = str(rng.choice(heads))
        scene = scene.set_twist(head, rng.normal(size=6), relative_to_body=scene.body("w"))
        if scene.body(head) != scene.body(str(scene.parent(head))):
            for stamp in (0.0, 1.0):
                scene = scene.add_stamped_pose(head, Pose.exp(rng.normal(size=6)), stamp=stamp)
    frame = str(rng.choice(scene.frame_names))
    made = scene.make_root(frame)
    assert made.root("w") == frame
    for a, b in itertools.product(scene.frame_names, repeat=2):
        assert made.pose(a, relative_to=b).is_close(
            scene.pose(a, relative_to=b), translation_tolerance=1e-9, rotation_tolerance=1e-9
        )
        before, after = (s.gaussian_pose(a, relative_to=b).covariance for s in (scene, made))
        np.testing.assert_allclose(after, before, atol=1e-12)
        if heads:
            early = [s.pose(a, relative_to=b, stamp=0.5, policy="screw") for s in (scene, made)]
            assert early[0].is_close(early[1], translation_tolerance=1e-8, rotation_tolerance=1e-8)
    for body in scene.body_names if heads else ():
        try:
            expected = relate(scene, TwistCoord(f"{head}|{scene.body(head)}", body, f"[{head}]"))
        except SemanticError:
            continue
        found = relate(made, TwistCoord(f"{head}|{scene.body(head)}", body, f"[{head}]"))
        np.testing.assert_allclose(
            np.concatenate(found.numbers), np.concatenate(expected.numbers), atol=1e-9
        )
    assert [made.body(f) for f in made.frame_names] == [scene.body(f) for f in scene.frame_names]
    back = made.make_root("w")
    assert [back.parent(f) for f in back.frame_names] == [
        scene.parent(f) for f in scene.frame_names
    ]


# --- twists


def two_trees() -> tuple[SceneGraph, dict[str, str]]:
    """Return four bodies: A and B joined rigidly in one tree, C and D in another."""
    bodies = {name: name.upper() for name in "abcd"}
    scene = add_fact(scattered(bodies), pose_fact("b", "a", Pose([1, 0, 0]), bodies))
    scene = add_fact(scene, pose_fact("d", "c", Pose([0, 1, 0]), bodies))
    return scene.set_joint("b", Fixed()).set_joint("d", Fixed()), bodies


def test_twists_by_way_of_another_tree_are_rejected_until_it_is_joined() -> None:
    """Twists between disconnected trees are compared once a pose joins the trees."""
    scene, bodies = two_trees()
    scene = add_fact(scene, SemanticTwist(TwistCoord("a|A", "C", "[a]"), [1.0, 0, 0, 0, 0, 0]))
    assert twist(scene, "a", relative_to="b").numbers[0].tolist() == [0, 0, 0]
    both = add_fact(scene, SemanticTwist(TwistCoord("d|D", "B", "[d]"), [0, 1.0, 0, 0, 0, 0]))
    for ends in (("a", "b"), ("c", "d")):
        with pytest.raises(
            SemanticError, match=r"by way of body '[ABCD]', which no poses join.*join '[ABCD]' with"
        ):
            twist(both, ends[0], relative_to=ends[1])
        assert not is_rigid(both, *ends)
    joined = add_fact(both, pose_fact("c", "a", Pose([0, 0, 1]), bodies))
    with pytest.raises(SemanticError, match="a path of twists leads"):
        twist(joined, "a", relative_to="b")
    told = add_fact(joined, SemanticTwist(TwistCoord("c|C", "D", "[c]"), [0, 0, 0, 0, 0, 0]))
    assert twist(told, "a", relative_to="b").numbers[0].tolist() == [1, 1, 0]


def test_a_frame_with_a_twist_gets_another_beside_it() -> None:
    """A frame has one twist edge: a second is of a new frame of its body where no other is free."""
    scene, bodies = two_trees()
    for reference, speed in (("C", 1.0), ("D", 2.0)):
        scene = add_fact(
            scene, SemanticTwist(TwistCoord("a|A", reference, "[a]"), [speed, 0, 0, 0, 0, 0])
        )
    assert scene.twist_frames == ("a", "a relative to D")
    again = SemanticTwist(TwistCoord("a|A", "D", "[a]"), [2.0, 0, 0, 0, 0, 0])
    assert add_fact(scene, again) is scene
    joined = add_fact(scene, pose_fact("d", "a", Pose([0, 0, 1]), bodies))
    assert twist(joined, "c", relative_to="d").numbers[0].tolist() == [1, 0, 0]


def test_one_motion_told_from_both_trees_is_compared_when_poses_join_them() -> None:
    """Two twists in two trees are both returned; the joining pose reveals a contradiction."""
    base, bodies = two_trees()
    facts = [
        SemanticTwist(TwistCoord(f"{one}|{one.upper()}", other, f"[{one}]"), [v, 0, 0, 0, 0, 0])
        for one, other, v in (("a", "C", 1.0), ("c", "A", -1.0))
    ]
    for order in (facts, facts[::-1]):
        scene = add_fact(add_fact(base, order[0]), order[1])
        assert (len(observations(scene)), len(scene.twist_frames)) == (1, 2)
        for fact in facts:
            np.testing.assert_array_equal(
                np.concatenate(relate(scene, fact.coord).numbers),
                fact.numbers[0].tolist() + [0] * 3,
            )
        joined = add_fact(scene, pose_fact("c", "a", Pose([0, 0, 1]), bodies))
        assert observations(joined) == ()
        turned = pose_fact("c", "a", Pose.from_rpy([0, 0, 1], [0, 0, 1.0]), bodies)
        with pytest.raises(SceneError, match=r"the scene has \[.*\], the fact \["):
            add_fact(scene, turned)


def test_twists_are_facts_too() -> None:
    """A twist is added from either body at any point; implied twists must agree."""
    bodies = {"table": "Table", "belt": "Belt", "cup": "Cup"}
    scene = scattered(bodies)
    for frame, reference, x in (("belt", "table", 0.5), ("cup", "belt", 0.2)):
        scene = add_fact(scene, pose_fact(frame, reference, Pose([x, 0, 0]), bodies))
    moving = add_fact(
        scene, SemanticTwist(TwistCoord("belt|Belt", "Table", "[table]"), [0.1, 0, 0, 0, 0, 0])
    )
    moving = add_fact(
        moving, SemanticTwist(TwistCoord("cup|Cup", "Table", "[table]"), [0.1, 0, 0, 0, 0, 1])
    )
    np.testing.assert_allclose(
        twist(moving, "cup", relative_to="belt").representation.vector,
        [0, 0, 0, 0, 0, 1],
        atol=1e-12,
    )
    again = add_fact(
        moving, SemanticTwist(TwistCoord("cup|Cup", "Belt", "[belt]"), [0, 0, 0, 0, 0, 1])
    )
    assert again is moving
    with pytest.raises(
        SceneError, match=r"the scene has \[.*\], the fact \[0.0, 0.0, 0.0, 0.0, 0.0, 2.0\]"
    ):
        add_fact(moving, SemanticTwist(TwistCoord("cup|Cup", "Belt", "[belt]"), [0, 0, 0, 0, 0, 2]))
    updated = add_fact(
        moving, SemanticTwist(TwistCoord("cup|Cup", "Table", "[table]"), [0.1, 0, 0, 0, 0, 2])
    )
    assert updated.twist_edge("cup")[1][5] == pytest.approx(2.0)  # type: ignore[index]
    assert path_noise(updated, "cup", relative_to="table") is None


# --- trees that share bodies


def two_carts(joint: Joint | None = None) -> tuple[SceneGraph, dict[str, str], dict[str, Pose]]:
    """Return two trees with a frame on the base and one on the arm each, and all poses."""
    rng = np.random.default_rng(5)
    bodies = {"base1": "Base", "arm1": "Arm", "base2": "Base", "arm2": "Arm"}
    place = {frame: Pose.exp(rng.normal(size=6)) for frame in bodies}
    scene = SceneGraph(root=None).add_body("Base").add_body("Arm")
    for k in "12":
        inside = place[f"base{k}"].inverse() @ place[f"arm{k}"]
        scene = scene.add_root(f"base{k}", body="Base")
        scene = scene.add_frame(
            f"arm{k}", f"base{k}", pose=inside, body="Arm", joint=joint or Fixed()
        )
    return scene, bodies, place


def test_trees_that_share_two_bodies_become_one() -> None:
    """The second edge between two bodies follows from the first and the pose inside the body."""
    scene, bodies, place = two_carts()
    for pair in (("base1", "base2"), ("arm2", "arm1"), ("arm1", "base2")):
        made = add_fact(scene, pose_fact(*pair, place[pair[1]].inverse() @ place[pair[0]], bodies))
        assert len(made.root_names) == 1
        for a, b in itertools.product(bodies, repeat=2):
            assert made.pose(a, relative_to=b).is_close(place[b].inverse() @ place[a])
        off = pose_fact(
            "arm1", "arm2", Pose([0.2, 0, 0]) @ place["arm2"].inverse() @ place["arm1"], bodies
        )
        with pytest.raises(
            SceneError, match=r"contradicts the scene by 0\.2 m and .* rad, along arm1 - "
        ):
            add_fact(made, off)


def test_trees_with_joints_between_shared_bodies_are_rejected_with_the_loop() -> None:
    """Neither joint can go: the message has the loop and how far it is from closing."""
    scene, bodies, place = two_carts(Revolute([0, 0, 1]))
    fact = pose_fact("base1", "base2", place["base2"].inverse() @ place["base1"], bodies)
    loop = (
        r"the loop 'arm1' - 'base1' - 'base2' - 'arm2' puts frames of body 'Arm' .* m and .* rad"
        r" apart, and joints"
    )
    with pytest.raises(SceneError, match=loop) as caught:
        add_fact(scene, fact, q=[0.0, 0.0])
    assert caught.value.data["rule"] == "PE6"
