"""Patterns of parts and relations between them, and the search for these structures in a scene.

A :class:`Part` with ``count=4`` is four parts of one description, called ``leg_1`` to ``leg_4`` in
matches. A :class:`Pattern` works its descriptions out, once, into single parts (*roles*) and
conditions between two roles each.

A permutation of roles that leaves every description and every condition as it was is a *symmetry*
of the pattern: with it, a match is another name of the same match. Descriptions compare by value,
and relations that mean the same in both directions say so (``is_symmetric``). What this module
keeps of the symmetries are *order conditions*: (i, j) says that role i is to be the earlier frame
of the two. Going through the roles in order, each that can be moved by the symmetries that leave
all before it where they are is to be the earliest of those it can be moved to. Of all the names of
one match exactly one meets the conditions (Grochow and Kellis, "Network motif discovery using
subgraph enumeration and symmetry-breaking", RECOMB 2007). No list of symmetries, of which eight
equal parts have 40320, is ever made.

In the search each role begins with a *domain*, the frames that its part accepts. A choice of a
frame for a role narrows the domains of all roles that are left, by conditions and order conditions;
when one is empty, the choice was wrong. The role with the fewest frames left is chosen next
(forward checking with the smallest domain first: Haralick and Elliott, "Increasing tree search
efficiency for constraint satisfaction problems", Artificial Intelligence 14, 1980). With n frames
and k roles: n k questions to parts, then at most n^k choices, each narrowing k domains of at most n
frames. Where a role's relations leave it d frames once one neighbour is chosen, about n d^(k - 1).
Nothing recurses.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from numpy.typing import ArrayLike

from tmkit._core import SceneGraph, Shape
from tmkit._support.initialization import initialize
from tmkit.errors import DuplicateNameError, SceneError, UnknownNameError
from tmkit.graph.patterns.placed import PlacedScene

Range = tuple[float, float]
_DIMENSIONS = {  # of each kind of shape, how many
    "box": 3,
    "sphere": 1,
    "cylinder": 2,
    "cone": 2,
    "capsule": 2,
    "mesh": 0,
    "plane": 0,
    "point_cloud": 1,
    "height_field": 3,
}


@dataclass(frozen=True)
class Part:
    """One part of a structure: the frames that may be matched with it.

    Args:
        name: what matches and relations call it.
        classes: all classes that the frame must have.
        shape: the kind of shape that must be on the frame, such as ``box``; any, or none at all, by
            default.
        dimensions: smallest and largest value of each dimension of that shape in metres, in the
            shape's own order. A box has x, y, z. A round shape has a radius, and a length unless it
            is a sphere. A mesh has none. A box fits in any order of its axes. One shape on the
            frame that fits is enough.
        attributes: attributes that the frame must have, with these values.
        test: anything else, asked of the scene and the name of a frame.
        count: how many of this part there are; more than one are called ``leg_1``, ``leg_2`` and so
            on.

    Raises:
        SceneError: an unknown kind of shape, dimensions without a shape, a range that is upside
            down, a count below 1.
    """

    name: str
    classes: tuple[str, ...] = ()
    shape: str | None = None
    dimensions: tuple[Range, ...] = ()
    attributes: tuple[tuple[str, object], ...] = ()
    test: Callable[[SceneGraph, str], bool] | None = None
    count: int = 1

    def __init__(
        self,
        name: str,
        classes: Iterable[str] = (),
        *,
        shape: str | None = None,
        dimensions: Iterable[Sequence[float]] = (),
        attributes: Mapping[str, object] | Iterable[tuple[str, object]] = (),
        test: Callable[[SceneGraph, str], bool] | None = None,
        count: int = 1,
    ) -> None:
        if isinstance(classes, str):
            raise SceneError(f"classes of part '{name}' are a list of names; write ['{classes}']")
        ranges = tuple(_range(f"a dimension of part '{name}'", entry) for entry in dimensions)
        if shape is not None and shape not in _DIMENSIONS:
            raise SceneError(
                f"part '{name}': no shape is a '{shape}'; shapes are {', '.join(_DIMENSIONS)}"
            )
        if ranges and shape is None:
            raise SceneError(f"part '{name}' has dimensions, so it needs a kind of shape")
        if ranges and shape is not None and len(ranges) != _DIMENSIONS[shape]:
            raise SceneError(
                f"part '{name}': a {shape} has {_DIMENSIONS[shape]} dimensions, not {len(ranges)}"
            )
        if count < 1:
            raise SceneError(f"part '{name}' is there at least once, not {count} times")
        initialize(
            self,
            name=name,
            classes=tuple(sorted(set(classes))),
            shape=shape,
            dimensions=ranges,
            attributes=_frozen(dict(attributes)),
            test=test,
            count=count,
        )

    @property
    def roles(self) -> tuple[str, ...]:
        """The names that matches use: the part's own, or numbered ones when there are several."""
        return (
            (self.name,)
            if self.count == 1
            else tuple(f"{self.name}_{n}" for n in range(1, self.count + 1))
        )

    def accepts(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether a frame fits this part, regardless of relations.

        Args:
            scene: the scene.
            frame: name of the frame.
        """
        if not set(self.classes) <= set(scene.classes(frame)):
            return False
        if self.shape is not None and not any(
            self._fits(attached.shape) for attached in scene.shapes(frame)
        ):
            return False
        if self.attributes:
            known = scene.attributes(frame)
            if any(
                key not in known or _frozen(known[key]) != value for key, value in self.attributes
            ):
                return False
        return self.test is None or self.test(scene, frame)

    def _fits(self, shape: Shape) -> bool:
        if shape.kind != self.shape:
            return False
        orders = (
            itertools.permutations(shape.dimensions) if shape.kind == "box" else [shape.dimensions]
        )
        return not self.dimensions or any(
            all(
                low <= size <= high
                for size, (low, high) in zip(order, self.dimensions, strict=True)
            )
            for order in orders
        )


@dataclass(frozen=True)
class Relation(ABC):
    """How two parts stand to each other. Derive to make one of your own: a frozen dataclass with :meth:`holds`.

    Args:
        a: name of one part.
        b: name of the other; of a part that is there several times it holds for each, or between
            every two.
    """

    a: str
    b: str

    @property
    def is_symmetric(self) -> bool:
        """Whether the relation of ``b`` to ``a`` is the same as that of ``a`` to ``b``."""
        return False

    @property
    def is_geometric(self) -> bool:
        """Whether the answer depends on where frames are: then a scene with joints needs a configuration."""
        return True

    @abstractmethod
    def holds(self, placed: PlacedScene, a: str, b: str) -> bool:
        """Return whether the relation holds between two frames.

        Args:
            placed: the scene at a configuration.
            a: frame of the first part.
            b: frame of the second part.
        """

    def holds_with(
        self, placed: PlacedScene, frame: str, others: Sequence[str], *, frame_is_a: bool
    ) -> list[bool]:
        """Return for each of several frames whether the relation holds with ``frame``; override it for speed.

        Args:
            placed: the scene at a configuration.
            frame: one frame.
            others: the other frames.
            frame_is_a: whether ``frame`` is the first part of the relation.
        """
        return [
            self.holds(placed, *((frame, other) if frame_is_a else (other, frame)))
            for other in others
        ]

    @property
    def meaning(self) -> Hashable:
        """What the relation says but for the names of the parts; equal for relations that mean the same."""
        own = tuple(
            (entry.name, getattr(self, entry.name))
            for entry in fields(self)
            if entry.name not in ("a", "b")
        )
        return (type(self), own)


@dataclass(frozen=True)
class Condition:
    """A relation between two single roles, by their places in the order of roles."""

    relation: Relation
    a: int
    b: int

    def renamed(self, place_of: Sequence[int]) -> Hashable:
        """Return what the condition says when every role is called by another's place."""
        a, b = place_of[self.a], place_of[self.b]
        pair = (min(a, b), max(a, b)) if self.relation.is_symmetric else (a, b)
        return (self.relation.meaning, pair)


@dataclass(frozen=True)
class Pattern:
    """A structure to look for: parts, and relations that hold between them. Immutable; compares by value.

    Args:
        parts: what it is made of; different parts are different frames.
        relations: how they stand to each other.

    Raises:
        SceneError: no parts, or a relation of a single part to itself.
        DuplicateNameError: two parts, or numbered ones, have one name.
        UnknownNameError: a relation names a part that is not there.
    """

    parts: tuple[Part, ...]
    relations: tuple[Relation, ...] = ()
    roles: tuple[str, ...] = field(init=False, repr=False, compare=False)
    conditions: tuple[Condition, ...] = field(init=False, repr=False, compare=False)
    order_conditions: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __init__(self, parts: Iterable[Part], relations: Iterable[Relation] = ()) -> None:
        parts, relations = tuple(parts), tuple(relations)
        if not parts:
            raise SceneError("a pattern needs a part")
        roles = tuple(role for part in parts for role in part.roles)
        for name, times in Counter(
            [*roles, *{part.name for part in parts if part.count > 1}]
        ).items():
            if times > 1:
                raise DuplicateNameError(
                    f"two parts of the pattern are called '{name}'", kind="part", name=name
                )
        conditions = tuple(
            Condition(relation, roles.index(a), roles.index(b))
            for relation in relations
            for a, b in _pairs_of(relation, {part.name: part for part in parts})
        )
        initialize(self, parts=parts, relations=relations, roles=roles, conditions=conditions)
        initialize(self, order_conditions=tuple(_order_conditions(self)))

    def part_of(self, role: str) -> Part:
        """Return the part that a role is one of.

        Raises:
            UnknownNameError: no such role.
        """
        for part in self.parts:
            if role in part.roles:
                return part
        raise UnknownNameError.of("role", role, self.roles)


def _frozen(value: object) -> object:
    """Return the value of an attribute as one that compares and hashes: lists as tuples, mappings as sorted pairs."""
    if isinstance(value, Mapping):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(item) for item in value)
    return value


