"""Reading PDDL domains, problems and goals.

The idea: the outer frame of a file, ``(define (domain NAME) SECTION...)``, is read here as nested
lists. Each section is then given to pddlpy's grammar (:mod:`tmkit.pddl.parsing.grammar`), and its
parse tree to a listener that collects what the section declares. So sections may stand in any order
and an error in one is told in terms of that one.

The reader is strict: what it does not understand or support it refuses, with file, line, column and
a caret, and it never guesses. In particular it refuses double and unknown names, wrong numbers and
types of arguments, undeclared variables, a problem of another domain, and text after the end. It
does *not* ask that ``:requirements`` lists every feature used, because most published domains would
fail. Everything is lower-cased.

``:derived`` sections, for which pddlpy's grammar rule is of no use, are read as an action with the
rule's condition as precondition, and lifted out again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmkit._support.limits import BYTE_ORDER_MARK, ReadingLimits, as_utf8, read_bytes
from tmkit.errors import MissingFileError, TaskError, UnknownNameError, nearest_name
from tmkit.pddl.formulas import And, Formula
from tmkit.pddl.model import Domain, Metric, Problem
from tmkit.pddl.parsing.source import Group, Source, Token, as_functions, split_functions
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
        MissingFileError: the file is not there.
        TaskError: the file is not a domain; says where and why.
    """
    return parse_domain(read_pddl(path), source=str(path))


def load_problem(
    path: str | Path, domain: Domain, *, objects: Mapping[str, str | Types] | None = None
) -> Problem:
    """Read a problem file of a domain.

    Args:
        path: the file.
        domain: the domain that the problem must name.
        objects: see :func:`parse_problem`.

    Raises:
        MissingFileError: the file is not there.
        TaskError: the file is not a problem of that domain; says where and why.
    """
    return parse_problem(read_pddl(path), domain, source=str(path), objects=objects)


def _source(name: str, text: str) -> Source:
    """Return a text without its byte order mark, as files are read."""
    return Source(name, text.removeprefix(BYTE_ORDER_MARK))


def parse_domain(text: str, *, source: str = "domain") -> Domain:
    """Read a domain from text.

    Args:
        text: the text.
        source: what to call the text in messages.

    Raises:
        TaskError: the text is not a domain; says where and why.
    """
    return _Frame(_source(source, text), kind="domain", known=DOMAIN_SECTIONS).domain()


def parse_problem(
    text: str,
    domain: Domain,
    *,
    source: str = "problem",
    objects: Mapping[str, str | Types] | None = None,
) -> Problem:
    """Read a problem from text.

    Args:
        text: the text.
        domain: the domain that the problem must name.
        source: what to call the text in messages.
        objects: objects that there are anyway, as those of a scene, with their types. Then the
            problem need not declare them, and need not have an ``:init``, which is empty if
            omitted.

    Raises:
        TaskError: the text is not a problem of that domain; says where and why.
    """
    return _Frame(_source(source, text), kind="problem", known=PROBLEM_SECTIONS).problem(
        domain, objects
    )


def parse_goal(
    text: str, domain: Domain, *, objects: Mapping[str, str | Types], source: str = "goal"
) -> Formula:
    """Read a goal such as ``(on a b)`` or ``(and (on a b) (not (clear c)))``; several in a row are all meant.

    Args:
        text: the text; upper and lower case are the same, also in the names of objects.
        domain: the domain that declares the predicates.
        objects: the objects that may be named, besides the constants, with their types.
        source: what to call the text in messages.

    Returns:
        The formula, with objects spelled as in ``objects``.

    Raises:
        TaskError: the text is not a goal over these names; says where and why.
    """
    from tmkit.pddl.parsing import sections

    origin = _source(source, text)
    groups = origin.groups()
    if not groups:
        raise origin.error(origin.end, "expected a goal such as (on a b), but there is none")
    spelling: dict[str, str] = {}
    for name in objects:
        if spelling.setdefault(name.lower(), name) != name:
            reason = (
                f"objects '{spelling[name.lower()]}' and '{name}' differ only in case, which PDDL"
                " does not see"
            )
            raise TaskError.at(source, reason)
    lowered = {
        n.lower(): (types,) if isinstance(types, str) else tuple(types)
        for n, types in objects.items()
    }
    reader = sections.SectionReader(origin, domain)
    formulas = [reader.goal(group, domain.vocabulary_with(lowered)) for group in groups]
    renamed = [sections.renamed(formula, spelling) for formula in formulas]
    return renamed[0] if len(renamed) == 1 else And(tuple(renamed))


