"""Frames and groups as nodes of one graph: walks, paths, attribute queries, UUIDs, ownership.

A node is a pair of its kind and name, such as ``("group", "cups")``, since a frame and a group may
have the same name. ``docs/concepts/versions.md`` defines the order of frames and groups. Walks
visit each node once, and no path contains a node twice.

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
"""Namespace of the UUIDs of nodes."""


def walk_nodes(
    scene: SceneGraph,
    start: str | SceneNode,
    *,
    depth: int | None = None,
    until: Callable[[SceneNode], bool] | None = None,
) -> tuple[SceneNode, ...]:
    """Return a node and its descendants, level by level, each node once.

    Children of a frame come first, then the groups below it by name. Members of a group keep their
    order. O(n + members of groups).

    Args:
        scene: the scene.
        start: the first node, or the name of a frame.
        depth: number of levels below ``start``; all if omitted.
        until: stop condition. The descendants of a node for which it holds are skipped.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if the depth is negative, or the node has another kind.
    """
    if depth is not None and depth < 0:
        raise SceneError(f"the depth of a walk must be a number of levels, not {depth}")
    groups_below: dict[str, list[str]] = {}
    for group in _groups(scene):
        for parent in group.parents:
            groups_below.setdefault(parent, []).append(group.name)
    nodes = [_resolve_node(scene, start)]
    levels = {nodes[0]: 0}
    for node in nodes:
        if (until is not None and until(node)) or levels[node] == depth:
            continue
        kind, name = node
        if kind == "frame":
            children = nodes_of(scene.children(name), groups_below.get(name, ()))
        else:
            children = members_of(scene.group(name))
        for child in children:
            if child not in levels:
                levels[child] = levels[node] + 1
                nodes.append(child)
    return tuple(nodes)


def paths_to(
    scene: SceneGraph, node: str | SceneNode, *, limit: int = 1000
) -> tuple[tuple[SceneNode, ...], ...]:
    """Return all paths from a root down to a node; the path through parent frames comes first.

    Args:
        scene: the scene.
        node: the node, or the name of a frame.
        limit: largest number of paths. Groups with common members multiply their number.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if there are more paths than the limit, the search takes more than ``limit``
            steps for each node of the scene, or the node has another kind.
    """
    kind, name = start = _resolve_node(scene, node)
    holders: dict[SceneNode, list[SceneNode]] = {}
    for group in _groups(scene):
        for member in members_of(group):
            holders.setdefault(member, []).append(("group", group.name))
        holders.setdefault(("group", group.name), []).extend(nodes_of(group.parents, ()))
    paths: list[tuple[SceneNode, ...]] = []
    path: dict[SceneNode, None] = {}
    stack = [iter([start])]  # remaining nodes above each node of the path
    steps, max_steps = 0, limit * (len(scene) + len(scene.group_names))
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            if path:
                path.popitem()
        elif step not in path:
            path[step] = None
            parent = scene.parent(step[1]) if step[0] == "frame" else None
            above = [*nodes_of([] if parent is None else [parent], ()), *holders.get(step, ())]
            stack.append(iter(above))
            if parent is None and (step[0] == "frame" or not above):
                paths.append(tuple(reversed(path)))
            steps += 1
            if len(paths) > limit or steps > max_steps:
                raise SceneError(
                    f"more than {limit} paths, or {max_steps} steps, lead to {kind} '{name}';"
                    " increase the limit"
                )
    return tuple(paths)


def nodes_with_attributes(
    scene: SceneGraph, patterns: Mapping[Any, object]
) -> tuple[SceneNode, ...]:
    """Return the frames, then the groups, that have an attribute for each pattern.

    A text pattern has the wildcards of file names (``*``, ``?``, ``[ab]``) and is case-sensitive.
    It takes linear time for each ``*``. A regular expression must be compiled by google-re2
    (``re2.compile``), which always takes linear time. Patterns of Python's ``re`` are rejected,
    since they may take exponential time. O(n + attributes).

    Args:
        scene: the scene.
        patterns: value patterns by key pattern. A value pattern is a text pattern, a compiled
            regular expression that matches the whole text, another JSON value, ``...`` for any
            value, or a predicate. It may match a list, or one of its values.

    Raises:
        SceneError: if a value is not JSON, or a pattern is one of Python's ``re``.
    """
    tests = [(_TextTest(key), _ValueTest(value)) for key, value in patterns.items()]

    def matches(attributes: Mapping[str, Any]) -> bool:
        return all(
            any(keys.accepts(key) and values.accepts(value) for key, value in attributes.items())
            for keys, values in tests
        )

    frames = [name for name in scene.frame_names if matches(scene.attributes(name))]
    return tuple(
        nodes_of(frames, (group.name for group in _groups(scene) if matches(group.attributes)))
    )


class _TextTest:
    """Test of a text by wildcards, or by a regular expression of google-re2."""

    def __init__(self, pattern: Any) -> None:
        if isinstance(pattern, re.Pattern):
            message = (
                f"{pattern!r} may take exponential time; compile it by re2.compile of google-re2,"
                " or give a predicate"
            )
            raise SceneError(message)
        is_text = isinstance(pattern, str)
        self._match = re.compile(translate(pattern)).match if is_text else pattern.fullmatch

    def accepts(self, text: Any) -> bool:
        return isinstance(text, str) and self._match(text) is not None


class _ValueTest:
    """Test of an attribute's value, or of one item of a list."""

    def __init__(self, pattern: Any) -> None:
        self._is_any = pattern is ...
        self._accepts_item: Callable[[Any], bool]
        if self._is_any or callable(pattern):
            self._accepts_item = pattern
        elif isinstance(pattern, str) or hasattr(pattern, "fullmatch"):
            self._accepts_item = _TextTest(pattern).accepts
        else:
            self._text = attribute_text("value", pattern)
            self._accepts_item = self._is_same_json

    def accepts(self, value: Any) -> bool:
        if self._is_any or self._accepts_item(value):
            return True
        return isinstance(value, PVector) and any(map(self._accepts_item, value))

    def _is_same_json(self, value: Any) -> bool:
        """Return whether a value has the same JSON text: 1 differs from 1.0 and from true."""
        return attribute_text("value", value) == self._text


