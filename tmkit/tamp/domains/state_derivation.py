"""Incremental derivation of the PDDL state of one scene version from that of another.

:class:`StateDeriver` caches the values of the functions that a semantics marks with
:func:`tmkit.tamp.incremental`, together with their queries of the scene. It calls such a function
again only when the result of a query has changed. For example::

    @incremental
    def _standing(scene: SceneGraph, object: str) -> Fact:        # reads this object and its parent
        require_standing(scene, object)
        return Fact.of("on", pddl_name(object), pddl_name(str(scene.parent(object))))

    class Semantics(DomainSemantics):
        is_incremental = True

        def state(self, scene, objects, q):
            return State(_standing(scene, object) for object in scene.frames_of_class("movable"))

Rules: an incremental function depends on its arguments and the scene alone, and its result is not
modified. A configuration is not an argument and may be read outside. ``state`` and the functions
that it calls use methods of the scene, and pass it to Python functions only, because it may be a
:class:`~tmkit.tamp.domains.traced_scene.TracedScene`.

Costs: the difference of the versions, O(changes log n), a copy of the table of cached values, and
the functions that are called again. A function that calls an incremental one for each of many
frames is called again after every change. If it calls functions over groups of frames instead, as
in :mod:`tmkit.tamp.parts`, only the groups with a change are recomputed.
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
    drop_changed,
)

_FIELDS = ("there", "parent", "pose", "joint", "classes", "shapes", "attributes", "children")
"""Fields that differ for an added or removed frame."""


@dataclass(frozen=True, eq=False)
class DerivedState:
    """The PDDL state of a scene version, with the values that were cached during its derivation.

    Attributes:
        state: basic facts that hold.
        scene: scene version.
    """

    state: State
    scene: SceneGraph
    _memo: Memo = field(repr=False)


class StateDeriver:
    """Derives the PDDL states of scene versions from one another.

    Several searches and threads may share one deriver, and derive from any version of theirs. Its
    own data are a table of function dependencies, to which entries are only added.

    Args:
        domain: the domain.
        objects: PDDL objects with their types.
    """

    def __init__(self, domain: PlanningDomain, objects: Mapping[str, str]) -> None:
        self.domain, self.objects = domain, dict(objects)
        self._dependents = Dependents()

    def derive(
        self, scene: SceneGraph, q: Configuration, previous: DerivedState | None = None
    ) -> DerivedState:
        """Return the state of a version at a configuration.

        It is equal to the result of ``domain.state``.

        Args:
            scene: scene version.
            q: (n_joints,) configuration.
            previous: state of another version, by this deriver. The fewer the changes between the
                versions, the less is computed again. By default everything is computed.

        Raises:
            SceneError: if the domain's predicates cannot describe the scene.
        """
        memo: Memo = {}
        if previous is not None:
            changed = set() if previous.scene is scene else _diff_keys(previous.scene, scene)
            if changed is not None:
                memo = drop_changed(previous._memo, changed, self._dependents)
        state = self.domain.state(
            scene, q, objects=self.objects, view=TracedScene(scene, memo, self._dependents)
        )
        return DerivedState(state, scene, memo)


def _diff_keys(a: SceneGraph, b: SceneGraph) -> set[Key] | None:
    """Return the keys that differ between versions, or None if a name denotes different frames."""
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
