"""From a PDDL goal to a checked plan.

Three blocks stand on a table before a Panda; the goal is a tower. The plan is validated, and saved.
"""

import tempfile
from pathlib import Path

import tmkit as tk


def main() -> None:
    """Plan, look at the steps, check, save and load."""
    scene = tk.load_scene("panda_table", "blocks3")
    result = tk.plan(scene, domain="blocks", goal="(and (on a b) (on b c))", robot="panda", seed=0)
    print(result.explanation)
    assert result.plan is not None
    for step in result.plan.steps:
        print(f"{step.action}: {step.choice}")
        for segment in step.segments:
            print(f"    {segment}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        tk.save_plan(result.plan, path)
        again = tk.load_plan(path)
    print(again, tk.validate_plan(again))

    impossible = tk.plan(scene, goal="(and (on a b) (on b a))", robot="panda")
    print(impossible.status.value, "-", impossible.explanation)


if __name__ == "__main__":
    main()
