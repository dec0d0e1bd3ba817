"""Allowed contacts while an arm picks and places: docs/concepts/planning_algorithm.md, *Contact and clearance*.

Each contact that is allowed is an :class:`AllowedContact`, stated for one phase of an action and
listed in the plan. Planning keeps a margin (1 mm) around all other pairs, but for those that are
nearer when an action begins; checking a finished plan does without, at finer steps. An overlap of
less than 0.01 mm, the error of a few roundings, counts as touching, which is no collision.

Invariants: the rules are a function of the scene version, the arms and the phase alone, so a plan's
checker derives them again and need not trust the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from numpy.typing import ArrayLike

from tmkit._core import CollisionWorld
from tmkit.errors import UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import held_object, movable_frames, moved_frames

PLANNING_MARGIN = 0.001
"""Metres that a planner keeps between pairs that must not touch."""

ALLOWED_PENETRATION = 0.001
"""Metres that an object may overlap with what it rests on."""

TOUCHING = 1e-5
"""Metres of overlap up to which two bodies touch and do not collide."""


@dataclass(frozen=True, order=True)
class AllowedContact:
    """A pair of frames that may be nearer than the margin.

    Attributes:
        frame_a, frame_b: the frames, in alphabetical order.
        penetration: metres that they may overlap; ``inf`` when the pair is not checked at all.
        reason: why, for people.
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
            penetration: allowed depth in metres; infinity for any.
            reason: why the pair is exempt.
        """
        first, second = sorted((a, b))
        return cls(first, second, penetration, reason)

    def __str__(self) -> str:
        amount = (
            "not checked"
            if math.isinf(self.penetration)
            else f"up to {self.penetration * 1000:g} mm"
        )
        return f"{self.frame_a} and {self.frame_b}: {amount} ({self.reason})"


@dataclass(frozen=True)
class CollisionRules:
    """The rules of contact for one arm that acts, and for others that stand still meanwhile.

    Attributes:
        manipulator: the arm that acts.
        parked: what overlaps at the start and is moved by nothing; see :meth:`from_start`.
        others: the other arms of the plan, in its order.
    """

    manipulator: Manipulator
    parked: tuple[AllowedContact, ...] = ()
    others: tuple[Manipulator, ...] = ()

    @classmethod
    def from_start(
        cls,
        manipulator: Manipulator,
        scene: SceneGraph,
        *,
        q: ArrayLike,
        others: tuple[Manipulator, ...] = (),
    ) -> CollisionRules:
        """Return the rules of plans that start in a scene at a configuration.

        Args:
            manipulator: the arm.
            scene: the start scene.
            q: (n_joints,) start configuration.
            others: other arms of the plan.
        """
        rules = cls(manipulator, others=others)
        kept = {*moved_frames(scene, *rules.arms), *movable_frames(scene)}
        world = rules.check_world(
            scene, rules.allowed_contacts(scene, contact_object=rules.held(scene))
        )
        overlaps = [(c.frame_a, c.frame_b) for c in world.contacts(q)]
        reason = "they overlap at the start, and nothing moves them"
        parked = {
            AllowedContact.of(a, b, penetration=math.inf, reason=reason)
            for a, b in overlaps
            if not any(frame in kept or kept & {*scene.ancestors(frame)} for frame in (a, b))
        }
        return cls(manipulator, tuple(sorted(parked)), others)

    @property
    def arms(self) -> tuple[Manipulator, ...]:
        """All arms, the one that acts first."""
        return (self.manipulator, *self.others)

    def acting(self, name: str) -> CollisionRules:
        """Return the rules for phases in which another of the arms acts.

        Raises:
            UnknownNameError: no arm of that name.
        """
        for arm in self.arms:
            if arm.name == name:
                return CollisionRules(
                    arm, self.parked, tuple(other for other in self.arms if other is not arm)
                )
        raise UnknownNameError.of("arm", name, [arm.name for arm in self.arms])

    def held(self, scene: SceneGraph) -> str | None:
        """Return the object that is a child of the hand of the arm that acts, or None."""
        return held_object(scene, self.manipulator)

    def allowed_contacts(
        self, scene: SceneGraph, *, contact_object: str | None = None, support: str | None = None
    ) -> tuple[AllowedContact, ...]:
        """Return what may touch in one phase, sorted. O(objects + contact links squared).

        Args:
            scene: the version in which the phase happens.
            contact_object: the object held, or being grasped or released, or the handle, of the arm
                that acts.
            support: during lift and lowering, what ``contact_object`` is lifted from or lowered to.
        """
        found: set[AllowedContact] = set(self.parked)
        hands = [
            (self.manipulator, contact_object),
            *((arm, held_object(scene, arm)) for arm in self.others),
        ]
        links = {link for arm in self.arms for link in arm.contact_links}
        for object in movable_frames(scene):
            below = scene.parent(object)
            if below is not None and below not in links:
                found.add(_rest(object, below))
        for arm, handled in hands:
            depth, reason = arm.contact_tolerance, "the fingers of a closed hand touch"
            for a, b in combinations(arm.contact_links, 2):
                found.add(AllowedContact.of(a, b, penetration=depth, reason=reason))
            for link in arm.contact_links if handled is not None else ():
                reason = "the hand touches what it grasps"
                found.add(AllowedContact.of(link, str(handled), penetration=depth, reason=reason))
        if contact_object is not None and support is not None:
            found.add(_rest(contact_object, support))
        return tuple(sorted(found))

    def near_pairs(
        self,
        scene: SceneGraph,
        q: ArrayLike,
        *,
        margin: float,
        source: CollisionWorld | None = None,
    ) -> tuple[tuple[str, str], ...]:
        """Return the pairs of frames that are not exempt and nearer to each other than a margin.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
            margin: metres.
            source: world whose geometry is reused.
        """
        allowed_contacts = self.allowed_contacts(scene, contact_object=self.held(scene))
        world = self.world(scene, allowed_contacts, margin=margin, source=source)
        return tuple((contact.frame_a, contact.frame_b) for contact in world.contacts(q))

    def world(
        self,
        scene: SceneGraph,
        allowed_contacts: Iterable[AllowedContact],
        *,
        margin: float,
        near: Iterable[tuple[str, str]] = (),
        close: Mapping[tuple[str, str], float] = MappingProxyType({}),
        source: CollisionWorld | None = None,
    ) -> CollisionWorld:
        """Return the collision world of a version under the given exemptions.

        Args:
            scene: the version.
            allowed_contacts: pairs that may be nearer than ``margin``.
            margin: metres that all other checked pairs keep.
            near: pairs that need not keep the margin, but must not overlap.
            close: pairs that keep another margin, which is in metres.
            source: a world of another version, to reuse its results; the answers are the same
                without.
        """
        pair_margins = {(min(pair), max(pair)): metres for pair, metres in close.items()}
        pair_margins |= {(min(pair), max(pair)): -TOUCHING for pair in near}
        for exemption in allowed_contacts:
            if exemption.frame_a in scene and exemption.frame_b in scene:
                pair_margins[exemption.frame_a, exemption.frame_b] = -exemption.penetration
        movable = movable_frames(scene)
        if source is not None:
            return source.moved_to(scene, movable=movable, margin=margin, pair_margins=pair_margins)
        return CollisionWorld(scene, movable=movable, margin=margin, pair_margins=pair_margins)

    def check_world(
        self,
        scene: SceneGraph,
        allowed_contacts: Iterable[AllowedContact],
        *,
        source: CollisionWorld | None = None,
    ) -> CollisionWorld:
        """Return the collision world without margin, with which plans are validated; see :meth:`world`.

        Args:
            scene: the scene.
            allowed_contacts: pairs that may collide.
            source: world whose geometry is reused.
        """
        return self.world(scene, allowed_contacts, margin=-TOUCHING, source=source)


def _rest(object: str, support: str) -> AllowedContact:
    return AllowedContact.of(
        object,
        support,
        penetration=ALLOWED_PENETRATION,
        reason="an object touches what it rests on",
    )
