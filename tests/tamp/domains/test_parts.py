"""Domains from parts: compositions, the built-in domains, and rejected combinations."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit.errors import SceneError, TaskError
from tmkit.graph import AttachedShape, Box, Free, Revolute, SceneGraph
from tmkit.pddl import Domain, GroundAction, load_domain
from tmkit.pddl.formulas import Action, And, EffectAnd, simple_effects
from tmkit.plans.values import Configuration
from tmkit.spatial import Pose
from tmkit.tamp import load_planning_domain, parts
from tmkit.tamp.domains.planning_domain import PlanningDomain

HERE = str(Path(__file__).resolve())


def line_of(part: type, text: str) -> int:
    """Return the line of this file in which a class has a text."""
    lines, first = inspect.getsourcelines(part)
    return first + next(number for number, line in enumerate(lines) if text in line)


def shape_of(action: Action) -> tuple[object, ...]:
    """Return an action independently of the names of its parameters and of its order."""
    names = {parameter.name: f"?{number}" for number, parameter in enumerate(action.parameters)}

    def plain(text: object) -> str:
        words = str(text).replace("(", " ( ").replace(")", " ) ").split()
        return " ".join(names.get(word, word) for word in words)

    conditions = (
        action.precondition.parts
        if isinstance(action.precondition, And)
        else (action.precondition,)
    )
    effects = simple_effects(
        action.effect if isinstance(action.effect, EffectAnd) else EffectAnd((action.effect,))
    )
    types = tuple(parameter.types for parameter in action.parameters)
    return types, frozenset(map(plain, conditions)), frozenset(map(plain, effects))


def meaning(domain: Domain) -> tuple[object, ...]:
    """Return the declarations of a domain, in no order."""
    predicates = {item.name: tuple(p.types for p in item.parameters) for item in domain.predicates}
    return (
        {kind.name: kind.parents for kind in domain.types},
        predicates,
        {a.name: shape_of(a) for a in domain.actions},
    )


def load_parts(*made_of: type[parts.DomainPart]) -> PlanningDomain:
    """Return a domain of parts for the gantry."""
    return load_planning_domain(parts.compose_domain("made", made_of), robot=GANTRY)


def facts(domain: PlanningDomain, scene: SceneGraph, q: Configuration | None = None) -> set[str]:
    """Return the facts of a scene."""
    configuration = scene.zero_configuration() if q is None else q
    return set(map(str, domain.state(scene, configuration)))


MADE_OF_PARTS = [
    "kitchen",
    "drawer",
    "handover",
    "push",
    "pour",
    "mobile_manipulation",
    "hanoi",
    "sorting",
    "rearrangement",
    "blocks",
    "blocks_uncertain",
]


@pytest.mark.parametrize("name", MADE_OF_PARTS)
def test_built_in_domains_mean_what_their_parts_do(name: str) -> None:
    """The PDDL of a built-in domain is equal to the merged fragments of its parts."""
    arms = ["panda", "panda_base"] if name == "mobile_manipulation" else ["panda"]
    semantics = load_planning_domain(name, robot=[*map(tk.load_manipulator, arms)]).semantics
    assert isinstance(semantics, parts.DomainPart)
    assert meaning(semantics.domain) == meaning(
        load_domain(tk.data_path(f"domains/{name}/domain.pddl"))
    )


def test_one_arm_is_no_argument() -> None:
    """Arms are objects of a domain with several, and not mentioned in one with one."""
    domain = parts.compose_domain("one", [parts.Stacking]).domain
    two = parts.compose_domain("two", [parts.Stacking, parts.TwoArms]).domain
    assert [p.name for p in domain.action("stack").parameters] == ["?x", "?y"]
    assert [p.name for p in two.action("stack").parameters] == ["?arm", "?x", "?y"]
    assert "arm" not in [kind.name for kind in domain.types]


def test_towers_are_built_and_taken_apart(tmp_path: Path) -> None:
    """Blocks are stacked, also from a folder with semantics alone, and by another process."""
    source = (
        "from tmkit.tamp import parts\nSemantics = parts.compose_domain('own',"
        " [parts.Stacking]).semantics\n"
    )
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "semantics.py").write_text(source, encoding="utf-8")
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (2, 0)}, table=0.8)
    goal = "(and (stacked a b) (stacked b c))"
    plan = tk.plan(scene, domain=tmp_path / "own", goal=goal, robot=GANTRY).plan
    assert plan is not None
    assert [action.name for action in plan.actions] == ["pick", "stack", "pick", "stack"]
    assert tk.validate_plan(plan, domain=tmp_path / "own").is_valid
    again = pickle.loads(pickle.dumps(parts.compose_domain("own", [parts.Stacking])))
    apart = tk.plan(
        plan.final_scene, plan.final_q, domain=again, goal="(on b table)", robot=GANTRY
    ).plan
    assert apart is not None
    assert apart.actions[0].name == "unstack"
    assert tk.validate_plan(apart, domain=again).is_valid
    doubled = scene.reparent("a", "c", pose=Pose([0.0, 0.0, 0.05])).reparent(
        "b", "c", pose=Pose([0.0, 0.0, 0.05])
    )
    with pytest.raises(SceneError, match="'a' and 'b' stand both on 'c'"):
        facts(load_parts(parts.Stacking), doubled)


def test_a_slot_has_room_for_one() -> None:
    """A block frees its region, is placed in the middle of another, and may be wider."""
    scene = blocks_scene({"a": (0, 0)}, table=0.8)
    small = AttachedShape(Box([0.03, 0.03, 0.01]))
    scene = scene.add_frame(
        "post", "table", pose=Pose([0.2, 0.2, 0.055]), classes=["region"], shapes=[small]
    )
    assert facts(load_parts(parts.Slots), scene) == {"(on a table)", "(free post)", "(handempty)"}
    domain = parts.compose_domain("slots", [parts.Slots])
    plan = tk.plan(scene, domain=domain, goal="(on a post)", robot=GANTRY).plan
    assert plan is not None
    assert facts(load_parts(parts.Slots), plan.final_scene) == {
        "(on a post)",
        "(free table)",
        "(handempty)",
    }
    assert plan.final_scene.local_pose("a").translation[:2].tolist() == [0.0, 0.0]
    held = scene.reparent("a", GANTRY.tip, pose=Pose())
    assert facts(load_parts(parts.Slots), held) == {"(holding a)", "(free table)", "(free post)"}
    both = scene.add_frame(
        "b", "table", pose=Pose([0.1, 0.1, 0.075]), joint=Free(), classes=["movable"]
    )
    both = both.set_shapes("b", scene.shapes("a"))
    with pytest.raises(SceneError, match="'a' and 'b' stand both on 'table'"):
        facts(load_parts(parts.Slots), both)


def test_a_box_is_turned_upside_down_and_back() -> None:
    """The z axis of a box defines its orientation; on its side it has neither."""
    scene = tk.load_scene("panda_table")
    box, pose = AttachedShape(Box([0.05, 0.05, 0.16])), Pose([-0.05, 0.1, 0.105])
    scene = scene.add_frame(
        "box", "table", pose=pose, joint=Free(), classes=["movable"], shapes=[box]
    )
    domain = parts.compose_domain("turning", [parts.Stacking, parts.Orientation])
    plan = tk.plan(scene, domain=domain, goal="(upside-down box)").plan
    assert plan is not None
    assert [action.name for action in plan.actions] == ["pick", "place-upside-down"]
    assert plan.final_scene.local_pose("box").rotate([0.0, 0.0, 1.0])[2] < -0.999
    assert tk.validate_plan(plan, domain=domain).is_valid
    assert tk.simulate(plan).is_successful
    back = tk.plan(plan.final_scene, plan.final_q, domain=domain, goal=scene, robot="panda").plan
    assert back is not None
    assert back.goal == "(and (on box table) (upright box))"
    assert [action.name for action in back.actions] == ["pick", "place"]
    semantics = load_planning_domain(domain, robot=tk.load_manipulator("panda"))
    lying = scene.set_pose("box", Pose.from_rpy([-0.05, 0.1, 0.05], [np.pi / 2, 0.0, 0.0]))
    assert facts(semantics, lying) == {"(on box table)", "(clear box)", "(handempty)"}
    assert facts(semantics, scene) == {
        "(on box table)",
        "(clear box)",
        "(handempty)",
        "(upright box)",
    }


def test_what_is_turned_over_is_taken_by_its_side_soon() -> None:
    """A grasp from above would collide with the table; one from the side comes first."""
    scene = tk.load_scene("panda_table")
    box, pose = AttachedShape(Box([0.04, 0.04, 0.12])), Pose([-0.2, -0.3, 0.085])
    scene = scene.add_frame(
        "box", "table", pose=pose, joint=Free(), classes=["movable"], shapes=[box]
    )
    domain = parts.compose_domain("turning", [parts.Stacking, parts.Orientation])
    result = tk.plan(scene, domain=domain, goal="(upside-down box)")
    assert result.plan is not None
    assert result.statistics.skeletons == 1


def test_a_base_drives_with_its_arm_at_home() -> None:
    """The arm is folded when the base drives, so it is at home afterwards, as in the PDDL."""
    domain = parts.compose_domain("fetching", [parts.Driving, parts.Home])
    scene = tk.load_scene("mobile_panda", "three_tables")
    goal = "(and (on b south) (athome))"
    plan = tk.plan(scene, domain=domain, goal=goal, robot=("panda", "panda_base")).plan
    assert plan is not None
    assert [action.name for action in plan.actions] == [
        "drive",
        "pick",
        "drive",
        "place",
        "move-home",
    ]
    assert tk.validate_plan(plan, domain=domain).is_valid


def test_nothing_is_stacked_on_what_is_upside_down() -> None:
    """An object is stacked on the top of the one below, which is at its bottom then."""
    stack = parts.compose_domain("turning", [parts.Stacking, parts.Orientation]).domain.action(
        "stack"
    )
    assert "(upright ?y)" in str(stack.precondition)
    assert "upright" not in str(
        parts.compose_domain("plain", [parts.Stacking]).domain.action("stack").precondition
    )


def put_in_box() -> SceneGraph:
    """Return two blocks on a table, one in an open box, and the lid of the box on the table."""
    scene = blocks_scene({"a": (0, 0), "lid": (3, 3)}, table=0.8)
    floor = AttachedShape(Box([0.1, 0.1, 0.01]), pose=Pose([0.0, 0.0, 0.005]))
    wall = AttachedShape(Box([0.01, 0.1, 0.08]), pose=Pose([0.045, 0.0, 0.04]))
    scene = scene.add_frame(
        "box", "table", pose=Pose([0.3, 0.0, 0.025]), classes=["container"], shapes=[floor, wall]
    )
    return scene.set_classes("lid", ["movable", "lid"]).reparent(
        "a", "box", pose=Pose([0.0, 0.0, 0.035])
    )


def test_a_lid_covers_what_it_stands_on() -> None:
    """A lid on top of its container closes it; beside it or in it, it is an object like others."""
    domain, scene = load_parts(parts.ContainerWithLid), put_in_box()
    assert {"(on a box)", "(on lid table)", "(accessible box)", "(accessible table)"} <= facts(
        domain, scene
    )
    covered = facts(domain, scene.reparent("lid", "box", pose=Pose([0.0, 0.0, 0.105])))
    assert "(covers lid box)" in covered
    assert "(accessible box)" not in covered
    assert "(on lid box)" not in covered
    assert "(on lid box)" in facts(
        domain, scene.reparent("lid", "box", pose=Pose([0.0, 0.0, 0.035]))
    )
    with pytest.raises(SceneError, match="container 'box' is movable"):
        domain.semantics.objects(scene.set_classes("box", ["container", "movable"]))


def cabinet() -> SceneGraph:
    """Return a board behind a door that opens by 0.8 rad, beside a table."""
    scene = blocks_scene({"a": (0, 0)}, table=0.8)
    hinge = Revolute([0, 0, 1], lower=0.0, upper=0.8, name="hinge")
    board = AttachedShape(Box([0.2, 0.2, 0.01]))
    scene = scene.add_frame("cabinet", "world", pose=Pose([1.0, 0.0, 0.0]))
    scene = scene.add_frame("board", "cabinet", classes=["region"], shapes=[board])
    return scene.add_frame("door", "cabinet", joint=hinge, classes=["door"])


def test_a_door_closes_what_is_behind_it() -> None:
    """Boards behind a door are accessible if it is open; half open it is neither open nor shut."""
    domain, scene = load_parts(parts.Door), cabinet()
    shut, half, ajar = (
        facts(domain, scene, scene.configuration({"hinge": angle})) for angle in (0.0, 0.4, 0.8)
    )
    assert {"(shut door)", "(behind board door)", "(accessible table)"} <= shut
    assert "(accessible board)" not in shut | half
    assert not {"(shut door)", "(ajar door)"} & half
    assert (
        facts(load_parts(parts.Drawer, parts.Door), scene, scene.configuration({"hinge": 0.0}))
        == shut
    )
    assert {"(ajar door)", "(accessible board)"} <= ajar
    q = scene.configuration({"hinge": 0.0})
    before = domain.state(scene, q)
    problem = tk.pddl.Problem(
        "p",
        domain.domain,
        objects=domain.semantics.objects(scene),
        init=before,
        goal=tk.pddl.parse_goal(
            "(ajar door)", domain.domain, objects=domain.semantics.objects(scene)
        ),
    )
    after = problem.apply(before, GroundAction("open-door", ("door",)))
    assert set(map(str, after)) == ajar


class Bare(parts.DomainPart):
    """A predicate that nothing derives."""

    pddl: ClassVar[str] = """
    (:types lamp)
    (:predicates (lit ?l - lamp))
    """


class Switch(parts.DomainPart):
    """An action that nothing carries out."""

    pddl: ClassVar[str] = """
    (:types lamp)
    (:predicates (lit ?l - lamp))
    (:action light :parameters (?l - lamp) :precondition (and) :effect (lit ?l))
    """

    def facts_lit(self, scene: SceneGraph, q: Configuration) -> Iterator[tuple[str, ...]]:
        """Yield nothing."""
        del scene, q
        yield from ()


class Stored(Bare):
    """The predicate is stored."""

    stored_predicates = frozenset({"lit"})


class Otherwise(parts.DomainPart):
    """A predicate with other arguments."""

    pddl: ClassVar[str] = """
    (:types lamp)
    (:predicates (lit ?l - lamp ?m - lamp))
    """


class Unknown(parts.Regions):
    """An action with an undeclared predicate."""

    pddl: ClassVar[str] = """
    (:action wave :parameters (?x - item) :precondition (hidden ?x) :effect (and))
    """


class Extending(parts.Regions):
    """An extension of an undeclared action."""

    pddl: ClassVar[str] = """
    (:extend (pikc) :precondition (and))
    """


class Elsewhere(parts.DomainPart):
    """A type below another one than in other parts."""

    pddl: ClassVar[str] = """
    (:types tool drawer - tool)
    """


@pytest.mark.parametrize(
    ("made_of", "part", "text", "message"),
    [
        ([parts.Drawer, parts.Drawer], None, "", "part 'Drawer' is given twice to domain 'd'"),
        (
            [parts.Cooking],
            None,
            "",
            "part 'Cooking' needs part 'Washing', which is not among Cooking",
        ),
        (
            [parts.TwoArms, parts.Driving],
            None,
            "",
            "driving.py:.*'Driving' and 'TwoArms' cannot be combined",
        ),
        (
            [parts.Cells, parts.Washing],
            None,
            "",
            "cells.py:.*'Cells' and 'Washing' cannot be combined",
        ),
        (
            [parts.Stacking, parts.Cells, parts.Drawer],
            None,
            "",
            "'Cells' and 'Drawer' cannot be combined",
        ),
        ([Bare], Bare, "(lit ?l", "predicate 'lit' has no semantics: define 'facts_lit"),
        ([Switch], Switch, "(:action", "action 'light' has no semantics: define 'do_light"),
        (
            [Bare, Otherwise],
            Otherwise,
            "(lit ?l",
            "predicate 'lit' is defined differently in .*test_parts.py:",
        ),
        ([Unknown], Unknown, "hidden", "unknown predicate 'hidden'"),
        ([Extending], Extending, ":extend", "unknown action 'pikc'; did you mean 'pick'"),
        (
            [parts.Drawer, Elsewhere],
            Elsewhere,
            ":types",
            "type 'drawer' is below 'region' in .*access.py:",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(
    made_of: list[type[parts.DomainPart]], part: type | None, text: str, message: str
) -> None:
    """Repeated or missing parts, different definitions and missing semantics are rejected."""
    with pytest.raises(TaskError, match=message) as caught:
        parts.compose_domain("d", made_of)
    assert caught.value.data["line"]
    if part is not None:
        assert caught.value.data["path"] == HERE
        assert caught.value.data["line"] == line_of(part, text)


def test_other_mistakes_are_named() -> None:
    """Objects that are no parts, and new names of undeclared predicates."""
    with pytest.raises(TaskError, match="is not a part"):
        parts.compose_domain("d", [parts.Drawer, str])  # type: ignore[list-item]
    with pytest.raises(TaskError, match="unknown word 'pik'; did you mean 'pick'"):
        parts.compose_domain("d", [parts.Drawer], words={"pik": "take"})


def test_stored_predicates_need_no_semantics() -> None:
    """A predicate that is stored is derived by nothing; the same definition twice does no harm."""
    domain = load_parts(Stored, parts.Regions)
    assert domain.stored_predicates == {"lit"}


def test_stacks_in_goal_scenes_and_towers_too_high() -> None:
    """A goal scene defines stacks; a tower beyond reach is refuted, unless its base may lie."""
    domain = load_parts(parts.Stacking)
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, -1)}, table=0.4)
    goal = scene.reparent("a", "b", pose=Pose([0.0, 0.0, 0.05]))
    objects = domain.semantics.objects(scene)
    assert {str(fact) for fact in domain.semantics.goal_facts(goal, objects, ["a", "c"])} == {
        "(stacked a b)",
        "(on c table)",
    }
    wanted = [tk.pddl.Fact.of("stacked", "a", "b")]
    assert list(domain.semantics.infeasibilities(wanted, scene)) == []
    tall = scene.set_shapes("b", [AttachedShape(Box([0.3, 0.3, 2.0]))])
    tall = tall.set_pose("b", Pose([0.1, 0.1, 1.05]))
    (proof,) = domain.semantics.infeasibilities(wanted, tall)
    assert "'a' would stand at least" in proof.cause
    assert proof.upright == ("b",)
    lying = tall.set_pose("b", Pose.from_rpy([0.1, 0.1, 0.2], [0.0, np.pi / 2, 0.0]))
    assert list(domain.semantics.infeasibilities(wanted, lying)) == []
