"""Domain parts for regions with limited access: drawers, doors, and containers with lids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import ClassVar

import numpy as np

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Place
from tmkit.manipulation.actions.operate import OperateJoint
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.pddl import Fact
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.tamp.domains.tabletop import STANDING_TOLERANCE, shape_bounds
from tmkit.tamp.parts.regions import Arguments, Regions
from tmkit.tamp.parts.standing import central_places

_N_PLACEMENTS = 400
"""Number of placements that are shuffled."""

_LIMIT_TOLERANCE = 0.002
"""Largest distance from a limit of its joint at which a drawer is open or closed [m or rad]."""


class Access(Regions):
    """Objects are picked from and placed on accessible regions; here all regions are accessible.

    A derived part restricts access by :meth:`is_closed`.
    """

    pddl: ClassVar[str] = """
    (:predicates (accessible ?r - region))   ; for example, the drawer is open, the lid is off
    (:extend (pick place place-upside-down) :precondition (accessible ?r))
    """

    def is_closed(self, scene: SceneGraph, q: Configuration, region: str) -> bool:
        """Return whether a region is not accessible.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
            region: frame of the region.
        """
        del scene, q, region
        return False

    def facts_accessible(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the accessible regions."""
        yield from (
            (region,)
            for region in self.region_frames(scene)
            if not self.is_closed(scene, q, region)
        )


