"""Plans without the actions that the others can do without.

Invariants: functions of the moves and the seed; the work is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

from tmkit.tamp.search.search_node import Move
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.version_tree import SceneVersion, VersionTree

_ATTEMPTS = 2
"""Motions tried for each action that is carried out again with its grasp or place."""

_ATTEMPTS_AS_PROPOSED = 8
"""Motions tried for it as the domain proposes it, where these fail."""


def without_detours(
    moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide, *, limit: int, seed: int
) -> tuple[Move, ...]:
    """Return a plan from the tree's root without the actions that the others can do without.

    Windows are taken out, the longest first, until ``limit`` actions were carried out again.
    """
    left = limit
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for start, end in _windows(moves, tree, guide):
            if left <= 0:
                return moves
            before = moves[start - 1].version if start else tree.root
            after, count = _followed(before, moves[end:], tree, guide, seed)
            left -= count
            if after is not None:
                moves, is_shorter = (*moves[:start], *after), True
                break
    return moves


def _windows(
    moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide
) -> Iterator[tuple[int, int]]:
    """Yield windows without which the task plan reaches the goal, the longest first."""
    before = [guide.values(tree.root.state)]
    for move in moves:
        before.append(guide.apply(move.operator, before[-1]))
    for length in range(len(moves) - 1, 0, -1):
        for start in range(len(moves) - length + 1):
            values = before[start]
            for move in moves[start + length :]:
                if not guide.is_applicable(move.operator, values):
                    break
                values = guide.apply(move.operator, values)
            else:
                if guide.is_goal(values):
                    yield start, start + length


def _followed(
    version: SceneVersion, moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide, seed: int
) -> tuple[tuple[Move, ...] | None, int]:
    """Return the moves carried out from a version, None if one fails or the goal is missed; and how many were tried."""
    made: list[Move] = []
    for move in moves:
        reached = _after(version, move, tree, guide, seed + len(made))
        if reached is None:
            return None, len(made) + 1
        version = reached
        made.append(Move(move.operator, version.candidate, version))
    return (tuple(made) if guide.is_goal(guide.values(version.state)) else None), len(made)


def _after(
    version: SceneVersion, move: Move, tree: VersionTree, guide: TaskGuide, seed: int
) -> SceneVersion | None:
    """Return the version after a move, with its candidate or else another of the domain; None where all fail."""
    action = guide.actions[move.operator]
    if move.candidate is not None:
        reached = tree.follow(version, action, move.candidate, seed=seed, attempts=_ATTEMPTS)
        if isinstance(reached, SceneVersion):
            return reached
    expansion = tree.expansion(version, action)
    for _ in range(_ATTEMPTS_AS_PROPOSED):
        if expansion.children:
            return expansion.children[0]
        if expansion.is_exhausted:
            return None
        expansion.advance()
    return None
