"""Monitor of the execution of a plan: slips, unplanned contacts and misplaced objects by step.

A missed goal is easy to detect and hard to explain afterwards. The monitor therefore records the
evidence while the plan is executed:

* the distance of each carried object from its planned pose in the hand, and the phase of its loss;
* unplanned contacts of the arm or its load;
* after each step, the objects that are not at their planned pose any more.

The monitor only reads: a simulation runs the same with and without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.report import ObjectError, SimulationNote, SimulationReport, Slip
from tmkit.spatial import Pose

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import Plan, PlanStep, Segment
    from tmkit.robots import Manipulator

_LOSS_DISTANCE = 0.03
"""Distance from its pose in the hand beyond which an object counts as lost [m]."""

_SLIP_NOTE_DISTANCE = 0.005
"""Distance from its pose in the hand beyond which a slip is noted [m]."""

_TRACKING_NOTE_ERROR = 0.02
"""Tracking error of a joint beyond which it is noted [rad or m]."""

_START_NOTE_DISTANCE = 0.002
"""Motion of an object before the plan starts beyond which it is noted [m]."""


@dataclass
class _Carried:
    """An object in the hand: its planned pose, and the largest deviation from it."""

    name: str
    step: int
    parent: str
    parent_from_object: Pose
    position: float = 0.0
    rotation: float = 0.0
    lost: str | None = None

    def measure(self, position: float, rotation: float) -> None:
        """Record a deviation [m, rad], of which the maximum is kept."""
        self.position, self.rotation = max(self.position, position), max(self.rotation, rotation)

    def lose(self, phase: str) -> None:
        """Record the phase in which the hand lost the object."""
        self.lost = phase


class PlanMonitor:
    """Monitor of the execution of a plan.

    Args:
        simulation: simulation that executes the plan.
        plan: plan to compare with.
        position_tolerance: distance of an object from its planned pose that is not noted [m].
        rotation_tolerance: rotation of an object from its planned pose that is not noted [rad].
        world: scene to compare with at the start. Defaults to the plan's first scene.
    """

    def __init__(
        self,
        simulation: Simulation,
        plan: Plan,
        *,
        position_tolerance: float,
        rotation_tolerance: float,
        world: SceneGraph | None = None,
    ) -> None:
        self._simulation = simulation
        self._plan = plan
        self._position_tolerance = position_tolerance
        self._rotation_tolerance = rotation_tolerance
        self._step: int | None = 0
        self._action = ""
        self._planned = (plan.scene if world is None else world).at(plan.q)
        self._phase = ""
        self._step_objects: frozenset[str] = frozenset()
        self._segment_objects: frozenset[str] = frozenset()
        self._robot = plan.robot  # the arm that acts
        self._carried: dict[str, _Carried] = {}  # by arm
        self._slips: list[Slip] = []
        self._notes: list[SimulationNote] = []
        self._misplaced: set[str] = set()
        self._noted_contacts: set[tuple[str, str]] = set()
        self._has_noted_tracking = False
        self._arm = self._arm_frames()
        self._objects = [name for name in simulation.objects if name in plan.scene]

    def _arm_frames(self) -> frozenset[str]:
        """Return the frames of the arms' moving bodies. A base may touch its support."""
        tips = [robot.tip for robot in self._plan.robots]
        return frozenset(
            frame
            for body in self._simulation.bodies
            if any(tip in body.links for tip in tips)
            for frame in body.links
            if frame != body.base
        )

    # --- events

    def check_start(self) -> None:
        """Compare the settled simulation with the plan's first scene, before the arm moves."""
        for name in self._objects:
            error = self._error(name)
            if error.position > _START_NOTE_DISTANCE or error.rotation > self._rotation_tolerance:
                self.add_note(
                    f"'{name}' moved by {error} under gravity: the scene does not support it at its"
                    " start pose"
                )
                if self._is_miss(error):
                    self._misplaced.add(name)

    def enter_step(self, number: int, step: PlanStep) -> None:
        """Record the start of a step, numbered from 1."""
        self._noted_contacts.clear()
        self._has_noted_tracking = False
        self._step = number
        self._action = str(step.action)
        self._planned = step.scene.at(step.q)
        self._step_objects = frozenset(part.held for part in step.segments if part.held is not None)

    def enter_schedule(self) -> None:
        """Record that arms move concurrently: any arm may touch an object that one handles."""
        segments = [segment for step in self._plan.steps for segment in step.segments]
        self._action, self._phase = "the schedule", "schedule"
        self._segment_objects = frozenset(part.held for part in segments if part.held is not None)

    def enter_segment(self, segment: Segment) -> None:
        """Record the start of a segment."""
        self._phase = str(segment.kind.value)
        self._robot = self._plan.arm(segment.arm)
        if self._phase == "line":
            self._segment_objects = frozenset(segment.touching)
        else:
            is_free_motion = self._phase in ("transit", "transfer")
            self._segment_objects = frozenset() if is_free_motion else self._step_objects

    def record_grasp(self, name: str, segment: Segment, *, by_constraint: bool) -> None:
        """Record that the gripper has closed on an object."""
        robot, simulation = self._plan.arm(segment.arm), self._simulation
        parent, pose = robot.tip, simulation.pose(name, relative_to=robot.tip)
        if segment.reparenting is not None:
            parent, pose = segment.reparenting.parent, segment.reparenting.pose
        self._carried[robot.name] = _Carried(name, int(self._step or 0), parent, pose)
        if not by_constraint and not any(
            name in simulation.touching(link) for link in robot.contact_links
        ):
            distance, _ = pose.distance(simulation.pose(name, relative_to=parent))
            self.add_note(
                f"the hand closed on nothing: '{name}' is {1000.0 * distance:.1f} mm from its place"
                " in the hand"
            )

    def record_release(self, name: str, robot: Manipulator) -> None:
        """Record that the gripper of an arm is about to open."""
        self._measure_carried()
        carried = self._carried.pop(robot.name, None)
        if carried is not None and carried.name == name:
            self._slips.append(
                Slip(carried.step, carried.name, carried.position, carried.rotation, carried.lost)
            )
            if carried.lost is None and carried.position > _SLIP_NOTE_DISTANCE:
                self.add_note(
                    f"'{name}' slipped in the hand by"
                    f" {ObjectError(carried.position, carried.rotation)}"
                )

    def leave_step(self) -> None:
        """Record the end of a step, and note each object that is newly misplaced."""
        in_hand = {carried.name for carried in self._carried.values()}
        for name in self._objects:
            if name in self._misplaced or name in in_hand:
                continue
            error = self._error(name)
            if self._is_miss(error):
                self._misplaced.add(name)
                self.add_note(
                    f"'{name}' is {error} from where this step ({self._action}) should leave it"
                )

    def leave_plan(self) -> None:
        """Record the end of the last step."""
        self._measure_carried()
        for carried in self._carried.values():
            self._slips.append(
                Slip(carried.step, carried.name, carried.position, carried.rotation, carried.lost)
            )
        self._step, self._phase = None, "settling"
        self._segment_objects = frozenset(self._simulation.objects)

    def update(self, joint: str, tracking_error: float) -> None:
        """Check the current state of the simulation.

        Args:
            joint: joint with the largest tracking error.
            tracking_error: its distance from the commanded position [rad or m].
        """
        self._measure_carried()
        self._check_contacts()
        if tracking_error > _TRACKING_NOTE_ERROR and not self._has_noted_tracking:
            self._has_noted_tracking = True
            self.add_note(
                f"the arm was held back during {self._phase}: joint '{joint}' could not follow"
            )

    # --- checks

    def _measure_carried(self) -> None:
        """Update the deviations of carried objects, and note the loss of an object."""
        for carried in self._carried.values():
            if carried.lost is not None:
                continue
            actual = self._simulation.pose(carried.name, relative_to=carried.parent)
            distance, angle = carried.parent_from_object.distance(actual)
            carried.measure(float(distance), float(angle))
            if distance > _LOSS_DISTANCE:
                carried.lose(self._phase)
                self.add_note(f"'{carried.name}' was lost during {self._phase} ({self._action})")

    def _check_contacts(self) -> None:
        """Note unplanned contacts of the arms, and of the load on a transfer, once a step."""
        allowed = self._segment_objects | {carried.name for carried in self._carried.values()}
        tips = [robot.tip for robot in self._plan.robots]
        for frame, partner in self._simulation.contacts_of(tips):
            is_arm_contact = frame in self._arm and partner not in self._arm
            if is_arm_contact and self._object_of(partner) not in allowed:
                self._note_contact(f"the arm ('{frame}')", partner)
        carried = self._carried.get(self._robot.name)
        is_carrying = self._phase in ("transfer", "line")
        if carried is not None and carried.lost is None and is_carrying:
            for _, partner in self._simulation.contacts_of([carried.name]):
                is_declared = self._object_of(partner) in self._segment_objects
                if partner not in self._arm and not is_declared:
                    self._note_contact(f"the carried '{carried.name}'", partner)

    def _object_of(self, frame: str) -> str:
        """Return the movable object that contains a frame, or the frame itself."""
        for body in self._simulation.bodies:
            if body.kind == "object" and frame in body.links:
                return body.base
        return frame

    def _note_contact(self, body: str, partner: str) -> None:
        """Note a contact, unless it was noted in this step."""
        if (body, partner) not in self._noted_contacts:
            self._noted_contacts.add((body, partner))
            self.add_note(f"{body} touched '{partner}' during {self._phase}")

    def _error(self, name: str) -> ObjectError:
        """Return the deviation of an object from its pose in the current planned scene."""
        distance, angle = self._planned.pose(name).distance(self._simulation.pose(name))
        return ObjectError(float(distance), float(angle))

    def _is_miss(self, error: ObjectError) -> bool:
        """Return whether a deviation exceeds the tolerances."""
        return not (
            error.position <= self._position_tolerance
            and error.rotation <= self._rotation_tolerance
        )

    def add_note(self, text: str) -> None:
        """Record a note about the current step."""
        self._notes.append(SimulationNote(self._step, text))

    # --- results

    @property
    def slips(self) -> tuple[Slip, ...]:
        """Largest deviations of each carried object, in order."""
        return tuple(self._slips)

    def notes(self, report: SimulationReport) -> tuple[SimulationNote, ...]:
        """Return all notes, with one for each missed object or joint that has none."""
        final_notes = []
        for name in report.missed:
            if name in report.joints:
                text = f"joint '{name}' ended {report.joints[name]} from its planned position"
                final_notes.append(SimulationNote(None, text))
            elif name not in self._misplaced:
                text = (
                    f"'{name}' ended {report.errors[name]} from its planned pose, although it met"
                    " the tolerances after each step"
                )
                final_notes.append(SimulationNote(None, text))
        return (*self._notes, *final_notes)
