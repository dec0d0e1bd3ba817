"""Stored facts and actions without motion, in domains, goals, plans and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.unsure_blocks import unsure_blocks

import tmkit as tk
from tmkit.errors import PlanFileError, SceneError, TaskError
from tmkit.formats.goal_scene import GoalScene
from tmkit.graph import SceneGraph, change_task_facts, task_facts
from tmkit.pddl import Fact
from tmkit.plans import ObjectIn
from tmkit.tamp import DomainSemantics, load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import goal_of_scene

DISHES = Path(__file__).parents[3] / "examples" / "dishes"
DOMAIN, PROBLEM = DISHES / "domain.pddl", DISHES / "pile.pddl"

STARTS = {
    "blocks": ("panda_table", "blocks3"),
    "drawer": ("panda_drawer",),
    "handover": ("baxter_trays",),
    "hanoi": ("panda_table", "hanoi3"),
    "kitchen": ("iiwa_kitchen", "kitchen_blocks4"),
    "mobile_manipulation": ("mobile_panda", "three_tables"),
    "pour": ("panda_table", "tea"),
    "push": ("panda_push",),
    "rearrangement": ("panda_table", "rearrange_swap"),
    "sorting": ("panda_table", "sort8"),
}
ROBOTS = {
    "handover": ("baxter", "baxter_left"),
    "kitchen": "iiwa_flange",
    "mobile_manipulation": ("panda", "panda_base"),
}


def scene_of(domain: str) -> SceneGraph:
    """Return a start of a domain."""
    return unsure_blocks() if domain == "blocks_uncertain" else tk.load_scene(*STARTS[domain])


def extend(domain: str, tmp_path: Path, more: str) -> Path:
    """Return the file of a built-in domain with a predicate and more actions."""
    text = tk.data_path(f"domains/{domain}/domain.pddl").read_text(encoding="utf-8")
    text = text.replace("(:predicates", "(:predicates (marked ?x - object)", 1)
    path = tmp_path / f"{domain}.pddl"
    path.write_text(text.rstrip().removesuffix(")") + more + ")", encoding="utf-8")
    return path


def dishes(semantics: str | Path = "blocks") -> PlanningDomain:
    """Return the example with semantics."""
    return load_planning_domain(DOMAIN, semantics=semantics, robot=tk.load_manipulator("panda"))


@pytest.mark.parametrize("domain", [*STARTS, "blocks_uncertain"])
def test_actions_without_motion_work_in_every_domain(domain: str, tmp_path: Path) -> None:
    """A PDDL file adds an action without motion to each built-in domain."""
    more = "(:action mark :parameters (?x - object) :effect (marked ?x))"
    path = extend(domain, tmp_path, more)
    goal = "(exists (?x - object) (marked ?x))"
    result = tk.solve(
        tk.PlanningProblem(
            scene_of(domain),
            domain=path,
            semantics=domain,
            goal=goal,
            robots=ROBOTS.get(domain, "panda"),
        ),
        tk.PlanningOptions(seed=1),
    )
    assert result.plan is not None, result.explanation
    (step,) = result.plan.steps
    assert not step.segments
    assert step.choice.startswith("without motion: +(marked ")
    assert tk.validate_plan(result.plan, domain=path, semantics=domain).is_valid


def test_facts_about_constants(tmp_path: Path) -> None:
    """A constant is not an object of the scene; facts about it are stored as those of others."""
    more = "(:action mark :parameters (?x - block) :precondition (marked %s) :effect (marked ?x))"
    path = extend("blocks", tmp_path, more % "lamp")
    text = path.read_text(encoding="utf-8").replace(
        "(:predicates", "(:constants lamp - object) (:predicates", 1
    )
    path.write_text(text, encoding="utf-8")
    scene = change_task_facts(scene_of("blocks"), add=["(marked lamp)"])
    result = tk.solve(
        tk.PlanningProblem(
            scene, domain=path, semantics="blocks", goal="(and (marked a) (on b c))", robots="panda"
        )
    )
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan, domain=path, semantics="blocks").is_valid
    path.write_text(text.replace("lamp - object", "lamp a - block"), encoding="utf-8")
    with pytest.raises(
        TaskError,
        match=r"blocks\.pddl: constant 'a' is an object of the scene; expected a parameter",
    ):
        tk.solve(
            tk.PlanningProblem(
                scene, domain=path, semantics="blocks", goal="(marked a)", robots="panda"
            )
        )


def test_a_plan_with_motions_hopes_for_outcomes(tmp_path: Path) -> None:
    """Actions with several outcomes have motions by action name, and facts by outcome."""
    text = tk.data_path("domains/blocks/domain.pddl").read_text(encoding="utf-8")
    text = text.replace("(:predicates", "(:predicates (marked ?x - object) (seen ?x - object)", 1)
    assert text.count("(not (handempty))") == 2
    text = text.replace("(not (handempty))", "(not (handempty)) (oneof (and) (marked ?x))", 1)
    more = "(:action look :parameters (?x - object) :effect (oneof (and) (seen ?x)))"
    path = tmp_path / "blocks.pddl"
    path.write_text(text.rstrip().removesuffix(")") + more + ")", encoding="utf-8")
    scene, goal = tk.load_scene("panda_table", "blocks3"), "(and (marked a) (seen a))"
    result = tk.solve(
        tk.PlanningProblem(scene, domain=path, semantics="blocks", goal=goal),
        tk.PlanningOptions(seed=0),
    )
    assert result.plan is not None, result.explanation
    steps = {step.action.name: step for step in result.plan.steps}
    assert {*steps} == {"pick-up--2", "look--2"}
    assert steps["pick-up--2"].segments
    assert not steps["look--2"].segments
    assert {*task_facts(result.plan.steps[-1].scene)} == {("marked", ("a",)), ("seen", ("a",))}
    assert tk.validate_plan(result.plan, domain=path, semantics="blocks").is_valid


def test_facts_steer_the_plan_and_end_as_they_are_predicted() -> None:
    """Facts of a problem file are in the scene of the plan; the actions change them."""
    result = tk.solve(
        tk.PlanningProblem(
            tk.load_scene("panda_table", "blocks3"), domain=DOMAIN, semantics="blocks", goal=PROBLEM
        )
    )
    assert result.plan is not None, result.explanation
    names = [step.action.name for step in result.plan.steps]
    assert sorted(names) == ["pick-up", "pick-up", "stack", "stack", "switch-on", "wash", "wash"]
    assert set(task_facts(result.plan.scene)) == {("dirty", ("a",)), ("dirty", ("b",))}
    assert set(task_facts(result.plan.steps[-1].scene)) == {("lit", ("ceiling-lamp",))}
    assert tk.validate_plan(result.plan, domain=DOMAIN).is_valid


def test_plan_files_have_the_changes(tmp_path: Path) -> None:
    """A plan file contains the changes, and is rejected if they are impossible."""
    scene = change_task_facts(tk.load_scene("panda_table", "blocks3"), ["(dirty a)"])
    goal = "(and (lit ceiling-lamp) (not (dirty a)))"
    result = tk.solve(tk.PlanningProblem(scene, domain=DOMAIN, semantics="blocks", goal=goal))
    assert result.plan is not None
    path = tmp_path / "plan.json"
    tk.save_plan(result.plan, path)
    read = tk.load_plan(path)
    assert [step.changes for step in read.steps] == [step.changes for step in result.plan.steps]
    assert tk.validate_plan(read).is_valid
    document = json.loads(path.read_text(encoding="utf-8"))
    changed = next(step for step in document["steps"] if "facts" in step)
    for facts, reason in (
        ({"added": [["dirty", "a"]], "removed": []}, r"\(dirty a\) holds already"),
        ({"added": [], "removed": [["broken", "a"]]}, r"\(broken a\) does not hold"),
        ({"added": [[]], "removed": []}, "expected a predicate and its arguments"),
    ):
        changed["facts"] = facts
        path.write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(PlanFileError, match=reason):
            tk.load_plan(path)


def test_a_changed_plan_is_invalid() -> None:
    """The checker misses the facts of a plan without its changes."""
    scene = change_task_facts(tk.load_scene("panda_table", "blocks3"), ["(dirty a)"])
    result = tk.solve(
        tk.PlanningProblem(scene, domain=DOMAIN, semantics="blocks", goal="(not (dirty a))")
    )
    assert result.plan is not None
    document = tk.plans.plan_file.plan_to_dict(result.plan)
    other = tk.validate_plan(
        result.plan, domain=DOMAIN, scene=tk.load_scene("panda_table", "blocks3")
    )
    assert (
        "the task fact (dirty a) holds in only one of the plan's scene and yours" in other.problems
    )
    for step in document["steps"]:
        step.pop("facts", None)
    report = tk.validate_plan(tk.plans.plan_file.plan_from_dict(document), domain=DOMAIN)
    assert any(
        "derived state differs: missing (lit ceiling-lamp)" in problem
        for problem in report.problems
    )


def test_goals_of_all_kinds_combine() -> None:
    """A goal scene, PDDL and a region hold together at the end."""
    start = change_task_facts(tk.load_scene("panda_table", "blocks3"), ["(dirty a)"])
    wanted = change_task_facts(
        start.reparent("a", "b", pose=tk.Pose([0.0, 0.0, 0.05])), remove=["(dirty a)"]
    )
    goals = [GoalScene(wanted, ("a",)), "(lit ceiling-lamp)", ObjectIn("c", "table")]
    result = tk.solve(tk.PlanningProblem(start, domain=DOMAIN, semantics="blocks", goal=goals))
    assert result.plan is not None, result.explanation
    assert result.plan.goal == "(and (and (on a b) (not (dirty a))) (lit ceiling-lamp))"
    assert tk.validate_plan(result.plan, domain=DOMAIN).is_valid


def test_a_goal_scene_may_differ_in_facts_alone() -> None:
    """Facts are goals where the goal scene differs from the start."""
    start = change_task_facts(tk.load_scene("panda_table", "blocks3"), ["(dirty a)"])
    wanted = change_task_facts(start, ["(lit ceiling-lamp)"], ["(dirty a)"])
    assert (
        goal_of_scene(GoalScene(wanted, ()), start, domain=dishes())
        == "(and (lit ceiling-lamp) (not (dirty a)))"
    )
    with pytest.raises(SceneError, match="states no movable object"):
        goal_of_scene(GoalScene(start, ()), start, domain=dishes())


def test_a_fact_is_derived_or_stored_never_both(tmp_path: Path) -> None:
    """The message has the predicate and who derives it."""
    scene = tk.load_scene("panda_table", "blocks3")
    with pytest.raises(
        TaskError, match=r"stores \(clear a\), but semantics of domain 'blocks' derives"
    ):
        tk.solve(
            tk.PlanningProblem(
                change_task_facts(scene, ["(clear a)"]),
                domain=DOMAIN,
                semantics="blocks",
                goal="(on a b)",
            )
        )
    source = tk.data_path("domains/blocks/semantics.py").read_text(encoding="utf-8")
    text = source + "class Semantics(Semantics): stored_predicates = frozenset({'handempty'})\n"
    (tmp_path / "semantics.py").write_text(text, encoding="utf-8")
    (tmp_path / "domain.pddl").write_text(DOMAIN.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(
        TaskError, match=r"domain '.*': derives \(handempty\), but facts of 'handempty' are"
    ):
        tk.plan(scene, domain=tmp_path, goal="(on a b)")


def test_what_is_stored_must_exist(tmp_path: Path) -> None:
    """Objects and predicates of stored facts are known, and some action or scene has them."""
    scene = tk.load_scene("panda_table", "blocks3")
    with pytest.raises(TaskError, match=r"\(dirty plate\): unknown object 'plate'"):
        tk.solve(
            tk.PlanningProblem(
                change_task_facts(scene, ["(dirty plate)"]),
                domain=DOMAIN,
                semantics="blocks",
                goal="(on a b)",
            )
        )
    path = extend("blocks", tmp_path, "")
    with pytest.raises(
        TaskError, match=r"blocks.pddl:5: predicate 'marked' has no semantics: none derives"
    ):
        tk.solve(tk.PlanningProblem(scene, domain=path, semantics="blocks", goal="(on a b)"))
    source = tk.data_path("domains/blocks/semantics.py").read_text(encoding="utf-8")
    text = source + "class Semantics(Semantics): stored_predicates = frozenset({'dity'})\n"
    (tmp_path / "semantics.py").write_text(text, encoding="utf-8")
    with pytest.raises(
        TaskError, match="'stored_predicates' of the semantics: unknown predicate 'dity'"
    ):
        tk.solve(
            tk.PlanningProblem(
                scene, domain=DOMAIN, semantics=tmp_path / "semantics.py", goal="(on a b)"
            )
        )


def test_facts_of_other_domains_are_ignored() -> None:
    """A scene serves several domains."""
    scene = change_task_facts(tk.load_scene("panda_table", "blocks3"), ["(watered plant)"])
    result = tk.plan(scene, domain="blocks", goal="(holding a)")
    assert result.plan is not None
    assert set(task_facts(result.plan.steps[-1].scene)) == {("watered", ("plant",))}


def test_states_contain_stored_facts() -> None:
    """A state has the derived facts and the stored ones."""
    domain = dishes()
    scene = change_task_facts(tk.load_scene("panda_table", "blocks3"), ["(dirty a)"])
    state = domain.state(scene, scene.zero_configuration())
    assert Fact.of("dirty", "a") in state
    assert Fact.of("clear", "a") in state
    assert not DomainSemantics.stored_predicates
    assert domain.stored_predicates == {"dirty", "lit"}
