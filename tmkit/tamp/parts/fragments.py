"""Fragments of PDDL as one domain: what :func:`tmkit.tamp.parts.compose_domain` makes of the texts of parts.

Definitions of the same thing must be the same. Extensions are added to the actions that they name.
Words are renamed. An error in the composed text is told at its place in the fragment.
"""

from __future__ import annotations

import inspect
import linecache
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, cast

from tmkit.errors import TaskError, UnknownNameError
from tmkit.pddl import Domain, parse_domain
from tmkit.pddl.formulas import Add, Delete, simple_effects
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.tamp.domains.semantics import DomainSemantics

_ARM = "?arm"
_KEYS = (":parameters", ":precondition", ":effect")
_LISTS = (":requirements", ":types", ":predicates")


def spelled(name: str) -> str:
    """Return a name in PDDL as methods have it."""
    return name.replace("-", "_")


@lru_cache(maxsize=64)
def _fragment(part: type) -> tuple[Source, tuple[Group, ...]]:
    """Return the fragment of a part with the lines that it has in its file."""
    text = str(vars(part)["pddl"])
    try:
        file = str(inspect.getsourcefile(part))
        # inspect would parse the module, which takes long
        lines = enumerate(linecache.getlines(file))
        next(
            number for number, written in lines if re.match(rf"\s*class {part.__name__}\b", written)
        )
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
class MergedFragments:
    """The fragments of a composed class as one domain.

    Attributes:
        name: of the domain.
        made: the class of its semantics.
        armed: predicates and actions that have an argument ``?arm``.
        own_predicates: those of the fragments, by their words in the domain; likewise
            ``own_actions``.
        kept: predicates that methods derive from the scene alone; ``fresh`` those that need a
            configuration.
    """

    name: str
    made: Any  # a class
    types: dict[str, tuple[list[str], _Piece, Token]] = field(default_factory=dict)
    requirements: dict[str, None] = field(default_factory=dict)
    predicates: dict[str, _Piece] = field(default_factory=dict)
    actions: dict[str, list[_Piece]] = field(default_factory=dict)  # each with its extensions
    others: list[_Piece] = field(default_factory=list)
    extensions: list[_Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        for part in reversed(self.made.__mro__):
            if vars(part).get("pddl"):
                source, groups = _fragment(part)
                for group in groups:
                    self._add(_Piece(source, group))
        self.armed = {
            name
            for name, pieces in {
                **self.actions,
                **{k: [v] for k, v in self.predicates.items()},
            }.items()
            if any(_ARM in _texts(piece.group) for piece in pieces)
        }
        self.own_predicates = {self._renamed(name): name for name in self.predicates}
        self.own_actions = {self._renamed(name): name for name in self.actions}
        self.kept: tuple[str, ...] = ()  # predicates of methods that do not take a configuration
        self.fresh: tuple[str, ...] = ()  # and of those that do
        for piece in self.extensions:
            self._extend(piece)
        for word in self.made.words:
            if word not in (known := [*self.types, *self.predicates, *self.actions]):
                raise TaskError.at(
                    f"domain '{self.name}'", UnknownNameError.of("word", word, known).message
                )

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
                _require_same(
                    "predicate", inner.first, own, self.predicates.setdefault(inner.first.text, own)
                )
        elif head == ":action" and len(group.parts) > 1:
            token = group.parts[1].first
            _require_same("action", token, piece, self.actions.setdefault(token.text, [piece])[0])
        elif (
            head in (":extend", ":extend-any")
            and len(group.parts) > 1
            and isinstance(group.parts[1], Group)
        ):
            self.extensions.append(piece)
        elif head in (":functions", ":derived", ":constants"):
            self.others.append(piece)
        else:
            known = (
                *_LISTS,
                ":action",
                ":functions",
                ":derived",
                ":constants",
                ":extend (ACTION...)",
            )
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
                            where = (
                                f"{before.source.name}:{before.source.line_of(before.group.first)}"
                            )
                            raise piece.error(
                                f"type '{item.text}' is below '{parents[0]}' in {where}", item
                            )
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
            raise piece.error(
                UnknownNameError.of("action", named[0].text if named else "", self.actions).message
            )
        for name in found:
            self.actions[name].append(piece)

    def domain(self) -> Domain:
        """Return the domain; an error of the composed text is told at the place in the fragment."""
        lines: list[tuple[str, _Piece | None]] = [(f"(define (domain {self.name})", None)]
        requirements = [*dict.fromkeys([":typing", *self.requirements])]
        lines.append((f"(:requirements {' '.join(requirements)}) (:types", None))
        for name, (parents, piece, _) in self.types.items():
            if (written := self._renamed(name)) != "object":
                lines.append(
                    (f"{written} - {self._renamed(parents[0]) if parents else 'object'}", piece)
                )
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
            return parse_domain(
                "\n".join(line for line, _ in lines), source=f"domain '{self.name}'"
            )
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
                return (
                    " ".join(map(self._written, value.parts[1:]))
                    if value.head == "and"
                    else self._written(value)
                )
        return ""

    def named(self, attribute: str) -> frozenset[str]:
        """Return the predicates that an attribute of any part names."""
        return frozenset(
            self._renamed(name)
            for part in self.made.__mro__
            for name in vars(part).get(attribute, ())
        )

    def _renamed(self, word: str) -> str:
        return str(self.made.words.get(word, word))

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

    def require_semantics(self, made: type[DomainSemantics], domain: Domain) -> None:
        """Refuse a predicate that is neither derived nor stored, and an action that moves and is not carried out."""
        placed = self.named("place_predicates")
        kept: list[str] = []
        fresh: list[str] = []
        for name, piece in self.predicates.items():
            if (method := getattr(made, f"facts_{spelled(name)}", None)) is not None:
                (fresh if "q" in inspect.signature(method).parameters else kept).append(name)
            elif not {self._renamed(name)} & (
                domain.derived_predicates | made.stored_predicates | placed
            ):
                what = (
                    f"predicate '{name}' has no semantics: define 'facts_{spelled(name)}(self,"
                    " scene)'"
                )
                raise piece.error(
                    f"{what}, or name it in 'place_predicates' or 'stored_predicates'"
                )
        self.kept, self.fresh = tuple(kept), tuple(fresh)
        for name, pieces in self.actions.items():
            effects = simple_effects(domain.action(self._renamed(name)).effect)
            changed = {
                effect.atom.predicate for effect in effects if isinstance(effect, Add | Delete)
            }
            if changed - made.stored_predicates and not hasattr(made, f"do_{spelled(name)}"):
                what = (
                    f"action '{name}' has no semantics: define 'do_{spelled(name)}(self, context,"
                    " *arguments)'"
                )
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
