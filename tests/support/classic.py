"""Classic problems: towers of Hanoi, sorting and rearrangement, by scene and problem file."""

from __future__ import annotations

from pathlib import Path

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.robots import load_manipulator, movable_frames
from tmkit.tamp import PlanResult, load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain

__all__ = ["checked", "classic_domain", "facts_of", "plan_problem", "problem_file"]


def problem_file(domain: str, problem: str) -> Path:
    """Return the path of a problem file of ours."""
    return tk.data_path(f"domains/{domain}/problems/{problem}.pddl")


def plan_problem(
    domain: str,
    problem: str,
    *,
    scene: str,
    robot: str = "panda",
    table: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
) -> PlanResult:
    """Plan for a problem of ours, with an arm at its table, or at another one."""
    world = tk.load_scene(table or f"{robot}_table", scene)
    file = problem_file(domain, problem)
    return tk.plan(
        world,
        domain=domain,
        goal=file,
        robot=robot,
        seed=seed,
        options=tk.PlanningOptions(time_limit=time_limit),
    )


def checked(result: PlanResult) -> Plan:
    """Return the plan that there must be, and that must pass its check."""
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    return result.plan


def classic_domain(name: str, *, robot: str = "panda") -> PlanningDomain:
    """Return a domain of ours with its meaning for one arm."""
    return load_planning_domain(name, robot=load_manipulator(robot))


def require_rest(scene: SceneGraph, domain: PlanningDomain) -> None:
    """Derive the state, and check that each object rests as a placed one must.

    Raises:
        SceneError: if the state cannot be derived, or an object does not rest.
    """
    facts_of(scene, domain)
    for object in movable_frames(scene):
        if (fault := domain.semantics.rest_fault(scene, object)) is not None:
            raise SceneError(fault.text, frame=object)


def facts_of(scene: SceneGraph, domain: PlanningDomain) -> set[str]:
    """Return the facts that hold in a scene, as texts."""
    semantics = domain.semantics
    return {
        str(fact)
        for fact in semantics.state(scene, semantics.objects(scene), scene.zero_configuration())
    }
