"""Domains from parts: fragments of PDDL with their semantics, combined into one domain.

A *part* is a class: its attribute ``pddl`` declares types, predicates and actions, its methods give them their meaning.
Parts are mixins. :func:`compose_domain` makes one class of several, whose methods call each other by ``super()``, and
one domain of their fragments. A part that derives from another brings it along.

A fragment consists of the sections of a domain, ``(:types ...) (:predicates ...) (:action ...)``, and of extensions,
``(:extend (pick place) :precondition (accessible ?r))``: what is written there is added to each of these actions that
the domain has; ``:extend-any`` also where it has none. The same definition twice does no harm; two that differ are
refused. By convention ``?x`` is the object that an action moves, ``?r`` its region and ``?arm`` the arm, which is
omitted throughout in a domain for one arm.

Invariants: errors name the file and line of the fragment; equal parts give equal domains.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import chain, pairwise
from typing import Any, ClassVar, NoReturn, cast

from tmkit.errors import SceneError, TaskError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.pddl import Add, Delete, Domain, Fact, GroundAction, State, parse_domain
from tmkit.pddl.formulas import simple_effects
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.tamp.domains.loading import PythonDomain
from tmkit.tamp.domains.semantics import DomainSemantics, pddl_name
from tmkit.tamp.domains.tabletop import pddl_names
from tmkit.tamp.domains.traced_scene import incremental

_ARM = "?arm"
_GROUPS = 11  # of objects whose facts are kept together, and of groups of these
_KEYS = (":parameters", ":precondition", ":effect")
_LISTS = (":requirements", ":types", ":predicates")
_WORDS_SHOWN = lru_cache(4096)(pddl_name)


class DomainPart(DomainSemantics):
    """A part of a domain.

    A predicate ``P`` of its fragment is derived by a method ``facts_P(scene)`` that yields its arguments as tuples of
    frames or names of arms; ``facts_P(scene, q)`` where it depends on the configuration, and so is never kept. Or it is
    named in ``place_predicates``, of which :meth:`place_facts` yields the facts, or in ``stored_predicates``. An action
    ``A`` is carried out by a method ``do_A(context, *arguments)`` that yields candidates, given frames and, for
    ``?arm``, a :class:`tmkit.Manipulator`; ``-`` becomes ``_`` in both. :meth:`kinds` yields frames that are objects in
    PDDL.

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
    _declared: ClassVar[_Merged]

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
        named += [(_WORDS_SHOWN(frame), self.words.get(kind, kind), frame) for frame, kind in kinds.items()]
        found: dict[str, tuple[str, str]] = {}
        for name, kind, frame in named:
            if name in found:
                what = f"{found[name][0]} '{found[name][1]}' and {kind} '{frame}' have the same name in PDDL: '{name}'"
                raise SceneError(f"{what}; rename one", frame=frame)
            found[name] = kind, frame
        return {name: kind for name, (kind, _) in found.items()}

    def frames(self, scene: SceneGraph) -> dict[str, str]:
        """Return the frames of all objects by PDDL name."""
        return pddl_names(dict.fromkeys(chain.from_iterable(frames for _, frames in self.kinds(scene))))

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
            arguments: frames and names of arms; that of ``?arm`` is omitted in a domain for one arm.
        """
        named = arguments[1:] if predicate in self._declared.armed and not self.has_arms else arguments
        return _fact(self.words.get(predicate, predicate), named)

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
            self._facts(name, getattr(self, f"facts_{_spelled(name)}")(scene, q)) for name in self._declared.fresh
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
        if (method := getattr(self, f"do_{_spelled(name)}", None)) is None:
            raise TypeError(f"no part defines 'do_{_spelled(name)}'")
        yield from method(context, *arguments)


def compose_domain(
    name: str, parts: Sequence[type[DomainPart]], *, words: Mapping[str, str] | None = None
) -> PythonDomain:
    """Combine parts into a domain, for :func:`tmkit.plan` and :func:`tmkit.tamp.validate_plan`.

    ``compose_domain("kitchen", [parts.Stacking, parts.Drawer, parts.Washing, parts.TwoArms])``

    In a file ``semantics.py`` without ``domain.pddl`` beside it, ``Semantics = compose_domain(...).semantics`` is a
    domain.

    Args:
        name: its name.
        parts: the parts; where two define the same method, the later one's is called first.
        words: other words for types, predicates and actions, by those of the fragments.

    Raises:
        TaskError: a part that is given twice, one that another needs and that is missing, two that do not go together,
            definitions that differ, a predicate or an action without semantics, or an error in a fragment; with its
            file and line.
    """
    given: list[type[DomainPart]] = []
    for part in parts:
        if not (isinstance(part, type) and issubclass(part, DomainPart)):
            raise TaskError.at(
                f"domain '{name}'", f"{part!r:.60} is no part: a class derived from tmkit.tamp.parts.DomainPart"
            )
        if part in given:
            _refuse(part, f"part '{part.__name__}' is given twice to domain '{name}'")
        given.append(part)
    return _composed(name, tuple(given), tuple((words or {}).items()))


@lru_cache(maxsize=32)
def _composed(name: str, given: tuple[type[DomainPart], ...], words: tuple[tuple[str, str], ...]) -> PythonDomain:
    """Return what different parts make together."""
    bases = [part for part in given if not any(part is not other and issubclass(other, part) for other in given)]
    made = cast(type[DomainPart], type("Semantics", tuple(reversed(bases)) or (DomainPart,), {"words": dict(words)}))
    for part in made.__mro__:
        for missing in vars(part).get("needs", ()):
            if not issubclass(made, missing):
                known = ", ".join(one.__name__ for one in given)
                _refuse(part, f"part '{part.__name__}' needs part '{missing.__name__}', which is not among {known}")
        for other in vars(part).get("excludes", ()):
            if issubclass(made, other):
                _refuse(part, f"parts '{part.__name__}' and '{other.__name__}' do not go together")
    merged = _Merged(name, made)
    made.domain, made._declared = merged.domain(), merged
    made.stored_predicates = merged.named("stored_predicates")
    made.probabilistic_predicates = merged.named("probabilistic_predicates").intersection(merged.own_predicates)
    merged.require_semantics()
    return _Composed(made.domain, made, (name, given, dict(words)))


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


@incremental
def _objects(scene: SceneGraph) -> _Objects:
    return _Objects(movable_frames(scene))


@incremental
def _placed(scene: SceneGraph, part: DomainPart, objects: _Objects) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """Return what follows from where objects are, and what they take."""
    if len(objects.frames) == 1:
        (object,) = objects.frames
        return frozenset(part.place_facts(scene, object)), frozenset(part.taken_facts(scene, object))
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
    return frozenset[Fact]().union(*(_derived_of(scene, part, predicate) for predicate in part._declared.kept))


@incremental
def _derived_of(scene: SceneGraph, part: DomainPart, predicate: str) -> frozenset[Fact]:
    return part._facts(predicate, getattr(part, f"facts_{_spelled(predicate)}")(scene))


@lru_cache(maxsize=16384)
def _fact(word: str, named: tuple[str, ...]) -> Fact:
    return Fact(word, tuple(map(_WORDS_SHOWN, named)))


def _spelled(name: str) -> str:
    return name.replace("-", "_")


def _refuse(part: type, reason: str) -> NoReturn:
    """Raise an error at the class statement of a part."""
    try:
        raise TaskError.at(inspect.getsourcefile(part), reason, line=inspect.getsourcelines(part)[1])
    except (OSError, TypeError):
        raise TaskError.at(f"part '{part.__name__}'", reason) from None


@lru_cache(maxsize=64)
def _fragment(part: type[DomainPart]) -> tuple[Source, tuple[Group, ...]]:
    """Return the fragment of a part with the lines that it has in its file."""
    text = str(vars(part)["pddl"])
    try:
        file = str(inspect.getsourcefile(part))
        lines = enumerate(linecache.getlines(file))  # inspect would parse the module, which takes long
        next(number for number, written in lines if re.match(rf"\s*class {part.__name__}\b", written))
        before = next(number for number, written in lines if written.lstrip().startswith("pddl"))
        source = Source(file, "\n" * before + text)
    except (OSError, TypeError, StopIteration):
        source = Source(f"part '{part.__name__}'", text)
    return source, tuple(source.groups())


@dataclass
class _Piece:
    """A list of a fragment."""

    source: Source
    group: Group

    def error(self, reason: str, token: Token | None = None) -> TaskError:
        return self.source.error(token or self.group.first, reason)


@dataclass
class _Merged:
    """The fragments of a composed class as one domain."""

    name: str
    made: type[DomainPart]
    types: dict[str, tuple[list[str], _Piece, Token]] = field(default_factory=dict)
    requirements: dict[str, None] = field(default_factory=dict)
    predicates: dict[str, _Piece] = field(default_factory=dict)
    actions: dict[str, list[_Piece]] = field(default_factory=dict)  # each with its extensions
    others: list[_Piece] = field(default_factory=list)
    extensions: list[_Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        for part in reversed(self.made.__mro__):
            if vars(part).get("pddl"):
                source, groups = _fragment(cast(type[DomainPart], part))
                for group in groups:
                    self._add(_Piece(source, group))
        self.armed = {
            name for name, pieces in {**self.actions, **{k: [v] for k, v in self.predicates.items()}}.items()
            if any(_ARM in _texts(piece.group) for piece in pieces)
        }  # fmt: skip
        self.own_predicates = {self._renamed(name): name for name in self.predicates}
        self.own_actions = {self._renamed(name): name for name in self.actions}
        self.kept: tuple[str, ...] = ()  # predicates of methods that do not take a configuration
        self.fresh: tuple[str, ...] = ()  # and of those that do
        for piece in self.extensions:
            self._extend(piece)
        for word in self.made.words:
            if word not in (known := [*self.types, *self.predicates, *self.actions]):
                raise TaskError.at(f"domain '{self.name}'", UnknownNameError.of("word", word, known).message)

    def _add(self, piece: _Piece) -> None:
        group = piece.group
        head = group.head
        if head == ":types":
            self._add_types(piece)
        elif head == ":requirements":
            self.requirements.update(dict.fromkeys(token.first.text for token in group.parts[1:]))
        elif head == ":predicates":
            for inner in group.parts[1:]:
                own = _Piece(piece.source, cast(Group, inner))
                _require_same("predicate", inner.first, own, self.predicates.setdefault(inner.first.text, own))
        elif head == ":action" and len(group.parts) > 1:
            token = group.parts[1].first
            _require_same("action", token, piece, self.actions.setdefault(token.text, [piece])[0])
        elif head in (":extend", ":extend-any") and len(group.parts) > 1 and isinstance(group.parts[1], Group):
            self.extensions.append(piece)
        elif head in (":functions", ":derived", ":constants"):
            self.others.append(piece)
        else:
            known = (*_LISTS, ":action", ":functions", ":derived", ":constants", ":extend (ACTION...)")
            raise piece.error(UnknownNameError.of("section of a part", head, known).message)

    def _add_types(self, piece: _Piece) -> None:
        waiting: list[Token] = []
        parts = iter(piece.group.parts[1:])
        for part in parts:
            token = part.first
            if token.text == "-":
                above = next(parts, piece.group.closing).first
                for item in waiting:
                    parents, before, _ = self.types.setdefault(item.text, ([], piece, item))
                    if above.text not in (*parents, "object"):
                        if parents:
                            where = f"{before.source.name}:{before.source.line_of(before.group.first)}"
                            raise piece.error(f"type '{item.text}' is below '{parents[0]}' in {where}", item)
                        parents.append(above.text)
                waiting.clear()
            else:
                waiting.append(token)
        for item in waiting:
            self.types.setdefault(item.text, ([], piece, item))

    def _extend(self, piece: _Piece) -> None:
        """Add an extension to the actions that it names."""
        named = [token.first for token in cast(Group, piece.group.parts[1]).parts]
        found = [token.text for token in named if token.text in self.actions]
        if not found and piece.group.head == ":extend":
            raise piece.error(UnknownNameError.of("action", named[0].text if named else "", self.actions).message)
        for name in found:
            self.actions[name].append(piece)

    def domain(self) -> Domain:
        """Return the domain; an error of the composed text is told at the place in the fragment."""
        lines: list[tuple[str, _Piece | None]] = [(f"(define (domain {self.name})", None)]
        requirements = [*dict.fromkeys([":typing", *self.requirements])]
        lines.append((f"(:requirements {' '.join(requirements)}) (:types", None))
        for name, (parents, piece, _) in self.types.items():
            if (written := self._renamed(name)) != "object":
                lines.append((f"{written} - {self._renamed(parents[0]) if parents else 'object'}", piece))
        lines.append((") (:predicates", None))
        lines += [(text, piece) for text, piece in self._predicates().values()]
        lines.append((")", None))
        lines += [(self._written(piece.group), piece) for piece in self.others]
        for name, pieces in self.actions.items():
            lines.append((f"(:action {self._renamed(name)} :parameters (", pieces[0]))
            for key in _KEYS:
                if key != ":parameters":
                    lines.append((f"{key} (and", None))
                for piece in pieces:
                    lines.append((self._value(piece, key), piece))
                lines.append((")", None))
            lines.append((")", None))
        lines.append((")", None))
        try:
            return parse_domain("\n".join(line for line, _ in lines), source=f"domain '{self.name}'")
        except TaskError as error:
            number = error.data.get("line")
            origin = lines[number - 1][1] if number and number <= len(lines) else None
            if origin is None:
                raise
            raise origin.error(str(error.data["reason"])) from None

    def _predicates(self) -> dict[str, tuple[str, _Piece]]:
        """Return the predicates in the words of the domain; one word for two is a predicate of any objects."""
        found: dict[str, tuple[str, _Piece]] = {}
        for name, piece in self.predicates.items():
            word, text = self._renamed(name), self._written(piece.group)
            found[word] = (re.sub(r" - [^ )]+", "", text) if word in found else text), piece
        return found

    def _value(self, piece: _Piece, key: str) -> str:
        """Return what a fragment gives for a key of an action, without the parentheses and ``and`` around it."""
        parts = piece.group.parts
        for word, value in pairwise(parts):
            if isinstance(word, Token) and word.text == key and isinstance(value, Group):
                if key == ":parameters":
                    return self._written(value)[1:-1]
                return " ".join(map(self._written, value.parts[1:])) if value.head == "and" else self._written(value)
        return ""

    def named(self, attribute: str) -> frozenset[str]:
        """Return the predicates that an attribute of any part names."""
        return frozenset(self._renamed(name) for part in self.made.__mro__ for name in vars(part).get(attribute, ()))

    def _renamed(self, word: str) -> str:
        return self.made.words.get(word, word)

    def _written(self, part: Token | Group) -> str:
        """Return the text of a list in the words of the domain, without ``?arm`` in a domain for one arm."""
        if isinstance(part, Token):
            return self._renamed(part.text)
        texts = [self._written(inner) for inner in part.parts]
        if not self.made.has_arms:
            while _ARM in texts:
                at = texts.index(_ARM)
                del texts[at : at + (3 if texts[at + 1 : at + 2] == ["-"] else 1)]
        return f"({' '.join(texts)})"

    def require_semantics(self) -> None:
        """Refuse a predicate that is neither derived nor stored, and an action that moves and is not carried out."""
        made, placed = self.made, self.named("place_predicates")
        kept: list[str] = []
        fresh: list[str] = []
        for name, piece in self.predicates.items():
            if (method := getattr(made, f"facts_{_spelled(name)}", None)) is not None:
                (fresh if "q" in inspect.signature(method).parameters else kept).append(name)
            elif not {self._renamed(name)} & (made.domain.derived_predicates | made.stored_predicates | placed):
                what = f"predicate '{name}' has no semantics: define 'facts_{_spelled(name)}(self, scene)'"
                raise piece.error(f"{what}, or name it in 'place_predicates' or 'stored_predicates'")
        self.kept, self.fresh = tuple(kept), tuple(fresh)
        for name, pieces in self.actions.items():
            effects = simple_effects(made.domain.action(self._renamed(name)).effect)
            changed = {effect.atom.predicate for effect in effects if isinstance(effect, Add | Delete)}
            if changed - made.stored_predicates and not hasattr(made, f"do_{_spelled(name)}"):
                what = f"action '{name}' has no semantics: define 'do_{_spelled(name)}(self, context, *arguments)'"
                raise pieces[0].error(what, pieces[0].group.parts[1].first)


def _require_same(kind: str, token: Token, piece: _Piece, before: _Piece) -> None:
    """Refuse a definition that differs from the one there is."""
    if _texts(before.group) != _texts(piece.group):
        where = f"{before.source.name}:{before.source.line_of(before.group.first)}"
        raise piece.error(f"{kind} '{token.text}' is defined differently in {where}", token)


def _texts(part: Token | Group) -> list[str]:
    """Return the words of a list, with parentheses."""
    if isinstance(part, Token):
        return [part.text]
    return ["(", *chain.from_iterable(map(_texts, part.parts)), ")"]