def uuid_of(scene: SceneGraph, node: str | SceneNode) -> UUID:
    """Return the UUID (version 5) of a node.

    It depends on the kind and name only, so it is the same in every scene and process.

    Args:
        scene: the scene, which must have the node.
        node: the node, or the name of a frame.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if the node has another kind.
    """
    return uuid5(_NAMESPACE, ":".join(_resolve_node(scene, node)))


def remote_roots(scene: SceneGraph) -> dict[str, str]:
    """Return the addresses of remote worlds: the attribute ``remote`` of root frames, by frame.

    Raises:
        SceneError: if an address is not text.
    """
    addresses = {name: scene.attributes(name).get("remote") for name in scene.root_names}
    for name, address in addresses.items():
        if not isinstance(address, str | None):
            raise SceneError(
                f"attribute 'remote' of root '{name}' must be an address as text, not {address!r}"
            )
    return {name: address for name, address in addresses.items() if address is not None}


def remove_with_groups(scene: SceneGraph, node: str | SceneNode) -> SceneGraph:
    """Return the scene without a node, and without the groups that only this node owned.

    A frame is removed with its descendants. A group is removed with its last owner, recursively.
    Groups that had no owner before remain.

    Args:
        scene: the scene.
        node: the node, or the name of a frame.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if :meth:`SceneGraph.remove_frame` raises it, or the node has another kind.
    """
    kind, name = _resolve_node(scene, node)
    owned_groups = _groups_with_owner(scene)
    rest = scene.remove_frame(name, subtree=True) if kind == "frame" else scene.remove_group(name)
    while orphans := owned_groups.intersection(rest.group_names) - _groups_with_owner(rest):
        for group in sorted(orphans):
            rest = rest.remove_group(group)
    return rest


def _groups_with_owner(scene: SceneGraph) -> set[str]:
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


def _resolve_node(scene: SceneGraph, node: str | SceneNode) -> SceneNode:
    """Return a node of the scene, or raise UnknownNameError or SceneError."""
    pair: SceneNode = ("frame", node) if isinstance(node, str) else node
    kind, name = pair
    if kind not in ("frame", "group"):
        raise SceneError(f"the kind of a node must be 'frame' or 'group', not {kind!r}")
    scene.parent(name) if kind == "frame" else scene.group(name)  # raise for an unknown name
    return pair
