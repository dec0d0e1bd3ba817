"""Objects, facts and candidates of the blocks domain, and scenes that it rejects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.blocks import SUSSMAN, blocks_scene
from support.classic import require_rest
from support.gantry import BLOCK, GANTRY, SUCKER, with_block

import tmkit as tk
from tmkit.errors import SceneError, TaskError
from tmkit.graph import AttachedShape, Box, Cylinder, Free, SceneGraph
from tmkit.manipulation import ActionContext, DeadEnd, Pick, Place, Samplers, SeededSamplers
from tmkit.pddl import GroundAction, State
from tmkit.spatial import Pose
from tmkit.tamp import load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain

Q = GANTRY.ready_configuration(blocks_scene({}))


CLEARANCE = 1e-4  # height above its support at which a block is released [m]


@pytest.fixture(scope="module")
def domain() -> PlanningDomain:
    """The blocks domain for the gantry."""
    return load_planning_domain("blocks", robot=GANTRY)


def facts(domain: PlanningDomain, scene: SceneGraph) -> set[str]:
    """Return the facts of a scene but those about free locations."""
    state = domain.semantics.state(
        scene, domain.semantics.objects(scene), scene.zero_configuration()
    )
    return {str(fact) for fact in state if "clear table" not in str(fact)}


def candidates(domain: PlanningDomain, scene: SceneGraph, *words: str, seed: int = 0) -> list[Any]:
    """Return the candidates of an action."""
    semantics: Any = domain.semantics
    context = ActionContext(
        scene, Q, np.random.default_rng(seed), SeededSamplers(Samplers(), semantics.robot)
    )
    return list(domain.semantics.candidates(GroundAction(words[0], words[1:]), context))


# --- objects


def test_blocks_and_the_cells_of_surfaces_are_the_objects(domain: PlanningDomain) -> None:
    """Each movable frame is a block; each cell whose middle is on a surface is a location."""
    objects = domain.semantics.objects(blocks_scene({"a": (0, 0)}, table=0.3))
    cells = {f"table__{i}__{j}": "location" for i in (-1, 0, 1) for j in (-1, 0, 1)}
    assert objects == {"a": "block", **cells}


def test_a_cell_on_the_edge_counts(domain: PlanningDomain) -> None:
    """A cell whose middle is exactly on the edge is a location."""
    assert "table__2__-2" in domain.semantics.objects(blocks_scene({}, table=0.4))
    assert "table__2__-2" not in domain.semantics.objects(blocks_scene({}, table=0.398))


def test_names_are_made_fit_for_pddl(domain: PlanningDomain) -> None:
    """Upper case and odd characters are replaced; a name begins with a letter."""
    scene = blocks_scene({"Red Block.1": (0, 0), "2nd": (1, 1)})
    assert {name for name, kind in domain.semantics.objects(scene).items() if kind == "block"} == {
        "red_block_1",
        "o2nd",
    }
    result = tk.plan(scene, goal="(on Red_Block_1 o2nd)", robot=GANTRY)
    assert result.plan is not None
    assert result.plan.final_scene.parent("Red Block.1") == "2nd"


@pytest.mark.parametrize(
    "name", ["and", "not", "object", "on", "block", "either", "number", "total-cost", "define"]
)
def test_words_of_pddl_may_be_names(name: str) -> None:
    """A block may be called like a word of PDDL."""
    result = tk.plan(
        blocks_scene({name: (0, 0), "b": (1, 1)}, table=0.4), goal=f"(on {name} b)", robot=GANTRY
    )
    assert result.is_solved
    assert result.plan is not None
    assert tk.validate_plan(result.plan).is_valid


def test_two_blocks_of_one_name_are_refused(domain: PlanningDomain) -> None:
    """Frames with equal PDDL names are named in the error."""
    scene = blocks_scene({"A": (0, 0), "a": (1, 1)})
    with pytest.raises(
        SceneError, match="block 'A' and block 'a' have the same name in PDDL: 'a'; rename one"
    ):
        domain.semantics.objects(scene)


def test_two_surfaces_of_one_name_are_refused(domain: PlanningDomain) -> None:
    """Two surfaces with equal location names are named in the error."""
    scene = blocks_scene({}).add_frame(
        "Table", "world", classes=["surface"], shapes=[AttachedShape(Box([1, 1, 0.1]))]
    )
    with pytest.raises(
        SceneError,
        match=r"location 'table__.*' and location 'Table__.*' have the same name in PDDL",
    ):
        domain.semantics.objects(scene)


def test_a_block_named_like_a_location_is_refused(domain: PlanningDomain) -> None:
    """A block must not be called like a location."""
    with pytest.raises(
        SceneError, match=r"frame 'table__0__0' has the name of a cell of a surface; rename it"
    ):
        domain.semantics.objects(blocks_scene({"table__0__0": (1, 1)}))


def test_a_surface_needs_a_shape(domain: PlanningDomain) -> None:
    """A surface without a shape has no cells."""
    scene = SceneGraph().add_frame("shelf", "world", classes=["surface"])
    with pytest.raises(
        SceneError, match="frame 'shelf' has no collision shape, so nothing can rest on it"
    ):
        domain.semantics.objects(scene)


# --- state


def test_facts_of_a_stack(domain: PlanningDomain) -> None:
    """A block stands on its parent; the cell of a block's origin is its place."""
    scene = blocks_scene({"a": (1.3, 1), "b": (-1, 0.6), "c": "a"})
    assert facts(domain, scene) == {
        "(ontable a table__1__1)",
        "(ontable b table__-1__1)",
        "(on c a)",
        "(clear c)",
        "(clear b)",
        "(handempty)",
    }


