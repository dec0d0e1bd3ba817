"""Regions that a hand reaches at times: drawers, behind doors, in containers with lids."""

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
from tmkit.tamp.parts.standing import in_the_middle

_PLACEMENTS = 400  # placements among which is chosen
_AT_LIMIT = 0.002  # metres or radians from a limit of its joint at which a drawer is open or closed


class Access(Regions):
    """Objects are picked from and placed on regions that are accessible; here, all are.

    A part that derives from this closes regions by :meth:`is_closed`.
    """

    pddl: ClassVar[str] = """
    (:predicates (accessible ?r - region))   ; the hand reaches in: the drawer is open, the lid is off
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
        """Yield the regions that no part closes."""
        yield from (
            (region,)
            for region in self.region_frames(scene)
            if not self.is_closed(scene, q, region)
        )


class _Mechanism(Access):
    """What is moved by a handle between the limits of its joint, of a class of frames."""

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield also the drawers and doors of the domain."""
        yield from super().kinds(scene)
        yield from (
            (kind, scene.frames_of_class(kind))
            for kind in ("drawer", "door")
            if kind in self._declared.types
        )

    def limits(self, scene: SceneGraph, frame: str) -> tuple[int, float, float]:
        """Return the entry in the configuration of the joint of a drawer or door, and where that is closed and open.

        Raises:
            SceneError: it has no joint of its own, or one without limits.
        """
        name = scene.joint(frame).name
        what = (
            f"the {_kind(scene, frame)} '{frame}' has no joint of its own, so it cannot be opened"
        )
        if name in scene.joint_names:
            entry = scene.joint_names.index(name)
            lower, upper = scene.joint_limits[entry]
            if np.isfinite(upper - lower):
                return entry, float(lower), float(upper)
            what = (
                f"the joint of the {_kind(scene, frame)} '{frame}' has no limits, so it is never"
                " open or closed"
            )
        raise SceneError(what, frame=frame)

    def is_open(self, scene: SceneGraph, q: Configuration, frame: str) -> bool:
        """Return whether a drawer or door is at the upper limit of its joint."""
        entry, _, opened = self.limits(scene, frame)
        return abs(float(q[entry]) - opened) <= _AT_LIMIT

    def is_shut(self, scene: SceneGraph, q: Configuration, frame: str) -> bool:
        """Return whether a drawer or door is at the lower limit of its joint."""
        entry, closed, _ = self.limits(scene, frame)
        return abs(float(q[entry]) - closed) <= _AT_LIMIT

    def operations(
        self, context: ActionContext, arm: Manipulator, frame: str, *, is_opened: bool
    ) -> Iterator[OperateJoint]:
        """Yield ways to take the handle: along the way in which it closes first."""
        scene, q = context.scene, context.q
        handle = _handle(scene, frame)
        entry, closed, opened = self.limits(scene, frame)
        moved = np.array(q)
        moved[entry] = opened
        out = scene.pose(handle, relative_to=scene.root(handle), q=moved).translation
        moved[entry] = closed
        inwards = scene.pose(handle, relative_to=scene.root(handle), q=moved).translation - out
        root_from_handle = scene.pose(handle, relative_to=scene.root(handle), q=q)
        tool = scene.pose(arm.tool, relative_to=scene.root(handle), q=q)

        def order(grasp: Grasp) -> tuple[float, float]:
            held = root_from_handle @ grasp.object_from_tool
            return -round(float(held.rotate([0.0, 0.0, 1.0]) @ inwards), 4), round(
                held.distance(tool)[1], 6
            )

        named = None if len(self.arms) == 1 else arm.name
        for grasp in sorted(context.grasps(handle, arm=named), key=order):
            yield OperateJoint(handle, opened if is_opened else closed, grasp, arm=named)


