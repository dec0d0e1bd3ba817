"""Ten kinds of errors at random places of all domains and problems are rejected there.

The places are found by a reader of nested lists of this module's own, which shares nothing with the
parser's: the text of a word, where it stands, and which words are atoms, variables, types and
names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from support.task_problems import DATA, NAMES

import tmkit._support.data
from tmkit.errors import TaskError
from tmkit.pddl import Domain, load_domain, parse_domain, parse_problem
from tmkit.pddl.vocabulary import Vocabulary

PLACES_A_KIND = 3

DOMAINS = [DATA / name / "domain.pddl" for name in NAMES]
DOMAINS += sorted((DATA.parent / "domains").glob("*/domain.pddl"))
DOMAINS += sorted(tmkit._support.data.data_path("domains").glob("*/domain.pddl"))
PROBLEMS = [DATA / name / "problem.pddl" for name in NAMES]

CONNECTIVES = ("and", "or", "not", "imply", "when")
QUANTIFIERS = ("forall", "exists")
NUMERIC = ("=", "<", ">", "<=", ">=", "increase")


# --------------------------------------------------------------------------------- the plain reader


@dataclass(frozen=True)
class Word:
    """A word and where it stands."""

    text: str
    begin: int

    @property
    def end(self) -> int:
        """Offset of the next character."""
        return self.begin + len(self.text)


@dataclass
class Node:
    """A list with its place and its parts."""

    begin: int
    end: int = 0
    parts: list[Word | Node] = field(default_factory=list)

    @property
    def words(self) -> list[Word]:
        """The words directly in it."""
        return [part for part in self.parts if isinstance(part, Word)]

    @property
    def nodes(self) -> list[Node]:
        """The lists directly in it."""
        return [part for part in self.parts if isinstance(part, Node)]

    @property
    def head(self) -> str:
        """Its first word in lower case."""
        return self.parts[0].text.lower() if self.parts and isinstance(self.parts[0], Word) else ""


def nested_section(text: str) -> Node:
    """Return the definition that a text consists of."""
    blank = re.sub(r";[^\n]*", lambda comment: " " * len(comment.group()), text)
    opened = [Node(0)]
    for match in re.finditer(r"[()]|\??[^\s()?]+|\?", blank):
        if match.group() == "(":
            opened.append(Node(match.start()))
        elif match.group() == ")":
            closed = opened.pop()
            closed.end = match.end()
            opened[-1].parts.append(closed)
        else:
            opened[-1].parts.append(Word(match.group(), match.start()))
    (whole,) = opened[0].nodes
    return whole


def types_in(parts: list[Word | Node]) -> Iterator[Word]:
    """Yield the types that a typed list names."""
    for before, part in itertools.pairwise(parts):
        if isinstance(before, Word) and before.text == "-":
            yield from part.words[1:] if isinstance(part, Node) else [part]


@dataclass
class Uses:
    """Content of a text.

    Attributes:
        text: the text.
        domain: the domain that it is or belongs to.
        words: acceptable texts in it.
        atoms: every atom of a condition, effect, initial state or goal, with the variables bound by
            quantifiers, and the action that it stands in.
        types: every word that names a type that must be declared.
        sections: by keyword.
    """

    text: str
    domain: Domain
    words: Vocabulary
    atoms: list[tuple[Node, frozenset[str], str]] = field(default_factory=list)
    types: list[Word] = field(default_factory=list)
    sections: list[Node] = field(default_factory=list)

    def walk(self, node: Node, bound: frozenset[str], action: str) -> None:
        """Note the atoms and types of a condition or effect."""
        if node.head in QUANTIFIERS:
            variables = node.parts[1]
            assert isinstance(variables, Node)
            self.types.extend(types_in(variables.parts))
            bound |= {word.text for word in variables.words}
            self.walk(node.nodes[1], bound, action)
        elif node.head in CONNECTIVES or not node.head:
            for part in node.nodes:
                self.walk(part, bound, action)
        elif node.head not in NUMERIC:
            self.atoms.append((node, bound, action))


def uses(text: str, domain: Domain, words: Vocabulary) -> Uses:
    """Return the content of a domain or problem."""
    collected = Uses(text, domain, words, sections=nested_section(text).nodes[1:])
    for section in collected.sections:
        match section.head:
            case ":types" | ":constants" | ":objects":
                collected.types.extend(types_in(section.parts))
            case ":predicates" | ":functions":
                for signature in section.nodes:
                    collected.types.extend(types_in(signature.parts))
            case ":init" | ":goal":
                for part in section.nodes:
                    collected.walk(part, frozenset(), "")
            case ":derived":
                collected.types.extend(types_in(section.nodes[0].parts))
                collected.walk(section.nodes[1], frozenset(), ":derived")
            case ":action":
                for key, part in itertools.pairwise(section.parts):
                    if isinstance(key, Word) and isinstance(part, Node):
                        if key.text == ":parameters":
                            collected.types.extend(types_in(part.parts))
                        else:
                            collected.walk(part, frozenset(), section.words[1].text.lower())
    return collected


# --------------------------------------------------------------------------------------- the errors


@dataclass(frozen=True)
class Seeded:
    """Text with an error: first and last offset of the report, and its message."""

    text: str
    first: int
    last: int
    reason: str


Seeder = Callable[[Uses, Random], Seeded | None]


def put(text: str, begin: int, end: int, new: str) -> str:
    """Return the text with a part replaced."""
    return text[:begin] + new + text[end:]


def misspelt(word: str, random: Random) -> str:
    """Return the word with one letter double or a letter more."""
    index = random.randrange(len(word))
    return random.choice([f"{word[: index + 1]}{word[index:]}", f"{word}q"])


def at_word(uses: Uses, word: Word, new: str, reason: str) -> Seeded:
    """Return the text with a replaced word, whose begin is the expected place."""
    return Seeded(put(uses.text, word.begin, word.end, new), word.begin, word.begin, reason)


def missing_parenthesis(uses: Uses, random: Random) -> Seeded:
    """Drop a closing parenthesis, expected from the begin of its section to the next one."""
    section = random.choice(uses.sections)
    ends = [section.end - 1]
    pending = [section]
    while pending:
        node = pending.pop()
        ends.append(node.end - 1)
        pending.extend(node.nodes)
    index = random.choice(ends)
    text = put(uses.text, index, index + 1, "")
    begin = section.begin
    if section is uses.sections[-1]:
        return Seeded(text, 0, len(text), "never closed|is not closed before|expected")
    later = [other.begin for other in uses.sections if other.begin > section.begin]
    return Seeded(text, begin, later[0], "this parenthesis is not closed before .* in line")


def missing_opening(uses: Uses, random: Random) -> Seeded:
    """Drop an opening parenthesis, expected in the definition or at its early end."""
    section = random.choice(uses.sections)
    pending, begins = [section], []
    while pending:
        node = pending.pop()
        begins.append(node.begin)
        pending.extend(node.nodes)
    index = random.choice(begins)
    return Seeded(
        put(uses.text, index, index + 1, " "),
        section.begin,
        len(uses.text),
        "parenthesis|unexpected|stray|expected",
    )


def unknown_predicate(uses: Uses, random: Random) -> Seeded:
    """Misspell a predicate, expected there with the nearest name."""
    node, _, _ = random.choice(uses.atoms)
    new = misspelt(node.words[0].text, random)
    return at_word(
        uses, node.words[0], new, f"unknown predicate '{re.escape(new.lower())}'; did you mean '"
    )


def wrong_arity(uses: Uses, random: Random) -> Seeded | None:
    """Add an argument, expected there, or drop one, expected in the atom."""
    node, _, _ = random.choice(uses.atoms)
    count = len(node.words) - 1
    plural = "" if count == 1 else "s"
    if count and random.random() < 0.5:
        word = node.words[-1]
        text = put(uses.text, word.begin, word.end, "")
        last = node.words[-2].begin
        return Seeded(text, last, last, f"takes {count} argument{plural}, but {count - 1} w")
    if not count:
        return None
    word = node.words[-1]
    text = put(uses.text, word.end, word.end, f" {word.text}")
    return Seeded(
        text,
        word.end + 1,
        word.end + 1,
        f"takes {count} argument{plural}, but {count + 1} were given",
    )


def use_undeclared_variable(uses: Uses, random: Random) -> Seeded | None:
    """Use an undeclared variable, expected there."""
    node, _, _ = random.choice(uses.atoms)
    if len(node.words) < 2:
        return None
    return at_word(
        uses,
        random.choice(node.words[1:]),
        "?unheard",
        r"(unknown variable|unexpected) '\?unheard'",
    )


def unknown_type(uses: Uses, random: Random) -> Seeded | None:
    """Misspell a type, expected there with the nearest name."""
    if not uses.types:
        return None
    word = random.choice(uses.types)
    # misspelt behind a type that is declared, the latter declares another one
    if word.text in ("number", "object"):
        return None
    new = misspelt(word.text, random)
    return at_word(uses, word, new, f"unknown type '{re.escape(new.lower())}'; did you mean '")


def ill_typed_object(uses: Uses, random: Random) -> Seeded | None:
    """Use an argument of a wrong type, expected there: object, parameter or constant."""
    node, bound, place = random.choice(uses.atoms)
    words = uses.words
    predicate = words.predicates[node.head]
    if place == ":derived" or not predicate.parameters:
        return None
    types_by_name = {name: types for name, types in words.objects.items() if name not in bound}
    if place:
        (action,) = (action for action in uses.domain.actions if action.name == place)
        types_by_name |= {
            parameter.name: parameter.types
            for parameter in action.parameters
            if parameter.name not in bound
        }
    position = random.randrange(len(predicate.parameters))
    wrong = [
        name
        for name, types in types_by_name.items()
        if not words.is_allowed_as(types, predicate.parameters[position].types)
    ]
    if not wrong:
        return None
    reason = f"argument {position + 1} of predicate '{node.head}' must be of type .* is of type "
    return at_word(uses, node.words[1 + position], random.choice(wrong), reason)


def wrong_domain(uses: Uses, random: Random) -> Seeded | None:
    """Name another domain in a problem, expected there with the correct name."""
    (section,) = [section for section in uses.sections if section.head == ":domain"] or [None]
    if section is None:
        return None
    reason = (
        "the problem is one of domain 'elsewhere', but the domain given is"
        f" '{re.escape(uses.domain.name)}'"
    )
    return at_word(uses, section.words[1], "elsewhere", reason)


def duplicate_action(uses: Uses, random: Random) -> Seeded | None:
    """Repeat an action, expected at the second name."""
    actions = [section for section in uses.sections if section.head == ":action"]
    if not actions:
        return None
    copied, before = random.choice(actions), random.choice(actions)
    text = put(uses.text, before.end, before.end, "\n  " + uses.text[copied.begin : copied.end])
    second = max(
        node.words[1].begin
        for node in nested_section(text).nodes
        if node.words[1:] and node.words[1].text == copied.words[1].text
    )
    return Seeded(
        text, second, second, f"action '{copied.words[1].text.lower()}' is declared twice"
    )


def unknown_requirement(uses: Uses, random: Random) -> Seeded:
    """Add an unknown requirement, expected there with the nearest one."""
    sections = [section for section in uses.sections if section.head == ":requirements"]
    reason = "unknown requirement '.*'; did you mean ':"
    if sections:
        word = random.choice(sections[0].words[1:])
        return at_word(uses, word, misspelt(word.text, random), reason)
    offset = uses.sections[0].begin
    return Seeded(
        put(uses.text, offset, offset, "(:requirements :strips :tiping) "),
        offset + 23,
        offset + 23,
        reason,
    )


def stray_text(uses: Uses, random: Random) -> Seeded:
    """Append text after the end, expected there."""
    stray = random.choice(
        ["more", ")", "(:action more)", "(define (domain more))", ":goal", "?x", "-", "5", "()"]
    )
    place = len(uses.text) + 1
    words = "stray|no opening|closes too much"
    return Seeded(f"{uses.text}\n{stray}\n", place, place + 1, words)


SEEDERS: list[Seeder] = [
    missing_parenthesis,
    missing_opening,
    unknown_predicate,
    wrong_arity,
    use_undeclared_variable,
    unknown_type,
    ill_typed_object,
    wrong_domain,
    duplicate_action,
    unknown_requirement,
    stray_text,
]


# ---------------------------------------------------------------------------------------- the tests


def place_of(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column, from 1, of an offset."""
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def prove_refused(seeded: Seeded, read: Callable[[str], object]) -> None:
    """Check that a text is rejected at its place, with the line and a caret under the column."""
    with pytest.raises(TaskError) as caught:
        read(seeded.text)
    message, line, column = (
        str(caught.value),
        caught.value.data["line"],
        caught.value.data["column"],
    )
    assert (
        place_of(seeded.text, seeded.first) <= (line, column) <= place_of(seeded.text, seeded.last)
    ), message
    first, shown, caret = message.split("\n")
    assert first.startswith(f"task.pddl:{line}:{column}: "), message
    assert re.search(seeded.reason, first), message
    # of a long line only a part is shown
    written, under = seeded.text.split("\n")[line - 1], caret.index("^")
    assert shown.startswith("    ")
    assert shown.strip().removeprefix("...").removesuffix("...").strip() in written
    assert shown[under : under + 1] == written[column - 1 : column]


