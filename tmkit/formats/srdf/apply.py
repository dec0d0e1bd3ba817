"""SRDF files as scene files: which links of a robot need not be checked against each other.

An SRDF adds no frame. What it adds to a scene are the pairs of links that may touch: those of ``<disable_collisions>``,
for the reason that the file gives, and for each link of ``<disable_default_collisions>`` its pairs with all other
frames of the load (reason ``unchecked``), but for those of ``<enable_collisions>``. A pair that is allowed already,
since a joint joins the two, keeps its first reason.

Public SRDF files name links that their robot lacks. Such pairs are omitted, with one note for each kind of name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tmkit._support import Note, SourceLocation
from tmkit.graph import SceneGraph

if TYPE_CHECKING:
    from tmkit.formats.srdf import LinkPair, RobotSemantics

UNSAID = "srdf"
"""The reason of a pair of which the file says no more."""


def with_semantics(scene: SceneGraph, files: Sequence[RobotSemantics], *, note: Note) -> SceneGraph:
    """Return a scene in which the pairs of links may touch that SRDF files disable.

    Args:
        scene: the scene with the robots.
        files: what the files say, in order.
        note: takes the notes about names that the scene lacks.
    """
    if not files:
        return scene
    with scene.edit() as edit:
        for semantics in files:
            for stranger in semantics.strangers(scene):
                note(SourceLocation(stranger.path), stranger.text)
            for pair in _disabled(semantics, scene):
                if not edit.scene.is_allowed(pair.link1, pair.link2):
                    edit.allow_collision(pair.link1, pair.link2, reason=pair.reason or UNSAID)
    return edit.finish()


def _disabled(semantics: RobotSemantics, scene: SceneGraph) -> Iterable[LinkPair]:
    """Yield the pairs that a file disables, those of links that the scene has."""
    from tmkit.formats.srdf import LinkPair  # imported with the first SRDF file only

    for pair in semantics.disabled:
        if pair.link1 in scene and pair.link2 in scene:
            yield pair
    enabled = {frozenset((pair.link1, pair.link2)) for pair in semantics.enabled}
    solid = [frame for frame in scene.frame_names if any(shape.collision for shape in scene.shapes(frame))]
    for link in semantics.unchecked_links:
        for other in solid if link in scene else ():
            if other != link and frozenset((link, other)) not in enabled:
                yield LinkPair(link, other, "unchecked")
