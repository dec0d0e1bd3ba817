"""A proof that no object of a clutter can be picked first: each blocks every grasp of another.

    . . .      The fingers are thicker than the gaps. A grasp of any block needs a finger in a gap, so it needs a
    . x .      neighbour to be moved first, which needs its own neighbour to be moved first, and so on in a circle.
    . . .

The objects that can be picked are taken away, one after the other, as if nothing but the hand
mattered. Those that are left form the clutter. In any plan, the first of them to be picked would be
picked while all others are where they were at the start. There another one, or something that never
moves, meets the hand at each of its grasps.

Invariants: one-sided. The proof holds for the grasps of the default sampler, fully open and with
little room, also by the fingertips, and where objects are moved by picks alone. It is a function of
the start scene.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tmkit.graph import SceneGraph
from tmkit.manipulation.samplers import sample_grasps
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.domains.infeasibility import Infeasibility, necessary_facts
from tmkit.tamp.search.hand_tables import HandTables

_MOST_OBJECTS = 100
"""Movable objects of a scene in which a proof is attempted; pairs of them are compared."""

_NAMED = 6
"""Objects that the cause names."""


def blocked_clutter(context: PlanningContext) -> Infeasibility | None:
    """Refute that an object can be picked that a goal needs elsewhere; return None where nothing is proved.

    Args:
        context: the planning run.
    """
    scene, semantics = context.scene, context.domain.semantics
    if not semantics.is_moved_by_picks or context.domain.probabilistic_predicates:
        return None
    handled = tuple(semantics.objects_to_move(necessary_facts(context.problem), scene))
    objects = movable_frames(scene)
    if not handled or len(objects) > _MOST_OBJECTS:
        return None
    tables = [
        HandTables(scene, context.q, manipulator=arm, sampling=context.sampling)
        for arm in context.manipulators
    ]
    tips = {arm.tip for arm in context.manipulators}
    poses = {
        name: scene.pose(name, relative_to=scene.root(name), q=context.q)
        for name in objects
        if not tips & set(scene.ancestors(name))
    }
    if not all(table.is_usable for table in tables):
        return None
    for one in handled:
        others = _blocked_with(context, tables, poses, one.object)
        count = sum(len(table.options(one.object)) for table in tables)
        if others and count:
            named = ", ".join(f"'{name}'" for name in others[:_NAMED]) + (
                " and others" if len(others) > _NAMED else ""
            )
            cause = (
                f"'{one.object}' has to be picked, and no grasp of the list of {count} is free"
                f" before another of {named} is moved, of which none can be picked first"
            )
            return Infeasibility(cause, (one.fact,), (one.object, *others))
    return None


def _blocked_with(
    context: PlanningContext, tables: list[HandTables], poses: Mapping[str, Pose], object: str
) -> list[str]:
    """Return the other objects of a clutter of which none can be picked first; empty if the object can be picked."""
    scene, samplers = context.scene, context.sampling.samplers
    needs: dict[str, list[frozenset[str]]] = {}
    waiting = [object]
    while waiting:
        name = waiting.pop(0)
        if name in needs:
            continue
        is_known = name in poses and samplers.grasp_sampler(scene, name) is sample_grasps
        needs[name] = list(_needs(tables, name, poses)) if is_known else [frozenset()]
        if object not in _clutter(scene, needs):
            return []
        waiting += sorted(frozenset().union(*needs[name]))
        waiting += [below for below in scene.ancestors(name) if below in poses]
    return [name for name in _clutter(scene, needs) if name != object]


def _clutter(scene: SceneGraph, needs: Mapping[str, list[frozenset[str]]]) -> list[str]:
    """Return the objects of which none can be picked first, if what has no entry cannot either.

    Args:
        needs: for each object and grasp of it the objects in its way.
    """
    picked: set[str] = set()
    while True:
        more = {
            name
            for name in needs.keys() - picked
            if any(blockers <= picked for blockers in needs[name])
            or picked & set(scene.ancestors(name))
        }
        if not more:
            return [name for name in needs if name not in picked]
        picked |= more


def _needs(
    tables: list[HandTables], name: str, poses: Mapping[str, Pose]
) -> Iterator[frozenset[str]]:
    """Yield for each grasp that the fixed bodies leave free the movable objects in its way."""
    for table in tables:
        is_free = table.at_rest(name, poses[name]).is_free
        sets = {
            bits
            for bits, free in zip(table.blockers(name, poses[name], poses), is_free, strict=True)
            if free
        }
        yield from (frozenset(table.names(bits)) for bits in sorted(sets))
