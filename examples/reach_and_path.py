"""Motion without tasks: inverse kinematics, a collision-free path, timing; ``--out`` is a page."""

import argparse
from pathlib import Path

import tmkit as tk
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    PathSettings,
    inverse_kinematics_solutions,
    search_path,
    time_path,
)
from tmkit.robots import movable_frames


def main() -> None:
    """Move the Panda's hand above the other side of the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = tk.load_scene("panda_table", "blocks3")
    arm = tk.load_manipulator("panda")
    start = arm.ready_configuration(scene)
    world = CollisionWorld(scene, movable=movable_frames(scene), margin=0.0)
    print("contacts at the start:", [(c.frame_a, c.frame_b) for c in world.contacts(start)])

    # Blocks touch the table they stand on: let them, by a millimetre.
    margins = {(block, "table"): -0.001 for block in movable_frames(scene)}
    world = CollisionWorld(scene, movable=movable_frames(scene), margin=0.001, pair_margins=margins)
    target = tk.Pose([0.4, -0.3, 0.15], quat_xyzw=[1, 0, 0, 0])  # the tool's z axis points down
    reached = inverse_kinematics_solutions(
        world,
        arm.tool,
        target_pose=target,
        joints=arm.joints,
        q=start,
        settings=IkSettings(max_solutions=4, seed=0),
    )
    print(reached)
    result = search_path(
        world, arm.joints, start=start, goals=reached.configurations, settings=PathSettings(seed=0)
    )
    print(result)

    columns = arm.joint_indices(scene)
    timed = time_path(
        result.path[:, columns],
        arm.velocity_limits(scene),
        acceleration_limits=arm.acceleration_limits(scene),
        rate=100.0,
    )
    print(timed)
    print("see", tk.save_html(scene, folder / "reach_and_path.html", q=result.path[-1]))


if __name__ == "__main__":
    main()
