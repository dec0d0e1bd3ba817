"""The search for a pattern in a scene: candidates for each role, and consistent choices of them.

Each role begins with a *domain*: the frames that its part accepts. A choice of a frame for a role narrows the domains
of all roles that are left; when one is empty, the choice was wrong. The role with the fewest frames left is chosen next
(forward checking with the smallest domain first: Haralick and Elliott, "Increasing tree search efficiency for
constraint satisfaction problems", Artificial Intelligence 14, 1980). The pattern's order conditions narrow domains too,
and leave of every match the one name that meets them. Roles that are asked the same of the same frames share the
answer; relations between near things leave out what is far in one sweep over arrays.

With n frames and k roles: n k questions to parts, then at most n^k choices, each narrowing k domains of at most n
frames. That bound is met by patterns that say nothing; where a role's relations leave it d frames once one neighbour is
chosen, it is about n d^(k - 1). Nothing recurses; memory is that of k times the domains, the answers to relations, and
the matches.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence

from numpy.typing import ArrayLike

from tmkit._core import SceneGraph
from tmkit.graph.patterns.pattern import Condition, Pattern
from tmkit.graph.patterns.placed import PlacedScene

Domains = dict[int, list[int]]  # by role: places of frames in scene.frame_names, ascending


def find_structure(
    scene: SceneGraph, pattern: Pattern, *, q: ArrayLike | None = None, up: ArrayLike = (0.0, 0.0, 1.0)
) -> tuple[Mapping[str, str], ...]:
    """Return every place in a scene where a pattern is met: a frame for each role, different roles different frames.

    Parts that the pattern does not tell apart are interchangeable: four equal legs make one match and not 24, and the
    legs are named in insertion order. What a chosen frame carries besides, and what other frames there are, does not
    matter. Matches are in the order of their frames, role by role, in insertion order.

    Args:
        scene: where to look.
        pattern: what to look for.
        q: configuration (n_joints,) at which places are taken; may be omitted if the scene has no joints, or no
            relation of the pattern needs places.
        up: (3,) direction against gravity, in the axes of the root, for relations such as ``Above``.

    Raises:
        ConfigurationError: q is missing where places are asked for, or has the wrong length.
        SceneError: an ``up`` without a direction.
    """
    placed = PlacedScene(scene, q=q, up=up)
    if any(relation.is_geometric for relation in pattern.relations):
        placed.kinematics  # noqa: B018  # a missing configuration is refused before the search
    names = scene.frame_names
    by_part = {part.name: [i for i, name in enumerate(names) if part.accepts(scene, name)] for part in pattern.parts}
    domains = {role: by_part[pattern.part_of(name).name] for role, name in enumerate(pattern.roles)}
    found = sorted(_Search(placed, pattern, names).matches(domains))
    return tuple({role: names[at] for role, at in zip(pattern.roles, match, strict=True)} for match in found)


class _Search:
    """One search: its queries of the scene, with cached answers of relations."""

    def __init__(self, placed: PlacedScene, pattern: Pattern, names: Sequence[str]) -> None:
        self._placed = placed
        self._names = names
        self._count = len(pattern.roles)
        self._order = frozenset(pattern.order_conditions)
        self._between: dict[tuple[int, int], list[Condition]] = {}
        for condition in pattern.conditions:
            for pair in ((condition.a, condition.b), (condition.b, condition.a)):
                self._between.setdefault(pair, []).append(condition)
        roles = range(self._count)
        self._questions = {pair: self._question(*pair) for pair in itertools.permutations(roles, 2)}

    def matches(self, domains: Domains) -> Iterator[tuple[int, ...]]:
        """Yield the frames of each match by their places, in the order of roles."""
        if not all(domains.values()):
            return
        chosen: dict[int, int] = {}
        waiting = [self._level(domains)]
        while waiting:
            role, frames, domains = waiting[-1]
            frame = next(frames, None)
            if frame is None:
                waiting.pop()
                chosen.pop(role, None)
                continue
            chosen[role] = frame
            if len(chosen) == self._count:
                yield tuple(chosen[r] for r in range(self._count))
            elif (narrowed := self._narrowed(domains, role, frame)) is not None:
                waiting.append(self._level(narrowed))

    def _level(self, domains: Domains) -> tuple[int, Iterator[int], Domains]:
        """Return the role to be chosen next, the frames to try for it, and the domains."""
        role = min(domains, key=lambda r: (len(domains[r]), r))
        return role, iter(domains[role]), domains

    def _narrowed(self, domains: Domains, role: int, frame: int) -> Domains | None:
        """Return the candidates left for the other roles when a frame has a role; None if one has none left."""
        narrowed: Domains = {}
        done: dict[object, list[int]] = {}  # roles that are asked the same of the same frames share the answer
        for other in sorted(domains, key=lambda r: (len(domains[r]), r)):
            if other != role:
                question = (self._questions[role, other], id(domains[other]))
                if question not in done:
                    done[question] = self._left(role, frame, other, domains[other])
                if not done[question]:
                    return None
                narrowed[other] = done[question]
        return narrowed

    def _question(self, role: int, other: int) -> Hashable:
        """Return what is asked of frames for another role once a role is filled: equal where it is the same."""
        order = ((role, other) in self._order) - ((other, role) in self._order)
        asked = self._between.get((role, other), ())
        return order, tuple((condition.relation.meaning, condition.a == role) for condition in asked)

    def _left(self, role: int, frame: int, other: int, domain: list[int]) -> list[int]:
        """Return the frames of a domain that may have another role, given a frame for one role."""
        if (role, other) in self._order:
            left = domain[bisect_right(domain, frame) :]
        elif (other, role) in self._order:
            left = domain[: bisect_left(domain, frame)]
        else:
            left = [f for f in domain if f != frame]
        for condition in self._between.get((role, other), ()):
            if left:
                names = [self._names[f] for f in left]
                holds = condition.relation.holds_with(
                    self._placed, self._names[frame], names, frame_is_a=condition.a == role
                )
                left = list(itertools.compress(left, holds))
        return left
