"""Contacts between bodies, allowed contacts, and the distance of a point to a surface.

The engine finds contacts between links of bodies; here they are told by frames. It keeps points of contact for as long
as two shapes stay where they are relative to each other, so what is turned while it is held needs its contacts found
anew: setting the filter of a pair, even to what it was, forgets them.

Invariants: answers are sorted, so they do not depend on the order in which the engine met the pairs; nothing here moves
anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tmkit.simulation.bodies import TOUCHING, Body, frames_of_links

_EVERY_LINK = -2  # what pybullet calls all links of a body
_PROBE_RADIUS = 1e-4  # metres of the ball by which distances are measured


class Contacts:
    """The contacts between the bodies of one connection.

    Args:
        bullet: the pybullet module.
        client: the connection.
        bodies: its bodies.
    """

    def __init__(self, bullet: Any, client: int, *, bodies: Sequence[Body]) -> None:
        self._bullet = bullet
        self._client = client
        self._frames = frames_of_links(bodies)
        self._probe: int | None = None

    def of_link(self, body: Body, link: int) -> tuple[str, ...]:
        """Return the frames in contact with a link, sorted.

        Args:
            body: the body.
            link: index of the link.
        """
        contacts = self._bullet.getContactPoints(bodyA=body.index, physicsClientId=self._client)
        return tuple(sorted({self._frames[c[2], c[4]] for c in contacts if c[3] == link and c[8] <= TOUCHING}))

    def of_bodies(self, bodies: Iterable[Body]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of touching frames of which the first is on one of some bodies, sorted."""
        found = set()
        for index in sorted({body.index for body in bodies}):
            for c in self._bullet.getContactPoints(bodyA=index, physicsClientId=self._client):
                if c[8] <= TOUCHING:
                    found.add((self._frames[index, c[3]], self._frames[c[2], c[4]]))
        return tuple(sorted(found))

    def allow(self, body: Body, frame: str, *, others: Iterable[tuple[Body, str]], enabled: bool) -> None:
        """Set whether an object, or the frame of a mechanism, collides with frames of other bodies.

        Args:
            body: the object's or mechanism's body.
            frame: the object or the frame.
            others: bodies, each with a frame on it.
            enabled: whether they collide.
        """
        links = sorted(set(body.links.values()) if body.kind == "object" else {body.links[frame]})
        for other, link in sorted({(other.index, other.links[name]) for other, name in others}):
            for own in links:
                self._bullet.setCollisionFilterPair(
                    body.index, other, own, link, int(enabled), physicsClientId=self._client
                )

    def distance(self, body: Body, frame: str, *, point: Sequence[float], reach: float) -> float:
        """Return how far a point is from the surface of an object, or of the frame of a mechanism.

        Args:
            body: the object's or mechanism's body.
            frame: the object or the frame.
            point: (3,) of the root, metres.
            reach: metres beyond which the answer is ``inf``.

        Returns:
            Metres, negative inside.
        """
        if self._probe is None:
            self._probe = self._bullet.createCollisionShape(
                self._bullet.GEOM_SPHERE, radius=_PROBE_RADIUS, physicsClientId=self._client
            )
        found = self._bullet.getClosestPoints(
            bodyA=-1, bodyB=body.index, linkIndexB=_EVERY_LINK if body.kind == "object" else body.links[frame],
            distance=reach, collisionShapeA=self._probe, collisionShapePositionA=list(point),
            collisionShapeOrientationA=[0.0, 0.0, 0.0, 1.0], physicsClientId=self._client,
        )  # fmt: skip
        return min((float(contact[8]) + _PROBE_RADIUS for contact in found), default=math.inf)
