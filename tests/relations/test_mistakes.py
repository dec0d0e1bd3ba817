"""Mistakes that newcomers make, each of which is told what to do."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tmkit as tk
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import (
    Fixed,
    Free,
    Joint,
    SceneGraph,
    add_edge,
    add_pose,
    add_twist,
    relate,
    update_pose,
)
from tmkit.graph.semantic_edges.edges import Node, update_twist
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
    apply,
    declares,
    from_dict,
)
from tmkit.relations.representations import EulerAngles, HomogeneousMatrix, TwistVector
from tmkit.relations.semantics import PositionSemantics

MATRIX = tk.Pose.from_rpy([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]).as_matrix()
POSE = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), MATRIX)
TWIST = SemanticTwist(TwistCoord("g|C", "D", "[h]"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
AT = PositionCoord("e|C", "g|C", "[h]")
Anything: Any = None


def scene(joint: Joint = Fixed()) -> SceneGraph:  # noqa: B008 - a value
    """Return three bodies, two of them joined."""
    made = SceneGraph(root=None).add_body("D").add_body("C").add_body("E")
    made = made.add_root("h", body="D").add_root("g", body="C").add_root("e", body="E")
    return made.attach("g", "h", pose=tk.Pose([1.0, 0.0, 0.0]), joint=joint)


@pytest.mark.parametrize(
    ("mistake", "advice"),
    [
        (lambda: PoseCoord("{g}|C", "{h}|D", "h"), r"written as \[r\] \('h'\); write '\[h\]'"),
        (lambda: PoseCoord("(g)|C", "{h}|D", "[h]"), r"write '\{g\}\|C'"),
        (lambda: PoseCoord("g|C", "{h}|D", "[h]"), r"write '\{g\}\|C'"),
        (lambda: PositionCoord("{g}|C", "h|D", "[h]"), r"write 'g\|C'"),
        (lambda: PositionCoord("g", "h|D", "[h]"), r"add the body to which it is fixed: 'g\|Body'"),
        (lambda: TwistCoord("g|C", "h|D", "[h]"), "write 'D'"),
        (lambda: OrientationCoord("a|C", "[b]|D", "[b]"), r"write '\[a\]\|C'"),
        (lambda: PositionCoord("e | C", "h|D", "[h]"), r"write 'e\|C'"),
        (lambda: PositionCoord(1, "h|D", "[h]"), "give it as text"),  # type: ignore[arg-type]
        (lambda: TwistCoord("g|C", "D", None), "give it as text"),  # type: ignore[arg-type]
        (
            lambda: TWIST.coord.replace(ref_body="X|Y"),
            "ref_body is a name, without spaces around it and",
        ),
        (
            lambda: SemanticPose(PoseSemantics("{g}|C", "{h}|D"), MATRIX),
            r"add .* PoseCoord\('\{g\}\|C', '\{h\}\|D', '",
        ),
        (
            lambda: SemanticPosition(PositionSemantics("e|C", "f|D"), [1, 2, 3]),
            "add the frame of expression",
        ),
        (lambda: SemanticPose("{g}|C", MATRIX), r"make it first: PoseCoord\("),
        (lambda: SemanticPose(MATRIX, POSE.coord), r"make it first: PoseCoord\("),  # type: ignore[arg-type]
        (lambda: SemanticPose(AT, MATRIX), "use a SemanticPosition"),
        (
            lambda: SemanticPose(POSE.coord, [0, 0, 0, 1, 0, 0, 0]),
            r"or use a tmkit.Pose, VectorAndQuaternion\(",
        ),
        (lambda: SemanticPosition(AT, np.zeros((3, 1))), "or use a representation of a Position"),
        (lambda: SemanticPosition(AT, ["1", "2", "3"]), r"it has numbers of shape \(3,\)"),
        (
            lambda: SemanticOrientation(POSE.orientation.coord, [1, 1, 0, 0]),
            r"its norm is 1 \(norm 1.41",
        ),
        (
            lambda: SemanticOrientation(POSE.orientation.coord, np.diag([1, 1, -1.0])),
            "it is left-handed",
        ),
        (lambda: EulerAngles([0.1, 0, 0], "rpy"), "as ZYX or xyz"),
        (
            lambda: POSE.compose(POSE.coord),
            r"add numbers: SemanticPose\(coordinates, numbers\), or use apply",
        ),
        (lambda: POSE.compose(MATRIX), r"add coordinates: SemanticPose\(PoseCoord\("),
        (
            lambda: POSE.compose(SemanticPose(PoseCoord("{x}|X", "{y}|Y", "[y]"), MATRIX)),
            "compose with the relation between them first, or invert one with inverse2",
        ),
        (
            lambda: POSE.inverse(),
            r"inverse\(PoseCoord\(.*use inverse2, which expresses the result in its own",
        ),
        (
            lambda: TWIST.change_point([1, 2, 3]),
            r"add coordinates: SemanticPosition\(PositionCoord\(",
        ),
        (lambda: TWIST.change_coordinate_frame("g"), r"SemanticOrientation\(OrientationCoord\("),
        (
            lambda: TWIST.linear.change_point(SemanticPosition(AT, [1, 2, 3]), AT),
            "add numbers: SemanticPosition",
        ),
        (
            lambda: SemanticPose.of(POSE.position, np.eye(3)),
            r"SemanticOrientation\(OrientationCoord\(",
        ),
        (
            lambda: POSE.change_coordinate_frame(
                SemanticOrientation(OrientationCoord("[h]|D", "[r]|R", "[r]"), np.eye(3))
            ),
            r"use a representation that allows it \(FiniteScrew or VectorAndRotationVector\)",
        ),
        (lambda: TWIST.linear.integrate("1"), r"time: it has numbers of shape \(\) \('1'\)"),
        (lambda: POSE.in_representation(HomogeneousMatrix(MATRIX)), "is given by its class"),
        (
            lambda: POSE.in_representation("HomogeneousMatrix"),
            r"is given by its class \('HomogeneousMatrix'\)",
        ),
        (
            lambda: POSE.in_representation(TwistVector),
            r"a representation of a Pose is given by its class",
        ),
        (
            lambda: apply("changePoint", TWIST, AT),
            "add numbers to all operands, or pass .coord of each",
        ),
        (lambda: apply("compose"), r"there is no compose of these operands \(nothing\)"),
        (
            lambda: from_dict([1]),
            "a relation in JSON is an object with the name of the relation in 'rel'",
        ),
        (lambda: from_dict({"rel": "Force", "body": 1, "ref_body": "D"}), "body is a name"),
        (lambda: relate(scene(), PoseSemantics("{g}|C", "{h}|D")), r"such as PoseCoord\("),
        (lambda: relate(scene(), "{g}|C"), r"such as PoseCoord\("),
        (
            lambda: relate(scene(), PoseCoord("{e}|E", "{h}|D", "[h]")),
            "join the trees with add_pose",
        ),
        (
            lambda: relate(scene(joint=Free()), TWIST.coord),
            "add the missing twist with add_twist, also if it is zero; or pass qd",
        ),
        (
            lambda: add_pose(scene(), POSE.coord),
            r"it takes a SemanticPose \(PoseCoord.*SemanticPose\(PoseCoord\(...\)",
        ),
        (
            lambda: add_pose(scene(), tk.Pose()),
            r"add the semantics of the numbers: SemanticPose\(PoseCoord",
        ),
        (
            lambda: add_twist(scene(), np.zeros(6)),
            r"add the semantics of the numbers: SemanticTwist\(TwistCoord",
        ),
        (
            lambda: add_edge(scene(), "pose", tail="h", head="e", value=tk.Pose()),
            r"write Node\('frame', 'h'\) or Node\('body', 'h'\)",
        ),
    ],
)
def test_meaningless_things_are_told_what_to_do(mistake: Callable[[], Any], advice: str) -> None:
    """The message of each mistake ends in what would be right."""
    with pytest.raises(SemanticError, match=advice):
        mistake()


@pytest.mark.parametrize(
    ("mistake", "kind", "advice"),
    [
        (
            lambda: TWIST.coord.replace(refbody="X"),
            TypeError,
            "unexpected keyword argument 'refbody'",
        ),
        (lambda: TWIST @ TWIST, TypeError, r"a\.compose\(b\) composes two of one kind"),
        (lambda: POSE @ MATRIX, TypeError, r"a\.compose\(b\) composes two of one kind"),
        (
            lambda: POSE @ POSE,
            SemanticError,
            "the reference point of one is the point of the other",
        ),
        (lambda: POSE @ POSE.inverse2(), SemanticError, "only one order of the operands chains"),
        (lambda: POSE * 2, TypeError, r"is not added, subtracted or multiplied"),
        (lambda: 2 * POSE, TypeError, r"is not added, subtracted or multiplied"),
        (lambda: TWIST + TWIST, TypeError, r"a\.compose\(b\)"),
        (lambda: -TWIST, TypeError, r"a\.inverse\(\) inverts one"),
        (
            lambda: np.array(POSE),
            TypeError,
            r"is not an array: its numbers are in \.representation and \.numbers",
        ),
        (
            lambda: POSE.matrix,
            AttributeError,
            r"its numbers are in \.representation as they were given",
        ),
        (lambda: POSE.body, AttributeError, r"use \.coord\.body"),
        (
            lambda: TWIST.inverse2(),
            AttributeError,
            r"no inverse2 of relation Twist; a SemanticTwist has angular, ch",
        ),
        (
            lambda: declares(x="{g}|C"),
            TypeError,
            r"'x' is declared by coordinates or semantics, such as PoseCoord",
        ),
        (lambda: declares(x=POSE.coord)(lambda y: y), TypeError, "has no argument 'x' to declare"),
        (
            lambda: update_pose(scene(), SemanticPose(PoseCoord("{e}|E", "{h}|D", "[h]"), MATRIX)),
            SceneError,
            "with add_pose",
        ),
        (lambda: update_twist(scene(), TWIST), SceneError, "it has none; add it with add_twist"),
        (
            lambda: add_pose(scene(), POSE, on_conflict="inverse"),
            UnknownNameError,
            "did you mean 'invert'",
        ),
        (
            lambda: add_twist(scene(), TWIST, on_conflict="inverse"),
            UnknownNameError,
            "did you mean 'invert'",
        ),
        (
            lambda: add_edge(
                scene(), "pose", tail=Node("frames", "h"), head=Node("frame", "e"), value=tk.Pose()
            ),
            UnknownNameError,
            "unknown kind of node 'frames'; did you mean 'frame'",
        ),
        (lambda: apply("changepont", TWIST), UnknownNameError, "did you mean 'change_point'"),
    ],
)
def test_misuse_is_told_what_to_do(
    mistake: Callable[[], Any], kind: type[Exception], advice: str
) -> None:
    """Operators, missing attributes and misspelt words say what there is instead."""
    with pytest.raises(kind, match=advice):
        mistake()


def test_relations_are_equal_when_words_form_and_numbers_are() -> None:
    """Equality is exact and survives pickling."""
    again = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), MATRIX)
    assert again == POSE
    assert hash(again) == hash(POSE)
    assert pickle.loads(pickle.dumps(POSE)) == POSE
    assert SemanticPose(PoseCoord("{g}|C", "{k}|D", "[k]"), MATRIX) != POSE
    assert SemanticPose(POSE.coord, tk.Pose.from_matrix(MATRIX)) != POSE
    assert SemanticPose(POSE.coord, np.eye(4)) != POSE
    assert MATRIX.tolist() != POSE
