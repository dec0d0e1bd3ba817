"""A custom domain: two cartons are moved from one tray to another.

The folder ``trays`` holds the domain (``domain.pddl`` and ``semantics.py``) and a scene for it. The
plan is written to ``--out`` as a page.
"""

import argparse
from pathlib import Path

import tmkit as tk

TRAYS = Path(__file__).parent / "trays"


def main() -> None:
    """Plan in the domain of the folder, and check the plan by it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = tk.load_scene("panda_table", TRAYS / "trays.robray")
    result = tk.plan(
        scene, domain=TRAYS, goal="(forall (?i - item) (in ?i right))", robot="panda", seed=0
    )
    print(result.explanation)
    assert result.plan is not None
    for step in result.plan.steps:
        print(f"{step.action}: {step.choice}")
    print(tk.validate_plan(result.plan, domain=TRAYS))
    print("see", tk.save_html(result.plan, folder / "own_domain.html"))


if __name__ == "__main__":
    main()