def test_covered_locations_are_not_clear(domain: PlanningDomain) -> None:
    """All locations are clear but those of blocks."""
    scene = blocks_scene({"a": (1, 1), "b": "a"}, table=0.3)
    objects = domain.semantics.objects(scene)
    clear = {
        str(fact)
        for fact in domain.semantics.state(scene, objects, scene.zero_configuration())
        if str(fact).startswith("(clear table")
    }
    assert clear == {f"(clear {name})" for name, kind in objects.items() if kind == "location"} - {
        "(clear table__1__1)"
    }


def test_a_held_block_is_neither_clear_nor_anywhere(domain: PlanningDomain) -> None:
    """A block whose parent is the hand is held."""
    scene = blocks_scene({"a": (1, 1), "b": (0, 0)}).reparent(
        "a", "hand", pose=Pose([0.0, 0.0, -0.12])
    )
    assert facts(domain, scene) == {"(holding a)", "(ontable b table__0__0)", "(clear b)"}


def test_equal_scenes_have_equal_states(domain: PlanningDomain) -> None:
    """The state is a function of the scene: putting back a block brings the state back."""
    scene = blocks_scene({"a": (1, 1), "b": (0, 0)})
    moved = scene.reparent("a", "b", pose=Pose([0.0, 0.0, BLOCK]))
    back = moved.reparent("a", "table", pose=scene.local_pose("a"))

    def state(version: SceneGraph) -> State:
        return domain.semantics.state(
            version, domain.semantics.objects(version), version.zero_configuration()
        )

    assert state(moved) != state(scene)
    assert state(back) == state(scene)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"parent": "world"},
            (
                "block 'a' has parent 'world', expected a movable object, a frame of class surface"
                " .table.*hand 'hand'"
            ),
        ),
        ({"position": [0.0, 0.0, 0.075]}, "'b' and 'a' stand both on 'table__0__0'"),
        (
            {"position": [0.32, 0.0, 0.075]},
            r"block 'a' stands at \(0.320, 0.000\), beside the surface 'table'|beside it",
        ),
        (
            {"position": [0.9, 0.0, 0.075]},
            r"block 'a' stands at \(0.900, 0.000\), beside the surface 'table'",
        ),
        (
            {"position": [0.1, 0.1, 0.175]},
            "block 'a' has its bottom 100 mm above the top of 'table'",
        ),
        (
            {"position": [0.1, 0.1, 0.055]},
            "block 'a' has its bottom 20 mm below the top of 'table'",
        ),
        (
            {"rpy": [math.pi / 2, 0.0, 0.0]},
            "block 'a' leans by 90 degrees on 'table'; a block stands upright",
        ),
        ({"rpy": [math.pi, 0.0, 0.0]}, "block 'a' leans by 180 degrees on 'table'"),
        (
            {"parent": "b", "position": [0.0, 0.1, 0.05]},
            "block 'a' has parent 'b', but stands beside it",
        ),
    ],
)
def test_scenes_without_a_meaning(
    domain: PlanningDomain, change: dict[str, Any], message: str
) -> None:
    """The error names a block that floats, is beside its support, leans, or shares a place."""
    scene = blocks_scene({"b": (0, 0)})
    pose = Pose.from_rpy(
        change.get("position", [0.1, 0.1, 0.075]), change.get("rpy", [0.0, 0.0, 0.0])
    )
    shapes = [AttachedShape(Box([BLOCK] * 3))]
    parent = change.get("parent", "table")
    scene = scene.add_frame(
        "a", parent, pose=pose, joint=Free(), classes=["movable"], shapes=shapes
    )
    with pytest.raises(SceneError, match=message):
        require_rest(scene, domain)


