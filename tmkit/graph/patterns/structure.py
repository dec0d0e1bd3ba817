"""Trees of frames with the number of each, such as any number of planes with one cloud each.

A :class:`Structure` is a :class:`~tmkit.graph.patterns.Pattern` whose relations are those of a
tree::

    any number of pose               Structure(
          |                              [Part("pose"), Part("cloud", shape="point_cloud")],
      2 of cloud                         parents={"cloud": "pose"},
                                         counts={"pose": None, "cloud": 2},
                                     )

A pattern finds its parts among other frames. A structure also tests whether a set of frames
consists of its parts alone, in their numbers. This assigns each frame to a part, from the leaves
upwards. The children of a frame are assigned by augmenting paths, with the count of a part as its
capacity, so parts may accept the same frames.

Source: the cardinality of a node in Blumenthal and Bruyninckx, "Towards a Domain Specific Language
    for a Scene Graph based Robotic World Model", 2014.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tmkit._core import SceneGraph
from tmkit._support.initialization import initialize
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph.patterns.pattern import Part, Pattern
from tmkit.graph.patterns.relations import ChildOf

_MAX_ROLES = 100
"""Largest number of frames of a structure that a search assigns."""


@dataclass(frozen=True)
class _Node:
    """Part of a structure with its number and the nodes below it; None is any number."""

    part: Part
    count: int | None
    children: tuple[_Node, ...]


@dataclass(frozen=True, init=False)
class Structure(Pattern):
    """Tree of frames with the number of each. Immutable; compares by value.

    As a pattern, it has ``count`` copies of each part, and one of a part of any number. The copies
    are named ``leg_1``, ``leg_2`` and so on. Parts below them have the numbers of the copies above
    in their names.

    Args:
        nodes: parts of the structure, each of count 1, parents first.
        parents: parent part of each part that is not a root, by name.
        counts: number of frames of a part below each frame of its parent part, by name. None is any
            number. Defaults to 1. The number of a root is that in the whole structure.

    Raises:
        SceneError: if the count of a Part is not 1, a count is below 1, or the pattern has more
            than 100 frames.
        DuplicateNameError: if two parts or copies have the same name.
        UnknownNameError: if a name is unknown, or a parent is not before its child.
    """

    nodes: tuple[Part, ...] = ()
    parents: tuple[tuple[str, str], ...] = ()
    counts: tuple[tuple[str, int | None], ...] = ()
    roots: tuple[_Node, ...] = field(default=(), repr=False, compare=False)

    def __init__(
        self,
        nodes: Iterable[Part],
        *,
        parents: Mapping[str, str] | None = None,
        counts: Mapping[str, int | None] | None = None,
    ) -> None:
        nodes, parents, counts = tuple(nodes), dict(parents or {}), dict(counts or {})
        names = [part.name for part in nodes]
        for name in [*parents, *counts]:
            if name not in names:
                raise UnknownNameError.of("part", name, names, where="structure")
        if len(nodes) > _MAX_ROLES:
            raise _size_error(nodes[_MAX_ROLES])
        below: dict[str | None, list[Part]] = {None: []}
        for part in nodes:
            count, parent = counts.get(part.name, 1), parents.get(part.name)
            if part.count != 1:
                raise SceneError(f"part '{part.name}': a structure has its number in counts")
            if count is not None and count < 1:
                raise SceneError(f"part '{part.name}': count must be at least 1, not {count}")
            if parent is not None and parent not in below:
                candidates = [name for name in below if name is not None]
                raise UnknownNameError.of(
                    "part", parent, candidates, where=f"parent of '{part.name}'"
                )
            below[parent].append(part)
            below[part.name] = []

        def tree(parent: str | None) -> tuple[_Node, ...]:
            return tuple(
                _Node(part, counts.get(part.name, 1), tree(part.name)) for part in below[parent]
            )

        roots = tree(None)
        parts: list[Part] = []
        relations: list[ChildOf] = []
        _add_copies(roots, None, "", parts, relations)
        super().__init__(parts, relations)
        initialize(
            self,
            nodes=nodes,
            parents=tuple(parents.items()),
            counts=tuple(counts.items()),
            roots=roots,
        )

    def __repr__(self) -> str:
        arguments = [repr(list(self.nodes))]
        arguments += [f"parents={dict(self.parents)!r}"] if self.parents else []
        arguments += [f"counts={dict(self.counts)!r}"] if self.counts else []
        return f"Structure({', '.join(arguments)})"


def _size_error(part: Part) -> SceneError:
    return SceneError(
        f"a structure has at most {_MAX_ROLES} frames without those of any number, and part"
        f" '{part.name}' exceeds them"
    )


def _add_copies(
    nodes: Iterable[_Node],
    parent: str | None,
    suffix: str,
    parts: list[Part],
    relations: list[ChildOf],
) -> None:
    """Append the copies of nodes below one copy of their parent, and the relations to it."""
    for node in nodes:
        count = node.count or 1
        for number in range(1, count + 1):
            copy_suffix = f"{suffix}_{number}" if count > 1 else suffix
            part = replace(node.part, name=f"{node.part.name}{copy_suffix}")
            if len(parts) >= _MAX_ROLES:
                raise _size_error(node.part)
            parts.append(part)
            if parent is not None:
                relations.append(ChildOf(part.name, parent))
            _add_copies(node.children, part.name, copy_suffix, parts, relations)


def find_difference(
    scene: SceneGraph, frames: Collection[str], structures: Sequence[Structure]
) -> str | None:
    """Return the first difference between a set of frames and one tree of each structure.

    With n frames and k parts of one parent, there are n k tests of parts, and at most n^2 k steps
    of the assignment.

    Args:
        scene: the scene.
        frames: the frames; all must be part of the structures. Other frames are ignored.
        structures: the structures.

    Returns:
        Phrase such as ``"3 of 'leg' below 'table 1', expected 4"``, or None without a difference.
    """
    children: dict[str, list[str]] = {frame: [] for frame in frames}
    tops: list[str] = []
    for frame in frames:
        children.get(scene.parent(frame) or "", tops).append(frame)
    roots = [node for structure in structures for node in structure.roots]
    return _difference(scene, children, tops, roots, "")


def _difference(
    scene: SceneGraph,
    children: Mapping[str, list[str]],
    frames: Sequence[str],
    nodes: Sequence[_Node],
    location: str,
) -> str | None:
    """Return the first difference between frames with one parent and the nodes of their parts."""
    options: dict[str, list[int]] = {}
    for frame in frames:
        candidates = [i for i, node in enumerate(nodes) if node.part.accepts(scene, frame)]
        if not candidates:
            names = " or ".join(f"'{node.part.name}'" for node in nodes)
            expected = f"expected {names}" if nodes else "expected none"
            return f"frame '{frame}'{location}, {expected}"
        below = f" below '{frame}'"
        differences = [
            _difference(scene, children, children[frame], nodes[i].children, below)
            for i in candidates
        ]
        options[frame] = [
            i for i, text in zip(candidates, differences, strict=True) if text is None
        ]
        if not options[frame]:
            return differences[0]
    assigned, rest = _assign(options, [node.count for node in nodes])
    for i, node in enumerate(nodes):
        count = len(assigned[i]) + sum(options[frame][0] == i for frame in rest)
        if node.count is not None and count != node.count:
            return f"{count} of '{node.part.name}'{location}, expected {node.count}"
    return None


def _assign(
    options: Mapping[str, Sequence[int]], counts: Sequence[int | None]
) -> tuple[list[list[str]], list[str]]:
    """Assign frames to parts, so that as many counts as possible are reached.

    An augmenting path leaves every assigned frame assigned. The frames that no part of any number
    accepts come first, so both these frames and the counts are satisfied if that is possible
    (Mendelsohn and Dulmage, 1958).

    Args:
        options: indices of the possible parts of each frame.
        counts: count of each part; None is any number.

    Returns:
        Frames of each part with a count, and the frames that exceed the counts.
    """
    assigned: list[list[str]] = [[] for _ in counts]

    def place(frame: str, visited: set[int]) -> bool:
        for i in options[frame]:
            count = counts[i]
            if count is None or i in visited:
                continue
            visited.add(i)
            if len(assigned[i]) < count:
                assigned[i].append(frame)
                return True
            for position, other in enumerate(assigned[i]):
                if place(other, visited):
                    assigned[i][position] = frame
                    return True
        return False

    free = {frame for frame, parts in options.items() if any(counts[i] is None for i in parts)}
    rest = [frame for frame in options if frame not in free and not place(frame, set())]
    for frame in options:
        if all(count is None or len(assigned[i]) == count for i, count in enumerate(counts)):
            break
        if frame in free:
            place(frame, set())
    return assigned, rest
