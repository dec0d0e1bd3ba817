"""Export of a plan as a ROS 2 bag, and replay of its messages in the simulator."""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import tmkit as tk
from tmkit.plans import export_plan
from tmkit.simulation import Simulation

GRIPPER = "control_msgs/msg/GripperCommand"


def replay(bag: Path, simulation: Simulation, finger: str) -> None:
    """Send each message to the motors when its time has come."""
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg("float64 position\nfloat64 max_effort\n", GRIPPER))
    names = simulation.scene.joint_names
    q = np.array(simulation.q)
    with AnyReader([bag], default_typestore=store) as reader:
        for connection, _, raw in reader.messages():
            message: Any = reader.deserialize(raw, connection.msgtype)
            if connection.msgtype == GRIPPER:
                q[names.index(finger)] = message.position
                simulation.command_fingers(q, force=message.max_effort)
                wait(simulation, 0.5)
                continue
            columns = [names.index(name) for name in message.joint_names]
            begin, last = simulation.time, np.array(q[columns])
            # from each to the next in small steps, as a controller does
            for point in message.points:
                due = begin + point.time_from_start.sec + point.time_from_start.nanosec * 1e-9
                count = round((due - simulation.time) / simulation.settings.time_step)
                speed = np.zeros(len(q))
                speed[columns] = (point.positions - last) / max(due - simulation.time, 1e-9)
                for k in range(count):
                    q[columns] = last + (point.positions - last) * k / count
                    simulation.command(q, speed)
                    simulation.step()
                last = np.array(point.positions)
            q[columns] = last
            simulation.command(q)


def wait(simulation: Simulation, seconds: float) -> None:
    """Let the physics go on for some time."""
    simulation.step(max(0, round(seconds / simulation.settings.time_step)))


def main() -> None:
    """Plan for one block, export the plan, replay the bag, and print the block's final pose."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for the bag"
    )
    bag = parser.parse_args().out / "plan_bag"
    bag.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(bag, ignore_errors=True)
    scene = tk.load_scene("panda_table", "blocks1")
    plan = tk.plan(
        scene, domain="blocks", goal="(ontable a table__0__1)", robot="panda", seed=0
    ).plan
    assert plan is not None
    export_plan(plan, bag, format="ros2", rate=100.0)
    with Simulation.from_scene(plan.scene, q=plan.q, robot=plan.robots) as simulation:
        replay(bag, simulation, plan.robots[0].gripper_joints[0])
        wait(simulation, 1.0)
        wanted, ended = plan.steps[-1].scene.pose("a", q=plan.steps[-1].q), simulation.pose("a")
    print(
        f"block a ended {1000 * ended.distance(wanted)[0]:.1f} mm from its place, after the"
        f" messages in {bag}"
    )


if __name__ == "__main__":
    main()
