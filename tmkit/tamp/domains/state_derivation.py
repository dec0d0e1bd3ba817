"""Deriving PDDL states of scene versions from one another: what a version did not change is not derived again.

:class:`StateDeriver` keeps the values of the functions that a semantics marks with
:func:`tmkit.tamp.incremental`, with what each of them read of the scene. It calls such a function
again only when something that it read has changed. For example::

    @incremental
    def _standing(scene: SceneGraph, object: str) -> Fact:        # reads this object and its parent
        require_standing(scene, object)
        return Fact.of("on", pddl_name(object), pddl_name(str(scene.parent(object))))

    class Semantics(DomainSemantics):
        is_incremental = True

        def state(self, scene, objects, q):
            return State(_standing(scene, object) for object in scene.frames_of_class("movable"))

Rules: a kept function depends on its arguments and the scene alone, and its result is not modified.
A configuration is no argument and may be read outside. ``state`` and what it calls use methods of
the scene, and pass it to functions of Python only: it may be a
:class:`~tmkit.tamp.domains.traced_scene.TracedScene`.

Costs: the difference of the versions, O(changes log n); a copy of the table of kept values; and the
functions called again. A function over many frames that calls a kept one for each is called again
for every change. One over groups of groups of them, as :mod:`tmkit.tamp.parts` has, calls only the
groups in which something changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tmkit.graph import SceneGraph, diff
from tmkit.pddl import State
from tmkit.plans.values import Configuration
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.traced_scene import (
    JOINTS,
    WHOLE,
    Dependents,
    Key,
    Memo,
    TracedScene,
    forget,
)

_FIELDS = ("there", "parent", "pose", "joint", "classes", "shapes", "attributes", "children")


@dataclass(frozen=True, eq=False)
class DerivedState:
    """The PDDL state of a scene version, and what was kept while it was derived.

    Attributes:
        state: the basic facts that hold.
        scene: the version.
    """

    state: State
    scene: SceneGraph
    _memo: Memo = field(repr=False)


class StateDeriver:
    """Derives the PDDL states of versions of a scene, one from another.

    Any number of searches may use one, in any threads, and derive from any version that they have.
    What it has of its own is a table of which functions ever read what, which only grows.

    Args:
        domain: the domain.
        objects: the PDDL objects with their types.
    """

    def __init__(self, domain: PlanningDomain, objects: Mapping[str, str]) -> None:
        self.domain, self.objects = domain, dict(objects)
        self._dependents = Dependents()

    def derive(
        self, scene: SceneGraph, q: Configuration, previous: DerivedState | None = None
    ) -> DerivedState:
        """Return the state of a version at a configuration (n_joints,): that of ``domain.state``, fact by fact.

        Args:
            scene: the version.
            q: the configuration.
            previous: the state of another version, by this deriver; the fewer changes lie between,
                the less is derived again. If omitted, all is derived.

        Raises:
            SceneError: the scene cannot be described in the domain's predicates.
        """
        memo: Memo = {}
        if previous is not None:
            changed = set() if previous.scene is scene else _changed(previous.scene, scene)
            if changed is not None:
                memo = forget(previous._memo, changed, self._dependents)
        state = self.domain.state(
            scene, self.objects, q, view=TracedScene(scene, memo, self._dependents)
        )
        return DerivedState(state, scene, memo)


def _changed(a: SceneGraph, b: SceneGraph) -> set[Key] | None:
    """Return what differs between two versions; None where a name stands for another frame."""
    changed = {WHOLE}
    for frame in diff(a, b).frames:
        before, after = frame.before, frame.after
        fields: Sequence[str] = frame.fields if before and after else _FIELDS
        if "name" in fields:
            return None
        sides = [side for side in (before, after) if side is not None]
        changed.update((sides[0].name, name) for name in fields)
        if "parent" in fields:
            changed.update((side.parent, "children") for side in sides if side.parent is not None)
        if "joint" in fields and any(side.joint.is_actuated for side in sides):
            changed.add(JOINTS)
        if "classes" in fields:
            changed.update((name, "class") for side in sides for name in side.classes)
    return changed
