"""Parser of PDDL domains, problems and goals.

This module reads the outer list of a file, ``(define (domain NAME) SECTION...)``, as nested lists.
The grammar of pddlpy checks each section separately (:mod:`tmkit.pddl.parsing.grammar`), and
:mod:`tmkit.pddl.parsing.sections` collects its declarations. Sections may therefore have any order,
and an error concerns one section only.

The parser is strict. Unknown and unsupported input is rejected with file, line, column and a caret.
This includes duplicate and unknown names, wrong numbers and types of arguments, undeclared
variables, a problem of another domain, and text after the end. The parser does *not* require
``:requirements`` to list every feature used, because most published domains do not. All words are
lower-cased.

``:derived`` sections are checked as an action with the condition of the rule as its precondition,
because the rule of pddlpy's grammar for them is too narrow.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmkit._support.limits import BYTE_ORDER_MARK, ReadingLimits, as_utf8, read_bytes
from tmkit.errors import MissingFileError, TaskError, UnknownNameError, nearest_name
from tmkit.pddl.formulas import And, Fact, Formula
from tmkit.pddl.model import Domain, Metric, Problem
from tmkit.pddl.parsing.source import Group, Source, Token, mark_functions, split_functions
from tmkit.pddl.state import State
from tmkit.pddl.vocabulary import Types

if TYPE_CHECKING:
    from tmkit.pddl.parsing import sections

REQUIREMENTS = frozenset(
    {
        ":action-costs",
        ":adl",
        ":conditional-effects",
        ":constraints",
        ":contingent",
        ":continuous-effects",
        ":derived-predicates",
        ":disjunctive-preconditions",
        ":duration-inequalities",
        ":durative-actions",
        ":equality",
        ":existential-preconditions",
        ":fluents",
        ":goal-utilities",
        ":hierarchy",
        ":mdp",
        ":negation",
        ":negative-preconditions",
        ":non-deterministic",
        ":numeric-fluents",
        ":object-fluents",
        ":preferences",
        ":probabilistic-effects",
        ":quantified-preconditions",
        ":rewards",
        ":strips",
        ":time",
        ":timed-initial-literals",
        ":typing",
        ":universal-preconditions",
    }
)
DOMAIN_SECTIONS = (
    ":requirements",
    ":types",
    ":constants",
    ":predicates",
    ":functions",
    ":derived",
    ":durative-action",
    ":action",
)
PROBLEM_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric")
_UNSUPPORTED = {
    ":constraints": "trajectory constraints are not supported",
    ":process": "processes are not supported",
    ":event": "events are not supported",
    ":length": "plan length bounds are not supported",
    **dict.fromkeys((":task", ":method", ":htn"), "hierarchical tasks (HDDL) are not supported"),
    ":axiom": (
        "axioms (:axiom) are not supported; expected (:derived (PREDICATE PARAMETERS) CONDITION)"
    ),
    ":timeless": "timeless facts are not supported; expected facts in the :init of problems",
    ":goal-reward": "rewards are not supported",
}
_REPEATABLE = frozenset({":action", ":durative-action", ":derived"})


def load_domain(path: str | Path) -> Domain:
    """Read a domain file.

    Raises:
        MissingFileError: if the file does not exist.
        TaskError: if the file is not a domain. The error has the position and the reason.
    """
    return parse_domain(read_pddl(path), source=str(path))


def load_problem(
    path: str | Path, domain: Domain, *, objects: Mapping[str, str | Types] | None = None
) -> Problem:
    """Read a problem file of a domain.

    Args:
        path: path of the file.
        domain: domain that the problem must name.
        objects: see :func:`parse_problem`.

    Raises:
        MissingFileError: if the file does not exist.
        TaskError: if the file is not a problem of that domain. The error has the position and the
            reason.
    """
    return parse_problem(read_pddl(path), domain, source=str(path), objects=objects)


def _make_source(name: str, text: str) -> Source:
    """Return a source without the byte order mark of its text, as for a file."""
    return Source(name, text.removeprefix(BYTE_ORDER_MARK))


def parse_domain(text: str, *, source: str = "domain") -> Domain:
    """Read a domain from text.

    Args:
        text: PDDL text.
        source: name of the text in messages.

    Raises:
        TaskError: if the text is not a domain. The error has the position and the reason.
    """
    return _Frame(_make_source(source, text), kind="domain", names=DOMAIN_SECTIONS).domain()


def parse_problem(
    text: str,
    domain: Domain,
    *,
    source: str = "problem",
    objects: Mapping[str, str | Types] | None = None,
) -> Problem:
    """Read a problem from text.

    Args:
        text: PDDL text.
        domain: domain that the problem must name.
        source: name of the text in messages.
        objects: types of objects that exist already, as those of a scene, by name. The problem then
            need not declare them, and its ``:init`` is empty if omitted.

    Raises:
        TaskError: if the text is not a problem of that domain. The error has the position and the
            reason.
    """
    frame = _Frame(_make_source(source, text), kind="problem", names=PROBLEM_SECTIONS)
    return frame.problem(domain, objects)


def parse_goal(
    text: str, domain: Domain, *, objects: Mapping[str, str | Types], source: str = "goal"
) -> Formula:
    """Read a goal such as ``(on a b)`` or ``(and (on a b) (not (clear c)))``.

    Args:
        text: one formula or several, which form a conjunction. Case is ignored, also in the names
            of objects.
        domain: domain that declares the predicates.
        objects: types of the allowed objects by name, without the constants of the domain.
        source: name of the text in messages.

    Returns:
        The formula, with objects spelled as in ``objects``.

    Raises:
        TaskError: if the text is not a goal over these names. The error has the position and the
            reason.
    """
    from tmkit.pddl.parsing import sections

    origin = _make_source(source, text)
    groups = origin.groups()
    if not groups:
        raise origin.error(origin.end, "expected a goal such as (on a b), but there is none")
    spelling: dict[str, str] = {}
    for name in objects:
        if spelling.setdefault(name.lower(), name) != name:
            reason = (
                f"objects '{spelling[name.lower()]}' and '{name}' differ only in case, which PDDL"
                " does not distinguish"
            )
            raise TaskError.at(source, reason)
    types_by_name = {
        name.lower(): (types,) if isinstance(types, str) else tuple(types)
        for name, types in objects.items()
    }
    reader = sections.SectionReader(origin, domain)
    vocabulary = domain.vocabulary_with(types_by_name)
    goals = [sections.rename_objects(reader.goal(group, vocabulary), spelling) for group in groups]
    return goals[0] if len(goals) == 1 else And(tuple(goals))


def read_pddl(path: str | Path) -> str:
    """Return the text of a file, without its byte order mark.

    Args:
        path: path of a file with any content.

    Raises:
        MissingFileError: if the file does not exist.
        TaskError: if the file is unreadable, too large, or not UTF-8 text.
    """
    limit = ReadingLimits().text_bytes
    try:
        data = read_bytes(
            Path(path),
            limit=limit,
            error=lambda reason: TaskError.at(str(path), f"the file {reason}"),
        )
    except TaskError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise _missing_file_error(Path(path)) from None
        raise
    data = as_utf8(data, lambda reason: TaskError.at(str(path), f"the file {reason}"))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        origin = Source(str(path), data.decode("utf-8", errors="replace"))
        place = Token("", len(data[: error.start].decode("utf-8")))
        raise origin.error(
            place, f"the file is not UTF-8 text: byte {error.start} is not valid"
        ) from None


def _missing_file_error(path: Path) -> MissingFileError:
    """Return the error of a missing file, with the nearest name in its folder."""
    nearest = None
    with contextlib.suppress(OSError):
        nearest = nearest_name(path.name, (entry.name for entry in path.parent.iterdir()))
    hint = f"; did you mean '{path.parent / nearest}'?" if nearest else ""
    return MissingFileError(f"no file '{path}'{hint}", path=str(path), nearest=nearest)


_UNCONTROLLABLE = ":uncontrollable"
"""Keyword of an action that the world performs, with the value ``t`` or ``nil``."""


def _split_keyword(source: Source, action: Group) -> tuple[Group, bool]:
    """Return an action without the keyword of uncontrollable actions, and whether it is one."""
    words = [part.text if isinstance(part, Token) else "" for part in action.parts]
    if _UNCONTROLLABLE not in words:
        return action, False
    position = words.index(_UNCONTROLLABLE)
    if words[position + 1 : position + 2] not in (["t"], ["nil"]):
        keyword = action.parts[position].first
        raise source.error(keyword, f"expected t or nil after '{_UNCONTROLLABLE}'")
    parts = (*action.parts[:position], *action.parts[position + 2 :])
    return action._replace(parts=parts), words[position + 1] == "t"


class _Frame:
    """Outermost list of a file, and its sections by keyword.

    Args:
        source: PDDL text.
        kind: ``domain`` or ``problem``.
        names: keywords of the allowed sections.
    """

    def __init__(self, source: Source, *, kind: str, names: tuple[str, ...]) -> None:
        self.source = source
        self.kind = kind
        groups = source.groups()
        if not groups:
            raise source.error(
                source.end, f"expected (define ({kind} NAME) ...), but the text is empty"
            )
        for extra in groups[1:]:
            raise source.error(extra.opening, f"stray text after the end of the {kind}")
        self.header, entries = self._split_definition(groups[0])
        self.sections = self._collect_sections(entries, names)

    def _split_definition(self, definition: Group) -> tuple[Group, tuple[Token | Group, ...]]:
        if definition.head != "define":
            raise self.source.error(definition.first, f"expected (define ({self.kind} NAME) ...)")
        header = definition.parts[1] if len(definition.parts) > 1 else definition.closing
        if not isinstance(header, Group) or header.head != self.kind:
            head = header.head if isinstance(header, Group) else ""
            hint = ""
            if head in {"domain", "problem"}:
                hint = f"; this file is a {head}: give the domain first, then the problem"
            raise self.source.error(
                header.first, f"expected ({self.kind} NAME) after 'define'{hint}"
            )
        return header, definition.parts[2:]

    def _collect_sections(
        self, entries: Iterable[Token | Group], names: tuple[str, ...]
    ) -> dict[str, list[Group]]:
        sections: dict[str, list[Group]] = {name: [] for name in names}
        for entry in entries:
            if not isinstance(entry, Group):
                raise self.source.error(
                    entry, f"stray '{entry.text}'; expected a section such as ({names[-1]} ...)"
                )
            if entry.head in _UNSUPPORTED:
                raise self.source.error(entry.first, _UNSUPPORTED[entry.head])
            if entry.head not in sections:
                reason = UnknownNameError.of(f"section of a {self.kind}", entry.head, names).message
                raise self.source.error(entry.first, reason)
            if sections[entry.head] and entry.head not in _REPEATABLE:
                raise self.source.error(entry.first, f"there is already a section '{entry.head}'")
            sections[entry.head].append(entry)
        return sections

    def _require_section(self, name: str) -> Group:
        if not self.sections[name]:
            raise self.source.error(self.source.end, f"the {self.kind} has no section ({name} ...)")
        return self.sections[name][0]

    def _read_optional(self, name: str, read: Callable[[Group], Any]) -> Any:
        """Return the content of a section, or an empty tuple if it is omitted or empty."""
        groups = self.sections[name]
        return read(groups[0]) if groups and len(groups[0].parts) > 1 else ()

    def _read_requirements(self) -> tuple[str, ...]:
        for group in self.sections[":requirements"]:
            for part in group.parts[1:]:
                token = part.first if isinstance(part, Group) else part
                if token.text not in REQUIREMENTS:
                    raise self.source.error(
                        token, UnknownNameError.of("requirement", token.text, REQUIREMENTS).message
                    )
        requirements: tuple[str, ...] = self._read_optional(
            ":requirements", self._make_reader().requirements
        )
        return requirements

    def _make_reader(self, domain: Domain | None = None) -> sections.SectionReader:
        from tmkit.pddl.parsing import sections

        return sections.SectionReader(self.source, domain)

    def domain(self) -> Domain:
        reader = self._make_reader()
        name, requirements = reader.header(self.header), self._read_requirements()
        self._declare_derived()
        functions = self._move_object_functions()
        readers = (reader.types, reader.objects, reader.predicates, reader.functions)
        # each section may contain names of those before it
        for kind, read in zip(reader.declarations, readers, strict=True):
            reader.declarations[kind] = self._read_optional(f":{kind}", read)
            if kind == "predicates" and functions:
                reader.declarations[kind] = mark_functions(reader.declarations[kind], functions)
        axioms = tuple(reader.axiom(group) for group in self.sections[":derived"])
        reader.check_axioms(axioms, self.sections[":derived"])
        splits = [_split_keyword(self.source, group) for group in self.sections[":action"]]
        groups = [*(group for group, _ in splits), *self.sections[":durative-action"]]
        actions = reader.actions(sorted(groups, key=lambda group: group.opening.offset))
        names = {
            group.parts[1].first.text for group, is_uncontrollable in splits if is_uncontrollable
        }
        is_worlds = [(action.outcome_of or action.name) in names for action in actions]
        return Domain(
            name,
            requirements=requirements,
            **reader.declarations,
            actions=tuple(itertools.compress(actions, (not flag for flag in is_worlds))),
            axioms=axioms,
            uncontrollable_actions=tuple(itertools.compress(actions, is_worlds)),
            source=self.source.name,
        )

    def _declare_derived(self) -> None:
        """Declare predicates that occur only in ``:derived``, as the original TMKit does.

        A name similar to that of a declared predicate is not declared, because it is probably
        misspelled.
        """
        sections, axioms = self.sections[":predicates"], self.sections[":derived"]
        names = {part.head for group in sections for part in group.parts if isinstance(part, Group)}
        heads = [group.parts[1] for group in axioms if len(group.parts) == 3]
        new = {
            head.head: head
            for head in heads
            if isinstance(head, Group) and head.head and head.head not in names
        }
        new = {name: head for name, head in new.items() if nearest_name(name, names) is None}
        if new:
            first = sections[0] if sections else axioms[0]._replace(parts=())
            keyword = first.opening._replace(text=":predicates")
            self.sections[":predicates"] = [
                first._replace(parts=(*(first.parts or (keyword,)), *new.values()))
            ]

    def _move_object_functions(self) -> frozenset[str]:
        """Move functions with objects as values to the predicates, and return their names."""
        if not self.sections[":functions"]:
            return frozenset()
        functions, predicates = split_functions(self.sections[":functions"][0])
        if predicates:
            keyword = functions.parts[0].first._replace(text=":predicates")
            sections = self.sections[":predicates"] or [functions._replace(parts=(keyword,))]
            self.sections[":predicates"] = [
                sections[0]._replace(parts=(*sections[0].parts, *predicates))
            ]
            self.sections[":functions"] = [functions]
        return frozenset(group.head for group in predicates)

    def problem(
        self, domain: Domain, scene_objects: Mapping[str, str | Types] | None = None
    ) -> Problem:
        reader = self._make_reader(domain)
        name = reader.header(self.header)
        reader.check_domain(self._require_section(":domain"))
        self._read_requirements()
        objects = {
            name: (types,) if isinstance(types, str) else tuple(types)
            for name, types in (scene_objects or {}).items()
        }
        declarations = self._read_optional(":objects", reader.objects)
        objects |= {item.name: item.types for item in declarations}
        vocabulary = domain.vocabulary_with(objects)
        state, values = State(), dict[Fact, float]()
        if scene_objects is None or self.sections[":init"]:
            state, values = reader.init(self._require_section(":init"), vocabulary)
        goal_section = self._require_section(":goal")
        if len(goal_section.parts) != 2 or not isinstance(goal_section.parts[1], Group):
            raise self.source.error(
                goal_section.first, "expected exactly one formula in (:goal FORMULA)"
            )
        metrics = [group for group in self.sections[":metric"] if len(group.parts) > 1]
        preferences = reader.preferences(
            goal_section.parts[1], metrics[0] if metrics else None, vocabulary
        )
        domain, metric = preferences.domain, Metric.PLAN_LENGTH
        if preferences.metric is not None:
            metric = reader.metric(preferences.metric)
            domain = reader.apply_metric(preferences.metric, domain)
        goal = reader.goal(preferences.goal, domain.vocabulary_with(objects))
        try:
            problem = Problem(
                name, domain, objects=objects, init=state, goal=goal, metric=metric, values=values
            )
        except TaskError as error:
            where = self.source.name or f"problem '{name}'"
            raise TaskError.at(where, error.data["reason"]) from None
        return problem.with_source(self.source.name)
