"""Search tree of a run as data: scene versions, the actions between them, and failures.

A run with the option ``record_tree`` has one :class:`SearchTree` for the search with the relevant
objects, and one for the search with all objects, if it started. They are built at the end of the
run from data that the search stores in any case, so recording changes no result.

A search tree contains plain values. A program computes each version from the scene at the start,
which is not in the tree, by :meth:`SearchTree.version`.

Nodes are in the order in which the search reached them, so a parent precedes its children, and node
0 is the start. ``is_in_plan`` marks the nodes of the plan before its detours are removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tmkit._support.results import Displayed
from tmkit.graph import SceneGraph, diff
from tmkit.plans.values import Configuration
from tmkit.spatial import Pose
from tmkit.tamp.version_tree import SceneVersion, VersionTree


@dataclass(frozen=True)
class FrameChange(Displayed):
    """Parent, pose and classes of a frame after an action changed them.

    Attributes:
        frame: name of the frame.
        parent: parent after the action; None for a root.
        pose: (7,) pose in the parent: x, y, z [m] and a unit quaternion x, y, z, w.
        classes: classes after the action.
    """

    frame: str
    parent: str | None
    pose: tuple[float, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True)
class BranchFailure(Displayed):
    """Failures of an action in a version, with one cause.

    Attributes:
        action: action in PDDL.
        cause: cause of the failures.
        count: number of failures.
    """

    action: str
    cause: str
    count: int


@dataclass(frozen=True)
class SearchTreeNode(Displayed):
    """Scene version that a search reached.

    Attributes:
        parent: index of the previous node; None for the start.
        actions: the action that leads to this node, in PDDL; empty for the start.
        choices: description of the selected grasp or placement of each action.
        q: (n_joints,) configuration [rad, m].
        changes: frames that the actions changed.
        tries: number of motions and transfers tried from this version.
        failures: failed motions and transfers by action and cause, most frequent first.
        estimate: estimated number of remaining actions, which orders the queue; None for a version
            that was not in the queue.
        is_in_plan: whether the version is on the path to the plan.
        is_transfer: whether the action is part of a transfer. Other actions were refined with the
            candidates of the domain.
    """

    parent: int | None
    actions: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    q: tuple[float, ...] = ()
    changes: tuple[FrameChange, ...] = ()
    tries: int = 0
    failures: tuple[BranchFailure, ...] = ()
    estimate: float | None = None
    is_in_plan: bool = False
    is_transfer: bool = False


@dataclass(frozen=True)
class SearchTree(Displayed):
    """Scene versions that one search reached.

    Attributes:
        search: number of PDDL objects of its task, such as ``"7 objects"``: the relevant ones, or
            all.
        nodes: versions, in the order in which the search reached them.
    """

    search: str
    nodes: tuple[SearchTreeNode, ...]

    @property
    def is_in_plan(self) -> bool:
        """True if this search found the plan."""
        return any(node.is_in_plan for node in self.nodes)

    def version(self, index: int, scene: SceneGraph) -> tuple[SceneGraph, Configuration]:
        """Return the scene of a node, without covariances, and its configuration (n_joints,).

        Args:
            index: index of the node.
            scene: scene at the start.
        """
        branch = [self.nodes[index]]
        while (parent := branch[-1].parent) is not None:
            branch.append(self.nodes[parent])
        for node in reversed(branch):
            for change in node.changes:
                if change.parent is not None:
                    pose = Pose.from_array(np.array(change.pose))
                    scene = scene.reparent(change.frame, change.parent, pose=pose)
                scene = scene.set_classes(change.frame, change.classes)
        return scene, np.array(branch[0].q)

    def __repr__(self) -> str:
        suffix = ", with the plan" if self.is_in_plan else ""
        return f"SearchTree({self.search}, {len(self.nodes)} nodes{suffix})"


class RecordedNode(Protocol):
    """Interface of a search node that can be recorded.

    Attributes:
        version: scene version of the node.
        tries: number of transfers tried from the version.
        failures: number of failures by action and cause.
    """

    version: SceneVersion
    tries: int
    failures: Counter[tuple[str, str]]

    @property
    def estimate(self) -> float:
        """Estimated number of remaining actions."""
        ...


def build_search_trees(
    trees: Sequence[VersionTree], nodes: Sequence[RecordedNode], *, end: SceneVersion | None
) -> tuple[SearchTree, ...]:
    """Return the search trees of a run.

    Args:
        trees: version tree of each search.
        nodes: nodes of all searches.
        end: version in which the first plan ends; None without a plan.
    """
    return tuple(_build_tree(tree, nodes, end) for tree in trees)


def _build_tree(
    tree: VersionTree, nodes: Sequence[RecordedNode], end: SceneVersion | None
) -> SearchTree:
    """Return the search tree of a version tree."""
    # Collect the versions that are reached by refinement, by transfers, and by the plan.
    versions = {tree.root: None}
    queue = [tree.root]
    while queue:
        children = (
            child for expansion in queue.pop().expansions.values() for child in expansion.children
        )
        new_versions = [child for child in children if child not in versions]
        versions.update(dict.fromkeys(new_versions))
        queue += new_versions
    nodes_by_version: dict[SceneVersion, list[RecordedNode]] = {}
    for node in nodes:
        if _root(node.version) is tree.root:
            nodes_by_version.setdefault(node.version, []).append(node)
            versions.update(dict.fromkeys(_branch(node.version)))
    plan_versions: set[SceneVersion] = set()
    if end is not None and _root(end) is tree.root:
        plan_versions.update(_branch(end))
        versions.update(dict.fromkeys(plan_versions))

    ordered = sorted(versions, key=lambda version: version.number)
    indices = {version: index for index, version in enumerate(ordered)}
    tree_nodes = []
    for version in ordered:
        version_nodes, is_in_plan = nodes_by_version.get(version, ()), version in plan_versions
        tree_nodes.append(_build_node(tree, version, indices, version_nodes, is_in_plan=is_in_plan))
    return SearchTree(f"{len(tree.problem.objects)} objects", tuple(tree_nodes))


def _branch(version: SceneVersion | None) -> Iterator[SceneVersion]:
    """Yield a version and its ancestors, up to the root."""
    while version is not None:
        yield version
        version = version.parent


def _root(version: SceneVersion) -> SceneVersion:
    """Return the root of the version tree that contains a version."""
    *_, root = _branch(version)
    return root


def _build_node(
    tree: VersionTree,
    version: SceneVersion,
    indices: Mapping[SceneVersion, int],
    nodes: Sequence[RecordedNode],
    *,
    is_in_plan: bool,
) -> SearchTreeNode:
    """Return the search tree node of a version.

    Args:
        tree: version tree that contains the version.
        version: scene version.
        indices: index of each version.
        nodes: search nodes of the version.
        is_in_plan: whether the version is on the path to the plan.
    """
    expansions = version.expansions.values()
    failures = Counter[tuple[str, str]]()
    for node in nodes:
        failures.update(node.failures)
    for expansion in expansions:
        action = str(tree.domain.original_action(expansion.action))
        failures.update((action, str(record.failure)) for record in expansion.failures)
    ranked = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    attempts = sum(expansion.attempts for expansion in expansions)
    node_values = SearchTreeNode(
        None,
        q=tuple(version.q.tolist()),
        tries=attempts + sum(node.tries for node in nodes),
        failures=tuple(BranchFailure(*key, count) for key, count in ranked),
        estimate=min((node.estimate for node in nodes), default=None),
        is_in_plan=is_in_plan,
    )
    step, parent = version.step, version.parent
    if step is not None:
        node_values = replace(
            node_values,
            actions=(str(tree.domain.original_action(step.action)),),
            choices=(step.choice,),
        )
    if parent is None:
        return node_values
    siblings = (expansion.children for expansion in parent.expansions.values())
    return replace(
        node_values,
        parent=indices[parent],
        changes=tuple(_frame_changes(parent.scene, version.scene)),
        is_transfer=not any(version in children for children in siblings),
    )


def _frame_changes(before: SceneGraph, after: SceneGraph) -> Iterator[FrameChange]:
    """Yield the changed frames from one scene to another."""
    for frame in diff(before, after).changed:
        pose = tuple(after.local_pose(frame).as_array().tolist())
        yield FrameChange(frame, after.parent(frame), pose, tuple(sorted(after.classes(frame))))
