"""A scene is a value: every edit gives a new version, and the old one goes on to answer.

A cup stands on a table, is picked up by a swinging arm, and goes along; the version before still has it on the table.
"""

import numpy as np

import tmkit as tk


def main() -> None:
    """Build a small scene, pick the cup up, and compare the versions."""
    scene = tk.SceneGraph()
    scene = scene.add_frame("table", "world", pose=tk.Pose([0.5, 0.0, 0.4]))
    scene = scene.add_frame("cup", "table", pose=tk.Pose([0.0, 0.0, 0.05]), classes=["movable"])
    swing = tk.Revolute([0, 0, 1], lower=-2, upper=2)
    scene = scene.add_frame("arm", "world", pose=tk.Pose([0.0, 0.0, 0.5]), joint=swing)
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


if __name__ == "__main__":
    main()
