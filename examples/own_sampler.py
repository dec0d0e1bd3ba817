"""Custom samplers: a bottle is held by its neck and put down in the middle of a tray.

A sampler is a function from a request to grasps, or to placements; a class defines for which
objects it is called.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import tmkit as tk
from tmkit.manipulation import Grasp, GraspRequest, Placement, PlacementRequest, stable_faces
from tmkit.motion import support_surfaces


def by_the_neck(request: GraspRequest) -> Iterator[Grasp]:
    """Take a bottle by its neck from the side, whichever way it is turned: then one can pour."""
    neck = request.scene.pose("neck", relative_to=request.object).translation
    for k in range(16):
        yaw = k * math.pi / 8
        sideways = tk.Pose.from_rpy(neck, [-math.pi / 2, 0.0, yaw])  # the tool's z axis is level
        # its y axis too: it closes so
        upright = sideways @ tk.Pose.from_rpy([0.0, 0.0, 0.0], [0.0, 0.0, math.pi / 2])
        yield Grasp(upright, 0.03, f"by the neck at {math.degrees(yaw):.0f} degrees")


def in_the_middle(request: PlacementRequest) -> Iterator[Placement]:
    """Put an object upright in the middle of its support."""
    surface = support_surfaces(request.scene, request.support, q=request.q)[0]
    face = next(face for face in stable_faces(request.scene, request.object) if face.is_upright)
    for k in range(16):
        turned = tk.Pose.from_rpy(
            [*surface.polygon.centroid, face.height], [0.0, 0.0, k * math.pi / 8]
        )
        yield Placement(
            request.support,
            surface.support_from_surface @ turned @ face.rotation,
            f"middle, turn {k}",
        )


def bottle_scene() -> tk.SceneGraph:
    """Return the Panda at its table with a bottle and a tray."""
    glass, wood = (0.15, 0.45, 0.25, 1.0), (0.55, 0.35, 0.2, 1.0)
    body = tk.AttachedShape(tk.Cylinder(0.03, 0.12), color=glass)
    neck = tk.AttachedShape(tk.Cylinder(0.015, 0.08), tk.Pose([0.0, 0.0, 0.1]), color=glass)
    tray = tk.AttachedShape(tk.Box([0.16, 0.16, 0.01]), color=wood)
    scene = tk.load_scene("panda_table")
    scene = scene.add_frame(
        "tray", "table", pose=tk.Pose([-0.1, 0.25, 0.03]), classes=["region"], shapes=[tray]
    )
    scene = scene.add_frame(
        "bottle",
        "table",
        pose=tk.Pose([-0.1, -0.25, 0.085]),
        joint=tk.Free(),
        classes=["movable", "bottle"],
        shapes=[body, neck],
    )
    return scene.add_frame("neck", "bottle", pose=tk.Pose([0.0, 0.0, 0.105]))


def main() -> None:
    """Plan with both samplers, validate the plan, and print the chosen grasp and placement."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    samplers = (
        tk.Samplers()
        .with_grasps(by_the_neck, of_class="bottle")
        .with_placements(in_the_middle, of_class="bottle")
    )
    result = tk.plan(
        bottle_scene(),
        domain="kitchen",
        goal="(on bottle tray)",
        robot="panda",
        options=tk.PlanningOptions(samplers=samplers),
    )
    print(result.explanation)
    assert result.plan is not None
    for step in result.plan.steps:
        print(f"{step.action}: {step.choice}")
    print(tk.validate_plan(result.plan))
    print("see", tk.save_html(result.plan, folder / "own_sampler.html"))


if __name__ == "__main__":
    main()
