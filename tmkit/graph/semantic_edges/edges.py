"""Edges between given nodes of any kind, refused by their kinds: what files and other programs may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from tmkit._core import Fixed, SceneGraph
from tmkit.errors import UnknownNameError
from tmkit.graph.semantic_edges.poses import with_pose_edge
from tmkit.relations import SemanticError, Violation
from tmkit.spatial import Pose


@dataclass(frozen=True)
class Node:
    """A node of the graph: a frame or a body.

    Attributes:
        kind: ``frame`` or ``body``.
        name: its name.
    """

    kind: Literal["frame", "body"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"


def add_edge(
    scene: SceneGraph, kind: Literal["pose", "twist"], *, tail: Node, head: Node, value: Pose | ArrayLike
) -> SceneGraph:
    """Return the scene with an edge between two nodes of any kind, where there may be one.

    Args:
        scene: the scene.
        kind: ``pose`` or ``twist``.
        tail: the reference: a frame for a pose, a body for a twist.
        head: the frame that stands, or moves, relative to it.
        value: tail_from_head; or (6,) the twist of the head's body relative to the tail, at the head's origin, in its
            axes.

    Raises:
        UnknownNameError: no such kind of edge or of node, or no such node.
        SemanticError: an edge of this kind does not join nodes of these kinds.
        SceneError: the rules forbid it.
    """
    wanted = {"pose": ("frame", "frame"), "twist": ("body", "frame")}.get(kind)
    if wanted is None:
        raise UnknownNameError.of("kind of edge", kind, ("pose", "twist"))
    for node in (tail, head):
        if not isinstance(node, Node):
            repair = f"write Node('frame', {node!r}) or Node('body', {node!r})"
            raise SemanticError.of(f"add_edge({kind})", [Violation("an edge joins nodes", repr(node), repair=repair)])
        if node.kind not in ("frame", "body"):
            raise UnknownNameError.of("kind of node", node.kind, ("frame", "body"))
    if (tail.kind, head.kind) != wanted:
        rules = {
            "pose": "a pose edge joins two frames",
            "twist": "a twist edge joins a body and a frame of another body",
        }
        raise SemanticError.of(f"add_edge({kind})", [Violation(rules[kind], f"tail {tail}", f"head {head}")])
    if isinstance(value, Pose):
        if kind == "twist":
            raise SemanticError.of("add_edge(twist)", [Violation("a twist edge holds six numbers", repr(value))])
        return with_pose_edge(scene, head.name, tail.name, value, Fixed())
    if kind == "pose":
        raise SemanticError.of("add_edge(pose)", [Violation("a pose edge holds a pose", repr(value)[:80])])
    return scene.set_twist(head.name, value, relative_to_body=tail.name)
