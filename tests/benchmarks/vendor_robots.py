"""Robots from their vendors' files to the simulated pick of a cube, by the commands of a user.

Run by hand: ``python tests/benchmarks/vendor_robots.py FOLDER [--robots ...] [--out
docs/results/tables/vendor_robots.md]``. The folder, by default that of the environment variable
``TMKIT_VENDOR_ROBOTS``, contains checkouts of the public repositories of :data:`ROBOTS` under their
own names, without the owners. No file of a vendor is part of tmkit. For each robot, these commands
run in an empty folder:

    tmkit new robot FILE [--xacro NAME:=VALUE] [--hand FILE] --yes --out robot.toml
    tmkit plan FILE work.robray --robot robot.toml --goal "(holding cube)" -o plan.json
    tmkit simulate plan.json

The second command reads ``robot.json`` instead if the first added a tool frame or a hand. The file
``work.robray`` has a cube on a plate within the reach of the robot.

Exit code 1: a robot failed, or its repository is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, markdown_table, table_parser

VARIABLE = "TMKIT_VENDOR_ROBOTS"
"""Environment variable with the folder of the checkouts."""

HEAD = """# Robots of vendors: from their files to a simulated pick

{picked} of {count} robots pick a cube in simulation by three commands: `tmkit new robot FILE
--yes`, `tmkit plan` and `tmkit simulate`. The files are those of the vendors' public repositories
on GitHub, checked out side by side; arguments such as `dof:=6` are those of `--xacro`. Times are of
the processor, with the start of each command. The hand is inferred by the first command, and the
warnings are about the file. The first description of a jaw divides its meshes into convex pieces,
which are cached: most of the time of the SO-101. Written by `python
tests/benchmarks/vendor_robots.py FOLDER --out docs/results/tables/vendor_robots.md`.
"""
"""First lines of the table."""

_COMMAND_SECONDS = 600
"""Time limit of one command [s]."""

_WORK = """\
include "package://tmkit/scenes/classes.robray"

