"""Semantics of the rearrangement domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

A *place* is a frame of class ``place``, with a shape on whose top there is room for one object. The
domain does not state which object blocks the arm's way to which other: the planner computes it.
"""

from __future__ import annotations

from tmkit.tamp import parts

WORDS = {"on": "at", "region": "place", "pick": "take", "place": "put"}


class Places(parts.Slots):
    """Places for one object each."""

    region_classes = ("place",)


Semantics = parts.compose_domain("rearrangement", [Places], words=WORDS).semantics
