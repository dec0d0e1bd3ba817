"""Allowed contacts of an arm that picks and places.

See docs/concepts/planning_algorithm.md, *Contact and clearance*.

Each allowed contact is an :class:`AllowedContact` of one phase of an action, and is listed in the
plan. The planner keeps a margin of 1 mm between all other pairs. The links of one hand are exempt
from the margin, since those of a linkage pass each other more closely. Pairs that are nearer when
an action begins are exempt as well. Plan validation uses no margin, but a finer resolution.

Bodies that overlap slightly at the start may separate. Their overlap never exceeds that at the
start, and a pair that is separate when an action begins may not overlap in it
(:meth:`CollisionRules.remaining_contacts`). Within an action, :class:`ContactTrace` finds pairs
that overlap again.

Two bodies that overlap by less than 0.01 mm touch and do not collide. This is the error of a few
roundings.

Invariants: the rules depend only on the scene, the arms and the phase. The plan validator therefore
derives them again, without data from the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import CollisionWorld
from tmkit._support.initialization import initialize
from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.motion.start_tolerances import StartTolerances
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import held_object, is_movable, movable_frames, moved_frames
from tmkit.robots.robot_files import Robot, resolve_robot, resolve_robots

PLANNING_MARGIN = 0.001
"""Distance that the planner keeps between pairs that must not touch [m]."""

ALLOWED_PENETRATION = 0.001
"""Depth to which an object may overlap its support [m]."""

TOUCH_TOLERANCE = 1e-5
"""Depth of an overlap up to which two bodies touch and do not collide [m]."""

_START_REASON = "they overlap at the start, and may only separate"
"""Reason of the allowed contacts of bodies that overlap slightly at the start."""

_NEAR_REASON = "they are nearer than the margin when the action begins"
"""Reason of the pairs that need not keep the planning margin."""


@dataclass(frozen=True, order=True)
class AllowedContact:
    """A pair of frames that may be nearer than the margin.

    Attributes:
        frame_a, frame_b: frames, in alphabetical order.
        penetration: allowed depth of their overlap [m]. ``inf`` if the pair is not checked.
        reason: explanation of the exemption, as readable text.
    """

    frame_a: str
    frame_b: str
    penetration: float
    reason: str

    @classmethod
    def of(cls, a: str, b: str, *, penetration: float, reason: str) -> AllowedContact:
        """Create the exemption of two frames, in either order.

        Args:
            a: a frame.
            b: a frame.
            penetration: allowed depth [m]; infinity for any.
            reason: why the pair is exempt.
        """
        first, second = sorted((a, b))
        return cls(first, second, penetration, reason)

    def __str__(self) -> str:
        depth = "not checked"
        if not math.isinf(self.penetration):
            depth = f"up to {self.penetration * 1000:.3g} mm"
        return f"{self.frame_a} and {self.frame_b}: {depth} ({self.reason})"


@dataclass(frozen=True)
class CollisionRules:
    """Contact rules of one acting arm, while the other arms are at rest.

    Attributes:
        robot: acting arm. The constructor also accepts its name.
        start_overlaps: pairs that overlap at the start and that nothing moves; see
            :meth:`from_start`.
        other_arms: other arms of the plan, in its order.
        start_contacts: pairs that overlap slightly at the start and may only separate, with the
            depth there.
    """

    robot: Manipulator
    start_overlaps: tuple[AllowedContact, ...] = ()
    other_arms: tuple[Manipulator, ...] = ()
    start_contacts: tuple[AllowedContact, ...] = ()

    def __post_init__(self) -> None:
        robot = resolve_robot(self.robot, function="CollisionRules")
        other_arms = resolve_robots(self.other_arms, function="CollisionRules", name="other_arms")
        initialize(self, robot=robot, other_arms=other_arms)

    @classmethod
    def from_start(
        cls,
        robot: Robot,
        scene: SceneGraph,
        *,
        q: ArrayLike,
        other_arms: Sequence[Robot] = (),
        tolerances: StartTolerances | None = None,
    ) -> CollisionRules:
        """Return the rules of plans that start in a scene at a configuration.

        Args:
            robot: name or description of the acting arm.
            scene: start scene.
            q: (n_joints,) start configuration.
            other_arms: names or descriptions of the other arms of the plan.
            tolerances: depths of overlaps of moving bodies that are :attr:`start_contacts`.
                Defaults to :class:`StartTolerances`.
        """
        limits = StartTolerances() if tolerances is None else tolerances
        rules = cls(
            resolve_robot(robot, scene, function="from_start"),
            other_arms=resolve_robots(other_arms, scene, function="from_start", name="other_arms"),
        )
        mobile = {*moved_frames(scene, *rules.arms), *movable_frames(scene)}
        contacts = rules.allowed_contacts(scene, contact_object=rules.held_object(scene))
        world = rules.check_world(scene, contacts)
        reason = "they overlap at the start, and nothing moves them"
        overlaps, start_contacts = set(), set()
        for contact in world.contacts(q):
            a, b, depth = contact.frame_a, contact.frame_b, -contact.distance
            if not any(frame in mobile or mobile & {*scene.ancestors(frame)} for frame in (a, b)):
                overlaps.add(AllowedContact.of(a, b, penetration=math.inf, reason=reason))
                continue
            is_support = scene.parent(a) == b or scene.parent(b) == a
            limit = max(limits.penetration, limits.sinking if is_support else 0.0)
            if depth <= limit + TOUCH_TOLERANCE:
                depth += TOUCH_TOLERANCE
                start_contacts.add(AllowedContact.of(a, b, penetration=depth, reason=_START_REASON))
        return replace(
            rules,
            start_overlaps=tuple(sorted(overlaps)),
            start_contacts=tuple(sorted(start_contacts)),
        )

    @property
    def arms(self) -> tuple[Manipulator, ...]:
        """All arms, the acting arm first."""
        return (self.robot, *self.other_arms)

    def for_arm(self, name: str) -> CollisionRules:
        """Return the rules for phases in which another of the arms acts.

        Raises:
            UnknownNameError: if no arm has the name.
        """
        for arm in self.arms:
            if arm.name == name:
                other_arms = tuple(other for other in self.arms if other is not arm)
                return replace(self, robot=arm, other_arms=other_arms)
        raise UnknownNameError.of("arm", name, [arm.name for arm in self.arms])

    def held_object(self, scene: SceneGraph) -> str | None:
        """Return the object that is a child of the hand of the acting arm, or None."""
        return held_object(scene, self.robot)

    def contact_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the frames with which the acting arm touches others.

        They are the held object, or the contact links and the tool of an empty hand.

        Args:
            scene: scene with the arm.
        """
        held = self.held_object(scene)
        if held is not None:
            return (held,)
        links, tool = self.robot.contact_links, self.robot.tool
        has_tool_shape = any(part.collision for part in scene.shapes(tool))
        return (*links, tool) if has_tool_shape and tool not in links else links

    def allowed_contacts(
        self,
        scene: SceneGraph,
        *,
        contact_object: str | None = None,
        support: str | None = None,
        touching: Sequence[str] = (),
    ) -> tuple[AllowedContact, ...]:
        """Return the allowed contacts of one phase, sorted.

        O(objects + contact links squared).

        Args:
            scene: scene during the phase.
            contact_object: object that the acting arm holds, grasps or releases, or its handle.
            support: frame that supports ``contact_object`` before a lift or after a lowering.
            touching: frames that the :meth:`contact_frames` touch.
        """
        contacts: set[AllowedContact] = set(self.start_overlaps)
        hands = [
            (self.robot, contact_object),
            *((arm, held_object(scene, arm)) for arm in self.other_arms),
        ]
        links = {link for arm in self.arms for link in arm.contact_links}
        for object in movable_frames(scene):
            parent = scene.parent(object)
            if parent is not None and parent not in links:
                contacts.add(_support_contact(object, parent))
        for arm, touched in hands:
            depth, reason = arm.contact_tolerance, "the fingers of a closed hand touch"
            for a, b in combinations(arm.contact_links, 2):
                contacts.add(AllowedContact.of(a, b, penetration=depth, reason=reason))
            if touched is None:
                continue
            reason = "the hand touches what it grasps"
            for link in arm.contact_links:
                contacts.add(AllowedContact.of(link, touched, penetration=depth, reason=reason))
        if contact_object is not None and support is not None:
            contacts.add(_support_contact(contact_object, support))
        if touching:
            is_empty, reason = self.held_object(scene) is None, "the motion touches it"
            depth = self.robot.contact_tolerance if is_empty else ALLOWED_PENETRATION
            for a, b in product(self.contact_frames(scene), touching):
                contacts.add(AllowedContact.of(a, b, penetration=depth, reason=reason))
        return tuple(sorted(contacts))

    def near_pairs(
        self,
        scene: SceneGraph,
        q: ArrayLike,
        *,
        margin: float,
        source: CollisionWorld | None = None,
    ) -> tuple[AllowedContact, ...]:
        """Return the pairs of frames that are not exempt and nearer to each other than a margin.

        They may touch, and :meth:`remaining_contacts` may overlap.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
            margin: distance [m].
            source: world whose geometry is reused.
        """
        allowed_contacts = self.allowed_contacts(scene, contact_object=self.held_object(scene))
        world = self.world(scene, allowed_contacts, margin=margin, source=source)
        remaining = {(c.frame_a, c.frame_b): c for c in self.remaining_contacts(scene, q)}
        near_pairs = (
            AllowedContact.of(
                contact.frame_a, contact.frame_b, penetration=TOUCH_TOLERANCE, reason=_NEAR_REASON
            )
            for contact in world.contacts(q)
        )
        return tuple(remaining.get((c.frame_a, c.frame_b), c) for c in near_pairs)

    def remaining_contacts(self, scene: SceneGraph, q: ArrayLike) -> tuple[AllowedContact, ...]:
        """Return the :attr:`start_contacts` whose frames still overlap when an action begins.

        Args:
            scene: scene before the action.
            q: (n_joints,) configuration before the action.
        """
        if not self.start_contacts:
            return ()
        allowed_contacts = self.allowed_contacts(scene, contact_object=self.held_object(scene))
        contacts = self.check_world(scene, allowed_contacts).contacts(q)
        overlapping = {tuple(sorted((contact.frame_a, contact.frame_b))) for contact in contacts}
        return tuple(
            contact
            for contact in self.start_contacts
            if (contact.frame_a, contact.frame_b) in overlapping
        )

    def world(
        self,
        scene: SceneGraph,
        allowed_contacts: Iterable[AllowedContact],
        *,
        margin: float,
        near_pairs: Iterable[AllowedContact] = (),
        pair_margins: Mapping[tuple[str, str], float] = MappingProxyType({}),
        source: CollisionWorld | None = None,
    ) -> CollisionWorld:
        """Return the collision world of a scene under the given exemptions.

        Args:
            scene: the scene.
            allowed_contacts: pairs that may be nearer than ``margin``.
            margin: distance of all other checked pairs [m].
            near_pairs: pairs that may be nearer than ``margin``; see :meth:`near_pairs`.
            pair_margins: distance by pair [m], instead of ``margin``.
            source: world of another version of the scene, whose results are reused. The result does
                not depend on it.
        """
        margins = dict.fromkeys(self._hand_pairs(scene), -TOUCH_TOLERANCE)
        margins |= {(min(pair), max(pair)): distance for pair, distance in pair_margins.items()}
        for exemption in (*near_pairs, *allowed_contacts):
            if exemption.frame_a in scene and exemption.frame_b in scene:
                margins[exemption.frame_a, exemption.frame_b] = -exemption.penetration
        movable = movable_frames(scene)
        if source is not None:
            return source.moved_to(scene, movable=movable, margin=margin, pair_margins=margins)
        return CollisionWorld(scene, movable=movable, margin=margin, pair_margins=margins)

    def _hand_pairs(self, scene: SceneGraph) -> Iterator[tuple[str, str]]:
        """Yield the pairs of links within each hand with fingers, without held objects."""
        for arm in self.arms:
            if arm.is_two_fingered and arm.tip in scene:
                links = {*scene.subtree(arm.tip)}
                for child in scene.children(arm.tip):
                    if is_movable(scene, child):
                        links.difference_update(scene.subtree(child))
                yield from combinations(sorted(links), 2)

    def check_world(
        self,
        scene: SceneGraph,
        allowed_contacts: Iterable[AllowedContact],
        *,
        source: CollisionWorld | None = None,
    ) -> CollisionWorld:
        """Return the collision world of plan validation, which has no margin; see :meth:`world`.

        Args:
            scene: the scene.
            allowed_contacts: pairs that may collide.
            source: world whose geometry is reused.
        """
        return self.world(scene, allowed_contacts, margin=-TOUCH_TOLERANCE, source=source)


