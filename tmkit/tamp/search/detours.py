"""Removal of detours: actions that a plan reaches the goal without.

Invariants: results depend only on the moves and the seed; the work is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

from tmkit.tamp.search.search_node import Move
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.version_tree import SceneVersion, VersionTree

_ATTEMPTS_PER_MOVE = 2
"""Motions attempted for each repeated action with its grasp or placement."""

_FALLBACK_ATTEMPTS = 8
"""Motions attempted with the domain's candidates if the action's grasp or placement fails."""


def remove_detours(
    moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide, *, limit: int, seed: int
) -> tuple[Move, ...]:
    """Return a plan from the tree's root without detours.

    Windows of actions are removed, the longest first, and the later actions are repeated.

    Args:
        moves: moves of the plan.
        tree: versions of the scene.
        guide: source of task plans.
        limit: maximum number of repeated actions.
        seed: seed of the motions.
    """
    remaining = limit
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for start, end in _windows(moves, tree, guide):
            if remaining <= 0:
                return moves
            version = moves[start - 1].version if start else tree.root
            suffix, count = _repeat_moves(version, moves[end:], tree, guide, seed)
            remaining -= count
            if suffix is not None:
                moves, is_shorter = (*moves[:start], *suffix), True
                break
    return moves


def _windows(
    moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide
) -> Iterator[tuple[int, int]]:
    """Yield windows without which the task plan still reaches the goal, the longest first."""
    states = [guide.values(tree.root.state)]
    for move in moves:
        states.append(guide.apply(move.operator, states[-1]))
    for length in range(len(moves) - 1, 0, -1):
        for start in range(len(moves) - length + 1):
            values = states[start]
            for move in moves[start + length :]:
                if not guide.is_applicable(move.operator, values):
                    break
                values = guide.apply(move.operator, values)
            else:
                if guide.is_goal(values):
                    yield start, start + length


def _repeat_moves(
    version: SceneVersion, moves: tuple[Move, ...], tree: VersionTree, guide: TaskGuide, seed: int
) -> tuple[tuple[Move, ...] | None, int]:
    """Repeat moves from another version.

    Returns:
        The new moves, or None if one fails or the goal is missed, and the number of attempted
        moves.
    """
    new_moves: list[Move] = []
    for move in moves:
        next_version = _repeat_move(version, move, tree, guide, seed + len(new_moves))
        if next_version is None:
            return None, len(new_moves) + 1
        version = next_version
        new_moves.append(Move(move.operator, version.candidate, version))
    is_goal = guide.is_goal(guide.values(version.state))
    return (tuple(new_moves) if is_goal else None), len(new_moves)


def _repeat_move(
    version: SceneVersion, move: Move, tree: VersionTree, guide: TaskGuide, seed: int
) -> SceneVersion | None:
    """Return the version after a move with its candidate or one of the domain, or None."""
    action = guide.actions[move.operator]
    if move.candidate is not None:
        result = tree.follow(
            version, action, move.candidate, seed=seed, attempts=_ATTEMPTS_PER_MOVE
        )
        if isinstance(result, SceneVersion):
            return result
    expansion = tree.expansion(version, action)
    for _ in range(_FALLBACK_ATTEMPTS):
        if expansion.children:
            return expansion.children[0]
        if expansion.is_exhausted:
            return None
        expansion.advance()
    return None
