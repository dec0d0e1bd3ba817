"""Watching a plan being executed: what slipped, what was touched, what went astray, and in which step.

A missed goal is easy to see and hard to explain afterwards. So the watch looks on while the plan is
executed and keeps what an explanation needs. It keeps the distance of a carried object from its
planned place in the hand, and the moment at which it is lost. It keeps what the arm or its load
touched on the way, and, after each step, which objects are no longer where the plan has them.

The watch only reads; a simulation runs the same with and without it.
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

_LOST = 0.03  # metres from its place in the hand at which an object counts as lost
_MISPLACED_IN_HAND = 0.005  # metres from its place in the hand that are worth a note
_HELD_BACK = 0.02  # radians or metres by which a joint may be behind without a note
# metres that an object may sink or slide before the plan starts without a note
_MOVED_AT_START = 0.002


@dataclass
class _Carried:
    """An object in the hand: where the plan has it, and how far it was from there at worst."""

    name: str
    step: int
    parent: str
    parent_from_object: Pose
    position: float = 0.0
    rotation: float = 0.0
    lost: str | None = None

    def measure(self, position: float, rotation: float) -> None:
        """Record a deviation [m, rad], of which the largest counts."""
        self.position, self.rotation = max(self.position, position), max(self.rotation, rotation)

    def lose(self, phase: str) -> None:
        """Record the phase in which the hand lost the object."""
        self.lost = phase


class Watch:
    """What is noticed while a plan is executed.

    Args:
        position_tolerance: metres an object may be from its planned place without a note.
        rotation_tolerance: radians an object may be turned from its planned place without a note.
        world: scene to compare with at the start; that of the plan by default.
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
        self._handled: frozenset[str] = frozenset()  # in this step
        self._concerned: frozenset[str] = frozenset()  # in this segment
        self._robot = plan.robot  # the arm that acts
        self._carried: dict[str, _Carried] = {}  # by arm
        self._slips: list[Slip] = []
        self._notes: list[SimulationNote] = []
        self._astray: set[str] = set()
        self._touched: set[tuple[str, str]] = set()
        self._held_back = False
        self._arm = self._arm_frames()
        self._objects = [name for name in simulation.objects if name in plan.scene]

    def _arm_frames(self) -> frozenset[str]:
        """Return the frames of the arms' moving bodies; a base may touch its support."""
        tips = [robot.tip for robot in self._plan.robots]
        return frozenset(
            frame
            for body in self._simulation.bodies
            if any(tip in body.links for tip in tips)
            for frame in body.links
            if frame != body.base
        )

    # --- moments
    # --------------------------------------------------------------------------------------------------

    def note_start(self) -> None:
        """Compare the world with the plan's first scene, after it has settle and before the arm moves."""
        for name in self._objects:
            error = self._error(name)
            if error.position > _MOVED_AT_START or error.rotation > self._rotation_tolerance:
                self.note(
                    f"'{name}' moved by {error} under gravity: the scene does not support it at its"
                    " start pose"
                )
                if self._is_miss(error):
                    self._astray.add(name)

    def enter_step(self, number: int, step: PlanStep) -> None:
        """Record that a step begins; numbers are from 1."""
        self._touched.clear()
        self._held_back = False
        self._step = number
        self._action = str(step.action)
        self._planned = step.scene.at(step.q)
        self._handled = frozenset(part.held for part in step.segments if part.held is not None)

    def enter_schedule(self) -> None:
        """Record that arms move at once: what any of them handles may be touched."""
        segments = [segment for step in self._plan.steps for segment in step.segments]
        self._action, self._phase = "the schedule", "schedule"
        self._concerned = frozenset(part.held for part in segments if part.held is not None)

    def enter(self, segment: Segment) -> None:
        """Tell that a segment of the step begins."""
        self._phase = str(segment.kind.value)
        self._robot = self._plan.arm(segment.arm)
        self._concerned = (
            self._handled if self._phase not in ("transit", "transfer") else frozenset()
        )

    def grasped(self, name: str, segment: Segment, *, by_constraint: bool) -> None:
        """Record that the gripper has closed on an object."""
        robot, simulation = self._plan.arm(segment.arm), self._simulation
        parent, pose = robot.tip, simulation.pose(name, relative_to=robot.tip)
        if segment.reparenting is not None:
            parent, pose = segment.reparenting.parent, segment.reparenting.pose
        self._carried[robot.name] = _Carried(name, int(self._step or 0), parent, pose)
        if not by_constraint and not any(
            name in simulation.touching(link) for link in robot.contact_links
        ):
            metres, _ = pose.distance(simulation.pose(name, relative_to=parent))
            self.note(
                f"the hand closed on nothing: '{name}' is {1000.0 * metres:.1f} mm from its place"
                " in the hand"
            )

    def released(self, name: str, robot: Manipulator) -> None:
        """Record that the gripper of an arm is about to open."""
        self._measure_carried()
        carried = self._carried.pop(robot.name, None)
        if carried is not None and carried.name == name:
            self._slips.append(
                Slip(carried.step, carried.name, carried.position, carried.rotation, carried.lost)
            )
            if carried.lost is None and carried.position > _MISPLACED_IN_HAND:
                self.note(
                    f"'{name}' slipped in the hand by"
                    f" {ObjectError(carried.position, carried.rotation)}"
                )

    def leave_step(self) -> None:
        """Tell that a step is over: note each object that is not where the plan has it any more."""
        in_hand = {carried.name for carried in self._carried.values()}
        for name in self._objects:
            if name in self._astray or name in in_hand:
                continue
            error = self._error(name)
            if self._is_miss(error):
                self._astray.add(name)
                self.note(
                    f"'{name}' is {error} from where this step ({self._action}) should leave it"
                )

    def leave_plan(self) -> None:
        """Tell that the last step is over."""
        self._measure_carried()
        for carried in self._carried.values():
            self._slips.append(
                Slip(carried.step, carried.name, carried.position, carried.rotation, carried.lost)
            )
        self._step, self._phase, self._concerned = (
            None,
            "settling",
            frozenset(self._simulation.objects),
        )

    def look(self, joint: str, behind: float) -> None:
        """Look at the world as it is; a joint is the furthest ``behind`` (radians or metres) what it is told."""
        self._measure_carried()
        self._look_for_contacts()
        if behind > _HELD_BACK and not self._held_back:
            self._held_back = True
            self.note(
                f"the arm was held back during {self._phase}: joint '{joint}' could not follow"
            )

    # --- looking
    # --------------------------------------------------------------------------------------------------

    def _measure_carried(self) -> None:
        for carried in self._carried.values():
            if carried.lost is not None:
                continue
            actual = self._simulation.pose(carried.name, relative_to=carried.parent)
            metres, radians = carried.parent_from_object.distance(actual)
            carried.measure(float(metres), float(radians))
            if metres > _LOST:
                carried.lose(self._phase)
                self.note(f"'{carried.name}' was lost during {self._phase} ({self._action})")

    def _look_for_contacts(self) -> None:
        """Note what the arms, or on a transfer the load, touch and should not, once a step."""
        meant = self._concerned | {carried.name for carried in self._carried.values()}
        for frame, other in self._simulation.contacts_of(
            [robot.tip for robot in self._plan.robots]
        ):
            if (
                frame in self._arm
                and other not in self._arm
                and self._object_of(other) not in meant
            ):
                self._note_contact(f"the arm ('{frame}')", other)
        carried = self._carried.get(self._robot.name)
        if carried is not None and carried.lost is None and self._phase == "transfer":
            for _, other in self._simulation.contacts_of([carried.name]):
                if other not in self._arm:
                    self._note_contact(f"the carried '{carried.name}'", other)

    def _object_of(self, frame: str) -> str:
        """Return the movable object that a frame is part of, or the frame itself."""
        for body in self._simulation.bodies:
            if body.kind == "object" and frame in body.links:
                return body.base
        return frame

    def _note_contact(self, who: str, other: str) -> None:
        if (who, other) not in self._touched:
            self._touched.add((who, other))
            self.note(f"{who} touched '{other}' during {self._phase}")

    def _error(self, name: str) -> ObjectError:
        metres, radians = self._planned.pose(name).distance(self._simulation.pose(name))
        return ObjectError(float(metres), float(radians))

    def _is_miss(self, error: ObjectError) -> bool:
        return not (
            error.position <= self._position_tolerance
            and error.rotation <= self._rotation_tolerance
        )

    def note(self, text: str) -> None:
        """Note something about this step."""
        self._notes.append(SimulationNote(self._step, text))

    # --- the outcome
    # ----------------------------------------------------------------------------------------------

    @property
    def slips(self) -> tuple[Slip, ...]:
        """What is known of each object that was carried, in order."""
        return tuple(self._slips)

    def notes(self, report: SimulationReport) -> tuple[SimulationNote, ...]:
        """Return all notes, with one for each object that ended astray without having been noted before."""
        late = []
        for name in report.missed:
            if name in report.joints:
                late.append(
                    SimulationNote(
                        None,
                        f"joint '{name}' ended {report.joints[name]} from where the plan leaves it",
                    )
                )
            elif name not in self._astray:
                text = (
                    f"'{name}' ended {report.errors[name]} from its planned place after all had"
                    " been in order"
                )
                late.append(SimulationNote(None, text))
        return (*self._notes, *late)
