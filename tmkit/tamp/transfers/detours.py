"""Plans without the actions that the others can do without.

Invariants: functions of the moves and the seed; the work is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tmkit.manipulation.actions.candidates import Candidate
from tmkit.plans.failures import MotionFailure
from tmkit.tamp.refinement_tree import RefinementNode, RefinementTree
from tmkit.tamp.transfers.ground_task import GroundTask

_MOST_FOLLOWED = 80  # actions that are carried out again where detours are left out
_ATTEMPTS = 2  # at each of them


@dataclass(frozen=True, eq=False)
class Move:
    """An action of a plan, and where it led.

    Attributes:
        operator: index of its operator.
        candidate: how it was carried out; None where that is not known, so that it cannot be carried out again.
    """

    operator: int
    candidate: Candidate | None
    node: RefinementNode


def without_detours(
    moves: tuple[Move, ...], tree: RefinementTree, ground: GroundTask, *, seed: int
) -> tuple[Move, ...]:
    """Return a plan from the tree's root without the actions that the others can do without.

    Windows are taken out, the longest first; the work is bounded.
    """
    left = _MOST_FOLLOWED
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for start, end in _windows(moves, tree, ground):
            if left < len(moves) - end:
                continue
            left -= len(moves) - end
            after = _followed(moves[start - 1].node if start else tree.root, moves[end:], tree, ground, seed)
            if after is not None:
                moves, is_shorter = (*moves[:start], *after), True
                break
    return moves


def _windows(moves: tuple[Move, ...], tree: RefinementTree, ground: GroundTask) -> Iterator[tuple[int, int]]:
    """Yield windows without which the task plan reaches the goal, the longest first."""
    before = [ground.values(tree.root.state)]
    for move in moves:
        before.append(ground.apply(move.operator, before[-1]))
    for length in range(len(moves) - 1, 0, -1):
        for start in range(len(moves) - length + 1):
            values = before[start]
            for move in moves[start + length :]:
                if move.candidate is None or not ground.is_applicable(move.operator, values):
                    break
                values = ground.apply(move.operator, values)
            else:
                if ground.is_goal(values):
                    yield start, start + length


def _followed(
    node: RefinementNode, moves: tuple[Move, ...], tree: RefinementTree, ground: GroundTask, seed: int
) -> tuple[Move, ...] | None:
    """Return the moves carried out from a node; None where one fails, or the goal is not reached."""
    made: list[Move] = []
    for move in moves:
        if move.candidate is None:
            return None
        found = tree.follow(
            node, ground.actions[move.operator], move.candidate, seed=seed + len(made), attempts=_ATTEMPTS
        )
        if found is None or isinstance(found, MotionFailure):
            return None
        node = found
        made.append(Move(move.operator, move.candidate, node))
    return tuple(made) if ground.is_goal(ground.values(node.state)) else None
