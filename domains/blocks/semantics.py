"""Semantics of the blocks domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

A *block* is a frame of class ``movable``. A *location* is a cell of a grid of 0.1 m on a frame of
class ``surface``, named ``SURFACE__i__j`` for the cell centred i and j cells from the surface's
origin along its x and y axes. The parent of a block says what it stands on: another block, a
surface (the location is the cell that holds the block's origin), or the hand.

Blocks stand upright, their frame's z axis along that of what they stand on, and on its top.
"""

from __future__ import annotations

from tmkit.tamp import parts

WORDS = {
    "item": "block",
    "region": "location",
    "on": "ontable",
    "stacked": "on",
    "free": "clear",
    "pick": "pick-up",
    "place": "put-down",
}

Semantics = parts.compose_domain("blocks", [parts.Cells, parts.Stacking], words=WORDS).semantics
