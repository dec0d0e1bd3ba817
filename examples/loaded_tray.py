"""A loaded tray: one edit picks it up with its load, another puts it down.

A Panda takes a tray by its handle, with two cups and a jug on it, and puts it down on the other
side of the table. Only the tray's parent changes: the objects on it are its children, and come
along.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Cylinder
from tmkit.motion import IkSettings, inverse_kinematics_solutions


def laid(scene: tk.SceneGraph) -> tk.SceneGraph:
    """Put a loaded tray on the table; its handle passes over the objects on it."""
    tray = AttachedShape(Box([0.3, 0.3, 0.02]))
    handle = AttachedShape(Box([0.02, 0.3, 0.02]), tk.Pose([0.0, 0.0, 0.25]))
    cup, jug = AttachedShape(Cylinder(0.03, 0.08)), AttachedShape(Cylinder(0.05, 0.2))
    with scene.edit() as edit:
        place = tk.Pose([-0.1, -0.25, 0.035])
        edit.add_frame(
            "tray", "table", pose=place, classes=["movable", "surface"], shapes=[tray, handle]
        )
        edit.add_frame(
            "cup_1", "tray", pose=tk.Pose([0.06, 0.08, 0.05]), classes=["movable"], shapes=[cup]
        )
        edit.add_frame(
            "cup_2", "tray", pose=tk.Pose([0.06, -0.08, 0.05]), classes=["movable"], shapes=[cup]
        )
        edit.add_frame(
            "jug", "tray", pose=tk.Pose([-0.08, 0.0, 0.11]), classes=["movable"], shapes=[jug]
        )
    return edit.finish()


def show(title: str, scene: tk.SceneGraph, q: NDArray[np.float64]) -> None:
    """Print the positions of the tray and of the objects on it [m]."""
    print(f"{title}: the parent of the tray is '{scene.parent('tray')}'")
    kinematics = scene.at(q)
    for name in scene.subtree("tray"):
        x, y, z = kinematics.pose(name).translation
        print(f"    {name:5}  {x:6.3f} {y:6.3f} {z:6.3f}")


def main() -> None:
    """Load a tray, pick it up, carry it, put it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = laid(tk.load_scene("panda_table"))
    arm = tk.load_manipulator("panda")
    q = arm.ready_configuration(scene)

    def hand_over(x: float, y: float, turn: float) -> NDArray[np.float64]:
        """Return a configuration in which the hand points down at the height of the handle."""
        target = tk.Pose.from_rpy([x, y, 0.26], [math.pi, 0.0, turn])
        solutions = inverse_kinematics_solutions(
            scene,
            arm.tool,
            target_pose=target,
            joints=arm.joints,
            q=q,
            settings=IkSettings(max_solutions=1, seed=0),
        )
        configuration: NDArray[np.float64] = solutions.configurations[0]
        return configuration

    grasp, release = hand_over(0.5, -0.25, 0.0), hand_over(0.5, 0.25, math.pi / 2)
    show("Before", scene, grasp)
    # one edit, however much stands on the tray
    held = scene.reparent("tray", "panda_hand", q=grasp)
    show("Carried", held, release)
    put = held.reparent("tray", "table", q=release)
    show("After", put, q)

    assert all(
        put.pose(name, relative_to="tray") == scene.pose(name, relative_to="tray")
        for name in scene.children("tray")
    )
    print(
        "On the tray nothing has moved, and the scene from before still has it at",
        scene.pose("tray", relative_to="table"),
    )
    tk.save_html(held, folder / "loaded_tray.html", q=release)  # carried


if __name__ == "__main__":
    main()
