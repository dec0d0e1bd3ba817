"""Grasps from files: one block is taken by grasps of GraspNet, another by grasps of MoveIt.

The files are written here as their publishers write them, for blocks of 5 cm. GraspNet has the pose
of a gripper of its own, MoveIt that of a link of the robot.
"""

import argparse
import math
from pathlib import Path

import numpy as np

import tmkit as tk
from tmkit.manipulation import load_grasps

MESSAGE = """\
id: "turned by {degrees:.0f} degrees"
pre_grasp_posture:
  joint_names: [panda_finger_joint1, panda_finger_joint2]
  points:
  - positions: [0.035, 0.035]
grasp_pose:
  header: {{frame_id: b}}
  pose:
    position: {{x: 0.0, y: 0.0, z: 0.1034}}
    orientation: {{x: {x!r}, y: {y!r}, z: 0.0, w: 0.0}}
grasp_quality: 0.9
---
"""


def write_graspnet(path: Path) -> None:
    """Write an array of grasps from above, as GraspGroup.save_npy of graspnetAPI does.

    A row has score, width, height, depth, rotation (9), translation (3) and object id. The
    gripper's x axis points along the approach, its y axis from one finger to the other.
    """
    rows = []
    for k in range(4):
        closing = np.array([math.cos(k * math.pi / 2), math.sin(k * math.pi / 2), 0.0])
        approach = np.array([0.0, 0.0, -1.0])
        rotation = np.column_stack([approach, closing, np.cross(approach, closing)])
        rows.append([0.9 - 0.1 * k, 0.07, 0.02, 0.02, *rotation.ravel(), 0.0, 0.0, 0.01, -1.0])
    np.save(path, np.array(rows))


def write_moveit(path: Path) -> None:
    """Write messages moveit_msgs/Grasp, as ``ros2 topic echo`` prints them, for ``panda_hand``."""
    messages = []
    for k in range(4):
        half = k * math.pi / 4
        # Half a turn about a horizontal axis: the hand's z axis points down.
        messages.append(
            MESSAGE.format(degrees=math.degrees(2 * half), x=math.cos(half), y=math.sin(half))
        )
    path.write_text("".join(messages), encoding="utf-8")


def main() -> None:
    """Load both files, plan a tower with their grasps, validate and simulate it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder of the files"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    write_graspnet(folder / "grasps.npy")
    write_moveit(folder / "grasps.yaml")

    scene = tk.load_scene("panda_table", "blocks3")
    samplers = tk.Samplers()
    for grasps in (
        load_grasps(folder / "grasps.npy", scene, "a"),
        load_grasps(folder / "grasps.yaml", scene, "b", gripper_frame="panda_hand"),
    ):
        print(grasps.summary)
        print(" ", grasps.check(scene, robot="panda").summary)
        samplers = samplers.with_grasps(grasps, of_frame=grasps.object)

    options = tk.PlanningOptions(samplers=samplers)
    result = tk.plan(scene, goal="(and (on a b) (on b c))", robot="panda", options=options)
    print(result.explanation)
    assert result.plan is not None
    for step in result.plan.steps:
        print(f"{step.action}: {step.choice}")
    print(tk.validate_plan(result.plan))
    print(tk.simulate(result.plan))


if __name__ == "__main__":
    main()
