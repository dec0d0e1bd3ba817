"""Kitchen domain: facts and candidates in a scene, and problems from goal to simulation."""

from __future__ import annotations

import math
import runpy
import sys

import numpy as np
import pytest
from support.classic import require_rest
from support.kitchen import BLOCK_SIZE, ROBOT, block_names, cook_goal, kitchen, stove_goal

import tmkit as tk
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ApplyEffects,
    DeadEnd,
    MoveTo,
    Pick,
    Place,
    Samplers,
    SeededSamplers,
)
from tmkit.manipulation.actions.candidates import Candidate
from tmkit.pddl import GroundAction
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp import load_planning_domain

ARM = load_manipulator(ROBOT)
DOMAIN = load_planning_domain("kitchen", robot=ARM)
HEIGHT = BLOCK_SIZE[2]


def facts_of(scene: SceneGraph, *, at_home: bool = True) -> set[str]:
    """Return the facts that hold in a scene, as texts."""
    q = np.array(ARM.ready_configuration(scene))
    if not at_home:
        q[ARM.joint_indices(scene)[0]] += 0.1
    return {str(fact) for fact in DOMAIN.state(scene, q)}


def place_object(
    scene: SceneGraph, object: str, region: str, x: float, y: float, *, turn: float = 0.0
) -> SceneGraph:
    """Return the scene with an object on a region, offset from the region's centre [m]."""
    thickness = float(scene.shapes(region)[0].shape.dimensions[2])
    pose = Pose.from_rpy([x, y, (thickness + HEIGHT) / 2], [0.0, 0.0, turn])
    return scene.reparent(object, region, pose=pose)


def candidates(scene: SceneGraph, name: str, *arguments: str) -> list[Candidate]:
    """Return the candidates of an action at home."""
    context = ActionContext(
        scene,
        ARM.ready_configuration(scene),
        np.random.default_rng(0),
        SeededSamplers(Samplers(), ARM),
    )
    return list(DOMAIN.semantics.candidates(GroundAction(name, arguments), context))


def test_the_state_says_where_things_are_and_what_regions_do() -> None:
    """Facts follow from the parents and classes of frames, and from the configuration."""
    scene = place_object(kitchen(2), "b1", "sink", 0.05, 0.0).set_classes(
        "b0", ["movable", "clean", "cooked"]
    )
    assert DOMAIN.semantics.objects(scene) == {
        "b0": "item",
        "b1": "item",
        "floor": "region",
        "stove": "region",
        "sink": "region",
    }
    facts = {
        "(on b0 floor)",
        "(on b1 sink)",
        "(clean b0)",
        "(cooked b0)",
        "(washes sink)",
        "(heats stove)",
    }
    assert facts_of(scene) == {*facts, "(handempty)", "(athome)"}
    assert facts_of(scene, at_home=False) == {*facts, "(handempty)"}
    held = scene.reparent("b0", ARM.tip, pose=Pose([0.0, 0.0, HEIGHT / 2]))
    assert "(holding b0)" in facts_of(held)
    assert "(handempty)" not in facts_of(held)


def test_everything_of_an_object_must_be_on_its_region() -> None:
    """An object at the edge is on the region, one over the edge is rejected, also by rotation."""
    edge = (0.25 - BLOCK_SIZE[0]) / 2
    assert "(on b0 stove)" in facts_of(place_object(kitchen(1), "b0", "stove", edge, edge))
    with pytest.raises(SceneError, match="'b0' reaches 10 mm beyond the edge of 'stove'"):
        require_rest(place_object(kitchen(1), "b0", "stove", edge + 0.01, 0.0), DOMAIN)
    with pytest.raises(SceneError, match="'b0' reaches 12 mm beyond the edge"):
        require_rest(place_object(kitchen(1), "b0", "stove", edge, 0.0, turn=math.pi / 4), DOMAIN)


