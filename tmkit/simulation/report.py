"""Report of the simulation of a plan, and its progress (see :mod:`tmkit._support.progress`).

A :class:`SimulationReport` exists only for a plan that was executed to its end under physics. Every
number compares the outcome with the plan, and every note describes one deviation. A plan that fails
in physics is an expected outcome, not an error: ``is_successful`` of its report is false.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tmkit._support.progress import Progress
from tmkit._support.results import Displayed, Result

_PHASES = {
    "build": "loading the scene",
    "settle": "waiting until all bodies are at rest",
    "write": "writing film and picture",
}


@dataclass(frozen=True, slots=True)
class ObjectError(Displayed):
    """Deviation of an object's final pose from the plan's final scene.

    Attributes:
        position: distance of the origins [m].
        rotation: angle of the relative rotation [rad].
    """

    position: float
    rotation: float

    def __str__(self) -> str:
        return f"{1000.0 * self.position:.1f} mm, {math.degrees(self.rotation):.1f} deg"


@dataclass(frozen=True, slots=True)
class JointError(Displayed):
    """Final position of a joint that the plan moves by a handle, such as that of a drawer.

    Attributes:
        planned: position at the end of the plan [m or rad].
        reached: position at the end of the simulation [m or rad].
        is_prismatic: whether the unit is [m], else [rad].
    """

    planned: float
    reached: float
    is_prismatic: bool

    @property
    def error(self) -> float:
        """Absolute difference of the two positions [m or rad]."""
        return abs(self.reached - self.planned)

    def __str__(self) -> str:
        return (
            f"{1000.0 * self.error:.1f} mm"
            if self.is_prismatic
            else f"{math.degrees(self.error):.1f} deg"
        )


@dataclass(frozen=True, slots=True)
class Slip(Displayed):
    """Largest deviation of a carried object from its planned pose in the hand.

    Attributes:
        step: number of the plan's step with the grasp, from 1.
        object: frame of the object.
        position: largest distance while the hand held the object [m].
        rotation: largest angle while the hand held the object [rad].
        lost: phase in which the object left the hand, or ``None`` if it did not.
    """

    step: int
    object: str
    position: float
    rotation: float
    lost: str | None = None


@dataclass(frozen=True, slots=True)
class SimulationNote(Displayed):
    """Deviation or event in one step.

    Attributes:
        step: number of the plan's step, from 1. 0 is before the first, ``None`` after the last.
        text: description.
    """

    step: int | None
    text: str

    def __str__(self) -> str:
        if self.step is None:
            return f"after the plan: {self.text}"
        return f"step {self.step}: {self.text}" if self.step else f"before the plan: {self.text}"


class SimulationStatus(StrEnum):
    """Outcome of a simulation."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, repr=False)
class SimulationReport(Result):
    """Outcome of the execution of a plan under physics.

    Attributes:
        errors: pose error by movable object, in the order of the scene.
        joints: error by joint that the plan moves by a handle.
        tracking: largest difference between commanded and simulated position, by joint of the
            arms [m or rad].
        slips: slip of each carried object, in the order of the plan.
        notes: deviations and events in order of their occurrence.
        steps: number of steps of the plan.
        duration: simulated time [s].
        position_tolerance: largest position error of a success [m].
        rotation_tolerance: largest rotation error of a success [rad].
    """

    errors: Mapping[str, ObjectError]
    joints: Mapping[str, JointError]
    tracking: Mapping[str, float]
    slips: tuple[Slip, ...]
    notes: tuple[SimulationNote, ...]
    steps: int
    duration: float
    position_tolerance: float
    rotation_tolerance: float

    @property
    def status(self) -> SimulationStatus:
        """``SUCCEEDED`` if every object, drawer and door ended where the plan puts it."""
        return SimulationStatus.FAILED if self.missed else SimulationStatus.SUCCEEDED

    @property
    def is_successful(self) -> bool:
        """Return whether every object, drawer and door ended within the tolerances of the plan."""
        return not self.missed

    @property
    def missed(self) -> tuple[str, ...]:
        """Objects, and joints of drawers and doors, that ended outside the tolerances."""
        objects = (
            name
            for name, error in self.errors.items()
            if not (
                error.position <= self.position_tolerance
                and error.rotation <= self.rotation_tolerance
            )
        )
        joints = (name for name, error in self.joints.items() if not self._is_within(error))
        return (*objects, *joints)

    def _is_within(self, error: JointError) -> bool:
        """Return whether the error of a joint is within the tolerance of its unit."""
        tolerance = self.position_tolerance if error.is_prismatic else self.rotation_tolerance
        return error.error <= tolerance

    @property
    def worst_position(self) -> float:
        """Largest position error of all objects, or 0 without objects [m]."""
        return max((error.position for error in self.errors.values()), default=0.0)

    @property
    def worst_rotation(self) -> float:
        """Largest rotation error of all objects, or 0 without objects [rad]."""
        return max((error.rotation for error in self.errors.values()), default=0.0)

    def __repr__(self) -> str:
        outcome = f"missed: {', '.join(self.missed)}" if self.missed else self.status.value
        worst = ObjectError(self.worst_position, self.worst_rotation)
        return (
            f"SimulationReport({outcome}; {self.steps} steps, {len(self.errors)} objects, worst"
            f" {worst}, {self.duration:.1f} s simulated)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values in SI units, as for :func:`json.dumps`."""
        return {"ok": self.is_successful, **Result.to_dict(self)}


@dataclass(frozen=True)
class SimulationProgress(Progress):
    """Progress of a simulation.

    Attributes:
        phase: ``build`` while the engine loads the scene, ``simulate``, ``settle`` after the last
            action, ``write`` while film and picture are written.
        step: number of executed steps of the plan.
        steps: number of steps of the plan.
        action: current action, or empty in the other phases.
        simulated_seconds: simulated time [s].
    """

    action: str = ""
    simulated_seconds: float = 0.0

    def __str__(self) -> str:
        phase = _PHASES.get(self.phase) or f"step {self.step + 1} of {self.steps}: {self.action}"
        return (
            f"simulating, {self.seconds:.1f} s: {phase}, {self.simulated_seconds:.1f} s simulated"
        )
