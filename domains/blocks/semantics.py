"""Semantics of the blocks domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

A *block* is a frame of class ``movable``. A *location* is a cell of a grid of 0.1 m on a frame of
class ``surface``. The cell ``SURFACE__i__j`` has its centre i and j cells from the surface's origin
along its x and y axes. The parent of a block is its support: another block, the hand, or a surface,
where the location is the cell that contains the block's origin.

Blocks stand upright on the top of their support, with their z axes aligned.
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
