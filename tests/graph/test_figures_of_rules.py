"""Figures 2 to 6 of De Laet et al.: accepted and rejected edges, each with its rule.

A figure is a scene, and edges or nodes that are crossed out in it; each of these is rejected by the
rule that its caption names, in the exact form of ``docs/reference/scene_edge_rules.md``, and leaves
the scene as it was.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tmkit.errors import SceneError, TmkitError, UnknownNameError
from tmkit.graph import SceneGraph, add_edge, add_fact, add_pose, add_twist, relate, update_pose
from tmkit.graph.semantic_edges.edges import Node
from tmkit.relations import PoseCoord, SemanticError, SemanticPose, SemanticTwist, TwistCoord
from tmkit.spatial import Pose

Edit = Callable[[SceneGraph], SceneGraph]


def scene_of(**frames: str) -> SceneGraph:
    """Return bodies with frames that nothing joins: ``C="c1 c2"``."""
    scene = SceneGraph(root=None)
    for body, names in frames.items():
        scene = scene.add_body(body)
        for name in names.split():
            scene = scene.add_frame(name, body=body)
    return scene


def pose(child: str, parent: str, *, x: float = 0.1) -> Edit:
    """Return an edit that adds the pose of a frame relative to another."""

    def edit(scene: SceneGraph) -> SceneGraph:
        coord = PoseCoord(
            f"{{{child}}}|{scene.body(child)}", f"{{{parent}}}|{scene.body(parent)}", f"[{parent}]"
        )
        return add_pose(scene, SemanticPose(coord, Pose([x, 0, 0])))

    return edit


def twist(frame: str, reference: str, *, strict: bool = False) -> Edit:
    """Return an edit that adds the body-fixed twist of a frame relative to a body."""

    def edit(scene: SceneGraph) -> SceneGraph:
        coord = TwistCoord(f"{frame}|{scene.body(frame)}", reference, f"[{frame}]")
        return add_twist(scene, SemanticTwist(coord, np.ones(6)), strict=strict)

    return edit


def edge(kind: Any, tail: tuple[Any, str], head: tuple[Any, str]) -> Edit:
    """Return an edit that adds an edge between nodes of any kind."""
    value: Any = Pose() if kind == "pose" else np.zeros(6)
    return lambda scene: add_edge(scene, kind, tail=Node(*tail), head=Node(*head), value=value)


def figure2() -> SceneGraph:
    """Bodies with their frames."""
    return scene_of(A="a", C="c1 c2", E="e", F="f")


def figure3() -> SceneGraph:
    """Two bodies with a frame each."""
    return scene_of(C="g", D="h")


def figure4() -> SceneGraph:
    """A chain of three bodies, and C again below D in a tree of its own."""
    scene = scene_of(A="a", B="b1 b2", C="c1 c2", D="d", F="f")
    for edit in (pose("b2", "a"), pose("b1", "b2"), pose("c1", "b1"), pose("c2", "d")):
        scene = edit(scene)
    return scene


def figure6() -> SceneGraph:
    """Return a scene with three frames of C, one with a twist relative to A and one to D."""
    scene = scene_of(A="a", C="c1 c2 c3", D="d", F="f")
    for edit in (pose("c3", "c1"), twist("c2", "D"), twist("c1", "A")):
        scene = edit(scene)
    return scene


REFUSED: list[tuple[str, Callable[[], SceneGraph], Edit, type[TmkitError], str | None, str]] = [
    ("2.1", figure2, lambda s: s.add_body("E"), SceneError, None, "a body named 'E' is already"),
    (
        "2.2 a",
        figure2,
        lambda s: s.add_frame("a", body="C"),
        SceneError,
        None,
        "a frame named 'a' is already",
    ),
    (
        "2.2 f",
        figure2,
        lambda s: s.add_frame("f", body="F"),
        SceneError,
        None,
        "a frame named 'f' is already",
    ),
    (
        "2.3",
        figure2,
        lambda s: s.add_frame("z"),
        SceneError,
        "N3",
        "has neither a parent nor a body",
    ),
    (
        "2.3 Z",
        figure2,
        lambda s: s.add_frame("z", body="Z"),
        UnknownNameError,
        None,
        "unknown body 'Z'",
    ),
    (
        "3 body to frame",
        figure3,
        edge("pose", ("body", "D"), ("frame", "g")),
        SemanticError,
        None,
        "joins two frames",
    ),
    (
        "3 frame to body",
        figure3,
        edge("pose", ("frame", "h"), ("body", "C")),
        SemanticError,
        None,
        "joins two frames",
    ),
    (
        "3 body to body",
        figure3,
        edge("pose", ("body", "D"), ("body", "C")),
        SemanticError,
        None,
        "joins two frames",
    ),
    (
        "3 to itself",
        figure3,
        edge("pose", ("frame", "h"), ("frame", "h")),
        SceneError,
        "PE1",
        "be its own parent",
    ),
    (
        "4.1",
        figure4,
        pose("b1", "b2", x=0.2),
        SceneError,
        "PE4",
        "on one body, so the pose between them cannot change",
    ),
    (
        "4.2a",
        figure4,
        pose("c2", "f"),
        SceneError,
        "PE3",
        "frame 'c2' already has parent 'd' and can have only one",
    ),
    ("4.2b", figure4, pose("a", "d"), SceneError, "PE6", "would give body 'C' two paths"),
    ("4 cycle", figure4, pose("a", "c1"), SceneError, "PE5", "itself or its descendant"),
    (
        "5 frame to frame",
        figure3,
        edge("twist", ("frame", "h"), ("frame", "g")),
        SemanticError,
        None,
        "a body and a frame",
    ),
    (
        "5 body to body",
        figure3,
        edge("twist", ("body", "D"), ("body", "C")),
        SemanticError,
        None,
        "a body and a frame",
    ),
    (
        "5 frame to body",
        figure3,
        edge("twist", ("frame", "h"), ("body", "C")),
        SemanticError,
        None,
        "a body and a frame",
    ),
    (
        "5 own body",
        figure3,
        twist("g", "C"),
        SceneError,
        "TE1",
        "relative to which it does not move",
    ),
    (
        "6.1a",
        figure6,
        twist("c2", "F"),
        SceneError,
        "TE3",
        "has a twist relative to body 'D' already",
    ),
    (
        "6.1b",
        figure6,
        twist("c3", "A"),
        SceneError,
        "TE4",
        "frame 'c1', joined to it by poses, has a path of twists",
    ),
    ("6 back", figure6, twist("a", "C"), SceneError, "TE5", "would close a cycle"),
    (
        "6 strict",
        figure6,
        twist("a", "D", strict=True),
        SceneError,
        "TE6",
        "are joined by twists already",
    ),
]
ACCEPTED: list[tuple[str, Callable[[], SceneGraph], Edit]] = [
    ("2 another body", figure2, lambda s: s.add_body("B")),
    ("2 another frame", figure2, lambda s: s.add_frame("e2", body="E")),
    ("2 convenience: below a frame, a body of its own", figure2, lambda s: s.add_frame("z", "a")),
    ("3", figure3, pose("g", "h")),
    ("4 turned round", figure4, pose("f", "c2")),
    ("4 another pose of an edge between bodies", figure4, pose("c1", "b1", x=0.7)),
    ("4 the same pose inside a body", figure4, pose("b1", "b2")),
    ("5", figure3, twist("g", "D")),
    ("6 another value", figure6, twist("c1", "A")),
    ("6 by the letter: poses join c3 to no frame with a twist from D", figure6, twist("c3", "D")),
    ("6 by the letter: A and D are joined only through C", figure6, twist("a", "D")),
    ("6 strict, but joined by nothing", figure6, twist("f", "A", strict=True)),
]


@pytest.mark.parametrize(
    ("make", "edit", "error", "rule", "words"),
    [each[1:] for each in REFUSED],
    ids=[e[0] for e in REFUSED],
)
def test_what_the_figures_cross_out(
    make: Callable[[], SceneGraph],
    edit: Edit,
    error: type[TmkitError],
    rule: str | None,
    words: str,
) -> None:
    """The edge or node is rejected, the message says the rule, and the scene is as it was."""
    scene = make()
    digest = scene.digest()
    with pytest.raises(error, match=words) as caught:
        edit(scene)
    assert caught.value.data.get("rule") == rule
    assert scene.digest() == digest


@pytest.mark.parametrize(
    ("make", "edit"), [each[1:] for each in ACCEPTED], ids=[each[0] for each in ACCEPTED]
)
def test_what_the_figures_allow(make: Callable[[], SceneGraph], edit: Edit) -> None:
    """The edge or node is accepted, and the scene is whole."""
    assert edit(make())._defects() == ""  # type: ignore[attr-defined]


def test_the_rejected_pose_of_figure_4_may_be_inverted() -> None:
    """The pose of c2 relative to f is added as that of f relative to c2."""
    scene = figure4()
    given = SemanticPose(PoseCoord("{c2}|C", "{f}|F", "[f]"), Pose([0.3, 0.2, 0.1]))
    turned = add_pose(scene, given, on_conflict="invert")
    assert turned.parent("f") == "c2"
    np.testing.assert_allclose(relate(turned, given.coord).numbers[0], [0.3, 0.2, 0.1], atol=1e-12)
    with pytest.raises(
        SceneError, match=r"its inverse PoseCoord.* fits: pass on_conflict"
    ) as caught:
        add_pose(scene, given)
    error: Any = pickle.loads(pickle.dumps(caught.value))
    assert repr(error.inverse.coord) == "PoseCoord('{f}|F', '{c2}|C', '[c2]')"
    assert error.rule == "PE3"
    assert add_pose(scene, error.inverse) == turned
    # facts are accepted in both directions
    for fact in (given, error.inverse):
        assert add_fact(scene, fact) == turned


def test_only_the_pose_of_figure_4_has_an_inverse_that_fits() -> None:
    """The errors of all other crossed edges offer none."""
    offers = []
    for name, make, edit, *_ in REFUSED:
        with pytest.raises(TmkitError) as caught:
            edit(make())
        offers += [name] * ("inverse" in caught.value.data)
    assert offers == ["4.2a"]


def test_a_constant_pose_cannot_be_set() -> None:
    """Nor by the edge turned round."""
    scene = figure4()
    for coord in (PoseCoord("{b1}|B", "{b2}|B", "[b2]"), PoseCoord("{b2}|B", "{b1}|B", "[b1]")):
        with pytest.raises(SceneError, match="on one body"):
            update_pose(scene, SemanticPose(coord, Pose([1, 0, 0])))


def test_a_frame_on_a_body_has_classes_and_no_edge() -> None:
    """A frame without a parent is a root: it has neither pose nor joint, but all else."""
    scene = SceneGraph(root=None).add_body("C").add_frame("c", body="C", classes=["movable"])
    assert scene.parent("c") is None
    assert scene.classes("c") == ("movable",)
    with pytest.raises(SceneError, match="is a root, which has no joint and no pose"):
        scene.add_frame("d", body="C", pose=Pose([1, 0, 0]))
    with scene.edit() as edit:
        edit.add_frame("d", body="C")
    assert edit.finish().body("d") == "C"
