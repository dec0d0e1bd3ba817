"""Simulate a plan with physics: gravity, friction, real fingers, and a picture without a screen."""

import argparse
from pathlib import Path

import tmkit as tk


def main() -> None:
    """Plan for one block, simulate the plan, and print where the block ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = tk.load_scene("panda_table", "blocks1")
    result = tk.plan(scene, domain="blocks", goal="(ontable a table__0__1)", robot="panda", seed=0)
    assert result.plan is not None
    report = tk.simulate(
        result.plan, picture=folder / "play_plan.png", record=folder / "play_plan.gif"
    )
    print(report, "see", folder / "play_plan.gif")
    for name, error in report.errors.items():
        print(f"{name} ended {error.position * 1000:.1f} mm from its place")


if __name__ == "__main__":
    main()
