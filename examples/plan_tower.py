"""From a PDDL goal to a checked plan.

Three blocks stand on a table before a Panda; the goal is a tower. The plan is validated, and saved
to ``--out``, also as a page.
"""

import argparse
from pathlib import Path

import tmkit as tk


def main() -> None:
    """Plan, look at the steps, check, save and load."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = tk.load_scene("panda_table", "blocks3")
    result = tk.plan(scene, domain="blocks", goal="(and (on a b) (on b c))", robot="panda", seed=0)
    print(result.explanation)
    assert result.plan is not None
    for step in result.plan.steps:
        print(f"{step.action}: {step.choice}")
        for segment in step.segments:
            print(f"    {segment}")

    tk.save_plan(result.plan, folder / "plan_tower.json")
    again = tk.load_plan(folder / "plan_tower.json")
    print(again, tk.validate_plan(again))
    print("see", tk.save_html(again, folder / "plan_tower.html"))

    impossible = tk.plan(scene, goal="(and (on a b) (on b a))", robot="panda")
    print(impossible.status.value, "-", impossible.explanation)


if __name__ == "__main__":
    main()
