"""Rules of twist edges, over all edges at once, as in ``docs/reference/scene_edge_rules.md``."""

from __future__ import annotations

import itertools

__all__ = ["unambiguous"]


def unambiguous(bodies: dict[str, str], trees: dict[str, str], twists: dict[str, str]) -> bool:
    """Return whether reference bodies by frame are valid, given each frame's body and tree."""

    def above(body: str) -> set[str]:
        reached: set[str] = set()
        waiting = [body]
        while waiting:
            here = waiting.pop()
            up = {reference for frame, reference in twists.items() if bodies[frame] == here}
            waiting.extend(up - reached)
            reached |= up
        return reached

    if any(
        bodies[f] == reference or bodies[f] in above(bodies[f]) for f, reference in twists.items()
    ):
        return False
    for f, g in itertools.combinations(twists, 2):
        together = bodies[f] == bodies[g] and trees[f] == trees[g]
        if together and (above(twists[f]) | {twists[f]}) & (above(twists[g]) | {twists[g]}):
            return False
    for tree in set(trees.values()):
        edges = [(bodies[f], reference) for f, reference in twists.items() if trees[f] == tree]
        parts = [{body} for body in {*bodies.values(), *twists.values()}]
        for a, b in edges:
            first, second = (next(part for part in parts if body in part) for body in (a, b))
            if first is second:
                return False
            parts = [part for part in parts if part is not first and part is not second] + [
                first | second
            ]
    return True