def seeds(path: Path, seeder: Seeder) -> Random:
    """Return random numbers of their own for each file and kind of error."""
    return Random(f"{path.parent.name} {path.name} {seeder.__name__}")


def prove_all_refused(
    path: Path, seeder: Seeder, collected: Uses, read: Callable[[str], object]
) -> None:
    """Seed an error at several places of a file, and check that each is rejected."""
    random, done = seeds(path, seeder), 0
    for _ in range(20 * PLACES_A_KIND):
        if done < PLACES_A_KIND and (seeded := seeder(collected, random)) is not None:
            prove_refused(seeded, read)
            done += 1
    if done == 0:
        pytest.skip("this error cannot occur in this file")


def kinds(*left_out: Seeder) -> list[Seeder]:
    """Return the kinds of error but those left out."""
    return [seeder for seeder in SEEDERS if seeder not in left_out]


@pytest.mark.parametrize("path", DOMAINS, ids=lambda path: str(path.parent.name))
@pytest.mark.parametrize("seeder", kinds(wrong_domain), ids=lambda seeder: str(seeder.__name__))
def test_an_error_in_a_domain_is_refused_in_its_place(path: Path, seeder: Seeder) -> None:
    """Each kind of error is reported with file, line, column, caret and the nearest name."""
    text, domain = path.read_text(encoding="utf-8"), load_domain(path)
    collected = uses(text, domain, domain.vocabulary)
    prove_all_refused(path, seeder, collected, lambda text: parse_domain(text, source="task.pddl"))


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: str(path.parent.name))
@pytest.mark.parametrize("seeder", kinds(duplicate_action), ids=lambda seeder: str(seeder.__name__))
def test_an_error_in_a_problem_is_refused_in_its_place(path: Path, seeder: Seeder) -> None:
    """Each kind of error is reported with file, line, column, caret and the nearest name."""
    domain = load_domain(path.with_name("domain.pddl"))
    text = path.read_text(encoding="utf-8")
    collected = uses(text, domain, parse_problem(text, domain).vocabulary)
    prove_all_refused(
        path, seeder, collected, lambda text: parse_problem(text, domain, source="task.pddl")
    )
