"""Domains from parts: fragments of PDDL with their semantics, combined into one domain.

A *part* is a class: its attribute ``pddl`` declares types, predicates and actions, its methods give
them their meaning. Parts are mixins. :func:`compose_domain` makes one class of several, whose
methods call each other by ``super()``, and one domain of their fragments. A part that derives from
another brings it along.

A fragment consists of the sections of a domain, ``(:types ...) (:predicates ...) (:action ...)``,
and of extensions, ``(:extend (pick place) :precondition (accessible ?r))``: what is written there
is added to each of these actions that the domain has; ``:extend-any`` also where it has none. The
same definition twice does no harm; two that differ are refused. By convention ``?x`` is the object
that an action moves, ``?r`` its region and ``?arm`` the arm, which is omitted throughout in a
domain for one arm.

Invariants: errors name the file and line of the fragment; equal parts give equal domains.
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
from tmkit.robots import Manipulator, movable_frames
from tmkit.tamp.domains.loading import PythonDomain
from tmkit.tamp.domains.semantics import DomainSemantics, pddl_name
from tmkit.tamp.domains.tabletop import pddl_names
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.fragments import MergedFragments, spelled

_GROUPS = 11  # of objects whose facts are kept together, and of groups of these
_PICKING = frozenset(
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
"""Methods of actions that move objects only by picks, if at all."""

_WORDS_SHOWN = lru_cache(4096)(pddl_name)


class DomainPart(DomainSemantics):
    """A part of a domain.

    A predicate ``P`` of its fragment is derived by a method ``facts_P(scene)`` that yields its
    arguments as tuples of frames or names of arms. The method is ``facts_P(scene, q)`` where it
    depends on the configuration, and so is never kept. Otherwise the predicate is named in
    ``place_predicates``, of which :meth:`place_facts` yields the facts, or in
    ``stored_predicates``. An action ``A`` is carried out by a method ``do_A(context, *arguments)``
    that yields candidates, given frames and, for ``?arm``, a :class:`tmkit.Manipulator`; ``-``
    becomes ``_`` in both. :meth:`kinds` yields frames that are objects in PDDL.

    Attributes:
        pddl: the fragment.
        needs: parts without which this one makes no sense.
        excludes: parts with which it makes none.
        place_predicates: predicates that follow from where a single object is.
        words: other words in the domain for types, predicates and actions of the fragments.
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
    _declared: ClassVar[MergedFragments]

    def __init__(self, manipulator: Manipulator) -> None:
        super().__init__(manipulator)
        self.arms = {pddl_name(manipulator.name): manipulator}

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield types of the fragments with the frames that are objects of them; the last one counts for a frame."""
        del scene
        yield from ()

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the objects of all parts by PDDL name.

        Raises:
            SceneError: two of them have the same name in PDDL.
        """
        kinds = {frame: kind for kind, frames in self.kinds(scene) for frame in frames}
        named = [*((name, "arm", arm.name) for name, arm in self.arms.items() if self.has_arms)]
        named += [
            (_WORDS_SHOWN(frame), self.words.get(kind, kind), frame)
            for frame, kind in kinds.items()
        ]
        found: dict[str, tuple[str, str]] = {}
        for name, kind, frame in named:
            if name in found:
                what = (
                    f"{found[name][0]} '{found[name][1]}' and {kind} '{frame}' have the same name"
                    f" in PDDL: '{name}'"
                )
                raise SceneError(f"{what}; rename one", frame=frame)
            found[name] = kind, frame
        return {name: kind for name, (kind, _) in found.items()}

    def frames(self, scene: SceneGraph) -> dict[str, str]:
        """Return the frames of all objects by PDDL name."""
        return pddl_names(
            dict.fromkeys(chain.from_iterable(frames for _, frames in self.kinds(scene)))
        )

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield the facts that follow from where an object is.

        Args:
            scene: the scene; what is read of it decides when these facts are derived again.
            object: frame of class ``movable``.

        Raises:
            SceneError: there are no words for where it is.
        """
        del scene, object
        yield from ()

    def taken_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Yield what does not hold because of where an object is, of all that parts derive.

        Only one object may take a fact: a place is free, a hand is empty.

        Args:
            scene: the scene.
            object: frame of class ``movable``.
        """
        del scene, object
        yield from ()

    def taken_twice(self, fact: Fact, first: str, second: str) -> str:
        """Return the message for two objects that take one fact.

        Args:
            fact: the fact.
            first: frame of one object.
            second: frame of the other.
        """
        del self
        return f"'{first}' and '{second}' stand both on '{fact.arguments[-1]}'"

    def fact(self, predicate: str, *arguments: str) -> Fact:
        """Return a fact in the words of the domain.

        Args:
            predicate: a predicate of a fragment.
            arguments: frames and names of arms; that of ``?arm`` is omitted in a domain for one
                arm.
        """
        named = (
            arguments[1:] if predicate in self._declared.armed and not self.has_arms else arguments
        )
        return _fact(self.words.get(predicate, predicate), named)

    @property
    def is_moved_by_picks(self) -> bool:
        """Whether all actions are built-in ones that neither push objects nor move mechanisms or the robot's base."""
        names = (
            spelled(self._declared.own_actions.get(action.name, action.name))
            for action in self.domain.actions
        )
        methods = (getattr(type(self), f"do_{name}", None) for name in names)
        own = f"{__package__}."
        return type(self).candidates.__module__.startswith(own) and all(
            method is not None and method.__name__ in _PICKING and method.__module__.startswith(own)
            for method in methods
        )

    def word(self, fact: Fact) -> str:
        """Return the predicate of a fragment that a fact of the domain is about."""
        return self._declared.own_predicates.get(fact.predicate, fact.predicate)

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the facts that the parts derive from a scene.

        Raises:
            SceneError: the scene cannot be described in the domain's predicates.
        """
        placed, taken = _placed(scene, self, _objects(scene))
        found = [self.kept_facts(scene, objects)]
        found += [
            self._facts(name, getattr(self, f"facts_{spelled(name)}")(scene, q))
            for name in self._declared.fresh
        ]
        return State(placed.union(*found) - taken)

    def kept_facts(self, scene: SceneGraph, objects: Mapping[str, str]) -> frozenset[Fact]:
        """Return the facts of predicates whose methods take no configuration.

        Args:
            scene: the scene.
            objects: the PDDL objects of the planning run.
        """
        del objects
        return _derived(scene, self)

    def _facts(self, predicate: str, derived: Iterable[Sequence[str]]) -> frozenset[Fact]:
        return frozenset(self.fact(predicate, *arguments) for arguments in derived)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, best first: those of the part that declares it."""
        name = self._declared.own_actions.get(action.name, action.name)
        frames = {**self.frames(context.scene), **self.arms}
        arguments = [frames[argument] for argument in action.arguments]
        if name in self._declared.armed and not self.has_arms:
            arguments.insert(0, self.manipulator)
        if (method := getattr(self, f"do_{spelled(name)}", None)) is None:
            raise TypeError(f"no part defines 'do_{spelled(name)}'")
        yield from method(context, *arguments)


