"""Patterns of parts and relations, and the search for their matches in a scene.

A :class:`Part` with ``count=4`` stands for four parts with one description, named ``leg_1`` to
``leg_4`` in matches. A :class:`Pattern` expands its parts once into single parts (*roles*) and
conditions between two roles.

**Symmetries.** A permutation of roles that preserves every description and every condition is a
*symmetry* of the pattern. Applied to a match, it gives a renaming of the same match. Descriptions
compare by value, and ``is_symmetric`` marks relations that are equal in both directions.

The search needs only *order conditions* of the symmetries: under (i, j), role i has the earlier
frame. Consider the roles in order. Each role i has an order condition with every role to which a
symmetry can move it that fixes all roles before i. Exactly one renaming of each match satisfies all
order conditions (Grochow and Kellis, "Network motif discovery using subgraph enumeration and
symmetry-breaking", RECOMB 2007). The symmetries are never listed: eight equal parts have 40320.

**Search.** The initial *domain* of a role is the set of frames that its part accepts. Assigning a
frame to a role narrows the domains of the remaining roles, by conditions and order conditions. An
empty domain rejects the assignment. The role with the smallest domain is assigned next (forward
checking: Haralick and Elliott, "Increasing tree search efficiency for constraint satisfaction
problems", Artificial Intelligence 14, 1980).

With n frames and k roles there are n k tests of parts, then at most n^k assignments, each of which
narrows k domains of at most n frames. If the relations of a role leave d frames once a neighbour is
assigned, there are about n d^(k - 1) assignments. No function recurses.
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

Domains = dict[int, list[int]]
"""Candidate frames of each role: indices into ``scene.frame_names``, ascending."""

_DIMENSIONS = {
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
"""Number of dimensions by kind of shape."""


@dataclass(frozen=True)
class Part:
    """Part of a structure: description of the frames that may match it.

    Args:
        name: name in matches and relations.
        classes: classes that the frame must have.
        shape: kind of shape that the frame must have, such as ``box``. By default, any or none.
        dimensions: (smallest, largest) value of each dimension of that shape [m], in the shape's
            order. A box has x, y, z. A round shape has a radius, and a length unless it is a
            sphere. A mesh has none. A box fits in any order of its axes. One fitting shape
            suffices.
        attributes: attributes that the frame must have, with these values.
        test: additional condition on the scene and the name of a frame.
        count: number of such parts. Several are named ``leg_1``, ``leg_2`` and so on.

    Raises:
        SceneError: if the kind of shape is unknown, dimensions come without a shape or in another
            number, a range is reversed, or the count is below 1.
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
            raise SceneError(f"classes of part '{name}' must be a list, such as ['{classes}']")
        ranges = tuple(_range(f"a dimension of part '{name}'", entry) for entry in dimensions)
        if shape is not None and shape not in _DIMENSIONS:
            raise SceneError(
                f"part '{name}': unknown kind of shape '{shape}'; expected one of"
                f" {', '.join(_DIMENSIONS)}"
            )
        if ranges and shape is None:
            raise SceneError(f"part '{name}' has dimensions, so it needs a kind of shape")
        if ranges and shape is not None and len(ranges) != _DIMENSIONS[shape]:
            raise SceneError(
                f"part '{name}': a {shape} has {_DIMENSIONS[shape]} dimensions, not {len(ranges)}"
            )
        if count < 1:
            raise SceneError(f"part '{name}': count must be at least 1, not {count}")
        initialize(
            self,
            name=name,
            classes=tuple(sorted(set(classes))),
            shape=shape,
            dimensions=ranges,
            attributes=_freeze(dict(attributes)),
            test=test,
            count=count,
        )

    @property
    def roles(self) -> tuple[str, ...]:
        """Names in matches: the name of the part, or numbered names if there are several."""
        if self.count == 1:
            return (self.name,)
        return tuple(f"{self.name}_{number}" for number in range(1, self.count + 1))

    def accepts(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether a frame matches this part, regardless of relations.

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
            values = scene.attributes(frame)
            for key, value in self.attributes:
                if key not in values or _freeze(values[key]) != value:
                    return False
        return self.test is None or self.test(scene, frame)

    def _fits(self, shape: Shape) -> bool:
        """Return whether a shape has the kind and the dimensions of this part."""
        if shape.kind != self.shape:
            return False
        if not self.dimensions:
            return True
        orders: Iterable[tuple[float, ...]] = [tuple(shape.dimensions)]
        if shape.kind == "box":
            orders = itertools.permutations(shape.dimensions)
        for order in orders:
            sizes = zip(order, self.dimensions, strict=True)
            if all(low <= size <= high for size, (low, high) in sizes):
                return True
        return False


@dataclass(frozen=True)
class Relation(ABC):
    """Relation between two parts. A custom relation is a frozen dataclass that implements `holds`.

    If a part has several roles, the relation must hold for each role, or between each two.

    Args:
        a: name of one part.
        b: name of the other part.
    """

    a: str
    b: str

    @property
    def is_symmetric(self) -> bool:
        """True if the relation of ``b`` to ``a`` is the same as that of ``a`` to ``b``."""
        return False

    @property
    def is_geometric(self) -> bool:
        """True if the relation depends on poses, and so on the configuration of the joints."""
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
        """Return whether the relation holds between ``frame`` and each of several frames.

        Override this method for speed.

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
        """Type and parameters of the relation without part names; equal if equivalent."""
        parameters = tuple(
            (entry.name, getattr(self, entry.name))
            for entry in fields(self)
            if entry.name not in ("a", "b")
        )
        return (type(self), parameters)


@dataclass(frozen=True)
class Condition:
    """Relation between two roles, given by their indices."""

    relation: Relation
    a: int
    b: int

    def key(self, permutation: Sequence[int] | Mapping[int, int]) -> Hashable:
        """Return a key that is equal for equivalent conditions, after a permutation of roles."""
        a, b = permutation[self.a], permutation[self.b]
        pair = (min(a, b), max(a, b)) if self.relation.is_symmetric else (a, b)
        return (self.relation.meaning, pair)


@dataclass(frozen=True)
class Pattern:
    """Structure to find: parts, and relations between them. Immutable; compares by value.

    Args:
        parts: parts of the structure; different parts match different frames.
        relations: relations between the parts.

    Raises:
        SceneError: if there are no parts, or a single part has a relation to itself.
        DuplicateNameError: if two parts or roles have the same name.
        UnknownNameError: if a relation names an unknown part.
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
        names = Counter([*roles, *{part.name for part in parts if part.count > 1}])
        for name, count in names.items():
            if count > 1:
                raise DuplicateNameError(
                    f"two parts of the pattern are called '{name}'", kind="part", name=name
                )
        conditions = tuple(
            Condition(relation, roles.index(a), roles.index(b))
            for relation in relations
            for a, b in _role_pairs(relation, {part.name: part for part in parts})
        )
        initialize(self, parts=parts, relations=relations, roles=roles, conditions=conditions)
        initialize(self, order_conditions=tuple(_order_conditions(self)))

    def part_of(self, role: str) -> Part:
        """Return the part of a role.

        Raises:
            UnknownNameError: if the role is unknown.
        """
        for part in self.parts:
            if role in part.roles:
                return part
        raise UnknownNameError.of("role", role, self.roles)


def _freeze(value: object) -> object:
    """Return an attribute's value in hashable form: lists as tuples, mappings as sorted pairs."""
    if isinstance(value, Mapping):
        return tuple(sorted((key, _freeze(item)) for key, item in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_freeze(item) for item in value)
    return value


def _range(what: str, values: Sequence[float]) -> Range:
    """Return (smallest, largest) as floats, or raise SceneError."""
    if len(values) != 2 or not float(values[0]) <= float(values[1]):  # also true for NaN
        raise SceneError(f"{what} must be a range (smallest, largest), not {tuple(values)}")
    return float(values[0]), float(values[1])


def _role_pairs(relation: Relation, parts: dict[str, Part]) -> list[tuple[str, str]]:
    """Return the pairs of roles to which a relation applies."""
    for name in (relation.a, relation.b):
        if name not in parts:
            raise UnknownNameError.of("part", name, parts, where=f"relation {relation}")
    a, b = parts[relation.a], parts[relation.b]
    if a is not b:
        return list(itertools.product(a.roles, b.roles))
    if a.count == 1:
        raise SceneError(
            f"relation {relation}: there is one '{a.name}', which cannot have a relation to itself"
        )
    if relation.is_symmetric:
        return list(itertools.combinations(a.roles, 2))
    return list(itertools.permutations(a.roles, 2))


def _order_conditions(pattern: Pattern) -> Iterable[tuple[int, int]]:
    """Yield (i, j) for each symmetry that fixes all roles before i and maps i to j."""
    parts = [pattern.part_of(role) for role in pattern.roles]
    descriptions = [
        (part.classes, part.shape, part.dimensions, part.attributes, part.test) for part in parts
    ]
    for i, j in itertools.combinations(range(len(descriptions)), 2):
        if descriptions[i] == descriptions[j] and (
            _is_swap_symmetric(pattern.conditions, len(parts), i, j)
            or _has_symmetry(pattern.conditions, descriptions, fixed=i, image=j)
        ):
            yield i, j


def _is_swap_symmetric(conditions: Sequence[Condition], count: int, i: int, j: int) -> bool:
    """Return whether the conditions stay the same if two roles are swapped.

    This is the only symmetry between the legs of a table, and faster than a search.
    """
    swap = [*range(count)]
    swap[i], swap[j] = j, i
    touching = [
        condition for condition in conditions if not {i, j}.isdisjoint((condition.a, condition.b))
    ]
    keys = {condition.key(range(count)) for condition in touching}
    return all(condition.key(swap) in keys for condition in touching)


def _has_symmetry(
    conditions: Sequence[Condition], descriptions: Sequence[object], *, fixed: int, image: int
) -> bool:
    """Return whether a symmetry fixes the first ``fixed`` roles and maps the next to ``image``."""
    count = len(descriptions)
    keys = {condition.key(range(count)) for condition in conditions}
    by_last_role: list[list[Condition]] = [[] for _ in range(count)]
    for condition in conditions:
        by_last_role[max(condition.a, condition.b)].append(condition)

    def choices(images: list[int]) -> Iterator[int]:
        role = len(images)
        if role < fixed:
            candidates: Iterable[int] = (role,)
        elif role == fixed:
            candidates = (image,)
        else:
            candidates = range(fixed, count)
        for candidate in candidates:
            if candidate in images or descriptions[candidate] != descriptions[role]:
                continue
            permutation = [*images, candidate]
            if all(condition.key(permutation) in keys for condition in by_last_role[role]):
                yield candidate

    return next(_backtrack(count, choices), None) is not None


def _backtrack(
    count: int, choices: Callable[[list[int]], Iterator[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield all sequences of ``count`` numbers by depth-first search.

    Args:
        count: length of the sequences.
        choices: function that yields the possible next numbers of a sequence.
    """
    sequence: list[int] = []
    stack = [choices(sequence)]
    while stack:
        for choice in stack[-1]:
            sequence.append(choice)
            break
        else:
            stack.pop()
            del sequence[-1:]
            continue
        if len(sequence) == count:
            yield tuple(sequence)
            sequence.pop()
        else:
            stack.append(choices(sequence))


def find_structure(
    scene: SceneGraph,
    pattern: Pattern,
    *,
    q: ArrayLike | None = None,
    up: ArrayLike = (0.0, 0.0, 1.0),
) -> tuple[Mapping[str, str], ...]:
    """Return all matches of a pattern in a scene: the frame of each role, by role.

    Different roles have different frames. Interchangeable parts give one match: four equal legs
    make one match, not 24, with the legs in insertion order. Other shapes, classes and frames have
    no effect. Matches are sorted by their frames, role by role, in insertion order.

    Args:
        scene: the scene to search.
        pattern: the pattern to find.
        q: (n_joints,) configuration; optional if the scene has no joints, or no relation is
            geometric.
        up: (3,) direction against gravity, in the axes of the root, for relations such as
            ``Above``.

    Raises:
        ConfigurationError: if q is required and missing, or has the wrong length.
        SceneError: if ``up`` is not a finite non-zero vector.
    """
    placed = PlacedScene(scene, q=q, up=up)
    if any(relation.is_geometric for relation in pattern.relations):
        placed.kinematics  # noqa: B018  # raise for a missing configuration before the search
    names = scene.frame_names
    by_part = {
        part.name: [i for i, name in enumerate(names) if part.accepts(scene, name)]
        for part in pattern.parts
    }
    domains = {role: by_part[pattern.part_of(name).name] for role, name in enumerate(pattern.roles)}
    matches = sorted(_Search(placed, pattern, names).matches(domains))
    return tuple(
        {role: names[index] for role, index in zip(pattern.roles, match, strict=True)}
        for match in matches
    )


class _Search:
    """Search for the matches of one pattern, by forward checking."""

    def __init__(self, placed: PlacedScene, pattern: Pattern, names: Sequence[str]) -> None:
        self._placed, self._names, self._count = placed, names, len(pattern.roles)
        self._order = frozenset(pattern.order_conditions)
        self._conditions: dict[tuple[int, int], list[Condition]] = {}
        for condition in pattern.conditions:
            for pair in ((condition.a, condition.b), (condition.b, condition.a)):
                self._conditions.setdefault(pair, []).append(condition)
        roles = range(self._count)
        self._filter_keys = {
            pair: self._filter_key(*pair) for pair in itertools.permutations(roles, 2)
        }

    def matches(self, domains: Domains) -> Iterator[tuple[int, ...]]:
        """Yield the frame indices of each match, in the order of roles."""
        if not all(domains.values()):
            return
        assignment: dict[int, int] = {}
        stack = [self._next_level(domains)]
        while stack:
            role, frames, domains = stack[-1]
            frame = next(frames, None)
            if frame is None:
                stack.pop()
                assignment.pop(role, None)
                continue
            assignment[role] = frame
            if len(assignment) == self._count:
                yield tuple(assignment[r] for r in range(self._count))
            elif (narrow_domains := self._narrow(domains, role, frame)) is not None:
                stack.append(self._next_level(narrow_domains))

    def _next_level(self, domains: Domains) -> tuple[int, Iterator[int], Domains]:
        """Return the role to assign next, its candidate frames, and the domains."""
        role = min(domains, key=lambda r: (len(domains[r]), r))
        return role, iter(domains[role]), domains

    def _narrow(self, domains: Domains, role: int, frame: int) -> Domains | None:
        """Return the domains of the other roles once a role has a frame; None if one is empty."""
        result: Domains = {}
        # Roles with equal conditions and the same domain share the filtered domain.
        cache: dict[object, list[int]] = {}
        for other in sorted(domains, key=lambda r: (len(domains[r]), r)):
            if other != role:
                key = (self._filter_keys[role, other], id(domains[other]))
                if key not in cache:
                    cache[key] = self._filter_domain(role, frame, other, domains[other])
                if not cache[key]:
                    return None
                result[other] = cache[key]
        return result

    def _filter_key(self, role: int, other: int) -> Hashable:
        """Return a key that is equal for pairs of roles with equal conditions."""
        order = ((role, other) in self._order) - ((other, role) in self._order)
        conditions = self._conditions.get((role, other), ())
        return order, tuple(
            (condition.relation.meaning, condition.a == role) for condition in conditions
        )

    def _filter_domain(self, role: int, frame: int, other: int, domain: list[int]) -> list[int]:
        """Return the frames of a domain that are possible for ``other`` once a role has a frame."""
        if (role, other) in self._order:
            candidates = domain[bisect_right(domain, frame) :]
        elif (other, role) in self._order:
            candidates = domain[: bisect_left(domain, frame)]
        else:
            candidates = [candidate for candidate in domain if candidate != frame]
        for condition in self._conditions.get((role, other), ()):
            if candidates:
                holds = condition.relation.holds_with(
                    self._placed,
                    self._names[frame],
                    [self._names[candidate] for candidate in candidates],
                    frame_is_a=condition.a == role,
                )
                candidates = list(itertools.compress(candidates, holds))
        return candidates
