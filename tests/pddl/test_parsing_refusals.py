"""Invalid PDDL is rejected with file, line, column, a caret and the nearest valid name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.task_problems import DATA, NAMES, load

from tmkit.errors import TaskError
from tmkit.pddl import parse_domain, parse_goal, parse_problem
from tmkit.pddl.vocabulary import MAX_TYPE_DEPTH

DOMAIN = (DATA / "places" / "domain.pddl").read_text()
PROBLEM = (DATA / "places" / "problem.pddl").read_text()
ROOMS = (DATA / "rooms" / "domain.pddl").read_text()


def replace_once(text: str, old: str, new: str) -> str:
    """Return the text with the first ``old`` replaced; it must be there."""
    assert old in text
    return text.replace(old, new, 1)


def refusal(text: str, *, problem: bool = False) -> TaskError:
    """Return the error of a text."""
    domain = load("places").domain
    with pytest.raises(TaskError) as caught:
        _ = (
            parse_problem(text, domain, source="task.pddl")
            if problem
            else parse_domain(text, source="task.pddl")
        )
    return caught.value


def caret_word(error: TaskError) -> str:
    """Return the word under the caret of the message."""
    _, line, caret = str(error).split("\n")[-3:]
    match = re.compile(r"\??[^\s();?]+|[()]|$").match(line, caret.index("^"))
    assert match is not None
    return match.group()


PAIR = "(?x - block ?y - block)\n    :precondition (and (held"

DOMAIN_ERRORS = [
    # (replaced, by, reason, line, word under the caret)
    ("(:action lower", "(:action lift", "action 'lift' is declared twice", 15, "lift"),
    (
        "(held ?x) (clear ?p))\n",
        "(hold ?x) (clear ?p))\n",
        "unknown predicate 'hold'; did you mean 'held'",
        17,
        "hold",
    ),
    (
        "(and (held ?x) (clear ?y))",
        "(and (held ?x ?y) (clear ?y))",
        "'held' takes 1 argument, but 2",
        21,
        "?y",
    ),
    (
        "(and (held ?x) (clear ?y))",
        "(and (held) (clear ?y))",
        "'held' takes 1 argument, but 0",
        21,
        "held",
    ),
    (
        "precondition (and (on ?x ?y)",
        "precondition (and (on ?x ?p)",
        r"unknown variable '\?p'",
        25,
        "?p",
    ),
    (
        "(at ?x ?p) (clear ?x) (empty)",
        "(at ?p ?x) (clear ?x) (empty)",
        "must be of type block, but '\\?p' is of type place",
        18,
        "?p",
    ),
    (
        PAIR,
        PAIR.replace("?x - block", "?x - blok"),
        "unknown type 'blok'; did you mean 'block'",
        20,
        "blok",
    ),
    (PAIR, PAIR.replace("?y", "?x"), r"parameter '\?x' is declared twice", 20, "?x"),
    (
        "(on ?x - block ?y - block)\n",
        "(on ?x - block ?y - stone)\n",
        "unknown type 'stone'",
        6,
        "stone",
    ),
    (
        ":typing",
        ":typings",
        "unknown requirement ':typings'; did you mean ':typing'",
        3,
        ":typings",
    ),
    (
        "(held ?x - block))",
        "(held ?x - block) (on ?a))",
        "predicate 'on' is declared twice",
        10,
        "on",
    ),
    (
        "block - object\n          place - object",
        "block - place\n          place - block",
        "type 'block' is above itself",
        4,
        "block",
    ),
    (
        ":precondition (and (held ?x) (clear ?p))",
        ":precondition (and (held ?x) (clear left))",
        "unknown object 'left'",
        17,
        "left",
    ),
    (
        ":parameters (?x - block ?p - place)",
        ":parameter (?x - block ?p - place)",
        "unexpected ':parameter'; expected :parameters",
        12,
        ":parameter",
    ),
    (
        "(:predicates",
        "(:predicate",
        "unknown section of a domain ':predicate'; did you mean ':predicates'",
        6,
        ":predicate",
    ),
    ("(empty)\n", "(empty) held\n", "unexpected 'held'; expected '\\(' or '\\)'", 9, "held"),
    ("(not (at ?x ?p))", "(not (at ?x ?p) (empty))", "unexpected '\\('; expected '\\)'", 14, "("),
    ("(and (held ?x) (clear ?y))", "(imply (held ?x))", "unexpected '\\)'", 21, ")"),
    ("(and (clear ?x) (at", "(and ((clear ?x)) (at", "unexpected '\\('", 13, "("),
    (":effect (and (on ?x ?y)", ":effect (or (on ?x ?y)", "unexpected 'or'\n", 22, "or"),
    ("(domain places)", "(domain)", "unexpected '\\)'; expected a name", 2, ")"),
    (
        "(define (domain",
        "(defined (domain",
        r"expected \(define \(domain NAME\) ...\)",
        2,
        "defined",
    ),
    (
        "?y - block)\n",
        "?y - block\n",
        "this parenthesis is not closed before the one in line 7, column 16",
        6,
        "(",
    ),
]


@pytest.mark.parametrize(("old", "new", "reason", "line", "word"), DOMAIN_ERRORS)
def test_a_wrong_domain_is_refused_where_it_is_wrong(
    old: str, new: str, reason: str, line: int, word: str
) -> None:
    """Each seeded error is rejected at its line, with the caret under the wrong word."""
    error = refusal(replace_once(DOMAIN, old, new))
    assert re.search(reason, str(error)), str(error)
    assert error.data["line"] == line, str(error)
    assert str(error).startswith(f"task.pddl:{line}:{error.data['column']}: ")
    assert caret_word(error) == word, str(error)


FEATURES = [
    # (precondition or effect, the feature by its name, word under the caret)
    ("(preference nice (empty))", "a preference outside of a goal is not supported", "preference"),
    (
        "(and (empty) (sometime-after (empty) (held ?x)))",
        "trajectory constraints are not supported",
        "sometime-after",
    ),
    ("(or (empty) (within 5 (held ?x)))", "trajectory constraints are not supported", "within"),
    (
        "(oneof (empty) (held ?x))",
        "'oneof' outside of an effect without duration is not supported",
        "oneof",
    ),
]


@pytest.mark.parametrize(("condition", "feature", "word"), FEATURES)
def test_a_feature_that_is_lacking_is_named(condition: str, feature: str, word: str) -> None:
    """An unsupported feature is reported by name, in its line."""
    error = refusal(replace_once(DOMAIN, "(and (held ?x) (clear ?p))", condition))
    assert (feature in str(error), error.data["line"], caret_word(error)) == (True, 17, word), str(
        error
    )


@pytest.mark.parametrize(
    ("section", "feature"),
    [
        ("(:task carry)", "hierarchical tasks (HDDL) are not supported"),
        ("(:axiom :vars (?x))", "expected (:derived (PREDICATE PARAMETERS) CONDITION)"),
        ("(:process rain)", "processes are not supported"),
        (
            "(:action look :parameters () :observe (empty))",
            "sensing actions (:observe) are not supported",
        ),
    ],
)
def test_a_section_that_is_lacking_is_named(section: str, feature: str) -> None:
    """Any known requirements are accepted."""
    text = replace_once(
        DOMAIN, ":typing", ":typing :hierarchy :contingent :probabilistic-effects :time"
    )
    assert parse_domain(text).name == "places"
    assert feature in str(refusal(replace_once(text, "(:predicates", f"{section} (:predicates")))


PROBLEM_ERRORS = [
    (
        "(:domain places)",
        "(:domain blocks)",
        "one of domain 'blocks', but the domain given is 'places'",
        2,
        "blocks",
    ),
    ("(at b middle)", "(at b centre)", "unknown object 'centre'", 6, "centre"),
    (
        "(at b middle)",
        "(at middle b)",
        "argument 1 of predicate 'at' must be of type block, but 'middle'",
        6,
        "middle",
    ),
    ("(on c a)", "(on c a b)", "'on' takes 2 arguments, but 3 were given", 5, "b"),
    ("(on c a)", "(under c a)", "unknown predicate 'under'", 5, "under"),
    ("(on c a)", "(not (at a left))", r"\(at a left\) is both stated and denied", 5, "("),
    ("- place)", "- plaice)", "unknown type 'plaice'; did you mean 'place'", 4, "plaice"),
    ("a b c - block", "a b c a - block", "object 'a' is declared twice", 3, "a"),
    ("(on b c) (empty)", "(on b d) (empty)", "unknown object 'd'", 8, "d"),
    (
        "(on b c) (empty)",
        "(on b left) (empty)",
        "argument 2 of predicate 'on' must be of type block",
        8,
        "left",
    ),
    ("(on b c) (empty)", "(on b ?c) (empty)", r"unknown variable '\?c'", 8, "?c"),
    ("(on c a)", "(at 5 (on c a))", "timed initial literals are not supported", 5, "at"),
    ("(on c a)", "(= (weight a) 5)", "unknown function 'weight'", 5, "weight"),
    (
        "(empty)))",
        "(empty))) (:metric minimize (size))",
        r"expected minimize \(total-cost\)",
        8,
        ":metric",
    ),
    ("(empty)))", "(empty))) extra", "stray 'extra'", 8, "extra"),
    (
        "(:goal",
        "(:goals",
        "unknown section of a problem ':goals'; did you mean ':goal'",
        8,
        ":goals",
    ),
    ("(:objects a b c", "(:objects (a) b c", r"unexpected '\('", 3, "("),
]


@pytest.mark.parametrize(("old", "new", "reason", "line", "word"), PROBLEM_ERRORS)
def test_a_wrong_problem_is_refused_where_it_is_wrong(
    old: str, new: str, reason: str, line: int, word: str
) -> None:
    """Each seeded error is rejected at its line, with the caret under the wrong word."""
    error = refusal(replace_once(PROBLEM, old, new), problem=True)
    assert re.search(reason, str(error)), str(error)
    assert error.data["line"] == line, str(error)
    assert caret_word(error) == word, str(error)


def chain_of_types(count: int) -> str:
    """Return a domain with a chain of subtypes."""
    types = " ".join(f"t{i} - t{i + 1}" for i in range(count))
    return (
        f"(define (domain d) (:types {types}) (:predicates (p ?x - t{count - 1})) (:action a"
        " :parameters (?x - t0)))"
    )


def test_types_that_stand_too_deep_are_refused() -> None:
    """A chain of a few hundred types is read; one of thousands is rejected at once."""
    assert len(parse_domain(chain_of_types(MAX_TYPE_DEPTH - 1)).types) == MAX_TYPE_DEPTH
    error = refusal(chain_of_types(5000))
    assert f"more than {MAX_TYPE_DEPTH} types above each other" in str(error)


def test_a_long_circle_of_types_is_refused_at_its_first_type() -> None:
    """A cycle of any length is found; types below it are not reported."""
    types = " ".join(f"t{i} - t{(i + 1) % 5000}" for i in range(5000))
    error = refusal(f"(define (domain d) (:types below - t7 {types}))")
    assert "type 't0' is above itself" in str(error)


AXIOM_ERRORS = [
    ("(robot-at ?r) (not", "(stranded ?q) (not", None),
    ("(not (reachable ?r ?p))", "(not (stranded ?q))", "'stranded' depends on its own negation"),
    ("(robot-at ?b) (not (robot-at ?a))", "(reachable ?a ?b)", "predicate 'reachable' is derived"),
    ("(:derived (passage ?a ?b)", "(:derived (passage ?a)", "'passage' takes 2 arguments, but 1"),
    ("(:derived (passage ?a ?b)", "(:derived (pass ?a ?b)", "unknown predicate 'pass'"),
    (
        "(:derived (passage ?a ?b)",
        "(:derived (passage ?a - parcel ?b)",
        "must be of type place, but '\\?a' is of type parcel",
    ),
    (
        "(increase (total-cost) 1.5)",
        "(decrease (total-cost) 1.5)",
        "\\(total-cost\\) may only be increased",
    ),
    ("(increase (total-cost) 1.5)", "(increase (distanc ?a ?b) 1.5)", "unknown function 'distanc'"),
    (
        "(increase (total-cost) 1.5)",
        "(increase (total-cost) (distance ?d ?b))",
        "must be of type place, but '\\?d' is of type door",
    ),
]


@pytest.mark.parametrize(("old", "new", "reason"), AXIOM_ERRORS)
def test_wrong_axioms_and_costs_are_refused(old: str, new: str, reason: str | None) -> None:
    """A derived predicate must not depend on its negation or be changed by an action."""
    text = replace_once(ROOMS, old, new)
    if reason is None:
        assert parse_domain(text).axioms
    else:
        assert re.search(reason, str(refusal(text)))


def test_stating_a_derived_fact_is_refused() -> None:
    """A derived fact in the initial state is rejected."""
    text = (DATA / "rooms" / "problem.pddl").read_text()
    with pytest.raises(TaskError, match=r":4:11: predicate 'passage' is derived"):
        parse_problem(
            replace_once(text, "(robot-at dock)", "(passage dock hall)"), load("rooms").domain
        )


def test_an_object_that_is_a_constant_is_refused() -> None:
    """A constant of the domain is an object of every problem and cannot be declared again."""
    text = (DATA / "rooms" / "problem.pddl").read_text()
    with pytest.raises(TaskError, match="object 'dock' is already a constant"):
        parse_problem(
            replace_once(text, "kitchen study", "kitchen study dock"), load("rooms").domain
        )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (DOMAIN + "\n(:action more)", "stray text after the end of the domain"),
        (DOMAIN + "\nmore", r"stray 'more'"),
        (DOMAIN + ")", "this closing parenthesis has no opening one"),
        ("; nothing\n", "the text is empty"),
        ("domain", r"stray 'domain'; expected '\('"),
        ("(define)", r"expected \(domain NAME\)"),
        ("(define (problem p))", r"expected \(domain NAME\)"),
    ],
)
def test_text_that_is_no_domain_is_refused(text: str, reason: str) -> None:
    """Text before, after or instead of the definition is rejected."""
    assert re.search(reason, str(refusal(text)))


@pytest.mark.parametrize("missing", [":domain", ":init", ":goal"])
def test_a_problem_without_a_section_is_refused(missing: str) -> None:
    """A problem must name its domain and have an initial state and a goal."""
    lines = {":domain": "(:domain places)", ":init": "(:init)", ":goal": "(:goal ())"}
    text = (
        "(define (problem p) "
        + " ".join(line for name, line in lines.items() if name != missing)
        + ")"
    )
    assert f"the problem has no section ({missing} ...)" in str(refusal(text, problem=True))


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ("", "expected a goal"),
        ("on a b", "stray 'on'"),
        ("(on a)", "'on' takes 2 arguments, but 1 was given"),
        ("(on a z)", "goal:1:7: unknown object 'z'"),
        ("(on a b", "never closed"),
        ("(above a b)", "unknown predicate 'above'"),
        ("(and (on a b) on)", "unexpected 'on'"),
        ("(on a left)", "must be of type block, but 'left' is of type place"),
    ],
)
def test_a_wrong_goal_is_refused(goal: str, reason: str) -> None:
    """A goal from the command line is checked like a file, with the column."""
    problem = load("places")
    with pytest.raises(TaskError, match=reason):
        parse_goal(goal, problem.domain, objects=problem.objects)


def test_the_caret_stands_under_the_word_behind_tabs() -> None:
    """Tabs before the word are repeated before the caret, which aligns them in any editor."""
    error = refusal(
        replace_once(
            DOMAIN,
            "    :precondition (and (held ?x) (clear ?y))",
            "\t\t:precondition (and (holt ?x))",
        )
    )
    assert caret_word(error) == "holt"
    assert "\n    \t\t" in str(error)


def test_lines_are_counted_for_every_line_ending() -> None:
    """Each Windows or old Macintosh line ending is a single line break."""
    for ending in ("\r\n", "\r"):
        error = refusal(
            replace_once(DOMAIN, "(:action lower", "(:action lift").replace("\n", ending)
        )
        assert (error.data["line"], error.data["column"]) == (15, 12)


def pieces(text: str) -> list[str]:
    """Return the words, parentheses and blanks of a text."""
    return re.findall(r"[()]|\s+|[^\s()]+", text)


@settings(max_examples=scaled_examples(1.0))
@given(data=st.data(), name=st.sampled_from(NAMES), part=st.sampled_from(["domain", "problem"]))
def test_garbled_text_is_read_or_refused_but_never_breaks(
    data: st.DataObject, name: str, part: str
) -> None:
    """Text with dropped, repeated or swapped words is read, or rejected at a place inside it."""
    words = pieces((DATA / name / f"{part}.pddl").read_text())
    domain = load(name).domain
    for _ in range(data.draw(st.integers(1, 3))):
        index, other = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(["drop", "double", "exchange", "replace"])):
            case "drop":
                words[index] = ""
            case "double":
                words[index] *= 2
            case "exchange":
                words[index], words[other] = words[other], words[index]
            case _:
                words[index] = data.draw(st.sampled_from(ODD_WORDS))
    text = "".join(words)
    refused = None
    try:
        _ = parse_domain(text) if part == "domain" else parse_problem(text, domain)
    except TaskError as error:
        refused = error
    if refused is not None:
        assert 1 <= refused.data["line"] <= text.count("\n") + 1
        assert refused.data["column"] >= 1


ODD_WORDS = (
    "()",
    "(",
    ")",
    "?",
    "?x",
    "-",
    ":",
    ":action",
    "either",
    "(either)",
    "not",
    "and",
    "(and)",
    "=",
    "5",
    "-5",
)
ODD_WORDS += (
    "5x",
    "when",
    "forall",
    "(forall)",
    "object",
    "number",
    "#",
    '"',
    "\\",
    "\x00",
    "ä",
    "define",
    "at",
    "++",
    "?-",
)