class _Mechanism(Access):
    """Drawers or doors that a handle moves between the limits of a joint."""

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Also yield the drawers and doors of the domain."""
        yield from super().kinds(scene)
        yield from (
            (kind, scene.frames_of_class(kind))
            for kind in ("drawer", "door")
            if kind in self._fragments.types
        )

    def limits(self, scene: SceneGraph, frame: str) -> tuple[int, float, float]:
        """Return the entry of a joint in the configuration, and its closed and open values.

        Args:
            scene: the scene.
            frame: frame of the drawer or door.

        Raises:
            SceneError: if the frame has no joint, or one without limits.
        """
        name = scene.joint(frame).name
        label = f"the {_kind(scene, frame)} '{frame}'"
        if name not in scene.joint_names:
            reason = f"{label} has no joint of its own, so it cannot be opened"
            raise SceneError(reason, frame=frame)
        entry = scene.joint_names.index(name)
        lower, upper = scene.joint_limits[entry]
        if not np.isfinite(upper - lower):
            reason = f"the joint of {label} has no limits, so it is never open or closed"
            raise SceneError(reason, frame=frame)
        return entry, float(lower), float(upper)

    def is_open(self, scene: SceneGraph, q: Configuration, frame: str) -> bool:
        """Return whether a drawer or door is at the upper limit of its joint."""
        entry, _, opened = self.limits(scene, frame)
        return abs(float(q[entry]) - opened) <= _LIMIT_TOLERANCE

    def is_shut(self, scene: SceneGraph, q: Configuration, frame: str) -> bool:
        """Return whether a drawer or door is at the lower limit of its joint."""
        entry, closed, _ = self.limits(scene, frame)
        return abs(float(q[entry]) - closed) <= _LIMIT_TOLERANCE

    def operations(
        self, context: ActionContext, arm: Manipulator, frame: str, *, is_opened: bool
    ) -> Iterator[OperateJoint]:
        """Yield motions of the handle, grasps along its closing direction first.

        Args:
            context: scene and configuration before the action, samplers and arms.
            arm: the arm.
            frame: frame of the drawer or door.
            is_opened: whether the mechanism opens.
        """
        scene, q = context.scene, context.q
        handle = _handle(scene, frame)
        entry, closed, opened = self.limits(scene, frame)
        q_end = np.array(q)
        q_end[entry] = opened
        opened_position = scene.pose(handle, relative_to=scene.root(handle), q=q_end).translation
        q_end[entry] = closed
        closed_position = scene.pose(handle, relative_to=scene.root(handle), q=q_end).translation
        inwards = closed_position - opened_position
        root_from_handle = scene.pose(handle, relative_to=scene.root(handle), q=q)
        tool = scene.pose(arm.tool, relative_to=scene.root(handle), q=q)

        def order(grasp: Grasp) -> tuple[float, float]:
            root_from_tool = root_from_handle @ grasp.object_from_tool
            alignment = float(root_from_tool.rotate([0.0, 0.0, 1.0]) @ inwards)
            return -round(alignment, 4), round(root_from_tool.distance(tool)[1], 6)

        goal, arm_name = opened if is_opened else closed, self.arm_name(arm)
        for grasp in sorted(context.grasps(handle, arm=arm_name), key=order):
            yield OperateJoint(handle, goal, grasp, arm=arm_name)


class Drawer(_Mechanism):
    """Drawers: regions that are accessible when they are open.

    A drawer is a frame of class ``drawer`` with a joint. A frame of class ``handle`` is rigidly
    joined to it. The drawer is closed at the lower limit of its joint and open at the upper one.
    """

    pddl: ClassVar[str] = """
    (:types drawer - region)
    (:predicates (closed ?d - drawer))
    (:action open-drawer
      :parameters (?arm - arm ?d - drawer)
      :precondition (and (closed ?d) (handempty ?arm))
      :effect (and (accessible ?d) (not (closed ?d))))
    (:action close-drawer
      :parameters (?arm - arm ?d - drawer)
      :precondition (and (accessible ?d) (handempty ?arm))
      :effect (and (closed ?d) (not (accessible ?d))))
    """

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the frames of the regions, drawers last."""
        return _append_regions(super().region_frames(scene), scene.frames_of_class("drawer"))

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the drawer that is the parent of an object, or the region that it is on."""
        parent = str(scene.parent(object))
        if parent in scene.frames_of_class("drawer"):
            return parent
        return super().region_of(scene, object)

    def is_closed(self, scene: SceneGraph, q: Configuration, region: str) -> bool:
        """Return whether a region is a drawer that is not open."""
        if region in scene.frames_of_class("drawer") and not self.is_open(scene, q, region):
            return True
        return super().is_closed(scene, q, region)

    def facts_closed(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the closed drawers."""
        yield from (
            (frame,) for frame in scene.frames_of_class("drawer") if self.is_shut(scene, q, frame)
        )

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield places in random order.

        The places nearest to the object's current place are all under the open drawer.
        """
        places = list(islice(super().places(context, arm, object, region), _N_PLACEMENTS))
        yield from (places[index] for index in context.rng.permutation(len(places)))

    def do_open_drawer(
        self, context: ActionContext, arm: Manipulator, drawer: str
    ) -> Iterator[Candidate]:
        """Yield motions that pull the handle."""
        yield from self.operations(context, arm, drawer, is_opened=True)

    def do_close_drawer(
        self, context: ActionContext, arm: Manipulator, drawer: str
    ) -> Iterator[Candidate]:
        """Yield motions that push the handle."""
        yield from self.operations(context, arm, drawer, is_opened=False)


class Door(_Mechanism):
    """Doors: the regions behind an open door are accessible.

    A door is a frame of class ``door`` with a joint. A frame of class ``handle`` is rigidly joined
    to it. The door is shut at the lower limit of its joint and open at the upper one. The regions
    behind it are those with the same parent as the door, such as the boards of a cabinet.
    """

    pddl: ClassVar[str] = """
    (:types door - object)
    (:predicates
      (shut ?d - door)
      (ajar ?d - door)                       ; open as far as it goes
      (behind ?r - region ?d - door))
    (:action open-door
      :parameters (?arm - arm ?d - door)
      :precondition (and (shut ?d) (handempty ?arm))
      :effect (and (ajar ?d) (not (shut ?d))
                   (forall (?r - region) (when (behind ?r ?d) (accessible ?r)))))
    (:action close-door
      :parameters (?arm - arm ?d - door)
      :precondition (and (ajar ?d) (handempty ?arm))
      :effect (and (shut ?d) (not (ajar ?d))
                   (forall (?r - region) (when (behind ?r ?d) (not (accessible ?r))))))
    """

    def facts_shut(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the shut doors."""
        yield from (
            (frame,) for frame in scene.frames_of_class("door") if self.is_shut(scene, q, frame)
        )

    def facts_ajar(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the open doors."""
        yield from (
            (frame,) for frame in scene.frames_of_class("door") if self.is_open(scene, q, frame)
        )

    def facts_behind(self, scene: SceneGraph) -> Arguments:
        """Yield the regions with the doors in front of them."""
        for door in scene.frames_of_class("door"):
            regions = self.region_frames(scene)
            yield from (
                (region, door) for region in regions if scene.parent(region) == scene.parent(door)
            )

    def is_closed(self, scene: SceneGraph, q: Configuration, region: str) -> bool:
        """Return whether a region is behind a door that is not open."""
        doors = scene.frames_of_class("door")
        if any(
            scene.parent(region) == scene.parent(door) and not self.is_open(scene, q, door)
            for door in doors
        ):
            return True
        return super().is_closed(scene, q, region)

    def do_open_door(
        self, context: ActionContext, arm: Manipulator, door: str
    ) -> Iterator[Candidate]:
        """Yield motions that pull the handle."""
        yield from self.operations(context, arm, door, is_opened=True)

    def do_close_door(
        self, context: ActionContext, arm: Manipulator, door: str
    ) -> Iterator[Candidate]:
        """Yield motions that push the handle."""
        yield from self.operations(context, arm, door, is_opened=False)


class ContainerWithLid(Access):
    """Containers with lids; a container is accessible without its lid.

    A container is a frame of class ``container`` with walls around a floor. A lid is a movable
    frame that also has the class ``lid``. A lid covers its parent if that is a container and the
    lid stands on its top. In other places a lid is an ordinary object.
    """

    place_predicates = frozenset({"covers"})
    pddl: ClassVar[str] = """
    (:types container - region lid - item)
    (:predicates (covers ?x - lid ?r - container))
    (:action uncover
      :parameters (?arm - arm ?x - lid ?r - container)
      :precondition (and (covers ?x ?r) (handempty ?arm))
      :effect (and (holding ?arm ?x) (accessible ?r) (not (covers ?x ?r)) (not (handempty ?arm))))
    (:action cover
      :parameters (?arm - arm ?x - lid ?r - container)
      :precondition (and (holding ?arm ?x) (accessible ?r))
      :effect (and (covers ?x ?r) (handempty ?arm) (not (holding ?arm ?x)) (not (accessible ?r))))
    """

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Also yield the containers and lids.

        Raises:
            SceneError: if a container is movable.
        """
        yield from super().kinds(scene)
        containers, movable = scene.frames_of_class("container"), movable_frames(scene)
        for frame in containers:
            if frame in movable:
                raise SceneError(
                    f"container '{frame}' is movable, and so cannot be a region", frame=frame
                )
        yield "container", containers
        yield "lid", [frame for frame in movable if "lid" in scene.classes(frame)]

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the frames of the regions, containers last."""
        return _append_regions(super().region_frames(scene), scene.frames_of_class("container"))

    def container_under_lid(self, scene: SceneGraph, object: str) -> str | None:
        """Return the container that a lid covers, or None.

        Args:
            scene: the scene.
            object: frame of the lid.
        """
        parent = scene.parent(object)
        if parent is None or "container" not in scene.classes(parent):
            return None
        if "lid" not in scene.classes(object):
            return None
        bottom = float(scene.local_pose(object).translation[2] + shape_bounds(scene, object)[0][2])
        is_on_top = abs(bottom - float(shape_bounds(scene, parent)[1][2])) <= STANDING_TOLERANCE
        return parent if is_on_top else None

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the container or region of an object; None for a lid that covers a container."""
        parent = str(scene.parent(object))
        if self.container_under_lid(scene, object) is not None:
            return None
        if parent in scene.frames_of_class("container"):
            return parent
        return super().region_of(scene, object)

    def is_closed(self, scene: SceneGraph, q: Configuration, region: str) -> bool:
        """Return whether a region is a container with a lid on it."""
        if any(
            self.container_under_lid(scene, child) == region for child in scene.children(region)
        ):
            return True
        return super().is_closed(scene, q, region)

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Also yield the container that a lid covers."""
        yield from super().place_facts(scene, object)
        if (container := self.container_under_lid(scene, object)) is not None:
            yield self.fact("covers", object, container)

    def do_uncover(
        self, context: ActionContext, arm: Manipulator, lid: str, container: str
    ) -> Iterator[Candidate]:
        """Yield grasps of the lid."""
        yield from self.do_pick(context, arm, lid, container)

    def do_cover(
        self, context: ActionContext, arm: Manipulator, lid: str, container: str
    ) -> Iterator[Candidate]:
        """Yield turns in which the lid is placed in the middle of the container's top."""
        yield from central_places(context, lid, container, arm_name=self.arm_name(arm))


def _kind(scene: SceneGraph, frame: str) -> str:
    return "door" if "door" in scene.classes(frame) else "drawer"


def _handle(scene: SceneGraph, frame: str) -> str:
    for inner in scene.subtree(frame):
        if "handle" in scene.classes(inner):
            return str(inner)
    raise SceneError(
        f"the {_kind(scene, frame)} '{frame}' has no handle: no descendant has the class 'handle'",
        frame=frame,
    )


def _append_regions(regions: Sequence[str], last: Sequence[str]) -> tuple[str, ...]:
    """Return regions with some of them at the end, each once."""
    return (*(frame for frame in regions if frame not in last), *last)
