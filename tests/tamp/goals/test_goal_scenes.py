"""Goal scenes: stated objects, open places, and rejected goals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit.errors import CollisionError, FileFormatError, SceneError, TmkitError
from tmkit.formats import ReadingOptions, load_goal_scene
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.tamp import load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import goal_of_scene

DOMAINS = Path(__file__).parents[2] / "data" / "domains"
CLASSES = (
    "class moveable {}\nclass block { isa moveable; shape box; dimension [0.05, 0.05, 0.05]; }\n"
)


@pytest.fixture(scope="module")
def domain() -> PlanningDomain:
    """The blocks domain for the gantry."""
    return load_planning_domain("blocks", robot=GANTRY)


def start() -> SceneGraph:
    """Return c on a, and b beside."""
    return blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"})


def frame(name: str, parent: str, place: str = "[0, 0, 0.05]") -> str:
    """Return a block in the scene language."""
    return f"frame {name} {{ parent {parent}; translation {place}; geometry {{ isa block; }} }}\n"


def write(path: Path, *frames: str) -> Path:
    """Write a goal file."""
    path.write_text(CLASSES + "".join(frames), encoding="utf-8")
    return path


def test_a_goal_that_turns_a_tower_over(tmp_path: Path, domain: PlanningDomain) -> None:
    """The parents in the goal file are the goal; c is named only as a parent."""
    goal = load_goal_scene(
        start(), write(tmp_path / "goal.robray", frame("a", "b"), frame("b", "c"))
    )
    assert goal.goal_frames == ("a", "b")
    assert goal_of_scene(goal, start(), domain=domain) == "(and (on a b) (on b c))"
    result = tk.plan(start(), goal=goal, robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert result.plan.goal == "(and (on a b) (on b c))"
    assert [result.plan.final_scene.parent(name) for name in "ab"] == ["b", "c"]
    assert tk.validate_plan(result.plan).is_valid


def test_the_start_is_untouched(tmp_path: Path) -> None:
    """Reading a goal makes a new scene; the start scene is unchanged."""
    scene = start()
    load_goal_scene(scene, write(tmp_path / "goal.robray", frame("c", "table", "[0, 0, 0.075]")))
    assert scene == start()


def test_where_a_block_stands_on_another_does_not_matter(
    tmp_path: Path, domain: PlanningDomain
) -> None:
    """As in scenes of the original, an offset from the middle of the block below is overlooked."""
    goal = load_goal_scene(
        start(), write(tmp_path / "goal.robray", frame("b", "c", "[0, -0.25, 0.05]"))
    )
    assert goal_of_scene(goal, start(), domain=domain) == "(and (on b c))"


def test_a_place_on_a_surface_is_a_location(tmp_path: Path, domain: PlanningDomain) -> None:
    """A block on the table is wanted in the cell that holds its origin."""
    goal = load_goal_scene(
        start(), write(tmp_path / "goal.robray", frame("b", "table", "[0.21, -0.1, 0.075]"))
    )
    assert goal_of_scene(goal, start(), domain=domain) == "(and (ontable b table__2__-1))"


def test_a_block_in_the_hand_is_to_be_held(tmp_path: Path, domain: PlanningDomain) -> None:
    """A block whose parent is the hand in the goal is wanted there."""
    goal = load_goal_scene(start(), write(tmp_path / "goal.robray", frame("b", "hand")))
    assert goal_of_scene(goal, start(), domain=domain) == "(and (holding b))"


def test_a_whole_scene_is_a_goal(domain: PlanningDomain) -> None:
    """A scene in memory states all its movable frames."""
    wanted = blocks_scene({"c": (0, 0), "b": "c", "a": "b"})
    assert (
        goal_of_scene(wanted, start(), domain=domain)
        == "(and (ontable c table__0__0) (on b c) (on a b))"
    )


def test_a_goal_file_may_repeat_the_furniture(tmp_path: Path, domain: PlanningDomain) -> None:
    """An object at its start place is no contradiction, and is not stated."""
    table = "frame table { translation [0, 0, -0.05]; }\n"
    goal = load_goal_scene(start(), write(tmp_path / "goal.robray", table, frame("b", "a")))
    assert goal.goal_frames == ("b",)


def test_semantics_without_a_word_on_goals_give_all_facts_of_what_is_stated() -> None:
    """The default goal is every fact of the goal scene that speaks of a stated object."""
    spots = load_planning_domain(DOMAINS / "spots", robot=GANTRY)
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    facts = spots.semantics.state(scene, spots.semantics.objects(scene), scene.zero_configuration())
    goal = goal_of_scene(scene, scene, domain=spots)
    assert goal == f"(and {' '.join(sorted(str(fact) for fact in facts if fact.arguments))})"


@pytest.mark.parametrize(
    ("frames", "error", "message"),
    [
        (
            ["frame table { translation [0, 0, -0.04]; }\n"],
            FileFormatError,
            r"goal.robray:3.*moves 'table', which is of no",
        ),
        (
            [frame("a", "tabel")],
            FileFormatError,
            r"goal.robray:3.*'tabel', which neither .* did you mean 'table'",
        ),
        ([frame("a", "b"), frame("b", "a")], FileFormatError, r"goal.robray:4"),
        ([], SceneError, "states no movable object of the start .movable there: a, b, c"),
        ([frame("z", "table", "[0, 0, 0.075]")], SceneError, "states no movable object"),
        (
            [frame("a", "rail")],
            SceneError,
            "block 'a' has parent 'rail', expected a movable object",
        ),
        (
            [frame("a", "table", "[3, 0, 0.075]")],
            SceneError,
            "stands at .3.000, 0.000., beside the surface",
        ),
    ],
)
def test_goals_without_a_meaning(
    tmp_path: Path, domain: PlanningDomain, frames: list[str], error: type[TmkitError], message: str
) -> None:
    """An impossible goal is rejected, with its file and line if it has one."""
    path = write(tmp_path / "goal.robray", *frames)
    with pytest.raises(error, match=message):
        goal_of_scene(load_goal_scene(start(), path), start(), domain=domain)


def test_a_goal_scene_beside_a_problem_file(tmp_path: Path) -> None:
    """Both goals must hold, and the values of the problem file count."""
    (tmp_path / "p.pddl").write_text("(define (problem p) (:domain blocks) (:goal (holding b)))")
    goal = load_goal_scene(start(), write(tmp_path / "goal.robray", frame("a", "table")))
    result = tk.plan(start(), goal=[tmp_path / "p.pddl", goal], robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert result.plan.goal == "(and (holding b) (and (ontable a table__0__0)))"
    assert tk.validate_plan(result.plan).is_valid


def test_two_tables_of_one_height_are_one_place_to_put_things(domain: PlanningDomain) -> None:
    """A block may be placed above an adjacent surface of equal height, and picked again."""
    scene = blocks_scene({"a": (0, 0)}, table=0.4)
    scene = scene.add_frame(
        "extension", "world", pose=tk.Pose([0.0, 0.0, -0.05]), shapes=scene.shapes("table")
    )
    result = tk.plan(scene, goal="(ontable a table__1__1)", robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert result.statistics.skeletons == 1
    assert tk.validate_plan(result.plan).is_valid
    again = tk.plan(result.plan.final_scene, goal="(holding a)", robot=GANTRY)
    assert again.plan is not None, again.explanation


def test_blocks_side_by_side_touch_and_do_not_collide() -> None:
    """Exactly side by side at the start is not a collision; 1.1 mm into each other is one."""
    scene = blocks_scene({"a": (0.25, 0), "b": (0.75, 0)})
    result = tk.plan(scene, goal="(on a b)", robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    into = scene.set_pose(
        "b", tk.Pose(scene.local_pose("b").translation - np.array([1.1e-3, 0.0, 0.0]))
    )
    with pytest.raises(TmkitError, match=r"'a' and 'b' by 1\.1 mm"):
        tk.plan(into, goal="(on a b)", robot=GANTRY)


def test_a_second_arm_may_be_parked_in_the_furniture(caplog: pytest.LogCaptureFixture) -> None:
    """Static bodies may overlap at the start and exceed limits; the plan lists them."""
    shape = AttachedShape(Box([0.1, 0.1, 0.1]))
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)})
    scene = scene.add_frame("post", "world", pose=tk.Pose([2.0, 0.0, 0.5]), shapes=[shape])
    other = tk.Revolute([0, 0, 1], lower=-1.0, upper=1.0, name="second")
    scene = scene.add_frame(
        "other_arm", "world", pose=tk.Pose([2.02, 0.0, 0.5]), joint=other, shapes=[shape]
    )
    q = scene.configuration({"second": 1.5}, base=GANTRY.ready_configuration(scene))
    result = tk.plan(scene, q, goal="(on a b)", robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert "joint 'second' starts at 1.5, outside its limits" in caplog.text
    assert "the start is in collision: other_arm and post: not checked" in caplog.text
    assert all(
        ("other_arm", "post") in {(e.frame_a, e.frame_b) for e in segment.allowed_contacts}
        for step in result.plan.steps
        for segment in step.segments
    )
    assert tk.validate_plan(result.plan).is_valid
    report = tk.simulate(result.plan)
    assert report.is_successful, report.notes


def test_what_the_arm_can_move_may_not_overlap_at_the_start() -> None:
    """The hand in a post is a collision, though the post stands still."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)})
    hand = scene.pose("hand", relative_to="world", q=GANTRY.ready_configuration(scene)).translation
    scene = scene.add_frame(
        "post", "world", pose=tk.Pose(hand), shapes=[AttachedShape(Box([0.1, 0.1, 0.1]))]
    )
    with pytest.raises(CollisionError, match="'hand' and 'post'"):
        tk.plan(scene, goal="(on a b)", robot=GANTRY)


