"""Random large tasks in finite-domain variables with a known or bounded number of actions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

__all__ = ["LargeTask", "ball_task", "blocks_task", "hanoi_task", "swap_task"]

Fact = tuple[Hashable, ...]


class LargeTask:
    """A task that is built of variables and operators by the names of their facts.

    Attributes:
        task: the task as :func:`support.finite_domain_tasks.compiled` takes it.
        fewest: a number of actions that every plan has at least.
    """

    def __init__(self) -> None:
        self.task: dict[str, Any] = {
            "domains": [],
            "layers": [],
            "init": [],
            "goal": [],
            "operators": [],
            "axioms": [],
            "mutexes": [],
        }
        self.fewest = 0
        self._pairs: dict[Fact, tuple[int, int]] = {}

    def add_variable(self, facts: Sequence[Fact], initial: Fact) -> None:
        """Add a variable with one value for each fact."""
        number = len(self.task["domains"])
        self.task["domains"].append(len(facts))
        self.task["layers"].append(-1)
        self.task["init"].append((number, facts.index(initial)))
        self._pairs.update((fact, (number, value)) for value, fact in enumerate(facts))

    def add_flag(self, fact: Fact, *, holds: bool) -> None:
        """Add a variable for a fact that holds or does not."""
        self.add_variable([fact, ("not", *fact)], fact if holds else ("not", *fact))

    def add_operator(self, needs: Sequence[Fact], effects: Sequence[Fact]) -> None:
        """Add an operator of cost 1."""
        pairs = self._pairs
        self.task["operators"].append(
            ([pairs[f] for f in needs], [([], pairs[f]) for f in effects], 1)
        )

    def exclude(self, facts: Sequence[Fact]) -> None:
        """Add a group of facts of which at most one holds."""
        self.task["mutexes"].append([self._pairs[fact] for fact in facts])

    def want(self, facts: Sequence[Fact]) -> None:
        """Set the goal."""
        self.task["goal"] = sorted(self._pairs[fact] for fact in facts)


def blocks_task(
    seed: int, size: int, *, sites: int, highest: int, towers: Sequence[int]
) -> LargeTask:
    """Return a task of blocks in random piles, some of which are wanted in towers.

    Args:
        seed: seed of the piles and the towers.
        size: number of blocks.
        sites: number of sites on the table, each for one block.
        highest: greatest number of blocks in a pile.
        towers: number of blocks of each tower.
    """
    rng = random.Random(seed)
    names = rng.sample(range(size), size)
    piles: list[list[int]] = []
    for name in names:
        low = [pile for pile in piles if len(pile) < highest]
        if low and (rng.random() < 0.6 or len(piles) >= sites - 3):
            rng.choice(low).append(name)
        else:
            piles.append([name])
    order = rng.sample(names, size)
    wanted: dict[int, int] = {}
    for height in towers:
        tower, order = order[:height], order[height:]
        wanted.update((upper, lower) for lower, upper in itertools.pairwise(tower))
    below = {upper: lower for pile in piles for lower, upper in itertools.pairwise(pile)}
    large = LargeTask()
    _add_blocks(large, piles, rng.sample(range(sites), len(piles)), sites)
    large.want([("on", upper, lower) for upper, lower in wanted.items()])
    large.fewest = 2 * _count_moves(wanted, below)
    return large


def _add_blocks(
    large: LargeTask, piles: Sequence[Sequence[int]], pile_places: Sequence[int], sites: int
) -> None:
    names = range(sum(map(len, piles)))
    position: dict[int, Fact] = {}
    for pile, site in zip(piles, pile_places, strict=True):
        position[pile[0]] = ("at", pile[0], site)
        position.update((upper, ("on", upper, lower)) for lower, upper in itertools.pairwise(pile))
    for site in range(sites):
        large.add_flag(("free", site), holds=site not in pile_places)
    for x in names:
        large.add_flag(("clear", x), holds=any(pile[-1] == x for pile in piles))
    large.add_flag(("empty",), holds=True)
    for x in names:
        on = [("on", x, y) for y in names if y != x]
        large.add_variable(
            [("held", x), *on, *(("at", x, site) for site in range(sites))], position[x]
        )
    for x in names:
        places = [(("at", x, site), ("free", site)) for site in range(sites)]
        places += [(("on", x, y), ("clear", y)) for y in names if y != x]
        for place, room in places:
            large.add_operator(
                [place, ("clear", x), ("empty",)],
                [("held", x), room, *_negate(("clear", x), ("empty",))],
            )
            large.add_operator(
                [("held", x), room], [place, ("clear", x), ("empty",), *_negate(room)]
            )
    large.exclude([("empty",), *(("held", x) for x in names)])
    for x in names:
        large.exclude([("clear", x), ("held", x), *(("on", y, x) for y in names if y != x)])
    for site in range(sites):
        large.exclude([("free", site), *(("at", x, site) for x in names)])


def _negate(*facts: Fact) -> list[Fact]:
    return [("not", *fact) for fact in facts]


def _count_moves(wanted: dict[int, int], below: dict[int, int]) -> int:
    """Return a number of moves that every plan has at least.

    A block moves if it, or one below it, is not where it is wanted, or one below it is in the way.
    It moves twice if it has to be above a block at its goal that moves, and is above the same block
    at the start.
    """
    above = {lower: upper for upper, lower in below.items()}
    moved: set[int] = set()
    while True:
        more = {upper for upper, lower in below.items() if lower in moved}
        for upper, lower in wanted.items():
            if below.get(upper) != lower or lower in moved:
                more.add(upper)
                if below.get(upper) != lower and lower in above:
                    more.add(above[lower])
        if more <= moved:
            break
        moved |= more
    twice = [x for x in wanted if moved & set(_chain(x, wanted)) & set(_chain(x, below))]
    return len(moved) + len(twice)


def _chain(x: int, below: dict[int, int]) -> Iterator[int]:
    while x in below:
        x = below[x]
        yield x


def ball_task(count: int) -> LargeTask:
    """Return the task to carry balls from one room to another, two at a time."""
    large = LargeTask()
    large.add_variable([("room", 0), ("room", 1)], ("room", 0))
    for hand in range(2):
        large.add_flag(("free", hand), holds=True)
    for ball in range(count):
        held: list[Fact] = [("held", ball, hand) for hand in range(2)]
        large.add_variable([("in", ball, 0), ("in", ball, 1), *held], ("in", ball, 0))
    for room in range(2):
        large.add_operator([("room", room)], [("room", 1 - room)])
        for ball, hand in itertools.product(range(count), range(2)):
            inside, carried = ("in", ball, room), ("held", ball, hand)
            large.add_operator(
                [inside, ("room", room), ("free", hand)], [carried, *_negate(("free", hand))]
            )
            large.add_operator([carried, ("room", room)], [inside, ("free", hand)])
    large.want([("in", ball, 1) for ball in range(count)])
    large.fewest = 2 * count + 2 * ((count + 1) // 2) - 1
    return large


def swap_task(seed: int, count: int) -> LargeTask:
    """Return the task to exchange objects among sites, one of them free at first, with one hand."""
    wanted = random.Random(seed).sample(range(count), count)
    large = LargeTask()
    large.add_flag(("empty",), holds=True)
    for site in range(count + 1):
        large.add_flag(("free", site), holds=site == count)
    for x in range(count):
        large.add_variable(
            [("held", x), *(("at", x, site) for site in range(count + 1))], ("at", x, x)
        )
    for x, site in itertools.product(range(count), range(count + 1)):
        place, room = ("at", x, site), ("free", site)
        large.add_operator([place, ("empty",)], [("held", x), room, *_negate(("empty",))])
        large.add_operator([("held", x), room], [place, ("empty",), *_negate(room)])
    large.exclude([("empty",), *(("held", x) for x in range(count))])
    for site in range(count + 1):
        large.exclude([("free", site), *(("at", x, site) for x in range(count))])
    large.want([("at", x, wanted[x]) for x in range(count)])
    left = {x for x in range(count) if wanted[x] != x}
    moves = len(left)
    while left:
        moves += 1  # one object of each cycle moves twice
        x = next(iter(left))
        while x in left:
            left.remove(x)
            x = wanted[x]
    large.fewest = 2 * moves
    return large


def hanoi_task(count: int) -> LargeTask:
    """Return the task to move a tower of discs from the first of three pegs to the last."""
    large = LargeTask()
    pegs = [count, count + 1, count + 2]
    below = {disc: [*range(disc + 1, count), *pegs] for disc in range(count)}
    for disc in range(count):
        large.add_variable([("on", disc, x) for x in below[disc]], ("on", disc, disc + 1))
    for x in [*range(count), *pegs]:
        large.add_flag(("clear", x), holds=x in (0, *pegs[1:]))
    for disc in range(count):
        for x, y in itertools.permutations(below[disc], 2):
            needs = [("on", disc, x), ("clear", disc), ("clear", y)]
            large.add_operator(needs, [("on", disc, y), ("clear", x), *_negate(("clear", y))])
    for x in [*range(count), *pegs]:
        large.exclude(
            [("clear", x), *(("on", disc, x) for disc in range(count) if x in below[disc])]
        )
    large.want([("on", disc, disc + 1) for disc in range(count - 1)] + [("on", count - 1, pegs[2])])
    large.fewest = 2**count - 1
    return large
