"""Wash dishes in the light: facts that no geometry shows, and actions without motion."""

from pathlib import Path

import tmkit as tk
from tmkit.graph import change_task_facts, task_facts
from tmkit.plans import ObjectIn

DOMAIN = Path(__file__).parent / "dishes" / "domain.pddl"


def main() -> None:
    """Plan, and print the changes of each step."""
    scene = change_task_facts(
        tk.load_scene("panda_table", "blocks3"), add=["(dirty a)", "(dirty b)"]
    )
    goal: list[str | ObjectIn] = ["(and (on a b) (on b c))", ObjectIn("c", "table")]
    result = tk.solve(tk.PlanningProblem(scene, domain=DOMAIN, semantics="blocks", goal=goal))
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        print(step.action, step.choice)
    print(tk.validate_plan(result.plan, domain=DOMAIN))
    print("at the end:", sorted(task_facts(result.plan.steps[-1].scene)))


if __name__ == "__main__":
    main()