def _range(what: str, values: Sequence[float]) -> Range:
    """Return (smallest, largest) as floats, or refuse them."""
    if len(values) != 2 or not float(values[0]) <= float(values[1]):  # a NaN is refused too
        raise SceneError(f"{what} is a range (smallest, largest), not {tuple(values)}")
    return float(values[0]), float(values[1])


def _pairs_of(relation: Relation, parts: dict[str, Part]) -> list[tuple[str, str]]:
    """Return the pairs of roles that a relation is about."""
    for name in (relation.a, relation.b):
        if name not in parts:
            raise UnknownNameError.of("part", name, parts, where=f"relation {relation}")
    a, b = parts[relation.a], parts[relation.b]
    if a is not b:
        return list(itertools.product(a.roles, b.roles))
    if a.count == 1:
        raise SceneError(
            f"relation {relation}: there is one '{a.name}', which cannot stand in a relation to"
            " itself"
        )
    return list(
        (itertools.combinations if relation.is_symmetric else itertools.permutations)(a.roles, 2)
    )


def _order_conditions(pattern: Pattern) -> Iterable[tuple[int, int]]:
    """Yield (i, j), where a symmetry that keeps all roles before i takes i to j: role i is the earlier frame."""
    parts = [pattern.part_of(role) for role in pattern.roles]
    looks = [
        (part.classes, part.shape, part.dimensions, part.attributes, part.test) for part in parts
    ]
    for i, j in itertools.combinations(range(len(looks)), 2):
        if looks[i] == looks[j] and _has_symmetry(pattern.conditions, looks, fixed=i, image=j):
            yield i, j