def test_what_the_words_cannot_tell_is_refused() -> None:
    """Leaning, floating, stacked, doubly held objects and two things of one name are named."""
    scene = kitchen(2)
    pose = scene.local_pose("b0")
    leaning = Pose.from_rpy([0, 0, 0], [0.2, 0.0, 0.0])
    with pytest.raises(SceneError, match="'b0' leans by 11 degrees on 'floor'"):
        require_rest(scene.reparent("b0", "floor", pose=pose @ leaning), DOMAIN)
    with pytest.raises(SceneError, match="'b0' has its bottom 20 mm above the top of 'floor'"):
        require_rest(scene.reparent("b0", "floor", pose=pose @ Pose([0.0, 0.0, 0.02])), DOMAIN)
    with pytest.raises(SceneError, match="'b0' has parent 'b1', expected a frame of class region"):
        facts_of(scene.reparent("b0", "b1", pose=Pose([0.0, 0.0, HEIGHT])))
    both = scene.reparent("b0", ARM.tip, pose=Pose()).reparent("b1", ARM.tip, pose=Pose())
    with pytest.raises(SceneError, match="'b0' and 'b1' are both in the hand"):
        facts_of(both)
    with pytest.raises(SceneError, match="same name in PDDL: 'b0'; rename one"):
        facts_of(scene.rename_frame("b1", "B0"))
    with pytest.raises(SceneError, match="item 'Sink' and region 'sink' have the same name"):
        facts_of(scene.rename_frame("b1", "Sink"))


def test_actions_have_candidates_of_their_kind() -> None:
    """Picks come from above first; moves end at the ready configuration; classes change."""
    scene = place_object(place_object(kitchen(2), "b0", "sink", 0.0, 0.0), "b1", "stove", 0.0, 0.0)
    first = candidates(scene, "pick", "b0", "sink")[0]
    assert isinstance(first, Pick)
    assert first.grasp.name == "on the +z face"
    (home,) = candidates(scene, "move-home")
    assert isinstance(home, MoveTo)
    assert home.to == dict(ARM.ready)
    (wash,) = candidates(scene, "clean", "b0", "sink")
    assert isinstance(wash, ApplyEffects)
    assert [str(change) for change in wash.changes] == ["b0 +clean"]
    washed = scene.set_classes("b1", ["movable", "clean"])
    (cook,) = candidates(washed, "cook", "b1", "stove")
    assert isinstance(cook, ApplyEffects)
    assert [str(change) for change in cook.changes] == ["b1 +cooked", "b1 -clean"]
    flat = scene.set_shapes("b0", [AttachedShape(Box([0.03, 0.03, 0.03]))])
    assert [type(candidate) for candidate in candidates(flat, "pick", "b0", "sink")] == [DeadEnd]


def test_places_are_free_wholly_on_the_region_and_leave_room() -> None:
    """Sixteen blocks of 6 cm fit on 25 cm, each at the first proposed place."""
    scene = kitchen(1)
    for number in range(16):
        name = f"extra{number}"
        scene = scene.add_frame(
            name,
            "floor",
            pose=Pose([1.0, 1.0, 0.125]),
            classes=["movable"],
            shapes=[AttachedShape(Box(BLOCK_SIZE))],
        )
        first = candidates(scene, "place", name, "stove")[0]
        assert isinstance(first, Place)
        assert first.support == "stove"
        scene = scene.reparent(name, "stove", pose=first.pose)
        assert f"(on {name} stove)" in facts_of(scene)
    assert candidates(scene, "place", "b0", "stove") == []


def test_places_on_the_floor_avoid_what_stands_there() -> None:
    """Places near the block come first, away from the stove and the other blocks."""
    scene = kitchen(3)
    places = candidates(scene, "place", "b0", "floor")
    assert len(places) > 10
    assert isinstance(places[0], Place)
    assert math.hypot(places[0].pose.translation[0], places[0].pose.translation[1] - 0.5) < 0.1
    for place in places:
        assert isinstance(place, Place)
        x, y, _ = place.pose.translation
        assert not (abs(x - 0.5) < 0.15 and abs(y) < 0.15)
        assert math.hypot(x, y + 0.5) > BLOCK_SIZE[0]


def mark_region(scene: SceneGraph) -> SceneGraph:
    """Return the scene with the left half of the stove marked as a separate region."""
    shapes = [AttachedShape(Box([0.25, 0.12, 0.002]), collision=False)]
    return scene.add_frame(
        "hot", "stove", pose=Pose([0.0, 0.065, 0.026]), classes=["region", "stove"], shapes=shapes
    )


