"""Robots that execute plans: controllers of ROS 2, or an arm of LeRobot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.errors import ConfigurationError

if TYPE_CHECKING:
    from tmkit.plans import Plan
    from tmkit.world import ControllerSettings, LeRobotSettings
    from tmkit.world.execution.reporting import ReportingExecutor

    RobotSettings = ControllerSettings | LeRobotSettings


@dataclass(frozen=True)
class RobotFiles:
    """Files that describe the interface of a robot."""

    controllers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="MoveIt's moveit_controllers.yaml, or a TOML file; again for further ones.",
        ),
    ] = None
    lerobot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A TOML file of the joints and the type of a robot of LeRobot."
        ),
    ] = None

    def load(self) -> RobotSettings:
        """Read the files.

        Raises:
            typer.BadParameter: if there is none, or one of each kind.
        """
        from tmkit.world import load_controllers, load_lerobot

        if (self.lerobot is None) is not bool(self.controllers):
            raise typer.BadParameter(
                "one robot expected: --controllers FILE for ROS 2, or --lerobot FILE",
                param_hint="--controllers",
            )
        if self.lerobot is not None:
            return load_lerobot(self.lerobot)
        return load_controllers(*self.controllers or ())


def check_plan(settings: RobotSettings, plan: Plan) -> None:
    """Check a plan for a robot of LeRobot, which is not connected.

    Args:
        settings: settings of a robot.
        plan: plan to execute.

    Raises:
        ConfigurationError: if the plan leaves the range of a joint, or a hand holds an object at
            its start, which falls when the robot is connected.
    """
    from tmkit.world import LeRobotSettings
    from tmkit.world.lerobot.executor import check_ranges, is_holding

    if not isinstance(settings, LeRobotSettings):
        return
    check_ranges(plan, settings)
    if any(is_holding(plan, arm.name) for arm in plan.robots):
        raise ConfigurationError(
            "the plan starts with an object in the hand, and a robot of LeRobot frees its motors"
            " when it is connected; begin with the step that grasps it"
        )


@contextmanager
def open_executor(
    settings: RobotSettings, *, speed: float = 1.0, first: int = 1, first_segment: int = 1
) -> Iterator[ReportingExecutor]:
    """Connect to a robot, and disconnect from it at the end.

    Args:
        settings: settings of the robot.
        speed: speed relative to the plan.
        first: number of the first step.
        first_segment: number of the first segment of this step.

    Raises:
        ConfigurationError: if a robot of LeRobot is not calibrated, or cannot be connected.
        MissingExtraError: if a library of the robot cannot be imported.
    """
    from tmkit.world import LeRobotExecutor, LeRobotSettings, Ros2Executor

    if not isinstance(settings, LeRobotSettings):
        with Ros2Executor(
            settings, speed=speed, first=first, first_segment=first_segment
        ) as executor:
            yield executor
        return
    from tmkit.world.lerobot.robots import connect_robot

    with connect_robot(settings) as robot:
        yield LeRobotExecutor(
            robot, settings, speed=speed, first=first, first_segment=first_segment
        )
