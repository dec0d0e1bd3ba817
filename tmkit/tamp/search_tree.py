"""The search tree of a run as data: the versions of the scene that were reached, how, and why branches failed.

A run with the option ``record_tree`` has one :class:`SearchTree` for the search with the useful
objects, and one for that with all objects if it began. They are made at the end, from data that the
search keeps anyway, so recording changes no result. They contain plain values: a program steps
through the versions from the scene at the start, which is not in the tree
(:meth:`SearchTree.version`).

Invariants: nodes are in the order in which they were reached, so a parent comes before its
children; node 0 is the start. Nodes that led to the plan are marked, before detours are taken out
of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tmkit._support.results import Displayed
from tmkit.graph import SceneGraph, diff
from tmkit.plans.values import Configuration
from tmkit.spatial import Pose
from tmkit.tamp.version_tree import SceneVersion, VersionTree


@dataclass(frozen=True)
class FrameChange(Displayed):
    """The edge of a frame that an action changed.

    Attributes:
        frame: the frame.
        parent: its parent afterwards; None for a root.
        pose: its pose in the parent, x, y, z in metres and a unit quaternion x, y, z, w.
        classes: its classes afterwards.
    """

    frame: str
    parent: str | None
    pose: tuple[float, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True)
class BranchFailure(Displayed):
    """Why an action failed in a version.

    Attributes:
        action: the action in PDDL.
        cause: why.
        count: how often.
    """

    action: str
    cause: str
    count: int


@dataclass(frozen=True)
class SearchTreeNode(Displayed):
    """A version of the scene that a search reached.

    Attributes:
        parent: the index of the node before; None for the start.
        actions: the action from there to here in PDDL; none for the start.
        choices: for each, the grasp or placement that was chosen, in words.
        q: (n_joints,) configuration [rad, m].
        changes: the frames that the actions moved.
        tries: motions and transfers attempted from here.
        failures: those of them that failed, by action and cause, most frequent first.
        estimate: number of actions that were expected from here, which orders the queue; None for a
            version that was not in it.
        is_in_plan: whether the plan goes through here.
        is_transfer: whether the action is part of a transfer; otherwise it was refined as the
            domain proposes.
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
    """The versions that one search reached.

    Attributes:
        search: number of PDDL objects of its task, as ``"7 objects"``: the useful ones, or all.
        nodes: the versions, in the order in which they were reached.
    """

    search: str
    nodes: tuple[SearchTreeNode, ...]

    @property
    def is_in_plan(self) -> bool:
        """Whether this search found the plan."""
        return any(node.is_in_plan for node in self.nodes)

    def version(self, index: int, scene: SceneGraph) -> tuple[SceneGraph, Configuration]:
        """Return the version of a node, without covariances, and its configuration (n_joints,).

        Args:
            index: index of the node.
            scene: the scene at the start.
        """
        way = [self.nodes[index]]
        while (parent := way[-1].parent) is not None:
            way.append(self.nodes[parent])
        for node in reversed(way):
            for change in node.changes:
                if change.parent is not None:
                    pose = Pose.from_array(np.array(change.pose))
                    scene = scene.reparent(change.frame, change.parent, pose=pose)
                scene = scene.set_classes(change.frame, change.classes)
        return scene, np.array(way[0].q)

    def __repr__(self) -> str:
        return (
            f"SearchTree({self.search}, {len(self.nodes)}"
            f" nodes{', with the plan' if self.is_in_plan else ''})"
        )


class RecordedNode(Protocol):
    """A node of the search, as far as it is recorded."""

    version: SceneVersion
    tries: int
    failures: Counter[tuple[str, str]]

    @property
    def estimate(self) -> float:
        """The number of actions that are expected from the version."""
        ...


def recorded_trees(
    trees: Sequence[VersionTree], nodes: Sequence[RecordedNode], *, end: SceneVersion | None
) -> tuple[SearchTree, ...]:
    """Return the search trees of a run.

    Args:
        trees: the versions of each search.
        nodes: the nodes of the searches.
        end: the version in which the plan ends that was found first; None without a plan.
    """
    return tuple(_tree(tree, nodes, end) for tree in trees)


def _tree(tree: VersionTree, nodes: Sequence[RecordedNode], end: SceneVersion | None) -> SearchTree:
    """Return the versions that were reached from the root of a tree."""
    reached = {tree.root: None}
    waiting = [tree.root]
    while waiting:
        children = (
            child for tried in waiting.pop().expansions.values() for child in tried.children
        )
        new = [child for child in children if child not in reached]
        reached.update(dict.fromkeys(new))
        waiting += new
    of_version: dict[SceneVersion, list[RecordedNode]] = {}
    for node in nodes:
        if _root(node.version) is tree.root:
            of_version.setdefault(node.version, []).append(node)
            reached.update(dict.fromkeys(_ancestors(node.version)))
    in_plan: set[SceneVersion] = set()
    if end is not None and _root(end) is tree.root:
        in_plan.update(_ancestors(end))
        reached.update(dict.fromkeys(in_plan))
    ordered = sorted(reached, key=lambda version: version.number)
    indices = {version: index for index, version in enumerate(ordered)}
    made = (
        _node(tree, version, indices, of_version.get(version, ()), is_in_plan=version in in_plan)
        for version in ordered
    )
    return SearchTree(f"{len(tree.problem.objects)} objects", tuple(made))


def _ancestors(version: SceneVersion | None) -> Iterator[SceneVersion]:
    """Yield a version and those before it, up to the root."""
    while version is not None:
        yield version
        version = version.parent


def _root(version: SceneVersion) -> SceneVersion:
    *_, root = _ancestors(version)
    return root


def _node(
    tree: VersionTree,
    version: SceneVersion,
    indices: Mapping[SceneVersion, int],
    nodes: Sequence[RecordedNode],
    *,
    is_in_plan: bool,
) -> SearchTreeNode:
    failures = Counter[tuple[str, str]]()
    for node in nodes:
        failures.update(node.failures)
    tried = version.expansions.values()
    for expansion in tried:
        stated = str(tree.domain.original_action(expansion.action))
        failures.update((stated, str(record.failure)) for record in expansion.failures)
    ordered = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    step, parent = version.step, version.parent
    return SearchTreeNode(
        None if parent is None else indices[parent],
        () if step is None else (str(tree.domain.original_action(step.action)),),
        () if step is None else (step.choice,),
        tuple(version.q.tolist()),
        () if parent is None else tuple(_changes(parent.scene, version.scene)),
        sum(expansion.attempts for expansion in tried) + sum(node.tries for node in nodes),
        tuple(BranchFailure(action, cause, count) for (action, cause), count in ordered),
        min((node.estimate for node in nodes), default=None),
        is_in_plan,
        parent is not None
        and not any(version in each.children for each in parent.expansions.values()),
    )


def _changes(before: SceneGraph, after: SceneGraph) -> Iterator[FrameChange]:
    for frame in diff(before, after).changed:
        pose = tuple(after.local_pose(frame).as_array().tolist())
        yield FrameChange(frame, after.parent(frame), pose, tuple(sorted(after.classes(frame))))
