"""Combination of PDDL fragments into one domain, for :func:`tmkit.tamp.parts.compose_domain`.

Definitions of the same name must be equal. Extensions are added to the actions that they name.
Names are replaced by those of the domain. An error in the composed text is reported at its place in
the fragment.
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
"""Parameter that is omitted in a domain for one arm."""

_ACTION_KEYS = (":parameters", ":precondition", ":effect")
"""Keys of an action, in the order in which they are written."""

_OTHER_SECTIONS = (":functions", ":derived", ":constants")
"""Sections that are copied from the fragments."""

_SECTIONS = (
    ":requirements",
    ":types",
    ":predicates",
    ":action",
    *_OTHER_SECTIONS,
    ":extend (ACTION...)",
)
"""Sections of a fragment, for messages."""


def method_suffix(name: str) -> str:
    """Return the form of a PDDL name in the names of methods."""
    return name.replace("-", "_")


@lru_cache(maxsize=64)
def _fragment(part: type) -> tuple[Source, tuple[Group, ...]]:
    """Return the fragment of a part, with its line numbers in the source file."""
    text = str(vars(part)["pddl"])
    try:
        file = str(inspect.getsourcefile(part))
        # The lines are searched because inspect parses the whole module, which is slow.
        lines = enumerate(linecache.getlines(file))
        class_pattern = rf"\s*class {part.__name__}\b"
        next(number for number, line in lines if re.match(class_pattern, line))
        n_lines_before = next(n for n, line in lines if line.lstrip().startswith("pddl"))
        source = Source(file, "\n" * n_lines_before + text)
    except (OSError, TypeError, StopIteration):
        source = Source(f"part '{part.__name__}'", text)
    return source, tuple(source.groups())


@dataclass
class _Section:
    """A section of a fragment, or one of its definitions."""

    source: Source
    group: Group

    @property
    def location(self) -> str:
        """File and line of the section."""
        return f"{self.source.name}:{self.source.line_of(self.group.first)}"

    def error(self, reason: str, token: Token | None = None) -> TaskError:
        return self.source.error(token or self.group.first, reason)


@dataclass
class MergedFragments:
    """The fragments of a composed class, merged into one domain.

    Attributes:
        name: name of the domain.
        semantics_class: class with the fragments.
        types: parents, first definition and name token of each type.
        requirements: requirements in order.
        predicates: definitions by name in the fragments.
        actions: definition and extensions by name in the fragments.
        other_sections: further sections.
        extensions: extensions of actions.
        names_with_arm: predicates and actions that have an argument ``?arm``.
        predicate_names: names in the fragments by name in the domain.
        action_names: names in the fragments by name in the domain.
        scene_predicates: predicates whose methods derive facts from the scene alone.
        configuration_predicates: predicates whose methods need a configuration.
    """

    name: str
    semantics_class: Any
    types: dict[str, tuple[list[str], _Section, Token]] = field(default_factory=dict)
    requirements: dict[str, None] = field(default_factory=dict)
    predicates: dict[str, _Section] = field(default_factory=dict)
    actions: dict[str, list[_Section]] = field(default_factory=dict)
    other_sections: list[_Section] = field(default_factory=list)
    extensions: list[_Section] = field(default_factory=list)

    def __post_init__(self) -> None:
        for part in reversed(self.semantics_class.__mro__):
            if vars(part).get("pddl"):
                source, groups = _fragment(part)
                for group in groups:
                    self._add(_Section(source, group))
        definitions = {name: [section] for name, section in self.predicates.items()}
        self.names_with_arm = {
            name
            for name, sections in {**self.actions, **definitions}.items()
            if any(_ARM in _tokens(section.group) for section in sections)
        }
        self.predicate_names = {self._rename(name): name for name in self.predicates}
        self.action_names = {self._rename(name): name for name in self.actions}
        self.scene_predicates: tuple[str, ...] = ()
        self.configuration_predicates: tuple[str, ...] = ()
        for section in self.extensions:
            self._extend(section)
        names = [*self.types, *self.predicates, *self.actions]
        for name in self.semantics_class.words:
            if name not in names:
                message = UnknownNameError.of("word", name, names).message
                raise TaskError.at(f"domain '{self.name}'", message)

    def _add(self, section: _Section) -> None:
        group = section.group
        head = group.head
        if head == ":types":
            self._add_types(section)
        elif head == ":requirements":
            self.requirements.update(dict.fromkeys(token.first.text for token in group.parts[1:]))
        elif head == ":predicates":
            for inner in group.parts[1:]:
                definition = _Section(section.source, cast(Group, inner))
                first = self.predicates.setdefault(inner.first.text, definition)
                _require_same("predicate", inner.first, definition, first)
        elif head == ":action" and len(group.parts) > 1:
            token = group.parts[1].first
            _require_same(
                "action", token, section, self.actions.setdefault(token.text, [section])[0]
            )
        elif (
            head in (":extend", ":extend-any")
            and len(group.parts) > 1
            and isinstance(group.parts[1], Group)
        ):
            self.extensions.append(section)
        elif head in _OTHER_SECTIONS:
            self.other_sections.append(section)
        else:
            message = UnknownNameError.of("section of a part", head, _SECTIONS).message
            raise section.error(message)

    def _add_types(self, section: _Section) -> None:
        names: list[Token] = []  # types whose parent follows
        parts = iter(section.group.parts[1:])
        for part in parts:
            token = part.first
            if token.text != "-":
                names.append(token)
                continue
            parent = next(parts, section.group.closing).first
            for name in names:
                self._add_type(section, name, parent)
            names.clear()
        for name in names:
            self.types.setdefault(name.text, ([], section, name))

    def _add_type(self, section: _Section, name: Token, parent: Token) -> None:
        """Add a type with its parent, which must agree with an earlier definition."""
        parents, first, _ = self.types.setdefault(name.text, ([], section, name))
        if parent.text in (*parents, "object"):
            return
        if parents:
            reason = f"type '{name.text}' is below '{parents[0]}' in {first.location}"
            raise section.error(reason, name)
        parents.append(parent.text)

    def _extend(self, section: _Section) -> None:
        """Add an extension to the actions that it names."""
        tokens = [token.first for token in cast(Group, section.group.parts[1]).parts]
        names = [token.text for token in tokens if token.text in self.actions]
        if not names and section.group.head == ":extend":
            unknown = tokens[0].text if tokens else ""
            raise section.error(UnknownNameError.of("action", unknown, self.actions).message)
        for name in names:
            self.actions[name].append(section)

    def domain(self) -> Domain:
        """Return the domain.

        Raises:
            TaskError: if the composed text has an error; the message has its place in the fragment.
        """
        lines: list[tuple[str, _Section | None]] = [(f"(define (domain {self.name})", None)]
        requirements = [*dict.fromkeys([":typing", *self.requirements])]
        lines.append((f"(:requirements {' '.join(requirements)}) (:types", None))
        for name, (parents, section, _) in self.types.items():
            parent = self._rename(parents[0]) if parents else "object"
            type_name = self._rename(name)
            if type_name != "object":
                lines.append((f"{type_name} - {parent}", section))
        lines.append((") (:predicates", None))
        lines += [(text, section) for text, section in self._predicates().values()]
        lines.append((")", None))
        lines += [(self._render(section.group), section) for section in self.other_sections]
        for name, sections in self.actions.items():
            lines.append((f"(:action {self._rename(name)} :parameters (", sections[0]))
            for key in _ACTION_KEYS:
                if key != ":parameters":
                    lines.append((f"{key} (and", None))
                for section in sections:
                    lines.append((self._value(section, key), section))
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

    def _predicates(self) -> dict[str, tuple[str, _Section]]:
        """Return the predicates by name in the domain, with their text and fragment.

        If two predicates of the fragments have the same name, it applies to objects of any type.
        """
        predicates: dict[str, tuple[str, _Section]] = {}
        for fragment_name, section in self.predicates.items():
            name, text = self._rename(fragment_name), self._render(section.group)
            if name in predicates:
                text = re.sub(r" - [^ )]+", "", text)
            predicates[name] = text, section
        return predicates

    def _value(self, section: _Section, key: str) -> str:
        """Return the value of a key of an action, without its parentheses and ``and``."""
        parts = section.group.parts
        for word, value in pairwise(parts):
            if isinstance(word, Token) and word.text == key and isinstance(value, Group):
                if key == ":parameters":
                    return self._render(value)[1:-1]
                if value.head == "and":
                    return " ".join(map(self._render, value.parts[1:]))
                return self._render(value)
        return ""

    def collect_names(self, attribute: str) -> frozenset[str]:
        """Return the predicates in an attribute of any part, by name in the domain."""
        return frozenset(
            self._rename(name)
            for part in self.semantics_class.__mro__
            for name in vars(part).get(attribute, ())
        )

    def _rename(self, word: str) -> str:
        return str(self.semantics_class.words.get(word, word))

    def _render(self, part: Token | Group) -> str:
        """Return the text of a list with the names of the domain.

        ``?arm`` is omitted in a domain for one arm.
        """
        if isinstance(part, Token):
            return self._rename(part.text)
        texts = [self._render(inner) for inner in part.parts]
        if not self.semantics_class.has_arms:
            while _ARM in texts:
                index = texts.index(_ARM)
                del texts[index : index + (3 if texts[index + 1 : index + 2] == ["-"] else 1)]
        return f"({' '.join(texts)})"

    def require_semantics(self, semantics: type[DomainSemantics], domain: Domain) -> None:
        """Reject predicates and actions without semantics.

        A predicate must be derived or stored. An action with other effects than stored facts needs
        a method that yields its candidates.

        Args:
            semantics: class of the composed semantics.
            domain: composed domain.
        """
        defined = domain.derived_predicates | semantics.stored_predicates
        defined |= self.collect_names("place_predicates")
        scene_predicates: list[str] = []
        configuration_predicates: list[str] = []
        for name, section in self.predicates.items():
            method_name = f"facts_{method_suffix(name)}"
            method = getattr(semantics, method_name, None)
            if method is not None and "q" in inspect.signature(method).parameters:
                configuration_predicates.append(name)
            elif method is not None:
                scene_predicates.append(name)
            elif self._rename(name) not in defined:
                raise section.error(
                    f"predicate '{name}' has no semantics: define '{method_name}(self, scene)', or"
                    " name it in 'place_predicates' or 'stored_predicates'"
                )
        self.scene_predicates = tuple(scene_predicates)
        self.configuration_predicates = tuple(configuration_predicates)

        for name, sections in self.actions.items():
            effects = simple_effects(domain.action(self._rename(name)).effect)
            predicates = {
                effect.atom.predicate for effect in effects if isinstance(effect, Add | Delete)
            }
            method_name = f"do_{method_suffix(name)}"
            if predicates - semantics.stored_predicates and not hasattr(semantics, method_name):
                reason = (
                    f"action '{name}' has no semantics: define '{method_name}(self, context,"
                    " *arguments)'"
                )
                raise sections[0].error(reason, sections[0].group.parts[1].first)


def _require_same(kind: str, token: Token, section: _Section, first: _Section) -> None:
    """Reject a definition that differs from an earlier one."""
    if _tokens(first.group) != _tokens(section.group):
        reason = f"{kind} '{token.text}' is defined differently in {first.location}"
        raise section.error(reason, token)


def _tokens(part: Token | Group) -> list[str]:
    """Return the tokens of a list, with parentheses."""
    if isinstance(part, Token):
        return [part.text]
    return ["(", *chain.from_iterable(map(_tokens, part.parts)), ")"]
