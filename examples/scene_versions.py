"""Scenes as values: every edit gives a new version, and the old one stays valid.

A cup stands on a table, is picked up by a swinging arm, and goes along; the version before still
has it on the table. It writes a page with the end.
"""

import argparse
from pathlib import Path

import numpy as np

import tmkit as tk


def main() -> None:
    """Build a small scene, pick the cup up, and compare the versions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = tk.SceneGraph()
    top, cup = (
        [tk.AttachedShape(tk.Box([0.4, 0.6, 0.02]))],
        [tk.AttachedShape(tk.Cylinder(0.03, 0.08))],
    )
    bar = [tk.AttachedShape(tk.Box([0.5, 0.04, 0.02]), tk.Pose([0.25, 0.0, 0.0]))]
    scene = scene.add_frame("table", "world", pose=tk.Pose([0.5, 0.0, 0.4]), shapes=top)
    scene = scene.add_frame(
        "cup", "table", pose=tk.Pose([0.0, 0.0, 0.05]), classes=["movable"], shapes=cup
    )
    swing = tk.Revolute([0, 0, 1], lower=-2, upper=2)
    scene = scene.add_frame("arm", "world", pose=tk.Pose([0.0, 0.0, 0.5]), joint=swing, shapes=bar)
    scene = scene.add_frame("hand", "arm", pose=tk.Pose([0.5, 0.0, 0.0]))

    at_grasp = scene.configuration({"arm": 0.0})
    held = scene.reparent("cup", "hand", q=at_grasp)  # keeps the cup's place in the world
    turned = held.configuration({"arm": np.pi / 2})

    print("versions:", scene, "and", held)
    print("cup in the hand:   ", held.pose("cup", relative_to="hand"))
    print("after a turn, held:", held.pose("cup", relative_to="world", q=turned).translation)
    print("in the old version:", scene.pose("cup", relative_to="world").translation)

    with scene.edit() as edit:  # many edits, one new version
        for i in range(3):
            edit.add_frame(f"plate_{i}", "table", pose=tk.Pose([0.1 * i, 0.2, 0.0]))
    laid = edit.finish()
    print("with plates:", laid.children("table"), "before:", scene.children("table"))
    print(
        "to turn in a browser:", tk.save_html(held, folder / "scene_versions.html", q=turned).name
    )


if __name__ == "__main__":
    main()
