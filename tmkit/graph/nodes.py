"""Frames and groups as the nodes of one graph: walks, paths, queries by attribute, UUIDs, ownership.

A node is a pair of its kind and name, such as ``("group", "cups")``, since a frame and a group may
have the same name; ``docs/concepts/versions.md`` says which is below which. Walks visit each node
once, and no path contains one twice.

Source: Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a Scene Graph based
    Robotic World Model",
2014: nodes with several parents, attributes as keys and values, remote roots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from typing import Any, Literal
from uuid import NAMESPACE_URL, UUID, uuid5

from pyrsistent import PVector

from tmkit._core import Group, SceneGraph
from tmkit.errors import SceneError
from tmkit.graph.attributes import attribute_text

NodeKind = Literal["frame", "group"]
SceneNode = tuple[NodeKind, str]

_NAMESPACE = uuid5(NAMESPACE_URL, "tmkit/scene")


def walk_nodes(
    scene: SceneGraph,
    start: str | SceneNode,
    *,
    depth: int | None = None,
    until: Callable[[SceneNode], bool] | None = None,
) -> tuple[SceneNode, ...]:
    """Return a node and all that is below it, level by level, each node once. O(n + members of groups).

    Children of a frame come first, then the groups below it, by name; members of a group as they
    were given.

    Args:
        scene: the scene.
        start: the first node, or the name of a frame.
        depth: number of levels below ``start``; all if omitted.
        until: nothing below a node for which it holds is visited.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if the depth is negative, or the node has another kind.
    """
    if depth is not None and depth < 0:
        raise SceneError(f"the depth of a walk is a number of levels, not {depth}")
    placed: dict[str, list[str]] = {}
    for group in _groups(scene):
        for parent in group.parents:
            placed.setdefault(parent, []).append(group.name)
    found = [_checked(scene, start)]
    levels = {found[0]: 0}
    for node in found:
        if (until is not None and until(node)) or levels[node] == depth:
            continue
        kind, name = node
        is_frame = kind == "frame"
        for below in (
            nodes_of(scene.children(name), placed.get(name, ()))
            if is_frame
            else members_of(scene.group(name))
        ):
            if below not in levels:
                levels[below] = levels[node] + 1
                found.append(below)
    return tuple(found)


def paths_to(
    scene: SceneGraph, node: str | SceneNode, *, limit: int = 1000
) -> tuple[tuple[SceneNode, ...], ...]:
    """Return all paths from a root down to a node; that through the parent frames comes first.

    Args:
        scene: the scene.
        node: the node, or the name of a frame.
        limit: the largest number of paths, which groups with common members multiply.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: more paths than the limit, a search of more steps than that for each node, or
            another kind of node.
    """
    kind, name = start = _checked(scene, node)
    holders: dict[SceneNode, list[SceneNode]] = {}
    for group in _groups(scene):
        for member in members_of(group):
            holders.setdefault(member, []).append(("group", group.name))
        holders.setdefault(("group", group.name), []).extend(nodes_of(group.parents, ()))
    found: list[tuple[SceneNode, ...]] = []
    path: dict[SceneNode, None] = {}
    waiting = [iter([start])]  # what is above each node of the path and not tried yet
    steps, most = 0, limit * (len(scene) + len(scene.group_names))
    while waiting:
        step = next(waiting[-1], None)
        if step is None:
            waiting.pop()
            if path:
                path.popitem()
        elif step not in path:
            path[step] = None
            parent = scene.parent(step[1]) if step[0] == "frame" else None
            above = [*nodes_of([] if parent is None else [parent], ()), *holders.get(step, ())]
            waiting.append(iter(above))
            if parent is None and (step[0] == "frame" or not above):
                found.append(tuple(reversed(path)))
            steps += 1
            if len(found) > limit or steps > most:
                raise SceneError(
                    f"more than {limit} paths, or {most} steps, lead to {kind} '{name}'; raise the"
                    " limit"
                )
    return tuple(found)


def nodes_with_attributes(
    scene: SceneGraph, patterns: Mapping[Any, object]
) -> tuple[SceneNode, ...]:
    """Return the frames, then the groups, that have an attribute for each pattern. O(n + attributes).

    A pattern of text has the wildcards of file names (``*``, ``?``, ``[ab]``); case counts. It
    takes linear time for each ``*``. A regular expression is compiled by google-re2
    (``re2.compile``), which takes linear time whoever wrote it; Python's may take exponential time
    and is refused.

    Args:
        scene: the scene.
        patterns: by pattern of a key its value: a pattern of text, a compiled regular expression
            that matches all of a text, another JSON value, ``...`` for any, or a predicate. It
            matches a list, or one value in it.

    Raises:
        SceneError: a value that is not JSON, or a pattern of Python's ``re``.
    """
    tests = [(_pattern(key), _test(value)) for key, value in patterns.items()]

    def matches(attributes: Mapping[str, Any]) -> bool:
        return all(
            any(is_key(key) and test(value) for key, value in attributes.items())
            for is_key, test in tests
        )

    frames = [name for name in scene.frame_names if matches(scene.attributes(name))]
    return tuple(
        nodes_of(frames, (group.name for group in _groups(scene) if matches(group.attributes)))
    )


def _pattern(pattern: Any) -> Callable[[Any], bool]:
    if isinstance(pattern, re.Pattern):
        message = (
            f"{pattern!r} may take exponential time; compile it by re2.compile of google-re2, or"
            " give a predicate"
        )
        raise SceneError(message)
    match = re.compile(translate(pattern)).match if isinstance(pattern, str) else pattern.fullmatch
    return lambda text: isinstance(text, str) and match(text) is not None


def _test(wanted: Any) -> Callable[[Any], bool]:
    if wanted is ...:
        return lambda _: True
    if callable(wanted):
        one = wanted
    elif isinstance(wanted, str) or hasattr(wanted, "fullmatch"):
        one = _pattern(wanted)
    else:  # the same JSON: 1 is neither 1.0 nor true
        text = attribute_text("value", wanted)
        one = lambda value: attribute_text("value", value) == text  # noqa: E731
    return lambda value: one(value) or (isinstance(value, PVector) and any(map(one, value)))


def uuid_of(scene: SceneGraph, node: str | SceneNode) -> UUID:
    """Return the UUID (version 5) of a node, of its kind and name alone: the same in every scene and process.

    Args:
        scene: the scene, of which the UUID is no part.
        node: the node, or the name of a frame.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if the node has another kind.
    """
    return uuid5(_NAMESPACE, ":".join(_checked(scene, node)))


def remote_roots(scene: SceneGraph) -> dict[str, str]:
    """Return the roots that stand for other worlds, with their addresses: root frames with an attribute ``remote``.

    Raises:
        SceneError: an address that is no text.
    """
    found = {name: scene.attributes(name).get("remote") for name in scene.root_names}
    for name, address in found.items():
        if not isinstance(address, str | None):
            raise SceneError(
                f"attribute 'remote' of root '{name}' must be an address as text, not {address!r}"
            )
    return {name: address for name, address in found.items() if address is not None}


def remove_with_groups(scene: SceneGraph, node: str | SceneNode) -> SceneGraph:
    """Return the scene without a node, a frame with its descendants, and without the groups that were only below it.

    A group goes with the last node that it was below, and so on; groups that were below nothing
    before stay.

    Args:
        scene: the scene.
        node: the node, or the name of a frame.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: what :meth:`SceneGraph.remove_frame` refuses, or a node of another kind.
    """
    kind, name = _checked(scene, node)
    owned = _owned(scene)
    left = scene.remove_frame(name, subtree=True) if kind == "frame" else scene.remove_group(name)
    while orphans := owned.intersection(left.group_names) - _owned(left):
        for group in sorted(orphans):
            left = left.remove_group(group)
    return left


def _owned(scene: SceneGraph) -> set[str]:
    """Return the groups that are below a frame or a group."""
    groups = _groups(scene)
    return {group.name for group in groups if group.parents}.union(
        *(group.groups for group in groups)
    )


def _groups(scene: SceneGraph) -> list[Group]:
    return [scene.group(name) for name in scene.group_names]


def nodes_of(frames: Iterable[str], groups: Iterable[str]) -> list[SceneNode]:
    """Return frames, then groups, as nodes."""
    return [*(("frame", name) for name in frames), *(("group", name) for name in groups)]


def members_of(group: Group) -> list[SceneNode]:
    """Return the nodes that a group contains."""
    return nodes_of(group.frames, group.groups)


def _checked(scene: SceneGraph, node: str | SceneNode) -> SceneNode:
    checked: SceneNode = ("frame", node) if isinstance(node, str) else node
    kind, name = checked
    if kind not in ("frame", "group"):
        raise SceneError(f"the kind of a node is 'frame' or 'group', not {kind!r}")
    scene.parent(name) if kind == "frame" else scene.group(name)  # which refuses an unknown name
    return checked