def test_pairs_that_the_goal_lets_touch(tmp_path: Path) -> None:
    """The files of the goal, with SRDF files, allow pairs in the goal only."""
    (tmp_path / "pairs.srdf").write_text(
        '<robot name="r"><disable_collisions link1="a" link2="c" reason="Never"/></robot>',
        encoding="utf-8",
    )
    goal = write(tmp_path / "goal.robray", frame("a", "b"))
    named = load_goal_scene(start(), goal, tmp_path / "pairs.srdf")
    goal.write_text(f'include "pairs.srdf"\n{goal.read_text()}', encoding="utf-8")
    included = load_goal_scene(start(), goal)
    goal.write_text(f"{CLASSES}{frame('a', 'b')}allow_collision a c;\n", encoding="utf-8")
    goal_frames = load_goal_scene(start(), goal)
    for read in (named, included, goal_frames):
        assert read.scene.is_allowed("a", "c")
        assert read.goal_frames == ("a",)
    assert not start().is_allowed("a", "c")
    goal.write_text(f"{CLASSES}{frame('a', 'b')}allow_collision a x;\n", encoding="utf-8")
    with pytest.raises(
        FileFormatError, match=r"goal\.robray:4:19: allow_collision names the unknown frame 'x'"
    ):
        load_goal_scene(start(), goal)


def test_a_goal_may_read_in_folders_that_are_allowed(tmp_path: Path) -> None:
    """Files in other folders are included only if the folder is allowed."""
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (tmp_path / "classes.robray").write_text(CLASSES, encoding="utf-8")
    goal = inner / "goal.robray"
    goal.write_text(f'include "../../../classes.robray"\n{frame("a", "b")}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="outside the folders that this scene may read"):
        load_goal_scene(start(), goal)
    assert load_goal_scene(
        start(), goal, reading=ReadingOptions(allow_folders=[tmp_path])
    ).goal_frames == ("a",)
