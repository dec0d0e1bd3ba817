"""Joins of trees with redundant twists: equal twists are merged, others prevent the join."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tmkit.errors import SceneError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.graph import (
    Evidence,
    Revolute,
    SceneArrays,
    SceneGraph,
    add_fact,
    gaussian_twist,
    observations,
    relate,
    twist,
)
from tmkit.graph.observation_frames import remove_observations
from tmkit.relations import PoseCoord, SemanticError, SemanticPose, SemanticTwist, TwistCoord
from tmkit.spatial import Pose, adjoint

PLACE = {
    name: Pose.exp(np.random.default_rng(k).normal(size=6))
    for k, name in enumerate(("a", "a2", "b", "b2"))
}
VELOCITY = {body: np.random.default_rng(k + 9).normal(size=6) for k, body in enumerate("ABCD")}
TWISTS = (("a", "C"), ("a2", "D"), ("b", "C"), ("b2", "D"))
AB = PLACE["a"].inverse() @ PLACE["b"]


def true_twist(frame: str, reference: str) -> np.ndarray:
    """Return the twist of a frame relative to a body, at its origin and in its axes."""
    return adjoint(PLACE[frame].inverse()) @ (VELOCITY[frame[0].upper()] - VELOCITY[reference])


def apart(*letters: str, error: float = 0.0) -> SceneGraph:
    """Return trees of two frames on one body, moving relative to C and D; one may deviate."""
    scene = SceneGraph(root=None).add_body("C").add_body("D")
    for letter in letters:
        scene = scene.add_body(letter.upper()).add_root(letter, body=letter.upper())
        inside = PLACE[letter].inverse() @ PLACE[f"{letter}2"]
        scene = scene.add_frame(f"{letter}2", letter, pose=inside, body=letter.upper())
    for frame, reference in TWISTS:
        if frame[0] in letters:
            off = error * np.eye(6)[4] if frame == "b2" else np.zeros(6)
            scene = scene.set_twist(
                frame, true_twist(frame, reference) + off, relative_to_body=reference
            )
    return scene


def mounted(error: float) -> SceneGraph:
    """Return a scene in which both trees are below one frame."""
    other = SceneGraph(root=None).add_body("C").add_body("D").add_body("A").add_root("a0", body="A")
    other = other.add_frame("a", "a0", pose=AB.inverse(), body="A")
    other = other.add_frame("a2", "a", pose=PLACE["a"].inverse() @ PLACE["a2"], body="A")
    for frame, reference in TWISTS[:2]:
        other = other.set_twist(frame, true_twist(frame, reference), relative_to_body=reference)
    other = other.merge(apart("b", error=error))
    return SceneGraph("top").mount(other, "top", prefix="p/")


def merged(error: float) -> SceneGraph:
    """Return a scene to which another brings a tree under its root."""
    other = SceneGraph(root=None).add_body("C").add_body("D").add_body("A").add_root("a", body="A")
    other = other.add_frame("b", "a", pose=AB, body="B" if "B" in other.body_names else None)
    other = other.add_frame("b2", "b", pose=PLACE["b"].inverse() @ PLACE["b2"], body="b")
    for frame, reference in TWISTS[2:]:
        off = error * np.eye(6)[4] if frame == "b2" else np.zeros(6)
        other = other.set_twist(
            frame, true_twist(frame, reference) + off, relative_to_body=reference
        )
    return apart("a").merge(other)


def attached(error: float) -> SceneGraph:
    """Return a scene with an edge between the trees."""
    return apart("a", "b", error=error).attach("b", "a", pose=AB)


def attached_arrays(error: float) -> SceneGraph:
    """Return the same, edited in place; a join that is rejected changes nothing."""
    scene = apart("a", "b", error=error)
    arrays = SceneArrays(scene)
    try:
        arrays.attach("b", "a", pose=AB)
    finally:
        made = arrays.freeze()
        assert made == scene or made.parent("b") == "a"
    return made


@pytest.mark.parametrize("join", [attached, attached_arrays, mounted, merged])
def test_a_join_drops_what_it_makes_redundant(join: Callable[[float], SceneGraph]) -> None:
    """A redundant twist of b2 is removed and still returned; a contradicting one is rejected."""
    scene = join(0.0)
    p = "p/" if "top" in scene else ""
    assert set(scene.twist_frames) == {f"{p}a", f"{p}a2", f"{p}b"}
    known = TwistCoord(f"{p}b2|{scene.body(f'{p}b2')}", f"{p}D", f"[{p}b2]")
    np.testing.assert_allclose(
        np.concatenate(relate(scene, known).numbers), true_twist("b2", "D"), atol=1e-9
    )
    assert scene_from_dict(scene_to_dict(scene)) == scene
    message = (
        rf"the twist of frame '{p}b2' relative to body '{p}D' is \[.*\], but those of frames"
        rf" '{p}a2', '{p}a', "
    )
    with pytest.raises(
        SceneError, match=message + rf"'{p}b', which poses join to it, make \["
    ) as caught:
        join(1e-6)
    assert caught.value.data == {"rule": "TE6", "frame": f"{p}b2"}
    said, made = (np.array(eval(text)) for text in re.findall(r"\[.*?\]", str(caught.value)))
    np.testing.assert_allclose(said - made, 1e-6 * np.eye(6)[4], atol=1e-9)


def test_numbers_of_joints_are_not_known_to_a_join() -> None:
    """Over a joint, twists cannot be compared: a fact says at which configuration it holds."""
    scene = apart("a").add_frame("arm", "a", joint=Revolute([0, 0, 1])).merge(apart("b"))
    for variant in (scene, SceneArrays(scene)):
        with pytest.raises(SceneError, match="would be the second between bodies"):
            variant.attach("b", "arm", pose=AB)
    turn = Pose.from_rpy([0, 0, 0], [0, 0, 0.3])
    fact = SemanticPose(PoseCoord("{b}|B", "{arm}|arm", "[arm]"), turn.inverse() @ AB)
    joined = add_fact(scene, fact, q=[0.3])
    assert len(joined.twist_frames) == 3
    with pytest.raises(SceneError, match=r"the scene has \[.*\], the fact \["):
        add_fact(scene, fact, q=[0.4])


def test_a_contradiction_rejects_the_joint_that_joins_as_well() -> None:
    """At another value of the joint the numbers would be others."""
    for variant in (apart("a", "b"), SceneArrays(apart("a", "b"))):
        with pytest.raises(SceneError, match="would be the second between bodies"):
            variant.attach("b", "a", pose=AB, joint=Revolute([0, 0, 1]))


# --- twists that wait


def waiting() -> SceneGraph:
    """Return two trees, both of which say how their bodies move: the second of these waits."""
    scene = SceneGraph(root=None)
    for name in "abcd":
        scene = scene.add_body(name.upper()).add_root(name, body=name.upper())
    scene = scene.attach("b", "a", pose=Pose([1, 0, 0])).attach("d", "c", pose=Pose([0, 1, 0]))
    scene = add_fact(scene, SemanticTwist(TwistCoord("b|B", "C", "[b]"), [1.0, 0, 0, 0, 0, 0]))
    spread = np.diag([1e-4] * 6)
    return add_fact(
        scene,
        SemanticTwist(TwistCoord("c|C", "B", "[c]"), [-1.0, 0, 0, 0, 0, 0]),
        evidence=Evidence(covariance=spread),
    )


def test_a_twist_that_waits_is_an_edge_of_an_observation() -> None:
    """It has its error in scenes and arrays, survives copies, and is allowed by its class."""
    scene = waiting()
    (seen,) = observations(scene)
    assert str(seen) == "'c' (twist) seen from 'b'"
    assert scene.twist_edge(seen.name) is not None
    coord = TwistCoord("c|C", "B", "[c]")
    found = gaussian_twist(scene, coord)
    np.testing.assert_array_equal(found.mean, [-1, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(found.covariance, np.diag([1e-4] * 6))
    arrays = SceneArrays(scene)
    np.testing.assert_array_equal(
        arrays.twist("c", relative_to="b", at="c", axes="c"), [-1, 0, 0, 0, 0, 0]
    )
    for variant in (scene, arrays):
        with pytest.raises(
            SceneError, match="has a twist that waits as an observation; remove that first"
        ):
            variant.set_classes(seen.name, [])
    assert scene_from_dict(scene_to_dict(scene)) == arrays.freeze() == scene
    slower = add_fact(scene, SemanticTwist(coord, [-0.5, 0, 0, 0, 0, 0]))
    np.testing.assert_array_equal(gaussian_twist(slower, coord).mean, [-0.5, 0, 0, 0, 0, 0])
    assert len(observations(slower)) == 1
    assert observations(remove_observations(slower)) == ()


@pytest.mark.parametrize("moving", ["b", "d"])
def test_a_regrasp_ends_twists_to_other_trees_from_both_sides(moving: str) -> None:
    """What b or d are moved to decides how they move from now on, whichever tree has the twist."""
    scene = waiting().make_root("a").make_root("c")
    scene = scene.add_frame("hand", scene.parent(moving), pose=Pose([0, 0, 1]))
    arrays = SceneArrays(scene)
    arrays.reparent(moving, "hand")
    held = scene.reparent(moving, "hand")
    assert arrays.freeze() == held
    assert (len(observations(held)), len(held.twist_frames)) == (
        (0, 0) if moving == "b" else (1, 2)
    )
    assert not twist(held, moving, relative_to="hand").representation.vector.any()
    if moving == "b":
        with pytest.raises(SemanticError, match="nor do poses"):
            twist(held, "b", relative_to="c")


# --- bodies in two trees


def test_a_body_with_frames_in_two_trees_is_a_way_between_them() -> None:
    """Its fixed edge in the one says nothing where twists lead to it by way of the other."""
    scene = SceneGraph(root=None)
    for name, body in (("a", "A"), ("b", "B"), ("b2", "B"), ("d", "D")):
        scene = (scene if body in scene.body_names else scene.add_body(body)).add_root(
            name, body=body
        )
    scene = scene.attach("b", "a", pose=Pose([1, 0, 0])).attach("d", "b2", pose=Pose([0, 1, 0]))
    assert not twist(scene, "a", relative_to="b").representation.vector.any()
    told = scene.set_twist("a", [1.0, 0, 0, 0, 0, 0], relative_to_body="D")
    for ends in (("a", "b"), ("d", "b2")):
        with pytest.raises(SemanticError, match=r"by way of body '[ABD]', which no poses join"):
            twist(told, ends[0], relative_to=ends[1])
    with pytest.raises(SceneError, match="the motion of frame 'a' relative to 'b' is unknown"):
        SceneArrays(told).twist("a", relative_to="b")


def test_a_merge_takes_twists_as_facts_do() -> None:
    """A twist of another tree is stored; one of this tree is added; contradictions are rejected."""
    scene = apart("a").add_body("B").add_root("b", body="B").add_root("c", body="C")
    # so b moves relative to C already
    scene = scene.set_twist("b", true_twist("b", "A"), relative_to_body="A")
    other = SceneGraph(root=None).add_body("B").add_body("C").add_root("b", body="B")
    other = other.set_twist("b", true_twist("b", "C"), relative_to_body="C")
    made = scene.merge(other)
    (waiting,) = observations(made)
    assert (waiting.frame, waiting.kind, made.twist_edge(waiting.name)[0]) == ("b", "twist", "C")
    fact = SemanticTwist(TwistCoord("b|B", "C", "[b]"), true_twist("b", "C"))
    assert len(observations(add_fact(scene, fact))) == 1
    assert (
        made.merge(other).merge(scene_from_dict(scene_to_dict(other))).twist_frames
        == made.twist_frames
    )
    first = scene.remove_twist("b").merge(other)
    assert first.twist_edge("b")[0] == "C"
    assert not observations(first)
    wrong = other.set_twist("b", true_twist("b", "C") + 1e-6, relative_to_body="C")
    with pytest.raises(
        SceneError,
        match=r"the twist of frame 'b' relative to body 'C' is .*, but those of frames 'b'",
    ):
        first.merge(wrong)


def test_a_merge_compares_a_twist_with_that_of_the_same_frame() -> None:
    """A second twist of a frame closes a loop of its tree."""
    scene = SceneGraph(root=None).add_body("C").add_root("a").add_frame("b", "a")
    scene = scene.set_twist("a", [1, 0, 0, 0, 0, 0], relative_to_body="C")
    scene = scene.set_twist("b", [0, 1, 0, 0, 0, 0], relative_to_body="C")
    other = (
        SceneGraph(root=None)
        .add_body("b")
        .add_root("a")
        .set_twist("a", [1, -1, 0, 0, 0, 0], relative_to_body="b")
    )
    assert scene.merge(other) == scene
    with pytest.raises(SceneError, match=r"is \[1, 1, 0, 0, 0, 0\], but those of frames 'b', 'a'"):
        scene.merge(other.set_twist("a", [1, 1, 0, 0, 0, 0], relative_to_body="b"))
