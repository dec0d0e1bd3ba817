"""Semantics of the pour domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

Vessels stand on surfaces; the hand carries them, and pours what is in one into another.
"""

from __future__ import annotations

from tmkit.tamp import parts

WORDS = {"item": "vessel", "region": "surface", "pick": "take", "place": "put"}

Semantics = parts.compose_domain("pour", [parts.Pouring], words=WORDS).semantics
