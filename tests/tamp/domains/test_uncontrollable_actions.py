"""Plans with motions that survive uncontrollable actions of the domain."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmkit as tk
from tmkit.graph import change_task_facts
from tmkit.tamp import PlanStatus
from tmkit.tamp.result import PlanResult

SHATTER = """(:action shatter :uncontrollable t :parameters (?x - block)
  :precondition (and (holding ?x) (glass ?x))
  :effect (and (not (holding ?x)) (handempty) (broken ?x)))"""

SLIP = """(:action slip :uncontrollable t :parameters (?x - block ?l - location)
  :precondition (and (holding ?x) (clear ?l))
  :effect (and (not (holding ?x)) (not (clear ?l)) (clear ?x) (handempty) (ontable ?x ?l)))"""


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    """Return the file of the blocks domain with two uncontrollable actions."""
    text = tk.data_path("domains/blocks/domain.pddl").read_text(encoding="utf-8")
    text = text.replace("(:predicates", "(:predicates (glass ?x - block) (broken ?x - block)", 1)
    path = tmp_path / "domain.pddl"
    path.write_text(text.rstrip().removesuffix(")") + SHATTER + SLIP + ")", encoding="utf-8")
    return path


def solve(domain: Path, goal: str, glass: str) -> PlanResult:
    """Plan in a scene with three blocks on a table, of which one is made of glass."""
    scene = change_task_facts(tk.load_scene("panda_table", "blocks3"), [f"(glass {glass})"])
    problem = tk.PlanningProblem(
        scene, domain=domain, semantics="blocks", goal=goal, robots="panda"
    )
    return tk.solve(problem, tk.PlanningOptions(seed=1))


@pytest.mark.parametrize(("glass", "moved"), [("a", "b"), ("b", "a")])
def test_a_plan_avoids_what_it_does_not_survive(domain: Path, glass: str, moved: str) -> None:
    """Only the block that is not of glass is moved."""
    result = solve(domain, "(or (on a b) (on b a))", glass)
    assert result.plan is not None, result.explanation
    names = [str(action) for action in result.plan.actions]
    assert len(names) == 2
    assert names[0].startswith(f"(pick-up {moved} ")
    assert tk.validate_plan(result.plan, domain=domain, semantics="blocks").is_valid


def test_the_action_that_defeats_every_plan_is_named(domain: Path) -> None:
    """The block of glass has to be moved; that it may shatter is the proof."""
    result = solve(domain, "(on a b)", "a")
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "the uncontrollable action 'shatter' defeats every plan" in result.explanation
    assert "(shatter a) can happen after (pick-up a" in result.explanation