def read_pddl(path: str | Path) -> str:
    """Return the text of a file that may be anything; a byte order mark is omitted."""
    limit = ReadingLimits().text_bytes
    try:
        data = read_bytes(
            Path(path),
            limit=limit,
            error=lambda reason: TaskError.at(str(path), f"the file {reason}"),
        )
    except TaskError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise _missing(Path(path)) from None
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


def _missing(path: Path) -> MissingFileError:
    """Return the error that a file is not there, with the nearest name in its folder."""
    near = None
    with contextlib.suppress(OSError):
        near = nearest_name(path.name, (entry.name for entry in path.parent.iterdir()))
    hint = f"; did you mean '{path.parent / near}'?" if near else ""
    return MissingFileError(f"no file '{path}'{hint}", path=str(path), nearest=near)


def _is_chosen(group: Group) -> bool:
    """Return whether a planner chooses an action: not one that is ``:uncontrollable t``, which the world does."""
    words = [part.text if isinstance(part, Token) else "" for part in group.parts]
    value = (
        words[words.index(":uncontrollable") + 1 :][:1] if ":uncontrollable" in words else ["nil"]
    )
    return value == ["nil"]


class _Frame:
    """The outermost list of a file and its sections by keyword."""

    def __init__(self, source: Source, *, kind: str, known: tuple[str, ...]) -> None:
        self.source = source
        self.kind = kind
        whole = source.groups()
        if not whole:
            raise source.error(
                source.end, f"expected (define ({kind} NAME) ...), but the text is empty"
            )
        for extra in whole[1:]:
            raise source.error(extra.opening, f"stray text after the end of the {kind}")
        self.header, entries = self._split(whole[0])
        self.sections = self._sections(entries, known)

    def _split(self, whole: Group) -> tuple[Group, tuple[Token | Group, ...]]:
        if whole.head != "define":
            raise self.source.error(whole.first, f"expected (define ({self.kind} NAME) ...)")
        header = whole.parts[1] if len(whole.parts) > 1 else whole.closing
        if not isinstance(header, Group) or header.head != self.kind:
            where = header.first if isinstance(header, Group) else header
            head = header.head if isinstance(header, Group) else ""
            is_other = head in {"domain", "problem"}
            other = (
                f"; this file is a {head}: give the domain first, then the problem"
                if is_other
                else ""
            )
            raise self.source.error(where, f"expected ({self.kind} NAME) after 'define'{other}")
        return header, whole.parts[2:]

    def _sections(
        self, entries: Iterable[Token | Group], known: tuple[str, ...]
    ) -> dict[str, list[Group]]:
        found: dict[str, list[Group]] = {name: [] for name in known}
        for entry in entries:
            if not isinstance(entry, Group):
                raise self.source.error(
                    entry, f"stray '{entry.text}'; expected a section such as ({known[-1]} ...)"
                )
            if entry.head in _UNSUPPORTED:
                raise self.source.error(entry.first, _UNSUPPORTED[entry.head])
            if entry.head not in found:
                reason = UnknownNameError.of(f"section of a {self.kind}", entry.head, known).message
                raise self.source.error(entry.first, reason)
            if found[entry.head] and entry.head not in _REPEATABLE:
                raise self.source.error(entry.first, f"there is already a section '{entry.head}'")
            found[entry.head].append(entry)
        return found

    def _required(self, name: str) -> Group:
        if not self.sections[name]:
            raise self.source.error(self.source.end, f"the {self.kind} has no section ({name} ...)")
        return self.sections[name][0]

    def _optional(self, name: str, read: Callable[[Group], Any]) -> Any:
        """Return what ``read`` makes of the section, or an empty tuple when it is omitted or empty."""
        return (
            read(self.sections[name][0])
            if self.sections[name] and len(self.sections[name][0].parts) > 1
            else ()
        )

    def _requirements(self) -> tuple[str, ...]:
        for group in self.sections[":requirements"]:
            for part in group.parts[1:]:
                token = part.first if isinstance(part, Group) else part
                if token.text not in REQUIREMENTS:
                    raise self.source.error(
                        token, UnknownNameError.of("requirement", token.text, REQUIREMENTS).message
                    )
        found: tuple[str, ...] = self._optional(":requirements", self._reader().requirements)
        return found

    def _reader(self, domain: Domain | None = None) -> sections.SectionReader:
        from tmkit.pddl.parsing import sections

        return sections.SectionReader(self.source, domain)

    def domain(self) -> Domain:
        reader = self._reader()
        name, requirements = reader.header(self.header), self._requirements()
        self._declare_derived()
        moved = self._object_functions()
        readers = (reader.types, reader.objects, reader.predicates, reader.functions)
        # each may speak of those before
        for kind, read in zip(reader.declared, readers, strict=True):
            reader.declared[kind] = self._optional(f":{kind}", read)
            if kind == "predicates" and moved:
                reader.declared[kind] = as_functions(reader.declared[kind], moved)
        axioms = tuple(reader.axiom(group) for group in self.sections[":derived"])
        reader.check_axioms(axioms, self.sections[":derived"])
        listed = [*filter(_is_chosen, self.sections[":action"]), *self.sections[":durative-action"]]
        actions = reader.actions(sorted(listed, key=lambda group: group.opening.offset))
        return Domain(
            name,
            requirements=requirements,
            **reader.declared,
            actions=actions,
            axioms=axioms,
            source=self.source.name,
        )

    def _declare_derived(self) -> None:
        """Declare predicates that only ``:derived`` names, as in the original TMKit, if that is no misspelling."""
        given = self.sections[":predicates"]
        known = {part.head for group in given for part in group.parts if isinstance(part, Group)}
        heads = [group.parts[1] for group in self.sections[":derived"] if len(group.parts) == 3]
        new = {
            head.head: head
            for head in heads
            if isinstance(head, Group) and head.head and head.head not in known
        }
        new = {name: head for name, head in new.items() if nearest_name(name, known) is None}
        if new:
            first = given[0] if given else next(iter(self.sections[":derived"]))._replace(parts=())
            keyword = first.opening._replace(text=":predicates")
            self.sections[":predicates"] = [
                first._replace(parts=(*(first.parts or (keyword,)), *new.values()))
            ]

    def _object_functions(self) -> frozenset[str]:
        """Move functions whose values are objects to the predicates; return their names."""
        if not self.sections[":functions"]:
            return frozenset()
        functions, moved = split_functions(self.sections[":functions"][0])
        if moved:
            keyword = functions.parts[0].first._replace(text=":predicates")
            declared = self.sections[":predicates"] or [functions._replace(parts=(keyword,))]
            self.sections[":predicates"] = [
                declared[0]._replace(parts=(*declared[0].parts, *moved))
            ]
            self.sections[":functions"] = [functions]
        return frozenset(group.head for group in moved)

    def problem(self, domain: Domain, known: Mapping[str, str | Types] | None = None) -> Problem:
        reader = self._reader(domain)
        name = reader.header(self.header)
        reader.check_domain(self._required(":domain"))
        self._requirements()
        objects = {
            name: (types,) if isinstance(types, str) else tuple(types)
            for name, types in (known or {}).items()
        }
        objects |= {item.name: item.types for item in self._optional(":objects", reader.objects)}
        words = domain.vocabulary_with(objects)
        needs_init = known is None or self.sections[":init"]
        state, values = reader.init(self._required(":init"), words) if needs_init else (State(), {})
        goal_section = self._required(":goal")
        if len(goal_section.parts) != 2 or not isinstance(goal_section.parts[1], Group):
            raise self.source.error(
                goal_section.first, "expected exactly one formula in (:goal FORMULA)"
            )
        metrics = [group for group in self.sections[":metric"] if len(group.parts) > 1]
        plain = reader.preferences(goal_section.parts[1], metrics[0] if metrics else None, words)
        minimize = None if plain.metric is None else reader.metric(plain.metric)
        domain = plain.domain if plain.metric is None else reader.timed(plain.metric, plain.domain)
        return Problem(
            name,
            domain,
            objects=objects,
            init=state,
            goal=reader.goal(plain.goal, domain.vocabulary_with(objects)),
            metric=minimize or Metric.PLAN_LENGTH,
            values=values,
            source=self.source.name,
        )
