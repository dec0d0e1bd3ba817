"""Problems without a plan: one small scene for each kind of cause, with its explanation.

The planner proves infeasibility from the PDDL alone, or by arguments for all configurations.
Otherwise the explanation contains the attempts and the bodies in the way, without a proof. In both
cases it names the bodies, the facts and the distances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY, with_block

import tmkit as tk
from tmkit.errors import TaskError
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.plans.failures import FailureKind
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult, PlanStatus


@dataclass(frozen=True)
class Case:
    """An infeasible problem and the required contents of its explanation.

    Attributes:
        scene: makes the scene.
        goal: in PDDL.
        status: how planning must end.
        words: texts that the explanation must contain.
        kind: a kind of failure of the action that failed most; None for whichever.
        in_the_way: bodies that the diagnosis must name.
        domain: whose words.
    """

    scene: Callable[[], SceneGraph]
    goal: str
    status: PlanStatus
    words: tuple[str, ...]
    kind: FailureKind | None = None
    in_the_way: tuple[str, ...] = ()
    domain: str = "blocks"


PROVED, NOT_FOUND = PlanStatus.PROVED_UNSOLVABLE, PlanStatus.NO_PLAN_WITHIN_LIMITS


def two() -> SceneGraph:
    """Return two blocks on a table of nine locations."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.2)


