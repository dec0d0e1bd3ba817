"""Semantics of the pour domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

Vessels stand on surfaces. The hand carries them and pours the content of one into another.
"""

from __future__ import annotations

from tmkit.tamp import parts

WORDS = {"item": "vessel", "region": "surface", "pick": "take", "place": "put"}

Semantics = parts.compose_domain("pour", [parts.Pouring], words=WORDS).semantics
