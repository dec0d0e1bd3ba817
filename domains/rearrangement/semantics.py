"""Semantics of the rearrangement domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

A *place* is a frame of class ``place``, with a shape on whose top one object fits. The domain does
not state which objects obstruct the arm; the planner computes it.
"""

from __future__ import annotations

from tmkit.tamp import parts

WORDS = {"on": "at", "region": "place", "pick": "take", "place": "put"}


class Places(parts.Slots):
    """Places for one object each."""

    region_classes = ("place",)


Semantics = parts.compose_domain("rearrangement", [Places], words=WORDS).semantics