def with_shelf(scene: SceneGraph) -> SceneGraph:
    """Return the scene with a surface 2 m away from the arm."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    return scene.add_frame(
        "shelf", "world", pose=Pose([2.0, 0.0, -0.05]), classes=["surface"], shapes=shapes
    )


def far_block() -> SceneGraph:
    """Return a block on a surface that the arm does not reach."""
    return with_block(with_shelf(two()), "far", [2.0, 0.0, BLOCK / 2], parent="shelf")


def wide_block() -> SceneGraph:
    """Return a block that is wider than the hand opens."""
    return with_block(
        blocks_scene({"b": (1, 1)}, table=0.2), "a", [0.0, 0.0, 0.05], shape=Box([0.1] * 3)
    )


def block_in_cage() -> SceneGraph:
    """Return a block in a fixed cage, closed on all sides."""
    scene = two()
    for name, x, y in (
        ("north", 0.045, 0.0),
        ("south", -0.045, 0.0),
        ("east", 0.0, 0.045),
        ("west", 0.0, -0.045),
    ):
        half = (0.005, 0.05) if x else (0.05, 0.005)
        scene = with_box(
            scene, name, (x - half[0], y - half[1], 0.001), (x + half[0], y + half[1], 0.1)
        )
    return with_box(scene, "lid", (-0.05, -0.05, 0.101), (0.05, 0.05, 0.11))


def occupied_place() -> SceneGraph:
    """Return a table on which a fixed post stands where a block is wanted."""
    return with_box(two(), "post", (-0.04, 0.06, 0.001), (0.04, 0.14, 0.1))


def arm_in_cage() -> SceneGraph:
    """Return an arm whose hand starts between walls and over a floor that it cannot leave."""
    scene = two()
    x, y, z = scene.pose(
        "hand", relative_to="world", q=GANTRY.ready_configuration(scene)
    ).translation
    scene = with_box(scene, "cell_floor", (x - 0.2, y - 0.2, z - 0.3), (x + 0.2, y + 0.2, z - 0.29))
    for name, dx, dy in (
        ("cell_north", 0.17, 0.0),
        ("cell_south", -0.17, 0.0),
        ("cell_east", 0.0, 0.17),
    ):
        half = (0.01, 0.2) if dx else (0.2, 0.01)
        lower, upper = (
            (x + dx - half[0], y + dy - half[1], z - 0.28),
            (x + dx + half[0], y + dy + half[1], z + 0.6),
        )
        scene = with_box(scene, name, lower, upper)
    return with_box(scene, "cell_west", (x - 0.2, y - 0.18, z - 0.28), (x + 0.2, y - 0.16, z + 0.6))


def tall_blocks() -> SceneGraph:
    """Return three blocks whose tower is higher than the arm."""
    scene = blocks_scene({}, table=0.4)
    for name, x, y in (("a", 0.0, 0.0), ("b", 0.1, 0.1), ("c", -0.1, 0.1)):
        scene = with_block(scene, name, [x, y, 0.2], shape=Box([BLOCK, BLOCK, 0.4]))
    return scene


def small_area() -> SceneGraph:
    """Return a brick and an area of its kind that is smaller than the brick."""
    scene = (
        blocks_scene({"a": (0, 0)}, table=0.4)
        .set_classes("table", ["area"])
        .set_classes("a", ["movable", "red"])
    )
    shapes = [AttachedShape(Box([0.04, 0.04, 0.02]))]
    return scene.add_frame(
        "stamp", "world", pose=Pose([0.0, 0.3, 0.0]), classes=["area", "red"], shapes=shapes
    )


CASES = {
    "the goal contradicts itself": Case(
        two, "(and (on a b) (on b a))", PROVED, ("(on a b) and (on b a) exclude each other",)
    ),
    "no action brings it about": Case(two, "(on a a)", PROVED, ("no action achieves (on a a)",)),
    "the object is out of reach": Case(
        far_block,
        "(on far b)",
        NOT_FOUND,
        ("(pick-up far shelf__0__0)", "out of the arm's reach", "cm"),
        FailureKind.OUT_OF_REACH,
    ),
    "the object is wider than the hand": Case(
        wide_block,
        "(ontable a table__-1__1)",
        NOT_FOUND,
        (
            "no two opposite sides of 'a' fit the hand 'hand'",
            "(pick-up a table__0__0) cannot be carried out",
        ),
        FailureKind.NO_CHOICE,
    ),
    "an object to be stacked is wider than the hand": Case(
        wide_block,
        "(on a b)",
        PROVED,
        ("'a' has to be moved, and nothing of it fits the hand 'hand'",),
    ),
    "the place is out of reach": Case(
        lambda: with_shelf(two()),
        "(ontable a shelf__0__0)",
        NOT_FOUND,
        ("(put-down a shelf__0__0)", "out of the arm's reach", "cm"),
        FailureKind.OUT_OF_REACH,
    ),
    "the object is in a closed cage": Case(
        block_in_cage,
        "(on a b)",
        NOT_FOUND,
        (
            "Likely cause: all ",
            "grasps of 'a' collide with 'east', 'north', 'south'",
            "which never move",
        ),
        FailureKind.COLLISION,
        ("north",),
    ),
    "the object is under a fixed lid": Case(
        lambda: with_box(two(), "lid", (-0.05, -0.05, 0.08), (0.05, 0.05, 0.1)),
        "(on a b)",
        NOT_FOUND,
        ("grasps of 'a' collide with 'lid', which never moves", "the open hand alone"),
        FailureKind.COLLISION,
        ("lid",),
    ),
    "the place is taken by what does not move": Case(
        occupied_place,
        "(ontable a table__0__1)",
        NOT_FOUND,
        ("(put-down a table__0__1)", "'post'"),
        FailureKind.COLLISION,
        ("post",),
    ),
    "the arm cannot leave its start": Case(
        arm_in_cage,
        "(on a b)",
        NOT_FOUND,
        (
            "Likely cause: the start configuration is enclosed",
            "'cell_east'",
            "'cell_north'",
            "transit",
        ),
    ),
    "the tower is higher than the arm": Case(
        tall_blocks,
        "(and (on a b) (on b c))",
        PROVED,
        (
            "'a' would stand at least 0.79",
            "the hand 'hand' would be at 0.74 m",
            "never gets higher than 0.68 m",
        ),
    ),
    "the area is smaller than the object": Case(
        small_area,
        "(sorted a)",
        NOT_FOUND,
        ("'a' is wider than area 'stamp'", "proved that (put a stamp) cannot be carried out"),
        FailureKind.NO_CHOICE,
        domain="sorting",
    ),
}


def answer(case: Case) -> PlanResult:
    """Return the planning result."""
    return tk.plan(
        case.scene(),
        domain=case.domain,
        goal=case.goal,
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=2),
    )


@pytest.mark.parametrize("name", list(CASES))
def test_the_answer_says_why(name: str) -> None:
    """The result has no plan, the right status, and an explanation that names the cause."""
    case = CASES[name]
    result = answer(case)
    assert result.plan is None
    assert result.status is case.status, result.explanation
    for words in case.words:
        assert words in result.explanation
    if case.status is NOT_FOUND:
        assert "Infeasibility is not proven." in result.explanation
    if case.kind is not None:
        assert case.kind in dict(result.diagnosis.actions[0].kinds)
    named = {body.frame for body in result.diagnosis.in_the_way}
    assert set(case.in_the_way) <= named


def test_the_distance_beyond_reach_is_a_number() -> None:
    """The excess of an unreachable pose is stated, and is a lower bound."""
    result = answer(CASES["the object is out of reach"])
    (action,) = (action for action in result.diagnosis.actions if "far" in action.action)
    assert 0.0 < action.excess < float(np.hypot(2.0, 0.0))


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("(on a bb)", "unknown .*'bb'; did you mean 'b'"),
        ("(in a b)", "unknown predicate 'in'.*did you mean 'on'"),
        ("(on a)", "'on' takes 2|on.*expects 2|2 arguments"),
        ("(on a table__0__0)", "table__0__0.*location|location.*block"),
    ],
)
def test_a_goal_about_what_is_not_there_is_refused(goal: str, message: str) -> None:
    """Errors for unknown names and wrong values or types suggest the nearest name."""
    with pytest.raises(TaskError, match=message):
        tk.plan(two(), goal=goal, robot=GANTRY)