def compose_domain(
    name: str, parts: Sequence[type[DomainPart]], *, words: Mapping[str, str] | None = None
) -> PythonDomain:
    """Combine parts into a domain, for :func:`tmkit.plan` and :func:`tmkit.tamp.validate_plan`.

    ``compose_domain("kitchen", [parts.Stacking, parts.Drawer, parts.Washing, parts.TwoArms])``

    In a file ``semantics.py`` without ``domain.pddl`` beside it, ``Semantics =
    compose_domain(...).semantics`` is a domain.

    Args:
        name: its name.
        parts: the parts; where two define the same method, the later one's is called first.
        words: other words for types, predicates and actions, by those of the fragments.

    Raises:
        TaskError: a part that is given twice, one that another needs and that is missing, two that
            do not go together. Or there are definitions that differ, a predicate or an action
            without semantics, or an error in a fragment. With its file and line.
    """
    given: list[type[DomainPart]] = []
    for part in parts:
        if not (isinstance(part, type) and issubclass(part, DomainPart)):
            raise TaskError.at(
                f"domain '{name}'",
                f"{part!r:.60} is no part: a class derived from tmkit.tamp.parts.DomainPart",
            )
        if part in given:
            _refuse(part, f"part '{part.__name__}' is given twice to domain '{name}'")
        given.append(part)
    return _composed(name, tuple(given), tuple((words or {}).items()))


