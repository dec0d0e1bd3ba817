"""Kitchen tasks: actions that move objects, that change them, and that only move the arm.

An iiwa stands between a stove and a sink. Two of four blocks are to be cooked, which takes washing
first. Written to ``--out``: the plan as a page, and pictures of the start, of the arm taking the
second block, and of the end.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.simulation import Camera, Simulation, render, write_picture

VIEW = Camera((2.3, -1.65, 1.5), (0.03, 0.0, 0.52), field_of_view=0.62, width=480, height=460)


def main() -> None:
    """Plan, and print the changes of each step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = tk.load_scene("iiwa_kitchen", "kitchen_blocks4")
    result = tk.plan(
        scene, domain="kitchen", goal="(and (cooked b0) (cooked b1) (athome))", robot="iiwa_flange"
    )
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        changes = ", ".join(map(str, step.changes)) or ", ".join(
            segment.kind.value for segment in step.segments
        )
        print(f"{step.action}: {changes}")
    print(tk.validate_plan(result.plan))

    pictures = [picture_of(result.plan, number) for number in (0, 7, len(result.plan.steps))]
    print("see", write_picture(folder / "kitchen.png", np.concatenate(pictures, axis=1)))
    print("see", tk.save_html(result.plan, folder / "kitchen.html"))


def picture_of(plan: tk.Plan, number: int) -> NDArray[np.uint8]:
    """Return a picture (height, width, 3) of the world after so many steps."""
    scene: SceneGraph = plan.steps[number - 1].scene if number else plan.scene
    q = plan.steps[number - 1].q if number else plan.q
    with Simulation.from_scene(scene, q, robot=plan.robot) as simulation:
        return render(simulation, VIEW)


if __name__ == "__main__":
    main()