def _has_symmetry(
    conditions: Sequence[Condition], looks: Sequence[object], *, fixed: int, image: int
) -> bool:
    """Return whether a symmetry keeps the first ``fixed`` roles in place and takes the next to ``image``."""
    count = len(looks)
    said = {condition.renamed(range(count)) for condition in conditions}
    # conditions by the later of their roles
    complete_at: list[list[Condition]] = [[] for _ in range(count)]
    for condition in conditions:
        complete_at[max(condition.a, condition.b)].append(condition)

    def choices(images: list[int]) -> Iterator[int]:
        role = len(images)
        for other in (
            range(role, role + 1)
            if role < fixed
            else (image,)
            if role == fixed
            else range(fixed, count)
        ):
            if other in images or looks[other] != looks[role]:
                continue
            if all(condition.renamed([*images, other]) in said for condition in complete_at[role]):
                yield other

    return next(_backtrack(count, choices), None) is not None


def _backtrack(
    count: int, choices: Callable[[list[int]], Iterator[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield all sequences of ``count`` numbers, each of which is among the choices that those before it leave."""
    chosen: list[int] = []
    waiting = [choices(chosen)]
    while waiting:
        for choice in waiting[-1]:
            chosen.append(choice)
            break
        else:
            waiting.pop()
            del chosen[-1:]
            continue
        if len(chosen) == count:
            yield tuple(chosen)
            chosen.pop()
        else:
            waiting.append(choices(chosen))


Domains = dict[int, list[int]]  # by role: places of frames in scene.frame_names, ascending


def find_structure(
    scene: SceneGraph,
    pattern: Pattern,
    *,
    q: ArrayLike | None = None,
    up: ArrayLike = (0.0, 0.0, 1.0),
) -> tuple[Mapping[str, str], ...]:
    """Return every place in a scene where a pattern is met: a frame for each role, different roles different frames.

    Parts that the pattern does not tell apart are interchangeable: four equal legs make one match
    and not 24, and the legs are named in insertion order. What a chosen frame carries besides, and
    what other frames there are, does not matter. Matches are in the order of their frames, role by
    role, in insertion order.

    Args:
        scene: where to look.
        pattern: what to look for.
        q: configuration (n_joints,); may be omitted if the scene has no joints, or no relation
            needs places.
        up: (3,) direction against gravity, in the axes of the root, for relations such as
            ``Above``.

    Raises:
        ConfigurationError: q is missing where places are asked for, or has the wrong length.
        SceneError: if ``up`` is not a finite non-zero vector.
    """
    placed = PlacedScene(scene, q=q, up=up)
    if any(relation.is_geometric for relation in pattern.relations):
        placed.kinematics  # noqa: B018  # a missing configuration is refused before the search
    names = scene.frame_names
    by_part = {
        part.name: [i for i, name in enumerate(names) if part.accepts(scene, name)]
        for part in pattern.parts
    }
    domains = {role: by_part[pattern.part_of(name).name] for role, name in enumerate(pattern.roles)}
    found = sorted(_Search(placed, pattern, names).matches(domains))
    return tuple(
        {role: names[at] for role, at in zip(pattern.roles, match, strict=True)} for match in found
    )


class _Search:
    """One search: its queries of the scene, with cached answers of relations."""

    def __init__(self, placed: PlacedScene, pattern: Pattern, names: Sequence[str]) -> None:
        self._placed, self._names, self._count = placed, names, len(pattern.roles)
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
        # roles that are asked the same of the same frames share the answer
        done: dict[object, list[int]] = {}
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
        return order, tuple(
            (condition.relation.meaning, condition.a == role) for condition in asked
        )

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
                names, one, is_a = (
                    [self._names[f] for f in left],
                    self._names[frame],
                    condition.a == role,
                )
                holds = condition.relation.holds_with(self._placed, one, names, frame_is_a=is_a)
                left = list(itertools.compress(left, holds))
        return left
