"""Parts of scenes: files that name frames which only other files declare.

The parent of objects in a file may be a table, and that of a grasp frame a hand, of another file. Loading it alone is
an error, since half a scene is none. Looking at it alone is useful: then the missing parent is a root.

Invariants: what files say of the frames that they declare is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tmkit._support.import_notes import Note
from tmkit._support.source_location import did_you_mean
from tmkit.formats.spec.build import WORLD, whole_name
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification


def with_missing_parents(specs: Sequence[SceneSpecification], *, note: Note) -> list[SceneSpecification]:
    """Return what files say, with a root for each parent that none declares, and without pairs of unknown frames.

    Args:
        specs: what the files say.
        note: is told of every root added and every pair omitted.
    """
    frames = [frame for spec in specs for frame in spec.frames]
    known = {WORLD, *(frame.name for frame in frames), *(alias for frame in frames for alias in frame.aliases)}
    added: dict[str, FrameSpec] = {}
    for frame in frames:
        parent = frame.parent
        if parent is None or parent in known or parent in added:
            continue
        place, hint = frame.parent_place or frame.place, did_you_mean(parent, sorted(known))
        note(place, f"'{parent}', the parent of '{frame.name}', is declared by no file and shown as a root{hint}")
        added[parent] = FrameSpec(name=parent, parent=None, place=place)
    completed = [replace(spec, allowed=_known_pairs(spec, known | {*added}, note)) for spec in specs]
    return [SceneSpecification(frames=tuple(added.values())), *completed]


def _known_pairs(spec: SceneSpecification, known: set[str], note: Note) -> tuple[AllowedPairSpec, ...]:
    kept = []
    for pair in spec.allowed:
        unknown = [name for name in (pair.first, pair.second) if name not in known and whole_name(name) not in known]
        if unknown:
            note(pair.place, f"'{unknown[0]}' is declared by no file, so the pair is ignored")
        else:
            kept.append(pair)
    return tuple(kept)