def test_marked_areas_are_regions_within_regions() -> None:
    """An object is on the smallest region that contains it: the marked half of the stove."""
    scene = mark_region(kitchen(1))
    assert "(on b0 hot)" in facts_of(place_object(scene, "b0", "stove", 0.0, 0.06))
    assert "(on b0 stove)" in facts_of(place_object(scene, "b0", "stove", 0.0, 0.0))
    assert "(on b0 stove)" in facts_of(place_object(scene, "b0", "stove", 0.0, -0.06))
    for region in ("hot", "stove"):
        for place in candidates(scene, "place", "b0", region)[:12]:
            assert isinstance(place, Place)
            resting = scene.reparent("b0", place.support, pose=place.pose)
            assert f"(on b0 {region})" in facts_of(resting)
    result = tk.plan(scene, domain="kitchen", goal="(and (on b0 hot) (athome))", robot=ROBOT)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    assert tk.plan(
        place_object(scene, "b0", "stove", 0.0, 0.06),
        domain="kitchen",
        goal="(on b0 hot)",
        robot=ROBOT,
    ).is_solved
    floating = scene.add_frame("nowhere", "world", classes=["region"], shapes=scene.shapes("hot"))
    with pytest.raises(
        SceneError, match="'nowhere' has no collision shape, and no ancestor that has one"
    ):
        facts_of(floating)


def test_goal_scenes_say_regions_and_classes() -> None:
    """A goal scene with a block cooked on the stove has both facts as its goal."""
    scene = kitchen(2)
    goal = place_object(scene, "b1", "stove", 0.0, 0.0).set_classes("b1", ["movable", "cooked"])
    facts = [
        str(fact)
        for fact in DOMAIN.semantics.goal_facts(goal, DOMAIN.semantics.objects(scene), ["b0", "b1"])
    ]
    assert facts == ["(on b0 floor)", "(on b1 stove)", "(cooked b1)"]
    with pytest.raises(SceneError, match="'b0' has parent 'b1', expected a frame of class region"):
        list(DOMAIN.semantics.goal_facts(goal.reparent("b0", "b1", pose=Pose()), {}, ["b0"]))


@pytest.mark.parametrize(("blocks", "goal"), [(2, stove_goal(2)), (1, cook_goal(1))])
def test_kitchen_plans_are_found_checked_and_played(blocks: int, goal: str) -> None:
    """Blocks are placed on the stove and cooked, the arm returns home; simulation agrees."""
    scene = kitchen(blocks)
    result = tk.plan(scene, domain="kitchen", goal=goal, robot=ROBOT)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    final = result.plan.final_scene
    assert all(final.parent(name) == "stove" for name in block_names(blocks))
    np.testing.assert_allclose(result.plan.final_q, ARM.ready_configuration(final), atol=1e-9)
    assert ("cooked" in final.classes("b0")) == ("cooked" in goal)
    report = tk.simulate(result.plan)
    assert report.is_successful, report.notes
    assert max(error.position for error in report.errors.values()) < 0.005


def test_a_full_stove() -> None:
    """Twelve blocks are placed; between neighbours they are lowered from above."""
    angles = [90, -90, 70, -70, 110, -110, 50, -50, 130, -130, 33, -33]
    result = tk.plan(kitchen(12, angles=angles), domain="kitchen", goal=stove_goal(12), robot=ROBOT)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid


def test_places_of_which_the_domain_has_no_words_are_left_out() -> None:
    """Objects are placed only on the upper board of a shelf; the lower one is no region."""
    boards = [
        AttachedShape(Box([0.2, 0.2, 0.02]), pose=Pose([0.0, 0.0, height])) for height in (0.0, 0.3)
    ]
    scene = kitchen(1).add_frame(
        "rack", "world", pose=Pose([0.0, -0.5, 0.01]), classes=["surface"], shapes=boards
    )
    places = candidates(scene, "place", "b0", "rack")
    assert places
    for place in places:
        assert isinstance(place, Place)
        assert place.pose.translation[2] > 0.4


