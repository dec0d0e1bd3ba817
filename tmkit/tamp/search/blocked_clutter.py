"""Proof that no object of a clutter can be picked first, since each grasp is blocked by another.

::

    . . .      The fingers are thicker than the gaps. A grasp of any block needs a finger in a
    . x .      gap, so a neighbour has to be moved first. That one needs its own neighbour to be
    . . .      moved first, and so on in a circle.

Objects that the hand alone can pick are removed one after the other. The remaining objects form the
clutter. In any plan, the first of them is picked while all others have their start poses. There,
another object of the clutter or a fixed body collides with the hand at each grasp.

Invariants: a missing proof means nothing. The proof holds for the grasps of the default sampler,
fully open, with narrow openings and by the fingertips, and if only picks move objects. It depends
only on the start scene.
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

_MAX_OBJECTS = 100
"""Number of movable objects above which no proof is attempted, since all pairs are compared."""

_MAX_NAMES = 6
"""Number of objects that the cause names."""


def prove_blocked_clutter(context: PlanningContext) -> Infeasibility | None:
    """Return a proof that an object of the goal cannot be picked, or None.

    Args:
        context: settings of the planning run.
    """
    scene, semantics = context.scene, context.domain.semantics
    if not semantics.is_moved_by_picks or context.domain.probabilistic_predicates:
        return None
    required_picks = tuple(semantics.objects_to_move(necessary_facts(context.problem), scene))
    objects = movable_frames(scene)
    if not required_picks or len(objects) > _MAX_OBJECTS:
        return None
    tables = [
        HandTables(scene, context.q, robot=arm, sampling=context.sampling) for arm in context.robots
    ]
    tips = {arm.tip for arm in context.robots}
    poses = {
        name: scene.pose(name, relative_to=scene.root(name), q=context.q)
        for name in objects
        if not tips & set(scene.ancestors(name))
    }
    if not all(table.is_usable for table in tables):
        return None
    for pick in required_picks:
        object = pick.object
        neighbours = _find_clutter_around(context, tables, poses, object)
        count = sum(len(table.options(object)) for table in tables)
        if neighbours and count:
            names = ", ".join(f"'{name}'" for name in neighbours[:_MAX_NAMES])
            if len(neighbours) > _MAX_NAMES:
                names += " and others"
            cause = (
                f"'{object}' has to be picked, and no grasp of the list of {count} is free"
                f" before another of {names} is moved, of which none can be picked first"
            )
            return Infeasibility(cause, (pick.fact,), (object, *neighbours))
    return None


def _find_clutter_around(
    context: PlanningContext, tables: list[HandTables], poses: Mapping[str, Pose], object: str
) -> list[str]:
    """Return the other objects of the clutter around an object; empty if it can be picked."""
    scene, samplers = context.scene, context.sampling.samplers
    blocker_sets: dict[str, list[frozenset[str]]] = {}
    queue = [object]
    while queue:
        name = queue.pop(0)
        if name in blocker_sets:
            continue
        # Objects with another sampler may have any grasp.
        is_default = name in poses and samplers.grasp_sampler(scene, name) is sample_grasps
        blocker_sets[name] = (
            list(_find_blocker_sets(tables, name, poses)) if is_default else [frozenset()]
        )
        if object not in _find_clutter(scene, blocker_sets):
            return []
        queue += sorted(frozenset().union(*blocker_sets[name]))
        queue += [ancestor for ancestor in scene.ancestors(name) if ancestor in poses]
    return [name for name in _find_clutter(scene, blocker_sets) if name != object]


def _find_clutter(scene: SceneGraph, blocker_sets: Mapping[str, list[frozenset[str]]]) -> list[str]:
    """Return the objects of which none can be picked first.

    Args:
        scene: the start scene.
        blocker_sets: blocking objects of each grasp, by object. Objects without an entry are
            assumed to stay.
    """
    removable_objects: set[str] = set()
    while True:
        new_objects = {
            name
            for name in blocker_sets.keys() - removable_objects
            if any(blockers <= removable_objects for blockers in blocker_sets[name])
            or removable_objects & set(scene.ancestors(name))
        }
        if not new_objects:
            return [name for name in blocker_sets if name not in removable_objects]
        removable_objects |= new_objects


def _find_blocker_sets(
    tables: list[HandTables], name: str, poses: Mapping[str, Pose]
) -> Iterator[frozenset[str]]:
    """Yield the blocking movable objects of each grasp that the fixed bodies leave free."""
    for table in tables:
        is_free = table.static_clearance(name, poses[name]).is_free
        blockers = table.blockers(name, poses[name], poses)
        bit_sets = {bits for bits, free in zip(blockers, is_free, strict=True) if free}
        yield from (frozenset(table.names(bits)) for bits in sorted(bit_sets))
