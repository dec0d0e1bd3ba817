"""Controllers of arms and hands, independent of the interface of a robot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Controller:
    """Receiver of the commands of an arm or a hand.

    Attributes:
        name: name of the controller.
        type: ``FollowJointTrajectory``, ``GripperCommand`` or ``ParallelGripperCommand`` of ROS 2,
            or ``LeRobot``.
        action: name of the action, such as ``/arm/follow_joint_trajectory``.
        joints: joints of the controller, by the names of the robot.
        is_default: whether the controller is preferred to others of the same joints.
        scale: command of a gripper by the value of its joint; negative if it moves the other way.
        offset: command of a gripper at the joint value 0.
    """

    name: str
    type: str
    action: str
    joints: tuple[str, ...]
    is_default: bool = False
    scale: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class SuctionGripper:
    """Service or topic that switches the vacuum of a gripper.

    Attributes:
        arm: name of the arm.
        name: name of the service or topic.
        type: type of the service or message, such as ``std_srvs/srv/SetBool``.
        on_fields: fields of the message that switches the vacuum on.
        off_fields: fields of the message that switches it off.
        reply_fields: fields of the reply of a service that has switched it.
        settling_time: time after a switch until the arm moves [s].
        sensor: topic of type ``std_msgs/msg/Bool``, true with a vacuum in the cup; empty without
            a sensor.
        sensor_age: largest age of a message of the sensor [s].
    """

    arm: str
    name: str
    type: str = "std_srvs/srv/SetBool"
    on_fields: Mapping[str, object] = field(default_factory=lambda: {"data": True})
    off_fields: Mapping[str, object] = field(default_factory=lambda: {"data": False})
    reply_fields: Mapping[str, object] = field(default_factory=lambda: {"success": True})
    settling_time: float = 0.3
    sensor: str = ""
    sensor_age: float = 1.0

    @property
    def is_service(self) -> bool:
        """True if a service switches the vacuum."""
        return "/srv/" in self.type


class ControllerTable(Protocol):
    """Controllers of a robot, by the joints of arms and hands."""

    @property
    def names(self) -> Mapping[str, str]:
        """Names of joints in the robot by their names in the scene, where they differ."""
        ...

    def robot_names(self, joints: Iterable[str]) -> tuple[str, ...]:
        """Return the names in the robot of joints of a scene."""
        ...

    def arm_controller(self, arm: str, joints: Iterable[str]) -> Controller:
        """Return the controller of an arm, which has exactly the joints of the arm.

        Args:
            arm: name of the arm, for messages.
            joints: joints of the arm, by their names in the scene.

        Raises:
            ConfigurationError: if no controller or several have these joints.
        """
        ...

    def gripper_controller(self, arm: str, joints: Iterable[str]) -> Controller:
        """Return the controller of a hand, whose joints are joints of the hand.

        Args:
            arm: name of the arm of the hand, for messages.
            joints: joints of the hand, by their names in the scene.

        Raises:
            ConfigurationError: if no controller or several have such joints.
        """
        ...

    def suction_gripper(self, arm: str) -> SuctionGripper:
        """Return the suction gripper of an arm.

        Args:
            arm: name of the arm.

        Raises:
            ConfigurationError: if the arm has none.
        """
        ...
