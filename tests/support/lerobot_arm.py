"""Stand-in for an SO-101 of LeRobot: the methods of its ``Robot``, its units, and servos.

It follows the rules of LeRobot 0.4 to 0.6. Motors have positions in ticks of an encoder, and a
calibration with the lowest and highest tick. In degrees, 0 is the middle between both; in ranges,
values are a percentage between both, to which commands and observations are clamped without an
error. With ``max_relative_target``, a command is clipped to a distance from the present position,
and ``send_action`` returns what it sent. The class is a subclass of LeRobot's where that is
installed.

Time passes when the clock sleeps and with each transfer on the bus, so no result depends on the
machine. A servo follows its goal with a lag, at a limited speed. Objects stop the jaw, one after
the other. A fault is a function that is called before each action with the robot and its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tmkit.world import LeRobotSettings

try:
    from lerobot.robots import Robot
except ImportError:
    Robot = object

TICKS = 4096
"""Ticks of an encoder in a turn."""

DEGREES, RANGE_0_100, RANGE_M100_100 = "degrees", "range_0_100", "range_m100_100"


class SimulatedClock:
    """Clock whose time passes by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """Return the time [s]."""
        return self.now

    def sleep(self, seconds: float, /) -> None:
        """Let time pass."""
        assert seconds >= 0.0
        self.now += seconds


@dataclass
class Motor:
    """A servo with its calibration, on the axis of a joint.

    Attributes:
        sign: 1 if the encoder counts in the direction of the joint.
        zero: tick at the joint value 0.
        range_min: lowest calibrated tick.
        range_max: highest calibrated tick.
        mode: unit of commands and observations.
        ticks: present position.
        goal: commanded position.
        is_stalled: whether it does not move.
    """

    sign: int = 1
    zero: float = 2048.0
    range_min: int = 800
    range_max: int = 3300
    mode: str = DEGREES
    ticks: float = 2048.0
    goal: float = 2048.0
    is_stalled: bool = False

    def to_joint(self, ticks: float) -> float:
        """Return the joint value of a position [rad]."""
        return self.sign * (ticks - self.zero) * 2.0 * math.pi / TICKS

    def to_ticks(self, angle: float) -> float:
        """Return the position of a joint value [rad]."""
        return self.zero + self.sign * angle * TICKS / (2.0 * math.pi)

    def normalize(self, ticks: float) -> float:
        """Return the observed value of a position."""
        low, high = self.range_min, self.range_max
        if self.mode == DEGREES:
            return (ticks - (low + high) / 2.0) * 360.0 / (TICKS - 1)
        share = (min(high, max(low, ticks)) - low) / (high - low)
        return 100.0 * share if self.mode == RANGE_0_100 else 200.0 * share - 100.0

    def unnormalize(self, value: float) -> int:
        """Return the position of a command, a whole number of ticks."""
        low, high = self.range_min, self.range_max
        if self.mode == DEGREES:
            return int(value * (TICKS - 1) / 360.0 + (low + high) / 2.0)
        share = value / 100.0 if self.mode == RANGE_0_100 else (value + 100.0) / 200.0
        return int(min(1.0, max(0.0, share)) * (high - low) + low)


@dataclass
class Config:
    """Configuration, with the names of LeRobot's ``SOFollowerConfig``.

    Attributes:
        port: serial port.
        id: name of the calibration.
        max_relative_target: largest distance of a command from the present position.
        disable_torque_on_disconnect: whether motors are free after a disconnection.
    """

    port: str = "/dev/null"
    id: str | None = None
    calibration_dir: str | None = None
    max_relative_target: float | None = None
    disable_torque_on_disconnect: bool = True


@dataclass
class Behaviour:
    """Properties of the servos and the bus.

    Attributes:
        lag: time constant of the servos [s].
        speed: largest speed of the servos [rad/s].
        latency: time of a transfer on the bus [s].
        objects: joint values of the jaw at which objects stop it, in the order of grasps [rad].
        fault: called before each action with the robot and the number of the action.
    """

    lag: float = 0.05
    speed: float = 4.7
    latency: float = 0.004
    objects: list[float] = field(default_factory=list)
    fault: Callable[[StandInArm, int], None] | None = None


