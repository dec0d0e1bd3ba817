"""Semantics of the drawer domain in a scene at a configuration.

An object (PDDL type ``item``) is a frame of class ``movable``. A *drawer* is a frame of class ``drawer`` on a joint,
with a frame of class ``handle`` rigidly joined to it; a *place* is a drawer or a frame of class ``surface``. An object
is in its parent. A drawer is closed at the lower limit of its joint and open, for the hand to reach in, at the upper
one: the state depends on the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Grasp, Operate, Place
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.tamp import DomainSemantics, pddl_name
from tmkit.tamp.domains import pick_candidates

_PLACEMENTS = 400  # placements among which is chosen
_AT_LIMIT = 0.002  # metres or radians from a limit of its joint at which a drawer is open or closed


class Semantics(DomainSemantics):
    """The meaning of the drawer domain for one arm.

    Args:
        manipulator: the arm.
    """

    is_incremental = True

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects, tables and drawers by PDDL name.

        Raises:
            SceneError: two frames of one name in PDDL.
        """
        found: dict[str, str] = {}
        drawers = scene.frames_of_class("drawer")
        kinds = (("item", movable_frames(scene)), ("place", _tables(scene)), ("drawer", drawers))
        for kind, frames in kinds:
            for frame in frames:
                name = pddl_name(frame)
                if name in found:
                    what = f"the {kind} '{frame}' has the name of another {found[name]} in PDDL: '{name}'"
                    raise SceneError(f"{what}; rename one", frame=frame)
                found[name] = kind
        return found

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where each object is and which drawers are open.

        Raises:
            SceneError: an object that is in no place and not in the hand, two in the hand, or a drawer that has no
                joint.
        """
        del objects
        places = {frame: pddl_name(frame) for frame in (*_tables(scene), *scene.frames_of_class("drawer"))}
        facts = [Fact.of("accessible", pddl_name(table)) for table in _tables(scene)]
        held: str | None = None
        for object in movable_frames(scene):
            parent = scene.parent(object)
            if parent == self.manipulator.tip:
                if held is not None:
                    raise SceneError(f"'{held}' and '{object}' are both in the hand, which holds one", frame=object)
                held = object
                facts.append(Fact.of("holding", pddl_name(object)))
            elif parent in places:
                facts.append(Fact.of("in", pddl_name(object), places[parent]))
            else:
                known = ", ".join(places) or "none"
                what = f"'{object}' has parent '{parent}', which is no place (surface or drawer: {known}), no hand"
                raise SceneError(what, frame=object)
        for drawer in scene.frames_of_class("drawer"):
            closed, opened = _limits(scene, drawer)
            value = float(np.asarray(q)[_entry(scene, drawer)])
            if abs(value - closed) <= _AT_LIMIT:
                facts.append(Fact.of("closed", pddl_name(drawer)))
            elif abs(value - opened) <= _AT_LIMIT:
                facts.append(Fact.of("accessible", pddl_name(drawer)))
        if held is None:
            facts.append(Fact.of("handempty"))
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps, placements, or ways to move the handle, best first."""
        scene = context.scene
        known = (*movable_frames(scene), *_tables(scene), *scene.frames_of_class("drawer"))
        frames = {pddl_name(frame): frame for frame in known}
        arguments = [frames[name] for name in action.arguments]
        if action.name in ("open-drawer", "close-drawer"):
            (drawer,) = arguments
            closed, opened = _limits(scene, drawer)
            yield from self._operations(context, drawer, opened if action.name == "open-drawer" else closed)
        elif action.name == "take":
            yield from pick_candidates(context, arguments[0], manipulator=self.manipulator)
        else:
            yield from _placements(context, *arguments)

    def _operations(self, context: ActionContext, drawer: str, to: float) -> Iterator[Candidate]:
        """Yield ways to take the handle: along the way in which the drawer closes first."""
        scene, q = context.scene, context.q
        handle = _handle(scene, drawer)
        moved = np.array(q)
        closed, opened = _limits(scene, drawer)
        moved[_entry(scene, drawer)] = opened
        out = scene.pose(handle, relative_to=scene.root(handle), q=moved).translation
        moved[_entry(scene, drawer)] = closed
        inwards = scene.pose(handle, relative_to=scene.root(handle), q=moved).translation - out
        root_from_handle = scene.pose(handle, relative_to=scene.root(handle), q=q)
        tool = scene.pose(self.manipulator.tool, relative_to=scene.root(handle), q=q)

        def order(grasp: Grasp) -> tuple[float, float]:
            held = root_from_handle @ grasp.object_from_tool
            return -round(float(held.rotate([0.0, 0.0, 1.0]) @ inwards), 4), round(held.distance(tool)[1], 6)

        for grasp in sorted(context.grasps(handle), key=order):
            yield Operate(handle, to, grasp)


def _placements(context: ActionContext, object: str, place: str) -> Iterator[Place]:
    """Yield placements in random order: those nearest to where the object is now are all under the open drawer."""
    found = list(islice(context.placements(object, place), _PLACEMENTS))
    for index in context.rng.permutation(len(found)):
        yield Place.at(object, found[index])


def _tables(scene: SceneGraph) -> tuple[str, ...]:
    return tuple(scene.frames_of_class("surface"))


def _entry(scene: SceneGraph, drawer: str) -> int:
    """Return the entry of the configuration that says how far a drawer is open."""
    name = scene.joint(drawer).name
    if name not in scene.joint_names:
        raise SceneError(f"the drawer '{drawer}' has no joint of its own, so it cannot be opened", frame=drawer)
    return scene.joint_names.index(name)


def _limits(scene: SceneGraph, drawer: str) -> tuple[float, float]:
    """Return the values at which a drawer is closed and open."""
    lower, upper = scene.joint_limits[_entry(scene, drawer)]
    if not np.isfinite(upper - lower):
        raise SceneError(
            f"the joint of the drawer '{drawer}' has no limits, so it is never open or closed", frame=drawer
        )
    return float(lower), float(upper)


def _handle(scene: SceneGraph, drawer: str) -> str:
    for frame in scene.subtree(drawer):
        if "handle" in scene.classes(frame):
            return str(frame)
    raise SceneError(f"the drawer '{drawer}' has no handle: no descendant has the class 'handle'", frame=drawer)
