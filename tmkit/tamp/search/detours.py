"""Plans without the actions that the others can do without.

Invariants: functions of the moves and the seed; the work is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

from tmkit.plans.failures import MotionFailure
from tmkit.tamp.search.search_node import Move
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.version_tree import SceneVersion, VersionTree

_ATTEMPTS = 2
"""Motions tried for each action that is carried out again."""


def without_detours(
    moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide, *, limit: int, seed: int
) -> tuple[Move, ...]:
    """Return a plan from the tree's root without the actions that the others can do without.

    Windows are taken out, the longest first, as long as at most ``limit`` actions are carried out again.
    """
    left = limit
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for start, end in _windows(moves, tree, guide):
            if left < len(moves) - end:
                continue
            left -= len(moves) - end
            after = _followed(moves[start - 1].version if start else tree.root, moves[end:], tree, guide, seed)
            if after is not None:
                moves, is_shorter = (*moves[:start], *after), True
                break
    return moves


def _windows(moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide) -> Iterator[tuple[int, int]]:
    """Yield windows without which the task plan reaches the goal, the longest first."""
    before = [guide.values(tree.root.state)]
    for move in moves:
        before.append(guide.apply(move.operator, before[-1]))
    for length in range(len(moves) - 1, 0, -1):
        for start in range(len(moves) - length + 1):
            values = before[start]
            for move in moves[start + length :]:
                if move.candidate is None or not guide.is_applicable(move.operator, values):
                    break
                values = guide.apply(move.operator, values)
            else:
                if guide.is_goal(values):
                    yield start, start + length


def _followed(
    node: SceneVersion, moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide, seed: int
) -> tuple[Move, ...] | None:
    """Return the moves carried out from a node; None where one fails, or the goal is not reached."""
    made: list[Move] = []
    for move in moves:
        if move.candidate is None:
            return None
        found = tree.follow(
            node, guide.actions[move.operator], move.candidate, seed=seed + len(made), attempts=_ATTEMPTS
        )
        if found is None or isinstance(found, MotionFailure):
            return None
        node = found
        made.append(Move(move.operator, move.candidate, node))
    return tuple(made) if guide.is_goal(guide.values(node.state)) else None