class Drawer(_Mechanism):
    """Drawers: regions in which objects lie, accessible when open.

    A drawer is a frame of class ``drawer`` on a joint, with a frame of class ``handle`` rigidly
    joined to it, closed at the lower limit of its joint and open at the upper one.
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
        """Return also the drawers."""
        return _last(super().region_frames(scene), scene.frames_of_class("drawer"))

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the drawer that is the parent of an object, or the region that it is on."""
        parent = str(scene.parent(object))
        return (
            parent
            if parent in scene.frames_of_class("drawer")
            else super().region_of(scene, object)
        )

    def is_closed(self, scene: SceneGraph, q: Configuration, region: str) -> bool:
        """Return whether a region is a drawer that is not open."""
        if region in scene.frames_of_class("drawer") and not self.is_open(scene, q, region):
            return True
        return super().is_closed(scene, q, region)

    def facts_closed(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the drawers that are closed."""
        yield from (
            (frame,) for frame in scene.frames_of_class("drawer") if self.is_shut(scene, q, frame)
        )

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield places in random order: those nearest to where the object is now are all under the open drawer."""
        found = list(islice(super().places(context, arm, object, region), _PLACEMENTS))
        yield from (found[index] for index in context.rng.permutation(len(found)))

    def do_open_drawer(
        self, context: ActionContext, arm: Manipulator, drawer: str
    ) -> Iterator[Candidate]:
        """Yield ways to pull the handle."""
        yield from self.operations(context, arm, drawer, is_opened=True)

    def do_close_drawer(
        self, context: ActionContext, arm: Manipulator, drawer: str
    ) -> Iterator[Candidate]:
        """Yield ways to push the handle."""
        yield from self.operations(context, arm, drawer, is_opened=False)


class Door(_Mechanism):
    """Doors: the regions behind one are accessible when it is open.

    A door is a frame of class ``door`` on a joint, with a frame of class ``handle`` rigidly joined
    to it, shut at the lower limit of its joint and open at the upper one. Behind it are the regions
    that have the door's parent, such as the boards of a cabinet.
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
      :effect (and (ajar ?d) (not (shut ?d)) (forall (?r - region) (when (behind ?r ?d) (accessible ?r)))))
    (:action close-door
      :parameters (?arm - arm ?d - door)
      :precondition (and (ajar ?d) (handempty ?arm))
      :effect (and (shut ?d) (not (ajar ?d)) (forall (?r - region) (when (behind ?r ?d) (not (accessible ?r))))))
    """

    def facts_shut(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the doors that are shut."""
        yield from (
            (frame,) for frame in scene.frames_of_class("door") if self.is_shut(scene, q, frame)
        )

    def facts_ajar(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the doors that are open."""
        yield from (
            (frame,) for frame in scene.frames_of_class("door") if self.is_open(scene, q, frame)
        )

    def facts_behind(self, scene: SceneGraph) -> Arguments:
        """Yield the regions with the doors before them."""
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
        """Yield ways to pull the handle."""
        yield from self.operations(context, arm, door, is_opened=True)

    def do_close_door(
        self, context: ActionContext, arm: Manipulator, door: str
    ) -> Iterator[Candidate]:
        """Yield ways to push the handle."""
        yield from self.operations(context, arm, door, is_opened=False)


class ContainerWithLid(Access):
    """Containers: objects lie in them, and a lid on top makes them inaccessible.

    A container is a frame of class ``container`` with walls around a floor, a lid a movable frame
    that has the class ``lid`` too. A lid covers the container that is its parent when it stands on
    top of it; elsewhere it is an object like others.
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
        """Yield also containers and lids.

        Raises:
            SceneError: a container that can be moved.
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
        """Return also the containers."""
        return _last(super().region_frames(scene), scene.frames_of_class("container"))

    def covered_by(self, scene: SceneGraph, object: str) -> str | None:
        """Return the container on top of which a lid stands, or None.

        Args:
            scene: the scene.
            object: frame of the object.
        """
        parent = scene.parent(object)
        if (
            parent is None
            or "container" not in scene.classes(parent)
            or "lid" not in scene.classes(object)
        ):
            return None
        bottom = float(scene.local_pose(object).translation[2] + shape_bounds(scene, object)[0][2])
        is_on_top = abs(bottom - float(shape_bounds(scene, parent)[1][2])) <= STANDING_TOLERANCE
        return parent if is_on_top else None

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the container in which an object lies, or the region that it is on; None for a lid in its place."""
        parent = str(scene.parent(object))
        if self.covered_by(scene, object) is not None:
            return None
        return (
            parent
            if parent in scene.frames_of_class("container")
            else super().region_of(scene, object)
        )

    def is_closed(self, scene: SceneGraph, q: Configuration, region: str) -> bool:
        """Return whether a region is a container with a lid on it."""
        if any(self.covered_by(scene, child) == region for child in scene.children(region)):
            return True
        return super().is_closed(scene, q, region)

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield also which container a lid covers."""
        yield from super().place_facts(scene, object)
        if (container := self.covered_by(scene, object)) is not None:
            yield self.fact("covers", object, container)

    def do_uncover(
        self, context: ActionContext, arm: Manipulator, lid: str, container: str
    ) -> Iterator[Candidate]:
        """Yield grasps of the lid."""
        yield from self.do_pick(context, arm, lid, container)

    def do_cover(
        self, context: ActionContext, arm: Manipulator, lid: str, container: str
    ) -> Iterator[Candidate]:
        """Yield turns in which the lid is put on top, in the middle."""
        yield from in_the_middle(context, lid, container, arm=arm if len(self.arms) > 1 else None)


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


def _last(regions: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return regions with others at their end, each once."""
    return (*(frame for frame in regions if frame not in others), *others)
