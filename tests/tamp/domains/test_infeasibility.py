"""Proofs of infeasibility from geometry: immediate, and never for a solvable problem."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import blocks_scene
from support.effort import scaled_examples
from support.gantry import BLOCK, GANTRY, with_block
from support.kitchen import BLOCK_SIZE, ROBOT, kitchen, stove_goal

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Cylinder, Inertia, SceneGraph, Shape, Sphere
from tmkit.manipulation import Placement, PlacementRequest
from tmkit.pddl import Fact
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult, PlanStatus, load_planning_domain
from tmkit.tamp.domains.infeasibility import (
    necessary_facts,
    prove_crowded,
    prove_oversized,
    prove_too_high,
    prove_ungraspable,
)

ARM = load_manipulator(ROBOT)


def shelf(sizes: list[tuple[float, float]], room: tuple[float, float]) -> SceneGraph:
    """Return the kitchen with boxes of given length and width, and a region for them."""
    return with_shelf(tk.load_scene("iiwa_kitchen"), sizes, room)


def with_shelf(
    scene: SceneGraph, sizes: list[tuple[float, float]], room: tuple[float, float]
) -> SceneGraph:
    """Return a scene with a floor, these boxes on it, and a separate region for them."""
    scene = scene.add_frame(
        "shelf",
        "world",
        pose=Pose([0.0, 0.5, 0.01]),
        classes=["region"],
        shapes=[AttachedShape(Box([*room, 0.02]))],
    )
    for number, size in enumerate(sizes):
        pose = Pose([-0.6 + 0.15 * number, -0.5, 0.075])
        shapes = [AttachedShape(Box([*size, 0.1]))]
        scene = scene.add_frame(
            f"box{number}", "floor", pose=pose, classes=["movable"], shapes=shapes
        )
    return scene


def on_shelf(boxes: int) -> str:
    """Return the goal: the first boxes on the shelf."""
    return f"(and {' '.join(f'(on box{number} shelf)' for number in range(boxes))})"


def plan_in(scene: SceneGraph, goal: str) -> PlanResult:
    """Return the planning result."""
    return tk.plan(
        scene, domain="kitchen", goal=goal, robot=ROBOT, options=tk.PlanningOptions(suggest=False)
    )


def test_three_blocks_on_a_shelf_for_two_are_refused_by_area() -> None:
    """Three blocks of 0.1 m do not fit in 0.2 m x 0.1 m, which is proved without a search."""
    scene = shelf([(0.1, 0.1)] * 3, (0.2, 0.1))
    result = plan_in(scene, on_shelf(3))
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert (
        "'box0', 'box1', 'box2' do not fit upright on 'shelf' together: their footprints have 300"
        " cm^2, and it has 200 cm^2" in result.explanation
    )
    assert result.statistics.skeletons == 0
    assert result.diagnosis.replans == 0


def test_five_blocks_are_refused_by_the_circles_inside_them_where_their_area_would_fit() -> None:
    """Five blocks of 5 cm cover 125 of 144 cm^2, and still do not fit at any turn."""
    scene = shelf([(0.05, 0.05)] * 5, (0.12, 0.12))
    result = plan_in(scene, on_shelf(5))
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert (
        "of 5 circles of 4.998 cm inside their footprints, two have their centres at most"
        in result.explanation
    )
    assert result.statistics.skeletons == 0


@settings(max_examples=scaled_examples(0.3), deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.floats(0.03, 0.1),
    st.floats(0.0, 0.02),
    st.integers(0, 2**32 - 1),
)
def test_what_stands_side_by_side_is_never_refused(
    rows: int, columns: int, side: float, gap: float, seed: int
) -> None:
    """Blocks or cylinders that fit in rows are not rejected, also with smaller ones among them."""
    rng = np.random.default_rng(seed)
    count = rows * columns
    sizes = [
        (side, side) if rng.uniform() < 0.7 else (side * 0.6, side * 0.8) for _ in range(count)
    ]
    scene = shelf(sizes, (rows * (side + gap), columns * (side + gap)))
    facts = {f"box{k}": Fact.of("on", f"box{k}", "shelf") for k in range(count)}
    assert prove_crowded(scene, "shelf", objects=facts, overhang=2e-4) is None


def test_what_is_heavier_than_the_payload_is_refused_by_its_mass() -> None:
    """A load of 25 kg exceeds a payload of 14 kg for any grasp; a lighter object does not."""
    scene = shelf([(0.1, 0.1)], (0.2, 0.2))
    result = plan_in(scene.set_inertia("box0", Inertia(25.0)), on_shelf(1))
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert (
        "'box0' has to be moved, and its mass is 25 kg, and arm 'iiwa_flange' carries 14 kg"
        in result.explanation
    )
    fact = Fact.of("on", "box0", "shelf")
    assert (
        prove_ungraspable(scene.set_inertia("box0", Inertia(13.9)), "box0", fact=fact, robot=ARM)
        is None
    )


def test_a_panda_does_not_lift_six_kilograms() -> None:
    """The data sheet states 3 kg; the validator rejects a plan after the object became heavier."""
    scene = blocks_of_panda()
    light = tk.plan(
        scene.set_inertia("a", Inertia(0.1)),
        domain="blocks",
        goal="(on a b)",
        options=tk.PlanningOptions(suggest=False),
    )
    assert light.plan is not None
    heavy = replace(light.plan, scene=light.plan.scene.set_inertia("a", Inertia(6.0)))
    assert any(
        "6 kg, and arm 'panda' carries 3 kg" in str(fault)
        for fault in tk.validate_plan(heavy).problems
    )


def blocks_of_panda() -> SceneGraph:
    """Return a table with a Panda and two blocks."""
    return tk.load_scene("panda_table", "blocks2")


def test_two_blocks_on_a_shelf_for_two_are_planned() -> None:
    """Objects that just fit are not refuted."""
    result = plan_in(shelf([(0.1, 0.1)] * 2, (0.21, 0.105)), on_shelf(2))
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid


def test_what_is_longer_than_its_region_is_refused() -> None:
    """A bar that is longer than the diagonal allows is rejected although its area would fit."""
    result = plan_in(shelf([(0.4, 0.05)], (0.25, 0.25)), on_shelf(1))
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert (
        "'box0' does not fit upright on 'shelf': it is 40 x 5 cm wide and long, and that is 25 x"
        " 25 cm" in result.explanation
    )


def test_what_the_hand_cannot_hold_is_refused_only_when_it_has_to_move() -> None:
    """A box narrower than the cup cannot be moved; if it may stay, there is no proof."""
    scene = shelf([(0.02, 0.02)], (0.2, 0.2)).set_shapes(
        "box0", [AttachedShape(Box([0.02, 0.02, 0.02]))]
    )
    scene = scene.reparent("box0", "floor", pose=Pose([-0.6, -0.5, 0.035]))
    result = plan_in(scene, on_shelf(1))
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert (
        "'box0' has to be moved, and nothing of it fits the cup 'vacuum_pad'" in result.explanation
    )
    assert plan_in(scene, "(on box0 floor)").is_solved
    fact = Fact.of("on", "box0", "shelf")
    refuted = prove_ungraspable(scene, "box0", fact=fact, robot=ARM)
    assert refuted is not None
    assert (refuted.facts, refuted.frames) == ((fact,), ("box0", "vacuum_pad"))


def test_goals_for_all_are_counted_too() -> None:
    """A quantified goal is unfolded; negations and disjunctions are not counted."""
    scene = shelf([(0.1, 0.1)] * 3, (0.2, 0.1))
    assert (
        plan_in(scene, "(forall (?x - item) (on ?x shelf))").status is PlanStatus.PROVED_UNSOLVABLE
    )
    domain = load_planning_domain("kitchen", robot=ARM)

    def facts(goal: str) -> list[str]:
        problem = domain.problem(scene, scene.zero_configuration(), goal)
        return [str(fact) for fact in necessary_facts(problem)]

    assert facts("(forall (?x - item ?r - region) (on ?x ?r))")[:2] == [
        "(on box0 floor)",
        "(on box0 stove)",
    ]
    assert facts("(and (clean box0) (and (cooked box1) (clean box0)))") == [
        "(clean box0)",
        "(cooked box1)",
    ]
    assert facts("(or (clean box0) (clean box1))") == []
    assert facts("(and (not (clean box0)) (exists (?x - item) (clean ?x)))") == []


def test_cooking_needs_a_stove_that_is_large_enough() -> None:
    """An object that fits on no stove cannot be cooked, unless it is cooked already."""
    scene = shelf([(0.4, 0.05)], (0.6, 0.6))
    result = plan_in(scene, "(cooked box0)")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "'box0' does not fit upright on 'stove'" in result.explanation
    assert plan_in(scene.set_classes("box0", ["movable", "cooked"]), "(cooked box0)").is_solved


def test_full_stoves_are_possible() -> None:
    """Sixteen blocks have less area than the stove, and more than seventeen have more."""
    scene = kitchen(1)
    facts = {}
    for number in range(18):
        name = f"extra{number}"
        shapes = [AttachedShape(Box(BLOCK_SIZE))]
        scene = scene.add_frame(
            name, "floor", pose=Pose([1.0, 1.0, 0.125]), classes=["movable"], shapes=shapes
        )
        facts[name] = Fact.of("on", name, "stove")
    first = dict(list(facts.items())[:16])
    assert prove_crowded(scene, "stove", objects=first, overhang=1e-3) is None
    refuted = prove_crowded(scene, "stove", objects=facts, overhang=1e-3)
    assert refuted is not None
    assert set(refuted.facts) == set(facts.values())
    assert plan_in(kitchen(1), stove_goal(1)).is_solved


def test_round_things_need_less_and_unknown_shapes_nothing() -> None:
    """A cylinder has the area of its circle; lying or leaning ones are not counted."""
    scene, facts = shelf([(0.1, 0.1)] * 3, (0.2, 0.125)), {}
    for number in range(3):
        name = f"box{number}"
        scene = scene.set_shapes(name, [AttachedShape(Cylinder(0.05, 0.1))])
        facts[name] = Fact.of("on", name, "shelf")
    # 236 of 250 cm^2, although the boxes around them have 300
    refuted = prove_crowded(scene, "shelf", objects=facts)
    assert refuted is not None
    assert "of 3 circles" in refuted.cause
    smaller = scene.set_shapes("shelf", [AttachedShape(Box([0.2, 0.115, 0.02]))])
    assert prove_crowded(smaller, "shelf", objects=facts) is not None
    lying = smaller.set_shapes(
        "box0",
        [
            AttachedShape(
                Cylinder(0.05, 0.1), pose=Pose.from_rpy([0, 0, 0], [math.pi / 2, 0.0, 0.0])
            )
        ],
    )
    assert prove_crowded(lying, "shelf", objects=facts) is None
    leaning = smaller.reparent(
        "box0", "shelf", pose=Pose.from_rpy([0.0, 0.0, 0.06], [0.04, 0.0, 0.0])
    )
    assert prove_crowded(leaning, "shelf", objects=facts) is None


def test_things_that_may_overlap_are_not_counted() -> None:
    """Objects that may overlap in the scene prove nothing by their areas."""
    scene = shelf([(0.1, 0.1)] * 3, (0.2, 0.1))
    facts = {f"box{number}": Fact.of("on", f"box{number}", "shelf") for number in range(3)}
    assert prove_crowded(scene, "shelf", objects=facts) is not None
    assert prove_crowded(scene.allow_collision("box0", "box1"), "shelf", objects=facts) is None


sides = st.floats(0.02, 0.4)


@given(object=st.tuples(sides, sides), room=st.tuples(sides, sides))
@settings(max_examples=scaled_examples(0.6), deadline=None)
def test_the_condition_for_rectangles_agrees_with_turning_them(
    object: tuple[float, float], room: tuple[float, float]
) -> None:
    """A rejected object fits at no turn; one that fits at some turn is not rejected."""
    scene = with_shelf(SceneGraph().add_frame("floor", "world"), [object], room)
    refuted = prove_oversized(scene, "shelf", object="box0", fact=Fact.of("on", "box0", "shelf"))
    turns = np.linspace(0.0, math.pi, 721)
    cosines, sines = np.abs(np.cos(turns)), np.abs(np.sin(turns))
    fits = (object[0] * cosines + object[1] * sines <= room[0]) & (
        object[0] * sines + object[1] * cosines <= room[1]
    )
    if np.any(fits):
        assert refuted is None
    smaller = [side - 5e-3 for side in object]
    almost = (smaller[0] * cosines + smaller[1] * sines <= room[0]) & (
        smaller[0] * sines + smaller[1] * cosines <= room[1]
    )
    if not np.any(almost):
        assert refuted is not None


@pytest.mark.parametrize("boxes", [1, 2, 3])
def test_refuted_goals_name_only_what_contradicts(boxes: int) -> None:
    """The frames of a refutation are those that are wanted on the region, and the region."""
    scene = shelf([(0.1, 0.1)] * 4, (0.09, 0.1))
    facts = {f"box{number}": Fact.of("on", f"box{number}", "shelf") for number in range(boxes)}
    refuted = prove_crowded(scene, "shelf", objects=facts)
    assert refuted is not None
    assert refuted.frames == (*facts, "shelf")


# --- height


def towers(height: float) -> SceneGraph:
    """Return three blocks of a height beside each other."""
    scene = blocks_scene({}, table=0.4)
    for name, x, y in (("a", 0.0, 0.0), ("b", 0.1, 0.1), ("c", -0.1, 0.1)):
        scene = with_block(scene, name, [x, y, height / 2], shape=Box([BLOCK, BLOCK, height]))
    return scene


@pytest.mark.parametrize("height", [0.15, 0.2, 0.21, 0.25, 0.36, 0.38, 0.45])
def test_towers_are_refuted_only_when_the_hand_does_not_get_so_high(height: float) -> None:
    """A feasible tower is never refuted; one beyond the reach of the hand is."""
    scene, goal = towers(height), "(and (on a b) (on b c))"
    domain = load_planning_domain("blocks", robot=GANTRY)
    facts = necessary_facts(domain.problem(scene, scene.zero_configuration(), goal))
    proofs = list(domain.semantics.infeasibilities(facts, scene))
    assert len(proofs) == (height > 0.37)
    if height <= 0.2:
        assert tk.plan(scene, goal=goal, robot=GANTRY).is_solved
    if proofs:
        assert "'a' would stand at least" in proofs[0].cause
        assert proofs[0].frames == ("a", "hand")


def test_a_tower_that_stands_already_is_no_proof() -> None:
    """Blocks that need no move prove nothing at any height, nor do lower blocks."""
    object, fact = "a", Fact.of("on", "a", "b")
    scene = towers(0.25)
    assert prove_too_high(scene, object, bottom=0.1, fact=fact, robot=GANTRY) is None
    assert prove_too_high(scene, object, bottom=0.75, fact=fact, robot=GANTRY) is not None
    stacked = scene.reparent("a", "b", pose=Pose([0.0, 0.0, 0.25]))
    domain = load_planning_domain("blocks", robot=GANTRY)
    facts = [Fact.of("on", "a", "b")]
    assert not list(domain.semantics.infeasibilities(facts, stacked))


# --- no proof


@pytest.mark.parametrize(
    "shape",
    [
        Cylinder(0.1, 0.02),
        Cylinder(0.037, 0.2),
        Box([0.075, 0.075, 0.1]),
        Box([0.2, 0.2, 0.079]),
        Sphere(0.036),
    ],
    ids=repr,
)
def test_what_is_narrower_than_the_hand_opens_is_not_refused(shape: Shape) -> None:
    """Grasps of a flat disc by its caps and with little clearance are not sampled."""
    scene = blocks_of_panda().set_shapes("a", [AttachedShape(shape)])
    fact, panda = Fact.of("on", "a", "b"), load_manipulator("panda")
    assert (
        prove_ungraspable(scene.set_inertia("a", Inertia(0.1)), "a", fact=fact, robot=panda) is None
    )


@settings(max_examples=scaled_examples(0.2), deadline=None)
@given(
    st.lists(st.floats(0.02, 0.2), min_size=3, max_size=3),
    st.sampled_from(["box", "cylinder", "sphere"]),
)
def test_only_what_is_wider_than_the_hand_in_all_directions_is_refused(
    sides: list[float], kind: str
) -> None:
    """Two parallel planes around a body are at least as far apart as it is wide."""
    shape: Shape = Box(sides)
    if kind != "box":
        sides = [2.0 * sides[0]] * 2 + ([sides[1]] if kind == "cylinder" else [2.0 * sides[0]])
        shape = Cylinder(sides[0] / 2, sides[2]) if kind == "cylinder" else Sphere(sides[0] / 2)
    scene = blocks_of_panda().set_shapes("a", [AttachedShape(shape)]).set_inertia("a", Inertia(0.1))
    refuted = prove_ungraspable(
        scene, "a", fact=Fact.of("on", "a", "b"), robot=load_manipulator("panda")
    )
    assert (refuted is not None) == (min(sides) > 0.084)


def test_what_stands_on_an_object_may_be_taken_off() -> None:
    """The mass without the load counts; the cause states a mass computed from shapes."""
    scene = shelf([(0.1, 0.1), (0.1, 0.1)], (0.2, 0.2)).set_inertia("box0", Inertia(10.0))
    fact = Fact.of("on", "box0", "shelf")
    loaded = scene.set_inertia("box1", Inertia(10.0)).reparent(
        "box1", "box0", pose=Pose([0.0, 0.0, 0.1])
    )
    assert prove_ungraspable(loaded, "box0", fact=fact, robot=ARM) is None
    heavy = prove_ungraspable(
        loaded.set_inertia("box0", Inertia(15.0)), "box0", fact=fact, robot=ARM
    )
    assert heavy is not None
    assert "shapes" not in heavy.cause
    large = scene.set_shapes("box1", [AttachedShape(Box([0.4, 0.4, 0.4]))])
    guessed = prove_ungraspable(large, "box1", fact=fact, robot=ARM)
    assert guessed is not None
    assert (
        "its mass is 32 kg, and arm 'iiwa_flange' carries 14 kg (computed from its shapes with 500"
        " kg/m^3" in guessed.cause
    )


def test_a_goal_that_holds_is_never_refuted() -> None:
    """Plates in a stack are on a visual area that is too small for them side by side."""
    scene, plates = tk.load_scene("iiwa_kitchen"), [AttachedShape(Box([0.09, 0.09, 0.022]))]
    top = float(scene.shapes("floor")[0].shape.bounds[1][2])
    area = [AttachedShape(Box([0.1, 0.1, 0.001]), collision=False)]
    scene = scene.add_frame(
        "area", "floor", pose=Pose([-0.5, -0.5, top]), classes=["region"], shapes=area
    )
    for k, height in enumerate((0.011, 0.033)):
        pose = Pose([-0.5, -0.5, top + height])
        scene = scene.add_frame(f"plate{k}", "floor", pose=pose, classes=["movable"], shapes=plates)
    facts = {f"plate{k}": Fact.of("on", f"plate{k}", "area") for k in range(2)}
    assert plan_in(scene, "(and (on plate0 area) (on plate1 area))").is_solved
    assert prove_crowded(scene, "area", objects=facts, overhang=2e-4) is None
    high = {name: [AttachedShape(Box([0.09, 0.09, 0.07]))] for name in facts}
    for name, shapes in high.items():
        scene = scene.set_shapes(name, shapes)
    assert prove_crowded(scene, "area", objects=facts, overhang=2e-4) is not None


def test_tables_on_wheels_may_stand_over_others() -> None:
    """A plate that does not reach down to the region covers nothing of it."""
    scene, facts = (
        shelf([(0.1, 0.1)] * 3, (0.2, 0.1)),
        {f"box{k}": Fact.of("on", f"box{k}", "shelf") for k in range(3)},
    )
    assert prove_crowded(scene, "shelf", objects=facts) is not None
    wheel = AttachedShape(
        Cylinder(0.05, 0.02), pose=Pose.from_rpy([0.0, 0.0, 0.0], [math.pi / 2, 0.0, 0.0])
    )
    scene = scene.set_shapes("box2", [AttachedShape(Box([0.1, 0.1, 0.02])), wheel])
    assert prove_crowded(scene, "shelf", objects=facts) is None


def test_what_falls_over_may_lie() -> None:
    """A plate on a thin foot is put down on its side, where it needs less room than upright."""
    scene, fact = shelf([(0.1, 0.1)], (0.3, 0.15)), Fact.of("on", "box0", "shelf")
    plate = AttachedShape(Box([0.2, 0.2, 0.02]), pose=Pose([0.0, 0.0, 0.1]))
    for thick, is_refuted in ((0.05, True), (0.003, False)):
        foot = AttachedShape(Box([thick, thick, 0.1]), pose=Pose([0.0, 0.0, 0.04]))
        refuted = prove_oversized(
            scene.set_shapes("box0", [plate, foot]), "shelf", object="box0", fact=fact
        )
        assert (refuted is not None) == is_refuted


def test_samplers_of_the_user_may_put_objects_down_otherwise() -> None:
    """A bar fits on its end, which only a custom sampler proposes, so it is not refuted."""
    scene = shelf([(0.26, 0.05)], (0.2, 0.2))

    def on_end(request: PlacementRequest) -> Iterator[Placement]:
        yield Placement(
            "shelf",
            Pose.from_rpy([0.0, 0.0, 0.01 + 0.13 + 1e-4], [0.0, math.pi / 2, 0.0]),
            "on its end",
        )

    assert plan_in(scene, on_shelf(1)).status is PlanStatus.PROVED_UNSOLVABLE
    samplers = tk.Samplers().with_placements(on_end, on_class="region")
    result = tk.plan(
        scene,
        domain="kitchen",
        goal=on_shelf(1),
        robot=ROBOT,
        options=tk.PlanningOptions(suggest=False, max_iterations=2, samplers=samplers),
    )
    assert result.is_solved, result.explanation