def test_what_fills_a_region_is_put_aside() -> None:
    """The planner learns that a shelf for one block is full, and moves the block."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.02]))]
    scene = kitchen(2).add_frame(
        "shelf", "world", pose=Pose([0.35, 0.35, 0.01]), classes=["region"], shapes=shapes
    )
    scene = scene.reparent("b1", "shelf", pose=Pose([0.0, 0.0, 0.11]))
    result = tk.plan(scene, domain="kitchen", goal="(and (on b0 shelf) (athome))", robot=ROBOT)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    assert [str(action) for action in result.plan.actions] == [
        "(pick b1 shelf)",
        "(place b1 floor)",
        "(pick b0 floor)",
        "(place b0 shelf)",
        "(move-home)",
    ]


def test_the_example_cooks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example prints a valid plan, and the changes that need no motion."""
    path = tk.data_path("domains/kitchen").parents[1] / "examples" / "kitchen.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "(cook b1 stove): b1 +cooked, b1 -clean" in printed
    assert "ValidationReport(valid, 13 actions" in printed


@pytest.mark.parametrize("problem", ["stove4", "cook2"])
def test_problem_files_fit_their_scene(problem: str) -> None:
    """The problems beside the domain are those of the scene with four blocks."""
    scene = tk.load_scene("iiwa_kitchen", "kitchen_blocks4")
    path = tk.data_path("domains/kitchen/problems") / f"{problem}.pddl"
    result = tk.plan(scene, domain="kitchen", goal=path, robot=ROBOT)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid


def test_the_file_of_four_blocks_is_the_generated_kitchen() -> None:
    """The scene file and the function of the benchmark agree about where the blocks stand."""
    scene, other = tk.load_scene("iiwa_kitchen", "kitchen_blocks4"), kitchen(4)
    for name in block_names(4):
        metres, radians = scene.pose(name, relative_to="world").distance(
            other.pose(name, relative_to="world")
        )
        assert metres < 1e-8
        assert radians < 1e-8
    with pytest.raises(UnknownNameError):
        scene.pose("b4", relative_to="world")


def test_a_ring_is_hung_on_a_peg_and_taken_off_again() -> None:
    """A rack is a region without a level top, on which objects rest in any stable pose."""
    sides = [((0.0, 0.04), (0.1, 0.02)), ((0.0, -0.04), (0.1, 0.02)), ((0.04, 0.0), (0.02, 0.06))]
    sides.append(((-0.04, 0.0), (0.02, 0.06)))
    ring = [AttachedShape(Box([*size, 0.02]), Pose([*centre, 0.0])) for centre, size in sides]
    peg = AttachedShape(
        tk.Cylinder(0.006, 0.12), Pose.from_rpy([0.0, 0.0, 0.0], [math.pi / 2.0, 0.0, 0.0])
    )
    scene = tk.load_scene("panda_table")
    scene = scene.add_frame(
        "peg", "table", pose=Pose([-0.1, 0.25, 0.3]), classes=["rack"], shapes=[peg]
    )
    scene = scene.add_frame(
        "ring",
        "table",
        pose=Pose([-0.1, -0.2, 0.035]),
        joint=tk.Free(),
        classes=["movable"],
        shapes=ring,
    )
    hung = tk.plan(scene, domain="kitchen", goal="(on ring peg)", robot="panda")
    assert hung.plan is not None
    assert tk.validate_plan(hung.plan).is_valid
    end = hung.plan.steps[-1].scene
    assert end.parent("ring") == "peg"
    assert tk.manipulation.rests(end, "ring")
    back = tk.plan(end, domain="kitchen", goal="(on ring table)", robot="panda")
    assert back.plan is not None
    assert tk.validate_plan(back.plan).is_valid
    removed = scene.reparent("ring", "peg", pose=Pose([0.0, 0.0, 0.2]))
    domain = load_planning_domain("kitchen", robot=load_manipulator("panda"))
    with pytest.raises(SceneError, match="'ring' does not rest on 'peg': it would fall off"):
        require_rest(removed, domain)