def test_two_blocks_on_one_are_named(domain: PlanningDomain) -> None:
    """A block carries one other."""
    scene = blocks_scene({"a": (0, 0), "b": "a"})
    scene = with_block(scene, "c", [0.01, 0.0, 1.5 * BLOCK], parent="a")
    with pytest.raises(SceneError, match="'b' and 'c' stand both on 'a'"):
        domain.semantics.state(scene, domain.semantics.objects(scene), scene.zero_configuration())


def test_two_blocks_in_the_hand_are_named(domain: PlanningDomain) -> None:
    """A hand holds one block."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)})
    for name in "ab":
        scene = scene.reparent(name, "hand", pose=Pose([0.0, 0.0, -0.12]))
    with pytest.raises(SceneError, match="'a' and 'b' are both in the hand of 'gantry'"):
        domain.semantics.state(scene, domain.semantics.objects(scene), scene.zero_configuration())


# --- candidates


def test_grasps_come_from_above_first(domain: PlanningDomain) -> None:
    """The candidates of a pick begin with those whose tool points down."""
    scene = blocks_scene({"a": (1, 1)})
    grasps = candidates(domain, scene, "pick-up", "a", "table__1__1")
    assert len(grasps) == 48
    downward = [
        float((scene.pose("a", relative_to="world") @ c.grasp.object_from_tool).rotation[2, 2])
        for c in grasps
    ]
    np.testing.assert_allclose(downward, sorted(downward), atol=1e-12)
    assert all(isinstance(c, Pick) and c.object == "a" for c in grasps)


def test_a_block_too_wide_for_the_hand_says_so(domain: PlanningDomain) -> None:
    """Without a suitable grasp, the only candidate has the reason."""
    scene = with_block(blocks_scene({}), "a", [0.0, 0.0, 0.1], shape=Box([0.2, 0.2, 0.2]))
    assert candidates(domain, scene, "pick-up", "a", "table__0__0") == [
        DeadEnd("no two opposite sides of 'a' fit the hand 'hand'", is_proved=True)
    ]


def test_a_place_is_in_its_cell_and_on_the_surface(domain: PlanningDomain) -> None:
    """Every placement is in the location, on the top, and not over the edge, at any turn."""
    scene = blocks_scene({}, table=0.4)
    scene = with_block(scene, "a", [0.0, 0.0, 0.02], shape=Box([0.04, 0.08, 0.04]))
    for cell in ((0, 0), (1, -1), (2, 1), (-2, 2)):
        placements = candidates(domain, scene, "put-down", "a", f"table__{cell[0]}__{cell[1]}")
        assert placements
        for place in placements:
            assert isinstance(place, Place)
            assert (place.object, place.support) == ("a", "table")
            corners = place.pose.apply(
                [[x, y, -0.02] for x in (-0.02, 0.02) for y in (-0.04, 0.04)]
            )
            assert np.all(np.abs(corners[:, :2]) <= 0.2 + 1e-9)
            np.testing.assert_allclose(corners[:, 2], 0.05 + CLEARANCE)
            assert tuple(round(v / 0.1) for v in place.pose.translation[:2]) == cell
    first = candidates(domain, scene, "put-down", "a", "table__0__0")[0]
    np.testing.assert_allclose(first.pose.translation, [0, 0, 0.07 + CLEARANCE], atol=1e-12)


def test_a_block_that_would_stand_over_the_edge_says_so(domain: PlanningDomain) -> None:
    """A location from which the block would hang over the edge has no resting place."""
    scene = with_block(
        blocks_scene({}, table=0.4), "a", [0.0, 0.0, 0.1], shape=Box([0.2, 0.2, 0.2])
    )
    assert candidates(domain, scene, "put-down", "a", "table__2__0") == [
        DeadEnd("'a' would stand over the edge of 'table'")
    ]
    assert isinstance(candidates(domain, scene, "put-down", "a", "table__1__0")[0], Place)


def test_a_block_larger_than_the_surface_stands_in_its_middle(domain: PlanningDomain) -> None:
    """On a small pedestal a block stands in the middle."""
    scene = blocks_scene({"a": (0, 0)}).add_frame(
        "post",
        "world",
        pose=Pose([0.2, 0.2, 0.05]),
        classes=["surface"],
        shapes=[AttachedShape(Cylinder(0.02, 0.1))],
    )
    for place in candidates(domain, scene, "put-down", "a", "post__0__0"):
        np.testing.assert_allclose(
            place.pose.translation, [0.0, 0.0, 0.075 + CLEARANCE], atol=1e-12
        )


def test_stacking_is_centred_and_upright(domain: PlanningDomain) -> None:
    """A block is placed in the middle of another one, smallest rotation first."""
    scene = with_block(
        blocks_scene({"a": (0, 0)}), "b", [0.2, 0.2, 0.04], turn=0.3, shape=Box([0.05, 0.05, 0.08])
    )
    placements = candidates(domain, scene, "stack", "a", "b")
    assert [type(c) for c in placements] == [Place] * 4
    for place in placements:
        np.testing.assert_allclose(
            place.pose.translation, [0.0, 0.0, 0.065 + CLEARANCE], atol=1e-12
        )
    assert placements[0].pose.is_close(Pose([0.0, 0.0, 0.065 + CLEARANCE]))


def test_samples_depend_on_the_seed_alone(domain: PlanningDomain) -> None:
    """The same generator state gives the same places; another gives others."""
    scene = blocks_scene({"a": (1, 1)})
    first, again, other = (
        candidates(domain, scene, "put-down", "a", "table__0__0", seed=s) for s in (1, 1, 2)
    )
    assert first == again
    assert first[:4] == other[:4]  # the middle of the cell needs no chance
    assert first[4:] != other[4:]


def test_suction_blocks_are_candidates_too() -> None:
    """A suction hand takes blocks that no parallel hand could."""
    domain = load_planning_domain("blocks", robot=SUCKER)
    scene = with_block(blocks_scene({}), "a", [0.0, 0.0, 0.1], shape=Box([0.2, 0.2, 0.2]))
    assert len(candidates(domain, scene, "pick-up", "a", "table__0__0")) == 24


# --- goals


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("(on a bee)", "bee"),
        ("(on reed blue)", "did you mean 'red'"),
        ("(onn red blue)", "unknown predicate 'onn'; did you mean 'on'"),
        ("(on red)", r"\(on red\).*|.*takes 2 arguments"),
        ("(on red table__0__0)", "table__0__0"),
        ("(on red blue", "goal:1"),
        ("on red blue", "goal:1"),
        ("", "expected a goal such as"),
        ("(and (on red blue) (holding ?x))", "x"),
    ],
)
def test_a_wrong_goal_says_where_and_what(domain: PlanningDomain, goal: str, message: str) -> None:
    """The error of a wrong goal contains its place, and the nearest name if there is one."""
    scene = blocks_scene({"red": (0, 0), "blue": (1, 1)})
    with pytest.raises(TaskError, match=message) as caught:
        domain.problem(scene, scene.zero_configuration(), goal)
    assert str(caught.value).startswith("goal")


def test_actions_lead_to_the_state_that_pddl_predicts(domain: PlanningDomain) -> None:
    """Along a plan, the state derived from each scene is equal to the predicted state."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"}, table=0.4)
    result = tk.plan(scene, goal=SUSSMAN, robot=GANTRY)
    assert result.plan is not None
    problem = domain.problem(scene, scene.zero_configuration(), SUSSMAN)
    types = {name: kinds[0] for name, kinds in problem.objects.items()}
    state = problem.init
    for step in result.plan.steps:
        state = problem.apply(state, step.action)
        assert domain.semantics.state(step.scene, types, step.q) == state
    assert problem.holds(state, problem.goal)