@dataclass
class ContactTrace:
    """Overlaps of some pairs along a motion, which may end but not begin.

    Attributes:
        contacts: pairs that overlap when the motion begins.
        separate_pairs: those of the pairs that have separated.
    """

    contacts: tuple[AllowedContact, ...]
    separate_pairs: set[tuple[str, str]] = field(default_factory=set)

    def overlap_again(
        self, world: CollisionWorld, path: NDArray[np.float64]
    ) -> tuple[str, str] | None:
        """Return a pair that overlaps after it has separated, or None.

        Args:
            world: collision world in which the pairs may touch, but not overlap.
            path: (k, n_joints) next configurations of the motion, at fine steps.
        """
        pairs = {(contact.frame_a, contact.frame_b) for contact in self.contacts}
        for contacts in world.contacts_batch(path) if pairs else ():
            names = {(contact.frame_a, contact.frame_b) for contact in contacts}
            overlapping = pairs & {(min(pair), max(pair)) for pair in names}
            if again := overlapping & self.separate_pairs:
                return min(again)
            self.separate_pairs |= pairs - overlapping
        return None


def _support_contact(object: str, support: str) -> AllowedContact:
    reason = "an object touches what it rests on"
    return AllowedContact.of(object, support, penetration=ALLOWED_PENETRATION, reason=reason)
