"""Report of the simulation of a plan, and its progress (see :mod:`tmkit._support.progress`).

Holding a :class:`SimulationReport` means that a plan was executed to its end under physics. Every
number compares what happened with what the plan says; every note says in words where and why they
differ. A plan that fails in physics is an expected outcome, not an error, so it is a report whose
``is_successful`` is false.
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
    "settle": "waiting until everything has settled",
    "write": "writing film and picture",
}


@dataclass(frozen=True, slots=True)
class ObjectError(Displayed):
    """How far an object ended from where the plan's final scene puts it.

    Attributes:
        position: metres.
        rotation: radians.
    """

    position: float
    rotation: float

    def __str__(self) -> str:
        return f"{1000.0 * self.position:.1f} mm, {math.degrees(self.rotation):.1f} deg"


@dataclass(frozen=True, slots=True)
class JointError(Displayed):
    """Where a joint that the plan moves by a handle ended: that of a drawer or a door.

    Attributes:
        planned: where the plan leaves it, metres or radians.
        reached: where it was at the end.
        is_prismatic: whether it is measured in metres, else in radians.
    """

    planned: float
    reached: float
    is_prismatic: bool

    @property
    def error(self) -> float:
        """Metres or radians between the two."""
        return abs(self.reached - self.planned)

    def __str__(self) -> str:
        return (
            f"{1000.0 * self.error:.1f} mm"
            if self.is_prismatic
            else f"{math.degrees(self.error):.1f} deg"
        )


@dataclass(frozen=True, slots=True)
class Slip(Displayed):
    """How far a carried object was, at worst, from where the plan has it in the hand.

    Attributes:
        step: number of the plan's step in which it was grasped, from 1.
        object: its name.
        position: metres, while it was held.
        rotation: radians, while it was held.
        lost: what the arm was doing when the object left the hand, or ``None`` when it stayed.
    """

    step: int
    object: str
    position: float
    rotation: float
    lost: str | None = None


@dataclass(frozen=True, slots=True)
class SimulationNote(Displayed):
    """Something worth knowing about one step.

    Attributes:
        step: number of the plan's step, from 1; 0 is before the first, ``None`` after the last.
        text: the note.
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
    """The outcome of executing a plan under physics.

    Attributes:
        errors: of each movable object, by name, in the order of the scene.
        joints: of each joint that the plan moves by a handle, by name.
        tracking: largest difference of each joint of the arms between commanded and simulated
            position, radians or metres.
        slips: of each carried object, in the order of the plan.
        notes: in the order in which they arose.
        steps: number of steps of the plan.
        duration: simulated seconds.
        position_tolerance: metres within which an object has to end.
        rotation_tolerance: radians within which an object has to end.
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
        """Whether every object, drawer and door ended where the plan puts it."""
        return SimulationStatus.FAILED if self.missed else SimulationStatus.SUCCEEDED

    @property
    def is_successful(self) -> bool:
        """Whether every object, drawer and door ended where the plan puts it, within the tolerances."""
        return not self.missed

    @property
    def missed(self) -> tuple[str, ...]:
        """The objects, and joints of drawers and doors, that did not end where the plan puts them."""
        objects = (
            name
            for name, error in self.errors.items()
            if not (
                error.position <= self.position_tolerance
                and error.rotation <= self.rotation_tolerance
            )
        )
        joints = (
            name
            for name, error in self.joints.items()
            if not error.error
            <= (self.position_tolerance if error.is_prismatic else self.rotation_tolerance)
        )
        return (*objects, *joints)

    @property
    def worst_position(self) -> float:
        """Largest position error of all objects, metres; 0 without objects."""
        return max((error.position for error in self.errors.values()), default=0.0)

    @property
    def worst_rotation(self) -> float:
        """Largest rotation error of all objects, radians; 0 without objects."""
        return max((error.rotation for error in self.errors.values()), default=0.0)

    def __repr__(self) -> str:
        outcome = f"missed: {', '.join(self.missed)}" if self.missed else self.status.value
        worst = ObjectError(self.worst_position, self.worst_rotation)
        return (
            f"SimulationReport({outcome}; {self.steps} steps, {len(self.errors)} objects, worst"
            f" {worst}, {self.duration:.1f} s simulated)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values in SI units, which :func:`json.dumps` takes."""
        return {"ok": self.is_successful, **Result.to_dict(self)}


@dataclass(frozen=True)
class SimulationProgress(Progress):
    """What is being simulated.

    Attributes:
        phase: ``build`` while the engine loads the scene, ``simulate``, ``settle`` after the last
            action, ``write`` while film and picture are written.
        step: steps of the plan executed so far.
        steps: steps of the plan.
        action: the action that is being executed; empty in the other phases.
        simulated_seconds: of the world that is simulated.
    """

    action: str = ""
    simulated_seconds: float = 0.0

    def __str__(self) -> str:
        what = _PHASES.get(self.phase) or f"step {self.step + 1} of {self.steps}: {self.action}"
        return f"simulating, {self.seconds:.1f} s: {what}, {self.simulated_seconds:.1f} s simulated"
