"""Composition of domains from parts: PDDL fragments with their semantics.

A *part* is a class. Its attribute ``pddl`` declares types, predicates and actions, and its methods
define their meaning. Parts are mixins. :func:`compose_domain` derives one class from several parts,
whose methods call each other by ``super()``, and merges their fragments into one domain. A part
includes the parts from which it derives.

A fragment consists of the sections of a domain, ``(:types ...) (:predicates ...) (:action ...)``,
and of extensions, ``(:extend (pick place) :precondition (accessible ?r))``. An extension is added
to each of its actions that the domain has. ``:extend`` requires one such action, ``:extend-any``
none. Definitions may be repeated; two that differ are rejected. By convention ``?x`` is the object
that an action moves, ``?r`` its region and ``?arm`` the arm, which is omitted in a domain for one
arm.

Invariants: errors name the file and line of the fragment; equal parts yield equal domains.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any, ClassVar, NoReturn, cast

from tmkit.errors import SceneError, TaskError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.pddl import Domain, Fact, GroundAction, State
from tmkit.plans.values import Configuration
from tmkit.robots import movable_frames
from tmkit.robots.robot_files import Robot
from tmkit.tamp.domains.loading import PythonDomain
from tmkit.tamp.domains.semantics import DomainSemantics, pddl_name
from tmkit.tamp.domains.tabletop import pddl_names
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.fragments import MergedFragments, method_suffix

_MAX_GROUPS = 11
"""Largest number of groups into which a group of objects is divided."""

_PICK_METHODS = frozenset(
    {
        "do_pick",
        "do_place",
        "do_stack",
        "do_unstack",
        "do_move_home",
        "do_clean",
        "do_cook",
        "do_hand_over",
    }
)
"""Methods of actions that move objects only by picks, or not at all."""

_cached_pddl_name = lru_cache(4096)(pddl_name)


class DomainPart(DomainSemantics):
    """A part of a domain.

    Facts of a predicate ``P`` of its fragment are derived by a method ``facts_P(scene)`` that
    yields their arguments as tuples of frames or names of arms. If they depend on the
    configuration, the method is ``facts_P(scene, q)``, and its results are never cached. Otherwise
    the predicate is listed in ``place_predicates``, whose facts :meth:`place_facts` yields, or in
    ``stored_predicates``. An action ``A`` is carried out by a method ``do_A(context, *arguments)``
    that yields candidates. Its arguments are frames and, for ``?arm``, a
    :class:`tmkit.Manipulator`. In both names ``-`` becomes ``_``. :meth:`kinds` yields frames that
    are objects in PDDL.

    Attributes:
        pddl: PDDL fragment.
        needs: parts that this part requires.
        excludes: parts with which this part cannot be combined.
        place_predicates: predicates that depend on the place of a single object.
        words: names in the domain by names of types, predicates and actions in the fragments.
        has_arms: whether arms are objects in PDDL.
    """

    pddl: ClassVar[str] = ""
    needs: ClassVar[tuple[type[DomainPart], ...]] = ()
    excludes: ClassVar[tuple[type[DomainPart], ...]] = ()
    place_predicates: ClassVar[frozenset[str]] = frozenset()
    words: ClassVar[Mapping[str, str]] = {}
    has_arms: ClassVar[bool] = False
    domain: ClassVar[Domain]
    is_incremental = True
    _fragments: ClassVar[MergedFragments]

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self.arms = {pddl_name(self.robot.name): self.robot}

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield types of the fragments with the frames of their objects.

        The last type of a frame counts.
        """
        del scene
        yield from ()

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the objects of all parts by PDDL name, with their types.

        Raises:
            SceneError: if two of them have the same name in PDDL.
        """
        kinds = {frame: kind for kind, frames in self.kinds(scene) for frame in frames}
        entries = [*((name, "arm", arm.name) for name, arm in self.arms.items() if self.has_arms)]
        entries += [
            (_cached_pddl_name(frame), self.words.get(kind, kind), frame)
            for frame, kind in kinds.items()
        ]
        by_name: dict[str, tuple[str, str]] = {}
        for name, kind, frame in entries:
            if name in by_name:
                first_kind, first = by_name[name]
                raise SceneError(
                    f"{first_kind} '{first}' and {kind} '{frame}' have the same name in PDDL:"
                    f" '{name}'; rename one",
                    frame=frame,
                )
            by_name[name] = kind, frame
        return {name: kind for name, (kind, _) in by_name.items()}

    def frames(self, scene: SceneGraph) -> dict[str, str]:
        """Return the frames of all objects by PDDL name."""
        return pddl_names(
            dict.fromkeys(chain.from_iterable(frames for _, frames in self.kinds(scene)))
        )

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield the facts that follow from the place of an object.

        Args:
            scene: the scene; the facts are derived again when a result of its queries changes.
            object: frame of class ``movable``.

        Raises:
            SceneError: if no predicate describes the place of the object.
        """
        del scene, object
        yield from ()

    def false_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield the derived facts that are false because of the place of an object.

        Only one object may make a fact false: a place is not free, a hand is not empty.

        Args:
            scene: the scene.
            object: frame of class ``movable``.
        """
        del scene, object
        yield from ()

    def conflict_message(self, fact: Fact, first: str, second: str) -> str:
        """Return the message for two objects that make the same fact false.

        Args:
            fact: fact of :meth:`false_facts`.
            first: frame of one object.
            second: frame of the other object.
        """
        del self
        return f"'{first}' and '{second}' stand both on '{fact.arguments[-1]}'"

    def fact(self, predicate: str, *arguments: str) -> Fact:
        """Return a fact with the predicate's name in the domain.

        Args:
            predicate: predicate of a fragment.
            arguments: frames and names of arms. The argument of ``?arm`` is omitted in a domain for
                one arm.
        """
        if predicate in self._fragments.names_with_arm and not self.has_arms:
            arguments = arguments[1:]
        return _fact(self.words.get(predicate, predicate), arguments)

    @property
    def is_moved_by_picks(self) -> bool:
        """True if no action pushes objects, or moves mechanisms or the base of the robot.

        Only built-in actions count.
        """
        names = (
            method_suffix(self._fragments.action_names.get(action.name, action.name))
            for action in self.domain.actions
        )
        methods = (getattr(type(self), f"do_{name}", None) for name in names)
        package = f"{__package__}."
        return type(self).candidates.__module__.startswith(package) and all(
            method is not None
            and method.__name__ in _PICK_METHODS
            and method.__module__.startswith(package)
            for method in methods
        )

    def fragment_predicate(self, fact: Fact) -> str:
        """Return the predicate of a fragment from a fact of the domain."""
        return self._fragments.predicate_names.get(fact.predicate, fact.predicate)

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the facts that the parts derive from a scene.

        Raises:
            SceneError: if the domain's predicates cannot describe the scene.
        """
        place_facts, false_facts = _object_facts(scene, self, _root_group(scene))
        derived = [self.scene_facts(scene, objects)]
        for name in self._fragments.configuration_predicates:
            method = getattr(self, f"facts_{method_suffix(name)}")
            derived.append(self._facts(name, method(scene, q)))
        return State(place_facts.union(*derived) - false_facts)

    def scene_facts(self, scene: SceneGraph, objects: Mapping[str, str]) -> frozenset[Fact]:
        """Return the facts of predicates whose methods take no configuration.

        Args:
            scene: the scene.
            objects: PDDL objects of the planning run.
        """
        del objects
        return _scene_facts(scene, self)

    def _facts(self, predicate: str, argument_lists: Iterable[Sequence[str]]) -> frozenset[Fact]:
        return frozenset(self.fact(predicate, *arguments) for arguments in argument_lists)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action, best first, from the part that declares it."""
        name = self._fragments.action_names.get(action.name, action.name)
        frames = {**self.frames(context.scene), **self.arms}
        arguments = [frames[argument] for argument in action.arguments]
        if name in self._fragments.names_with_arm and not self.has_arms:
            arguments.insert(0, self.robot)
        method = getattr(self, f"do_{method_suffix(name)}", None)
        if method is None:
            raise TypeError(f"no part defines 'do_{method_suffix(name)}'")
        yield from method(context, *arguments)


def compose_domain(
    name: str, parts: Sequence[type[DomainPart]], *, words: Mapping[str, str] | None = None
) -> PythonDomain:
    """Combine parts into a domain, for :func:`tmkit.plan` and :func:`tmkit.tamp.validate_plan`.

    ``compose_domain("kitchen", [parts.Stacking, parts.Drawer, parts.Washing, parts.TwoArms])``

    A file ``semantics.py`` without ``domain.pddl`` beside it defines a domain by ``Semantics =
    compose_domain(...).semantics``.

    Args:
        name: name of the domain.
        parts: the parts. If two define the same method, that of the later one is called first.
        words: names in the domain by names of types, predicates and actions in the fragments.

    Raises:
        TaskError: if a part is given twice, lacks a part that it needs, or excludes another. Also
            if definitions differ, a predicate or an action has no semantics, or a fragment has an
            error. The message has the file and line.
    """
    unique: list[type[DomainPart]] = []
    for part in parts:
        if not (isinstance(part, type) and issubclass(part, DomainPart)):
            raise TaskError.at(
                f"domain '{name}'",
                f"{part!r:.60} is not a part: a class derived from tmkit.tamp.parts.DomainPart",
            )
        if part in unique:
            _raise_at_class(part, f"part '{part.__name__}' is given twice to domain '{name}'")
        unique.append(part)
    return _compose(name, tuple(unique), tuple((words or {}).items()))


@lru_cache(maxsize=32)
def _compose(
    name: str, parts: tuple[type[DomainPart], ...], words: tuple[tuple[str, str], ...]
) -> PythonDomain:
    """Return the domain of distinct parts; results are cached."""
    bases = [
        part
        for part in parts
        if not any(part is not other and issubclass(other, part) for other in parts)
    ]
    mixed = type("Semantics", tuple(reversed(bases)) or (DomainPart,), {"words": dict(words)})
    for part in mixed.__mro__:
        for missing in vars(part).get("needs", ()):
            if not issubclass(mixed, missing):
                names = ", ".join(other.__name__ for other in parts)
                reason = f"part '{part.__name__}' needs part '{missing.__name__}'"
                _raise_at_class(part, f"{reason}, which is not among {names}")
        for other in vars(part).get("excludes", ()):
            if issubclass(mixed, other):
                excluded = next((p for p in parts if issubclass(p, other)), other).__name__
                reason = f"parts '{part.__name__}' and '{excluded}' cannot be combined"
                _raise_at_class(part, reason)
    merged = MergedFragments(name, mixed)
    attributes = {
        "domain": merged.domain(),
        "_fragments": merged,
        "stored_predicates": merged.collect_names("stored_predicates"),
        "probabilistic_predicates": (
            merged.collect_names("probabilistic_predicates").intersection(merged.predicate_names)
        ),
    }
    semantics = cast(type[DomainPart], type("Semantics", (mixed,), attributes))
    merged.require_semantics(semantics, semantics.domain)
    return _ComposedDomain(semantics.domain, semantics, (name, parts, dict(words)))


@dataclass(frozen=True)
class _ComposedDomain(PythonDomain):
    """A composed domain, which is composed again when it is unpickled.

    Attributes:
        recipe: arguments of :func:`compose_domain`.
    """

    recipe: tuple[str, tuple[type[DomainPart], ...], Mapping[str, str]]

    def __reduce__(self) -> tuple[Any, ...]:
        name, parts, words = self.recipe
        return partial(compose_domain, words=words), (name, parts)


@dataclass(frozen=True, eq=False)
class _ObjectGroup:
    """Objects divided into groups, whose facts are cached separately.

    Attributes:
        frames: frames of the objects.
    """

    frames: tuple[str, ...]

    @cached_property
    def groups(self) -> tuple[_ObjectGroup, ...]:
        size = -(-len(self.frames) // _MAX_GROUPS) or 1
        return tuple(
            _ObjectGroup(self.frames[i : i + size]) for i in range(0, len(self.frames), size)
        )


# Equal frames yield the same group object, which is an argument of cached functions.
_object_group = lru_cache(maxsize=256)(_ObjectGroup)


@incremental
def _root_group(scene: SceneGraph) -> _ObjectGroup:
    return _object_group(movable_frames(scene))


@incremental
def _object_facts(
    scene: SceneGraph, part: DomainPart, objects: _ObjectGroup
) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """Return the facts that follow from the places of objects, and the facts that these make false.

    Raises:
        SceneError: if two objects make the same fact false.
    """
    if len(objects.frames) == 1:
        (object,) = objects.frames
        false_facts = frozenset(part.false_facts(scene, object))
        return frozenset(part.place_facts(scene, object)), false_facts
    groups = [_object_facts(scene, part, group) for group in objects.groups]
    place_facts = frozenset[Fact]().union(*[group for group, _ in groups])
    false_facts = frozenset[Fact]().union(*[group for _, group in groups])
    if len(false_facts) < sum([len(group) for _, group in groups]):
        objects_by_fact: dict[Fact, str] = {}
        for object in objects.frames:
            for fact in part.false_facts(scene, object):
                first = objects_by_fact.setdefault(fact, object)
                if first != object:
                    raise SceneError(part.conflict_message(fact, first, object), frame=object)
    return place_facts, false_facts


@incremental
def _scene_facts(scene: SceneGraph, part: DomainPart) -> frozenset[Fact]:
    return frozenset[Fact]().union(
        *(
            _predicate_facts(scene, part, predicate)
            for predicate in part._fragments.scene_predicates
        )
    )


@incremental
def _predicate_facts(scene: SceneGraph, part: DomainPart, predicate: str) -> frozenset[Fact]:
    return part._facts(predicate, getattr(part, f"facts_{method_suffix(predicate)}")(scene))


@lru_cache(maxsize=16384)
def _fact(predicate: str, arguments: tuple[str, ...]) -> Fact:
    return Fact(predicate, tuple(map(_cached_pddl_name, arguments)))


def _raise_at_class(part: type, reason: str) -> NoReturn:
    """Raise an error at the class statement of a part."""
    try:
        raise TaskError.at(
            inspect.getsourcefile(part), reason, line=inspect.getsourcelines(part)[1]
        )
    except (OSError, TypeError):
        raise TaskError.at(f"part '{part.__name__}'", reason) from None
