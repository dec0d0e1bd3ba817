"""Three-way merges of scenes, frame by frame.

What each side changed since the base is a difference. A frame, an allowed pair or a group that one side alone changed
is taken from that side; one that both changed alike is taken once; one that both changed in different ways is a
*conflict*, whichever fields they changed. Frames of the base are matched by identity, new ones by name. What is left of
their difference is applied to our version; where it does not fit there (its parent is gone, a rule of the scene would
break), that is a conflict too. Nothing is merged halfway.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tmkit.errors import MergeConflictError, TmkitError
from tmkit.graph import SceneDifference, SceneGraph, diff
from tmkit.store.encoding import DifferenceWriter, group_content, group_record

_KINDS = ("frame", "pair", "group")


class Conflict(NamedTuple):
    """What two versions change differently.

    Attributes:
        kind: ``frame``, ``new frame``, ``pair`` or ``group``; ``rule`` where their edits do not fit our version.
        name: of a frame in the base, of a new one its own; ``a and b`` of a pair.
        ours: our edit, as text.
        theirs: their edit, as text.
    """

    kind: str
    name: str
    ours: str
    theirs: str


def merge_scenes(base: SceneGraph, ours: SceneGraph, theirs: SceneGraph) -> SceneGraph:
    """Return our scene with their changes since the base.

    Args:
        base: the version from which both were made.
        ours: one version; what is new in it comes first.
        theirs: the other one.

    Raises:
        MergeConflictError: both change a frame, a pair or a group, differently; all conflicts are listed.
    """
    writer = DifferenceWriter()  # of both sides: shapes and sources have one numbering
    mine, other = diff(base, ours), diff(base, theirs)
    my_edits, their_edits = _edits(mine, ours, writer), _edits(other, theirs, writer)
    conflicts = [
        Conflict(*key, my_edits[key].text, edit.text)
        for key, edit in their_edits.items()
        if key in my_edits and my_edits[key].content != edit.content
    ]
    if conflicts:
        raise _error(conflicts)
    new = {
        kind: [e.edit for key, e in their_edits.items() if key not in my_edits and kind in key[0]] for kind in _KINDS
    }
    difference = SceneDifference(
        new["frame"],
        pairs=new["pair"],
        groups=new["group"],
        bodies_before=[name for name in other.bodies_before if name not in mine.bodies_before],
        bodies_after=[name for name in other.bodies_after if name not in mine.bodies_after],
    )
    try:
        return ours.apply(difference)
    except TmkitError as error:
        name = next((str(error.data[k]) for k in ("frame", "name", "group") if k in error.data), "scene")
        raise _error([Conflict("rule", name, repr(mine), f"{other!r}: {error}")]) from error


class _Edit(NamedTuple):
    content: Any  # that it leads to, to compare
    text: str
    edit: Any  # for a SceneDifference


def _edits(difference: SceneDifference, after: SceneGraph, writer: DifferenceWriter) -> dict[tuple[str, str], _Edit]:
    found = {}
    for frame in difference.frames:
        old, new = frame.before, frame.after
        key = ("frame", old.name) if old else ("new frame", new.name if new else "")
        found[key] = _Edit(new and writer.frame(new), repr(frame)[len("FrameDifference(") : -1], frame)
    for pair in difference.pairs:
        found["pair", " and ".join(sorted(pair[:2]))] = _Edit(pair[3], f"reason {pair[3]!r}", pair)
    for name in difference.groups:
        group = group_record(after, name)
        found["group", name] = _Edit(group, repr(group), (name, group_content(group)))
    return found


def _error(conflicts: list[Conflict]) -> MergeConflictError:
    lines = [f"{c.kind} '{c.name}': ours {c.ours}; theirs {c.theirs}" for c in conflicts]
    count = "1 conflict" if len(lines) == 1 else f"{len(lines)} conflicts"
    return MergeConflictError(f"the merge has {count}:\n" + "\n".join(lines), conflicts=tuple(conflicts))
