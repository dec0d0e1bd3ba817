"""Motors of a LeRobot robot, commanded and observed by joint values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tmkit._support.source_location import did_you_mean
from tmkit.errors import ConfigurationError
from tmkit.plans.execution_report import ExecutionStatus
from tmkit.world.execution.checks import REST_PERIOD, position_fault
from tmkit.world.execution.goal_run import FailedGoalError
from tmkit.world.lerobot.settings import LeRobotSettings, read_number

_Array = NDArray[np.float64]

_CLIP_TOLERANCE = 1e-3
"""Difference of a sent command that counts as clipped [rad or m]."""

_REST_DISTANCE = 5e-3
"""Motion of a joint in this time that counts as rest, a few steps of an encoder [rad or m]."""

_HOLD_ATTEMPTS = 5
"""Largest number of attempts to command the present position."""


class LeRobotRobot(Protocol):
    """Methods of ``lerobot.robots.Robot`` that execution uses."""

    @property
    def is_connected(self) -> bool:
        """True if the robot can be commanded and observed."""
        ...

    @property
    def action_features(self) -> Mapping[str, object]:
        """Types of the values of an action, by feature."""
        ...

    def get_observation(self) -> Mapping[str, object]:
        """Return the present values by feature."""
        ...

    def send_action(self, action: dict[str, float], /) -> Mapping[str, object]:
        """Send an action, and return the action that was sent, which may be clipped."""
        ...


class Clock(Protocol):
    """Source of time, such as the module ``time``."""

    def monotonic(self) -> float:
        """Return the time [s]."""
        ...

    def sleep(self, seconds: float, /) -> None:
        """Wait for a time [s]."""
        ...


class Motors:
    """Commands and observations of a robot.

    Every action has all features. Those of other joints keep their first observed position, and
    velocities are 0.

    Args:
        robot: connected robot.
        settings: joints of the robot.
        clock: source of time.
    """

    def __init__(self, robot: LeRobotRobot, settings: LeRobotSettings, clock: Clock) -> None:
        self._robot, self._settings, self._clock = robot, settings, clock
        self._action: dict[str, float] = {}
        self._observation: Mapping[str, object] = {}
        self._positions: dict[str, float] = {}
        self._history: list[dict[str, float]] = []
        self._observed = self._sent = self._due = clock.monotonic()
        self._fault = ""

    def check_features(self) -> None:
        """Compare the joints with the features of the robot.

        Raises:
            ConfigurationError: if the robot has no feature of a joint, or one that is neither a
                position nor a velocity.
        """
        features = self._robot.action_features
        for joint, entry in self._settings.joints.items():
            if entry.feature not in features:
                hint = did_you_mean(entry.feature, features)
                raise ConfigurationError(
                    f"joint '{joint}': the robot has no action feature '{entry.feature}'{hint}"
                )
        for feature in features:
            if feature not in self._settings.names.values() and not _is_motion(feature):
                raise ConfigurationError(
                    f"the action feature '{feature}' of the robot is not a feature of a joint, and"
                    " neither a position ('.pos') nor a velocity ('.vel')"
                )

    def hold_all(self) -> None:
        """Make the last observation the command of all motors, without sending it.

        Raises:
            ConfigurationError: if the robot does not observe a position that it is commanded to.
        """
        self._action = {}
        for feature in self._robot.action_features:
            present = 0.0 if feature.endswith(".vel") else self._observation.get(feature)
            value = read_number(present)
            if value is None:
                raise ConfigurationError(f"the robot observes no number '{feature}'")
            self._action[feature] = value

    def restart_clock(self) -> None:
        """Begin the next period now, and remove older observations."""
        self._observed = self._sent = self._due = self._clock.monotonic()
        self._history = []

    def wait(self) -> None:
        """Wait for the next period. A late one moves the following ones; none is shortened."""
        now = self._clock.monotonic()
        self._due = max(self._due + 1.0 / self._settings.rate, now)
        self._clock.sleep(self._due - now)

    def await_positions(
        self, joints: tuple[str, ...], target: _Array, tolerances: Sequence[float]
    ) -> None:
        """Wait until joints are at a target.

        Args:
            joints: n joints.
            target: (n,) values [rad or m].
            tolerances: (n,) largest differences [rad or m].

        Raises:
            FailedGoalError: if they are not within ``settling_time``, or the robot does not reply.
        """
        self.restart_clock()
        reason = ""
        for _ in range(math.ceil(self._settings.settling_time * self._settings.rate)):
            if self.observe():
                reason = position_fault(joints, self.positions(joints), target, tolerances)
                if not reason:
                    return
            self.wait()
        raise FailedGoalError(ExecutionStatus.START, reason or self._fault)

    def observe(self) -> bool:
        """Read the joint values; return false if the robot did not reply.

        Raises:
            FailedGoalError: if the last reply is too old, or the robot raised another error than
                that of a connection.
        """
        self._fault = ""
        try:
            observation = self._robot.get_observation()
            positions = self._settings.positions(observation)
        except (OSError, ConfigurationError) as error:
            self._fault = str(error)
        except Exception as error:
            raise _call_failure("get_observation", error) from error
        now = self._check_age("no observation of the robot", self._observed)
        if self._fault:
            return False
        self._observed, self._observation, self._positions = now, observation, positions
        count = math.ceil(REST_PERIOD * self._settings.rate)
        self._history = [*self._history[-count:], positions]
        return True

    def send(self, positions: Mapping[str, float], *, allow_clipping: bool = False) -> bool:
        """Command joints; return false if the robot did not reply.

        Args:
            positions: joint values by name [rad or m].
            allow_clipping: whether the robot may limit the command.

        Raises:
            FailedGoalError: if the robot changed the command, or raised another error than that
                of a connection.
        """
        action = {**self._action, **self._settings.action(positions)}
        try:
            sent = self._robot.send_action(dict(action))
        except OSError as error:
            self._fault = str(error)
            self._check_age("no action was sent", self._sent)
            return False
        except Exception as error:
            raise _call_failure("send_action", error) from error
        self._action, self._sent = action, self._clock.monotonic()
        if allow_clipping:
            return True
        for joint in positions:
            entry = self._settings.joints[joint]
            wanted = action[entry.feature]
            value = read_number(sent.get(entry.feature)) if isinstance(sent, Mapping) else None
            if value is None:
                raise FailedGoalError(
                    ExecutionStatus.REJECTED,
                    f"send_action of the robot returned no '{entry.feature}'",
                )
            if abs(value - wanted) > _CLIP_TOLERANCE * abs(entry.scale):
                raise FailedGoalError(
                    ExecutionStatus.REJECTED,
                    f"the robot clipped '{entry.feature}' from {wanted:.2f} to {value:.2f}: its"
                    " limit, such as max_relative_target, is too small for the speed or the lag",
                )
        return True

    def _check_age(self, description: str, last: float) -> float:
        """Return the time, if a call succeeded recently.

        Raises:
            FailedGoalError: if it did not.
        """
        now, limit = self._clock.monotonic(), self._settings.state_age
        if now - last > limit:
            detail = f": {self._fault}" if self._fault else ""
            reason = f"{description} in {now - last:.2f} s, more than {limit:g} s{detail}"
            raise FailedGoalError(ExecutionStatus.STATE, reason)
        return now

    def positions(self, joints: Iterable[str]) -> _Array:
        """Return the last observed values of joints, NaN if unknown [rad or m]."""
        return np.array([self._positions.get(joint, np.nan) for joint in joints])

    def command(self, joint: str) -> float:
        """Return the last commanded value of a joint [rad or m]."""
        entry = self._settings.joints[joint]
        return (self._action[entry.feature] - entry.offset) / entry.scale

    def set_command(self, positions: Mapping[str, float]) -> None:
        """Change the commands that the next action has."""
        self._action |= self._settings.action(positions)

    def is_at_rest(self, joints: Iterable[str]) -> bool:
        """Return whether the last observations of joints are equal."""
        if len(self._history) <= math.ceil(REST_PERIOD * self._settings.rate):
            return False
        first = self._history[0]
        return all(abs(self._positions[joint] - first[joint]) < _REST_DISTANCE for joint in joints)

    def hold(self, joints: tuple[str, ...]) -> bool:
        """Command joints to their present position; return false if the robot does not reply."""
        for _ in range(_HOLD_ATTEMPTS):
            self.restart_clock()
            try:
                self.observe()
                present = {joint: self._positions[joint] for joint in joints}
                if self.send(present, allow_clipping=True):
                    return True
            except (FailedGoalError, KeyError):
                pass
            self.wait()
        return False


def _is_motion(feature: str) -> bool:
    """Return whether a feature is a position or a velocity."""
    return feature.endswith((".pos", ".vel"))


def _call_failure(name: str, error: Exception) -> FailedGoalError:
    """Return the failure for an error of a method of the robot."""
    reason = f"{name} of the robot raised {type(error).__name__}: {error}"
    return FailedGoalError(ExecutionStatus.ABORTED, reason)