class StandInArm(Robot):  # type: ignore[misc, valid-type, unused-ignore]
    """An arm with the interface of ``lerobot.robots.Robot``.

    Attributes:
        motors: servos by name.
        actions: number of actions.
        log: times and motor values of the actions.
        grasps: joint values at each stop of the jaw by an object, then at its next opening.
        objects: joint values at which the next objects stop the jaw [rad].
        is_calibrated: whether the motors have a calibration.
        unreachable: number of next transfers that fail; -1 for all.
    """

    config_class = Config
    is_calibrated = True
    name = "so101_follower"

    def __init__(
        self,
        motors: Mapping[str, Motor],
        clock: SimulatedClock,
        *,
        config: Config | None = None,
        behaviour: Behaviour | None = None,
        extra: Mapping[str, float] | None = None,
    ) -> None:
        self.config = config or Config()
        self.motors, self.clock = dict(motors), clock
        self.behaviour = behaviour or Behaviour()
        self.extra = dict(extra or {})
        self.actions = 0
        self.log: list[tuple[float, dict[str, float]]] = []
        self.grasps: list[dict[str, float]] = []
        self.unreachable = 0
        self.has_torque = False
        self.objects = list(self.behaviour.objects)
        self._is_gripping = False
        self._is_connected = False
        self._time = clock.monotonic()

    @property
    def observation_features(self) -> dict[str, Any]:
        """Types of observed values."""
        return {**self.action_features, "front": (480, 640, 3)}

    @property
    def action_features(self) -> dict[str, Any]:
        """Types of commanded values."""
        return {
            **{f"{name}.pos": float for name in self.motors},
            **dict.fromkeys(self.extra, float),
        }

    @property
    def is_connected(self) -> bool:
        """Whether the bus is open."""
        return self._is_connected

    def calibrate(self) -> None:
        """Do nothing."""

    def configure(self) -> None:
        """Enable the torque, with the present positions as goals."""
        for motor in self.motors.values():
            motor.goal = motor.ticks
        self.has_torque = True

    def connect(self, calibrate: bool = True) -> None:
        """Open the bus."""
        del calibrate
        if self._is_connected:
            raise ConnectionError(f"{type(self).__name__} is already connected.")
        self._is_connected = True
        self.configure()

    def disconnect(self) -> None:
        """Close the bus."""
        self._is_connected = False
        self.has_torque = not self.config.disable_torque_on_disconnect

    def get_observation(self) -> dict[str, Any]:
        """Return the positions of all motors, and a picture."""
        self._transfer()
        values = {
            f"{name}.pos": motor.normalize(motor.ticks) for name, motor in self.motors.items()
        }
        return {**values, **self.extra, "front": "picture"}

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Command the motors of an action, and return what was sent."""
        self.actions += 1
        if self.behaviour.fault is not None:
            self.behaviour.fault(self, self.actions)
        goals = {key.removesuffix(".pos"): v for key, v in action.items() if key.endswith(".pos")}
        limit = self.config.max_relative_target
        if limit is not None:
            self._transfer()
            for name, goal in goals.items():
                present = self.motors[name].normalize(self.motors[name].ticks)
                goals[name] = present + max(-limit, min(limit, goal - present))
        self._transfer()
        for name, goal in goals.items():
            self.motors[name].goal = self.motors[name].unnormalize(goal)
        velocities = {key: action[key] for key in self.extra}  # required, as by a mobile base
        self.log.append((self.clock.now, {**goals, **velocities}))
        return {f"{name}.pos": goal for name, goal in goals.items()} | velocities

    def joints(self) -> dict[str, float]:
        """Return the true joint values [rad]."""
        self._advance()
        return {name: motor.to_joint(motor.ticks) for name, motor in self.motors.items()}

    def _transfer(self) -> None:
        """Let the time of a transfer pass."""
        if not self._is_connected:
            raise ConnectionError(f"{type(self).__name__} is not connected.")
        self.clock.sleep(self.behaviour.latency)
        self._advance()
        if self.unreachable:
            self.unreachable -= 1
            raise ConnectionError("Failed to sync read 'Present_Position': no status packet!")

    def _advance(self) -> None:
        """Move the servos to the present time."""
        duration = self.clock.now - self._time
        self._time = self.clock.now
        share = 1.0 - math.exp(-duration / self.behaviour.lag)
        largest = self.behaviour.speed * duration * TICKS / (2.0 * math.pi)
        for motor in self.motors.values():
            if self.has_torque and not motor.is_stalled:
                change = share * (motor.goal - motor.ticks)
                motor.ticks += max(-largest, min(largest, change))
        self._grip()

    def _grip(self) -> None:
        """Stop the jaw at the next object; the object is gone once the jaw has opened again."""
        if not self.objects or "gripper" not in self.motors:
            return
        jaw = self.motors["gripper"]
        angle, stop = jaw.to_joint(jaw.ticks), self.objects[0]
        if angle <= stop:
            jaw.ticks = jaw.to_ticks(stop)
        has_opened = self._is_gripping and angle > stop + 0.02
        if has_opened or (angle <= stop and not self._is_gripping):
            self._is_gripping = not has_opened
            values = self.motors.items()
            self.grasps.append({name: motor.to_joint(motor.ticks) for name, motor in values})
            if has_opened:
                self.objects.pop(0)


def mount(
    settings: LeRobotSettings,
    q: Mapping[str, float],
    *,
    config: Config | None = None,
    behaviour: Behaviour | None = None,
    extra: Mapping[str, float] | None = None,
) -> StandInArm:
    """Return a connected arm at joint values, whose motors are mounted as a file has them."""
    motors = {}
    for joint, entry in settings.joints.items():
        low, sign = 700, 1 if entry.scale > 0.0 else -1
        if math.isinf(entry.upper):
            high, mode = 3400, DEGREES
            zero = (low + high) / 2.0 + entry.offset * (TICKS - 1) / 360.0
        else:
            span = entry.upper - entry.lower
            mode = RANGE_0_100 if entry.lower == 0.0 else RANGE_M100_100
            high = low + round(span / abs(entry.scale) * TICKS / math.tau)
            zero = low + (entry.offset - entry.lower) / span * (high - low)
        motor = Motor(sign, zero, low, high, mode)
        motor.ticks = motor.goal = motor.to_ticks(q[joint])
        motors[entry.feature.removesuffix(".pos")] = motor
    arm = StandInArm(motors, SimulatedClock(), config=config, behaviour=behaviour, extra=extra)
    arm.connect(calibrate=False)
    return arm