@lru_cache(maxsize=32)
def _composed(
    name: str, given: tuple[type[DomainPart], ...], words: tuple[tuple[str, str], ...]
) -> PythonDomain:
    """Return what different parts make together."""
    bases = [
        part
        for part in given
        if not any(part is not other and issubclass(other, part) for other in given)
    ]
    mixed = type("Semantics", tuple(reversed(bases)) or (DomainPart,), {"words": dict(words)})
    for part in mixed.__mro__:
        for missing in vars(part).get("needs", ()):
            if not issubclass(mixed, missing):
                known = ", ".join(one.__name__ for one in given)
                _refuse(
                    part,
                    f"part '{part.__name__}' needs part '{missing.__name__}', which is not among"
                    f" {known}",
                )
        for other in vars(part).get("excludes", ()):
            if issubclass(mixed, other):
                named = next((one for one in given if issubclass(one, other)), other).__name__
                _refuse(part, f"parts '{part.__name__}' and '{named}' do not go together")
    merged = MergedFragments(name, mixed)
    attributes = {
        "domain": merged.domain(),
        "_declared": merged,
        "stored_predicates": merged.named("stored_predicates"),
        "probabilistic_predicates": (
            merged.named("probabilistic_predicates").intersection(merged.own_predicates)
        ),
    }
    semantics = cast(type[DomainPart], type("Semantics", (mixed,), attributes))
    merged.require_semantics(semantics, semantics.domain)
    return _Composed(semantics.domain, semantics, (name, given, dict(words)))


@dataclass(frozen=True)
class _Composed(PythonDomain):
    """A domain that other processes compose again."""

    made_of: tuple[str, tuple[type[DomainPart], ...], Mapping[str, str]]

    def __reduce__(self) -> tuple[Any, ...]:
        name, parts, words = self.made_of
        return partial(compose_domain, words=words), (name, parts)


@dataclass(frozen=True, eq=False)
class _Objects:
    """Objects in groups of groups, each of which is kept by itself."""

    frames: tuple[str, ...]

    @cached_property
    def groups(self) -> tuple[_Objects, ...]:
        size = -(-len(self.frames) // _GROUPS) or 1
        return tuple(_Objects(self.frames[i : i + size]) for i in range(0, len(self.frames), size))


# the same objects are the same groups, also after other changes
_grouped = lru_cache(maxsize=256)(_Objects)


@incremental
def _objects(scene: SceneGraph) -> _Objects:
    return _grouped(movable_frames(scene))


@incremental
def _placed(
    scene: SceneGraph, part: DomainPart, objects: _Objects
) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """Return what follows from where objects are, and what they take."""
    if len(objects.frames) == 1:
        (object,) = objects.frames
        return frozenset(part.place_facts(scene, object)), frozenset(
            part.taken_facts(scene, object)
        )
    groups = [_placed(scene, part, group) for group in objects.groups]
    none = frozenset[Fact]()
    taken = none.union(*[group for _, group in groups])
    if len(taken) < sum([len(group) for _, group in groups]):
        takers: dict[Fact, str] = {}
        for object in objects.frames:
            for fact in part.taken_facts(scene, object):
                if (first := takers.setdefault(fact, object)) != object:
                    raise SceneError(part.taken_twice(fact, first, object), frame=object)
    return none.union(*[group for group, _ in groups]), taken


@incremental
def _derived(scene: SceneGraph, part: DomainPart) -> frozenset[Fact]:
    return frozenset[Fact]().union(
        *(_derived_of(scene, part, predicate) for predicate in part._declared.kept)
    )


@incremental
def _derived_of(scene: SceneGraph, part: DomainPart, predicate: str) -> frozenset[Fact]:
    return part._facts(predicate, getattr(part, f"facts_{spelled(predicate)}")(scene))


@lru_cache(maxsize=16384)
def _fact(word: str, named: tuple[str, ...]) -> Fact:
    return Fact(word, tuple(map(_WORDS_SHOWN, named)))


def _refuse(part: type, reason: str) -> NoReturn:
    """Raise an error at the class statement of a part."""
    try:
        raise TaskError.at(
            inspect.getsourcefile(part), reason, line=inspect.getsourcelines(part)[1]
        )
    except (OSError, TypeError):
        raise TaskError.at(f"part '{part.__name__}'", reason) from None
