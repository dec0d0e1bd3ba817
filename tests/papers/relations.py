"""Numbers of the papers on geometric relations, and on the scene graph of poses and twists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from papers.rows import ROOT, Row, example, largest_difference
from scipy.linalg import expm
from support.replay import replay_example, replay_graph_script

from tmkit.graph import relate
from tmkit.relations import (
    AngularVelocityCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticPose,
    SemanticTwist,
    TwistCoord,
    representations,
)
from tmkit.relations.representations import HomogeneousMatrix
from tmkit.spatial import Pose

__all__ = ["rows_of_scene_graph", "rows_of_semantics"]

POSITION = PositionCoord("e|C", "f|D", "[r]")
ORIENTATION = OrientationCoord("[a]|C", "[b]|D", "[r]")
POSE = PoseCoord("(e,[a])|C", "(f,[b])|D", "[r]")
LINEAR_VELOCITY = LinearVelocityCoord("e|C", "D", "[r]")
ANGULAR_VELOCITY = AngularVelocityCoord("C", "D", "[r]")
TWIST = TwistCoord("e|C", "D", "[r]")

CONSTRAINTS = (
    (representations.PositionVector([1.0, 2.0, 3.0]), POSITION, 0),
    (representations.AxisAngle([0.0, 0.0, 1.0], 0.5), ORIENTATION, 0),
    (representations.RotationVector([0.1, 0.2, 0.3]), ORIENTATION, 0),
    (representations.RotationMatrix(np.eye(3)), ORIENTATION, 1),
    (HomogeneousMatrix(np.eye(4)), POSE, 3),
    (representations.FiniteScrew([0.0, 0.0, 1.0], [0.3, 0.1, 0.0], 0.5, 0.1), POSE, 2),
    (representations.LinearVelocityVector([1.0, 2.0, 3.0]), LINEAR_VELOCITY, 0),
    (representations.AngularVelocityVector([1.0, 2.0, 3.0]), ANGULAR_VELOCITY, 0),
    (representations.TwistVector([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), TWIST, 0),
    (
        representations.InstantaneousScrewAxis(
            [0.0, 0.0, 1.0], [0.3, 0.1, 0.0], about=0.5, along=0.1
        ),
        TWIST,
        1,
    ),
)
"""Representations, coordinates of which no two names are equal, and constraints in the paper."""


def cases() -> dict[str, Any]:
    """Return the recorded cases of both papers."""
    text = (ROOT / "tests" / "data" / "semantics.json").read_text(encoding="utf-8")
    recorded: dict[str, Any] = json.loads(text)
    return recorded


# --- scene graph of poses and twists


def rows_of_scene_graph() -> Iterator[Row]:
    """Yield the rows of the scene graph of poses and twists."""
    yield rules()
    yield from spray_painting()


def rules() -> Row:
    """Return the row of the edges and nodes of figures 2 to 6."""
    scripts = cases()["accept_reject_scene_graph"]
    expected = [[step["accept"] for step in script["ops"]] for script in scripts]
    actual = [[step["accept"] for step in replay_graph_script(script)] for script in scripts]
    steps = [accepted for script in expected for accepted in script]
    return Row(
        "recorded steps that build Figs. 2 to 6, or that they cross out",
        f"{sum(steps)} accepted, {len(steps) - sum(steps)} rejected",
        f"{sum(map(sum, actual))} accepted, {len(steps) - sum(map(sum, actual))} rejected",
        actual == expected,
        "each rejection names its rule",
    )


def spray_painting() -> Iterator[Row]:
    """Yield the rows of listings 1 and 2."""
    program = example("spray_painting")
    scene = program["build"]()
    spot = relate(scene, PoseCoord("{f1}|O1", "{o1}|O1", "[o1]"), representation=HomogeneousMatrix)
    turn = np.pi / 4
    expected = np.eye(4)
    expected[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    expected[:3, 3] = [0.02, 0.0, 0.2]
    error = largest_difference(spot.representation.matrix, expected)
    yield Row(
        "pose of {f1} relative to {o1} (lst. 1)",
        "45° about z, (0.02, 0, 0.2) m",
        f"45° about z, {numbers(spot.representation.matrix[:3, 3])} m",
        error < 1e-12,
        f"{error:.0e} from the matrix",
    )
    pose, twist = program["by_hand"]()
    pose_of_spot = relate(
        scene, PoseCoord("{f1}|O1", "{o2}|O2", "[o2]"), representation=HomogeneousMatrix
    )
    error = largest_difference(pose_of_spot.representation.matrix, pose)
    yield Row(
        "pose of {f1} relative to the gun (lst. 2)",
        "query, without a number",
        f"{numbers(pose_of_spot.representation.matrix[:3, 3])} m",
        error < 1e-12,
        f"{error:.0e} from a product of matrices",
    )
    velocity = relate(scene, TwistCoord("f1|O1", "O2", "[o2]"))
    error = largest_difference(np.concatenate(velocity.numbers), twist)
    yield Row(
        "its twist (lst. 2)",
        "query, without a number",
        f"{numbers(velocity.linear.numbers[0])} m/s, {numbers(velocity.angular.numbers[0])} rad/s",
        error < 1e-12,
        f"{error:.0e} from cross products",
    )


# --- geometric relations between rigid bodies


def rows_of_semantics() -> Iterator[Row]:
    """Yield the rows of geometric relations."""
    yield two_robots()
    yield from integration()
    yield constraints()


def two_robots() -> Row:
    """Return the row of equations 1 to 12: six operations, and six with matrices."""
    recorded = cases()["two_robots"]
    steps = replay_example(recorded)
    error = max(
        largest_difference(step["homogeneous"], recorded_step["homogeneous"])
        for step, recorded_step in zip(steps, recorded["steps"], strict=True)
    )
    has_semantics = [step["semantics"] for step in steps] == [
        step["semantics"] for step in recorded["steps"]
    ]
    return Row(
        "pose of the second tool (eqs. 1 to 12)",
        "6 semantic operations are 6 matrix operations",
        f"{len(steps)} operations with the semantics of the paper",
        has_semantics and error < 1e-9,
        f"{error:.0e} from products of matrices",
    )


def integration() -> Iterator[Row]:
    """Yield the rows of the integration of three constant twists."""
    six, duration = np.array([0.1, 0.4, -0.2, 0.3, -0.5, 0.2]), 1.7
    start = Pose.from_rpy([0.5, -0.3, 0.8], [0.7, -0.2, 0.4]).as_matrix()
    step = expm(duration * twist_matrix(six))
    for name, point, body, rule, expected in (
        ("body-fixed", "o1", "B1", "T exp(t)", start @ step),
        ("screw", "b1", "O1", "exp(t) T", step @ start),
    ):
        pose = SemanticPose(PoseCoord(f"{{o1}}|{body}", f"{{b1}}|{body}", "[b1]"), start)
        change = SemanticTwist(TwistCoord(f"{point}|O1", "B1", f"[{point}]"), six)
        change = change.integrate(duration)
        error = largest_difference(change.compose(pose).representation.matrix, expected)
        yield Row(
            f"integral of a constant {name} twist",
            rule,
            rule,
            error < 1e-12,
            f"{error:.0e} from scipy's matrix exponential",
        )
    try:
        SemanticTwist(TwistCoord("o1|O1", "B1", "[b1]"), six).integrate(duration)
        answer = "accepted"
    except SemanticError:
        answer = "rejected"
    yield Row(
        "integral of a constant pose twist", "not allowed", answer, answer == "rejected", "by rule"
    )


def constraints() -> Row:
    """Return the row of the number of constraints that representations impose."""
    counts = [len(held.find_violations(coord)) for held, coord, _ in CONSTRAINTS]
    expected = [count for _, _, count in CONSTRAINTS]
    return Row(
        "constraints of ten representations",
        "rotation matrix 1, homogeneous matrix 3, screw axis 2, instantaneous screw axis 1",
        ", ".join(
            f"{type(held).__name__} {count}"
            for (held, _, _), count in zip(CONSTRAINTS, counts, strict=True)
            if count
        ),
        counts == expected,
        "others 0; violations by coordinates of which no two names are equal",
    )


def twist_matrix(six: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (4, 4) matrix of a twist of which the linear part is first."""
    x, y, z = six[3:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
    matrix[:3, 3] = six[:3]
    return matrix


def numbers(values: ArrayLike) -> str:
    """Return three numbers as text."""
    return f"({', '.join(f'{value:.4g}' for value in np.asarray(values) + 0.0)})"
