"""Arms on mobile bases: two prismatic joints and a turn carry the chassis, and it the arm.

::

    root --- x --- y --- yaw ---> chassis ---> arm

The base is a second robot in a plan, which drives while the arm is at rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmkit._support.argument_errors import check_argument
from tmkit.errors import RobotError
from tmkit.graph import Continuous, Prismatic, SceneGraph
from tmkit.graph.rigid import collapse_fixed_frames
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.robot_files import Robot, find_manipulator
from tmkit.spatial import Pose

_SPEED = {"x": 0.5, "y": 0.5, "yaw": 0.8}
"""Largest velocity and acceleration of the base, with an object in the hand [m or rad, s]."""


def mount_on_base(
    scene: SceneGraph,
    robot: Robot,
    chassis: SceneGraph,
    *,
    pose: Pose,
    area: Sequence[Sequence[float]],
    name: str = "base",
) -> tuple[SceneGraph, Manipulator]:
    """Mount an arm on an omnidirectional base that drives in the plane of the root.

    The base has the joints ``NAME/x``, ``NAME/y`` and ``NAME/yaw``. The frames of the chassis get
    the prefix ``NAME/``; frames without a joint are merged, and the wheels are not driven.

    Args:
        scene: scene with the arm alone, such as that of its URDF.
        robot: the arm.
        chassis: scene of the base, such as that of its URDF: z up, x ahead.
        pose: chassis_from_arm, pose of the base frame of the arm in the root of the chassis.
        area: (2, 2) lower and upper corner of the area in which the base drives, x and y in the
            root [m].
        name: name of the base and prefix of its frames and joints.

    Returns:
        The scene with the arm on the base, and the base as a robot without a gripper. Plan with
        ``robot=(arm, base)``.

    Raises:
        RobotError: if the chassis has no collision shape that moves with its root, or the area is
            empty.
        DuplicateNameError: if a name of the base is taken.
    """
    arm = find_manipulator(robot, scene)
    check_argument(chassis, SceneGraph, "chassis", function="mount_on_base")
    (low_x, low_y), (high_x, high_y) = area
    if not (low_x < high_x and low_y < high_y):
        raise RobotError(f"area: the lower corner {area[0]} is not below the upper one {area[1]}")
    chassis = collapse_fixed_frames(chassis)
    (chassis_root,) = chassis.root_names
    if not any(attached.collision for attached in chassis.shapes(chassis_root)):
        raise RobotError(f"the chassis has no collision shape that moves with '{chassis_root}'")
    root, tip = scene.root(arm.base), f"{name}/{chassis_root}"
    top = next(
        frame for frame in (arm.base, *scene.ancestors(arm.base)) if scene.parent(frame) == root
    )
    with scene.edit() as edit:
        edit.add_frame(
            f"{name}/x",
            root,
            joint=Prismatic([1, 0, 0], lower=low_x, upper=high_x, name=f"{name}/x"),
        )
        edit.add_frame(
            f"{name}/y",
            f"{name}/x",
            joint=Prismatic([0, 1, 0], lower=low_y, upper=high_y, name=f"{name}/y"),
        )
        edit.add_frame(f"{name}/yaw", f"{name}/y", joint=Continuous([0, 0, 1], name=f"{name}/yaw"))
    mounted = edit.finish().mount(chassis, f"{name}/yaw", prefix=f"{name}/")
    base_from_top = pose @ scene.pose(top, relative_to=arm.base)
    mounted = mounted.reparent(top, tip, pose=base_from_top)
    speeds = {f"{name}/{axis}": speed for axis, speed in _SPEED.items()}
    base = Manipulator(
        name=name,
        base=root,
        tip=tip,
        tool=arm.tool,
        joints=tuple(speeds),
        ready=dict.fromkeys(speeds, 0.0),
        velocity=speeds,
        acceleration=speeds,
        gripper_kind="none",
    )
    return mounted, base
