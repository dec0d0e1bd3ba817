"""Simulate a plan with physics: gravity, friction, real fingers, and a picture without a screen."""

import tempfile
from pathlib import Path

import tmkit as tk


def main() -> None:
    """Plan for one block, simulate the plan, and print where the block ended."""
    scene = tk.load_scene("panda_table", "blocks1")
    result = tk.plan(scene, domain="blocks", goal="(ontable a table__0__1)", robot="panda", seed=0)
    assert result.plan is not None
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "end.png"
        report = tk.simulate(result.plan, picture=picture)
        print(report, f"with a picture of {picture.stat().st_size} bytes")
    for name, error in report.errors.items():
        print(f"{name} ended {error.position * 1000:.1f} mm from its place")


if __name__ == "__main__":
    main()