frame work {{
    translation [{x}, {y}, {top} - 1*cm];
    isa surface;
    geometry {{ shape box; dimension [{plate}, {plate}, 2*cm]; }}
}}
frame cube {{
    parent work;
    isa movable;
    mass 0.05;
    friction 1.0;
    translation [0, 0, 1*cm + {side} / 2];
    geometry {{ shape box; dimension [{side}, {side}, {side}]; isa red; }}
}}
"""
"""Scene with a cube on a plate."""


@dataclass(frozen=True)
class VendorRobot:
    """Robot in a vendor's repository.

    Attributes:
        name: name in the table.
        repositories: repositories on GitHub, ``OWNER/NAME``, with the branch if it is not the
            default one.
        file: path from the folder of the checkouts, which begins with the repository.
        work: (3,) position of the top of the plate, in root axes [m].
        xacro: arguments of the xacro files, each ``NAME:=VALUE``.
        hand: path of the file of a hand to mount.
        side: side of the cube [m].
        plate: side of the plate [m].
    """

    name: str
    repositories: tuple[str, ...]
    file: str
    work: tuple[float, float, float]
    xacro: tuple[str, ...] = ()
    hand: str = ""
    side: float = 0.04
    plate: float = 0.2


ROBOTS = (
    VendorRobot(
        "SO-101",
        ("TheRobotStudio/SO-ARM100",),
        "SO-ARM100/Simulation/SO101/so101_new_calib.urdf",
        (0.24, 0.08, 0.0),
        side=0.03,
        plate=0.1,
    ),
    VendorRobot(
        "Koch v1.1",
        ("perezjln/gym-lowcostrobot",),
        "gym-lowcostrobot/gym_lowcostrobot/assets/low_cost_robot_6dof/follower.xml",
        (0.05, 0.17, 0.0),
        side=0.03,
        plate=0.1,
    ),
    VendorRobot(
        "xArm6, gripper",
        ("xArm-Developer/xarm_ros2",),
        "xarm_ros2/xarm_description/urdf/xarm_device.urdf.xacro",
        (0.45, 0.0, 0.0),
        xacro=("dof:=6", "add_gripper:=true"),
    ),
    VendorRobot(
        "xArm7, gripper",
        ("xArm-Developer/xarm_ros2",),
        "xarm_ros2/xarm_description/urdf/xarm_device.urdf.xacro",
        (0.45, 0.0, 0.0),
        xacro=("dof:=7", "add_gripper:=true"),
    ),
    VendorRobot(
        "UR10e, Robotiq 2F-85",
        (
            "UniversalRobots/Universal_Robots_ROS2_Description",
            "PickNikRobotics/ros2_robotiq_gripper",
        ),
        "Universal_Robots_ROS2_Description/urdf/ur.urdf.xacro",
        (0.7, 0.0, 0.0),
        xacro=("ur_type:=ur10e", "name:=ur"),
        hand="ros2_robotiq_gripper/robotiq_description/urdf/robotiq_2f_85_gripper.urdf.xacro",
    ),
    VendorRobot(
        "Kinova Gen3, Robotiq 2F-85",
        ("Kinovarobotics/ros_kortex",),
        "ros_kortex/kortex_description/robots/gen3_robotiq_2f_85.xacro",
        (0.5, 0.0, 0.0),
    ),
    VendorRobot(
        "Franka FR3, hand",
        ("frankaemika/franka_description",),
        "franka_description/robots/fr3/fr3.urdf.xacro",
        (0.5, 0.0, 0.0),
    ),
    VendorRobot(
        "Fetch",
        ("fetchrobotics/fetch_ros",),
        "fetch_ros/fetch_description/robots/fetch.urdf",
        (0.7, 0.0, 0.7),
    ),
    VendorRobot(
        "TIAGo, PAL gripper",
        (
            "pal-robotics/tiago_robot",
            "pal-robotics/pmb2_robot",
            "pal-robotics/pal_gripper",
            "pal-robotics/pal_urdf_utils (humble-devel)",
        ),
        "tiago_robot/tiago_description/robots/tiago.urdf.xacro",
        (0.65, 0.0, 0.7),
        xacro=("end_effector:=pal-gripper",),
    ),
    VendorRobot(
        "PR2",
        ("PR2/pr2_common",),
        "pr2_common/pr2_description/robots/pr2.urdf.xacro",
        (0.6, -0.2, 0.6),
    ),
    VendorRobot(
        "Baxter, electric gripper",
        ("RethinkRobotics/baxter_common",),
        "baxter_common/baxter_description/urdf/baxter.urdf.xacro",
        (0.7, 0.3, 0.0),
    ),
    VendorRobot(
        "ALOHA arm (ViperX 300 S)",
        ("Interbotix/interbotix_ros_manipulators",),
        "interbotix_ros_manipulators/interbotix_ros_xsarms/interbotix_xsarm_descriptions/urdf/"
        "vx300s.urdf.xacro",
        (0.35, 0.0, 0.0),
    ),
)
"""Robots of the table."""


@dataclass(frozen=True)
class Row:
    """Result of one robot.

    Attributes:
        robot: the robot.
        seconds: processor time of each command that ran [s].
        told: inferred hand.
        n_warnings: number of warnings of the first command.
        outcome: ``picked``, or the reason why not.
    """

    robot: VendorRobot
    seconds: tuple[float, ...]
    told: str
    n_warnings: int
    outcome: str

    @property
    def is_picked(self) -> bool:
        """Whether the cube was picked in simulation."""
        return self.outcome == "picked"


def run(robot: VendorRobot, checkouts: Path) -> Row:
    """Describe a robot, plan to pick a cube and execute the plan, by the command line.

    Args:
        robot: robot of the table.
        checkouts: folder of the checkouts.
    """
    file = checkouts / robot.file
    if not file.is_file():
        return Row(robot, (), "", 0, f"no file {robot.file}")
    options = [part for argument in robot.xacro for part in ("--xacro", argument)]
    if file.suffix == ".xacro" and not options:
        options = ["--allow-xacro"]
    hand = ["--hand", str(checkouts / robot.hand)] if robot.hand else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        x, y, top = robot.work
        work = _WORK.format(x=x, y=y, top=top, side=robot.side, plate=robot.plate)
        (folder / "work.robray").write_text(work, encoding="utf-8")
        describe = ["new", "robot", str(file), *options, *hand, "--yes", "--out", "robot.toml"]
        text, code, described = _run_command(describe, folder)
        hands = re.findall(r"^inferred: hand: (.*)$", text, re.MULTILINE)
        told, n_warnings = "; ".join(hands), len(re.findall(r"^warning: ", text, re.MULTILINE))
        if code:
            return Row(robot, (described,), told, n_warnings, _last_line(text))
        scene = ["robot.json"] if (folder / "robot.json").exists() else [str(file), *options]
        goal = ["--robot", "robot.toml", "--goal", "(holding cube)", "-o", "plan.json"]
        text, code, planned = _run_command(["plan", *scene, "work.robray", *goal], folder)
        if code:
            return Row(robot, (described, planned), told, n_warnings, _last_line(text))
        text, code, simulated = _run_command(["simulate", "plan.json"], folder)
        outcome = "picked" if code == 0 else _last_line(text)
        return Row(robot, (described, planned, simulated), told, n_warnings, outcome)


def _run_command(arguments: Sequence[str], folder: Path) -> tuple[str, int, float]:
    """Return output, exit code and processor time [s] of a command of tmkit in a folder."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        [sys.executable, "-m", "tmkit.cli", *arguments, "--quiet"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    return process.stdout, process.returncode, seconds


def _last_line(text: str) -> str:
    """Return the last line of an output that is not empty, without the bars of a table."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip().replace("|", "/") if lines else "no output"


def page_of(rows: Sequence[Row]) -> str:
    """Return the results as a Markdown page."""
    titles = (
        "robot",
        "repositories",
        "file",
        "described",
        "planned",
        "simulated",
        "hand",
        "warnings",
        "outcome",
    )
    cells = []
    for row in rows:
        robot = row.robot
        file = " ".join([f"`{robot.file}`", *(f"`{argument}`" for argument in robot.xacro)])
        if robot.hand:
            file += f" with `{robot.hand}`"
        seconds = [f"{value:.1f} s" for value in row.seconds]
        seconds += ["-"] * (3 - len(seconds))
        repositories = "<br>".join(robot.repositories)
        told = [row.told, row.n_warnings, row.outcome]
        cells.append([robot.name, repositories, file, *seconds, *told])
    picked = sum(row.is_picked for row in rows)
    lines = [HEAD.format(picked=picked, count=len(rows)), *markdown_table(titles, cells)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table, and return the exit code."""
    parser = table_parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=os.environ.get(VARIABLE))
    names = [robot.name for robot in ROBOTS]
    parser.add_argument("--robots", nargs="+", metavar="NAME", choices=names, default=names)
    arguments: argparse.Namespace = parser.parse_args()
    if arguments.folder is None:
        parser.error(f"give the folder of the checkouts, or set {VARIABLE}")
    rows = []
    for robot in ROBOTS:
        if robot.name in arguments.robots:
            rows.append(run(robot, Path(arguments.folder).resolve()))
            seconds = ", ".join(f"{value:.1f}" for value in rows[-1].seconds)
            print(f"{robot.name}: {rows[-1].outcome} ({seconds} s)", file=sys.stderr, flush=True)
    deliver(page_of(rows), arguments.out)
    return 0 if all(row.is_picked for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
