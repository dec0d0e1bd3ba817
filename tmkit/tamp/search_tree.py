"""The search tree of a run as data: which versions of the scene were reached, how, and why branches failed.

A run with the option ``record_tree`` has one :class:`SearchTree` for each task over which it refined task plans, and
one for the search over transfers if that began. They are made at the end, from what the searches keep anyway, so
recording changes no result. What is recorded are plain values: a program steps through the versions from the scene at
the start, which is not in the tree (:meth:`SearchTree.version`).

Invariants: nodes are in the order in which they were reached, so a parent comes before its children; node 0 is the
start. Nodes that led to the plan are marked; those of transfers before detours are taken out of the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tmkit._support.results import Displayed
from tmkit.graph import SceneGraph, diff
from tmkit.plans.values import Configuration, PlanStep
from tmkit.spatial import Pose
from tmkit.tamp.refinement_tree import RefinementNode, RefinementTree


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
        actions: the actions from there to here in PDDL; a transfer has two.
        choices: for each, the grasp or placement that was chosen, in words.
        q: (n_joints,) configuration, radians and metres.
        changes: the frames that the actions moved.
        tries: attempts made from here.
        failures: those of them that failed, by action and cause, most frequent first.
        estimate: of the actions that remain, by which the search over transfers orders nodes; None for task plans.
        is_in_plan: whether the plan goes through here.
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


@dataclass(frozen=True)
class SearchTree(Displayed):
    """The versions that one search reached.

    Attributes:
        search: ``task plans`` or ``transfers``.
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
        return f"SearchTree({self.search}, {len(self.nodes)} nodes{', with the plan' if self.is_in_plan else ''})"


class _Move(Protocol):
    @property
    def node(self) -> RefinementNode: ...


class TransferVersion(Protocol):
    """A node of the search over transfers, as far as it is recorded."""

    node: RefinementNode
    estimate: float
    tries: int
    failures: Counter[tuple[str, str]]

    @property
    def moves(self) -> Sequence[_Move]:
        """How it was reached."""
        ...


def recorded_trees(
    trees: Sequence[RefinementTree], transfers: RefinementTree | None, *, versions: Sequence[TransferVersion],
    found: Sequence[PlanStep],
) -> tuple[SearchTree, ...]:  # fmt: skip
    """Return the search trees of a run.

    Args:
        trees: the trees of its task plans.
        transfers: that of the search over transfers, if there is one.
        versions: the nodes of that search.
        found: the steps of the plan that was found; none without a plan.
    """
    made = [_of_task_plans(tree, found) for tree in trees]
    if transfers is not None and versions:
        is_found = bool(found) and not any(tree.is_in_plan for tree in made)
        made.append(_of_transfers(transfers, versions, versions[-1] if is_found else None))
    return tuple(made)


def _of_task_plans(tree: RefinementTree, found: Sequence[PlanStep]) -> SearchTree:
    reached: list[tuple[RefinementNode, RefinementNode | None]] = [(tree.root, None)]
    for node, _ in reached:
        reached += [(child, node) for tried in node.expansions.values() for child in tried.children]
    reached.sort(key=lambda pair: pair[0].number)
    in_plan, at = {tree.root}, tree.root
    for step in found:
        following = next((child for child, parent in reached if parent is at and _begins(child.step, step)), None)
        if following is None:
            break
        in_plan.add(following)
        at = following
    if len(in_plan) <= len(found) or not found:
        in_plan.clear()
    numbers = {node: index for index, (node, _) in enumerate(reached)}
    nodes = (
        _node(
            tree, [node], parent, numbers, tries=sum(tried.attempts for tried in node.expansions.values()),
            is_in_plan=node in in_plan,
        )
        for node, parent in reached
    )  # fmt: skip
    return SearchTree("task plans", tuple(nodes))


def _begins(step: PlanStep | None, whole: PlanStep) -> bool:
    """Return whether a step is the beginning of another, to which motions may have been added."""
    return step is not None and step.action == whole.action and step.segments == whole.segments[: len(step.segments)]


def _of_transfers(
    tree: RefinementTree, versions: Sequence[TransferVersion], last: TransferVersion | None
) -> SearchTree:
    in_plan = set() if last is None else {tree.root, *(move.node for move in last.moves)}
    numbers = {version.node: index for index, version in enumerate(versions)}
    nodes = []
    for version in versions:
        way = [tree.root, *(move.node for move in version.moves)]
        start = max((index for index, node in enumerate(way[:-1]) if node in numbers), default=None)
        nodes.append(
            _node(
                tree, way if start is None else way[start + 1 :], None if start is None else way[start], numbers,
                tries=version.tries, counts=version.failures, estimate=version.estimate,
                is_in_plan=version.node in in_plan,
            )
        )  # fmt: skip
    return SearchTree("transfers", tuple(nodes))


def _node(
    tree: RefinementTree, way: Sequence[RefinementNode], parent: RefinementNode | None,
    numbers: Mapping[RefinementNode, int], *, tries: int, counts: Mapping[tuple[str, str], int] | None = None,
    estimate: float | None = None, is_in_plan: bool,
) -> SearchTreeNode:  # fmt: skip
    node = way[-1]
    failed = Counter(counts or {})
    for tried in node.expansions.values():
        failed.update((str(tree.domain.stated(tried.action)), str(record.failure)) for record in tried.failures)
    ordered = sorted(failed.items(), key=lambda item: (-item[1], item[0]))
    steps = [passed.step for passed in way if passed.step is not None]
    return SearchTreeNode(
        None if parent is None else numbers[parent], tuple(str(tree.domain.stated(step.action)) for step in steps),
        tuple(step.choice for step in steps), tuple(node.q.tolist()),
        () if parent is None else tuple(_changes(parent.scene, node.scene)), tries,
        tuple(BranchFailure(action, cause, count) for (action, cause), count in ordered), estimate, is_in_plan,
    )  # fmt: skip


def _changes(before: SceneGraph, after: SceneGraph) -> Iterator[FrameChange]:
    for frame in diff(before, after).changed:
        pose = tuple(after.local_pose(frame).as_array().tolist())
        yield FrameChange(frame, after.parent(frame), pose, tuple(sorted(after.classes(frame))))
