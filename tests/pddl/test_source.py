"""PDDL text as nested lists: places of tokens, and where unbalanced parentheses are reported."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from tmkit.errors import TaskError
from tmkit.pddl.parsing.source import MAX_DEPTH, MAX_WORD_LENGTH, Group, Source, Token


def refusal(text: str) -> tuple[str, int, int]:
    """Return the reason, the line and the column of the error of a text."""
    with pytest.raises(TaskError) as caught:
        Source("t", text).groups()
    place = re.match(r"t:(\d+):(\d+): (.*)", str(caught.value).split("\n")[0])
    assert place is not None, str(caught.value)
    return place[3], int(place[1]), int(place[2])


def section(body: str) -> str:
    """Return a definition with a section whose first line is given, and another section."""
    return f"(define (domain d)\n(:action a :precondition {body}\n:effect (q)) (:end))"


def words_of(group: Group) -> list[Token]:
    """Return the tokens of a list, its parentheses included."""
    inner = [
        token
        for part in group.parts
        for token in (words_of(part) if isinstance(part, Group) else [part])
    ]
    return [group.opening, *inner, group.closing]


@given(
    st.recursive(
        st.sampled_from(["a", "?b", ":C", "-1"]),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=20,
    )
)
def test_groups_hold_all_tokens_in_their_places(tree: object) -> None:
    """Lists flattened are the tokens again, and line and column lead to each token in the text."""

    def write(part: object) -> str:
        return part if isinstance(part, str) else f"(\r\n{' '.join(map(write, part))} ; (\n)"  # type: ignore[call-overload]

    text = write([tree, "Z"])
    source = Source("t", text)
    (group,) = source.groups()
    lines = text.replace("\r\n", "\n").split("\n")
    for token in words_of(group):
        remainder = lines[source.line_of(token) - 1][source.column_of(token) - 1 :]
        assert remainder.lower().startswith(token.text)
    assert words_of(group) == source.tokens()
    assert (group.head, group.first) == (
        ("", group.opening)
        if isinstance(group.parts[0], Group)
        else (group.parts[0].text, group.parts[0])
    )


@pytest.mark.parametrize(
    "head",
    [
        *(
            "and",
            "or",
            "not",
            "imply",
            "when",
            "forall",
            "exists",
            "=",
            "<",
            ">",
            "<=",
            ">=",
            "+",
            "-",
            "*",
            "/",
            "?x",
        ),
        *("minimize", "maximize", "increase", "decrease", "assign", "scale-up", "scale-down"),
    ],
)
def test_a_list_that_may_hold_lists_is_not_closed_before_the_keyword(head: str) -> None:
    """The unclosed list before ``:effect`` is reported, not a complete one elsewhere."""
    expected = ("this parenthesis is not closed before ':effect' in line 3", 2, 26)
    for text in (
        section(f"({head} (clear a) (clear b)"),
        section(f"({head} (x - (either a b)) (clear a)"),
    ):
        assert refusal(text.replace("(domain d)", "(domain (on a (clear b)))")) == expected


def test_an_atom_that_holds_a_list_is_not_closed() -> None:
    """An atom with a list in it is reported with the place of the list."""
    reason = "this parenthesis is not closed before the one in line 2, column 37"
    assert refusal(section("(and (on a (clear b))")) == (reason, 2, 31)
    assert refusal(section("(and () (on a (clear b))")) == (reason.replace("37", "40"), 2, 34)


@pytest.mark.parametrize("key", [":parameters", ":precondition", ":effect"])
def test_a_section_that_is_closed_too_early(key: str) -> None:
    """A keyword of a section directly in the definition shows which parenthesis closes too much."""
    reason = f"this parenthesis closes too much: '{key}' in line 2 is outside of its list"
    assert refusal(f"(define (domain d) (:action a)\n{key} (p)))") == (reason, 1, 30)
    assert refusal("(define (domain d)\n:action a))") == ("expected '(' before ':action'", 2, 1)
    assert refusal(f"(define (domain d) (:action a))\n{key} (p))") == (reason, 1, 31)


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        (
            "(not (b)",
            "this parenthesis is never closed: a ')' is missing up to the end in line 1",
            1,
        ),
        (
            "(and (or (b)",
            "this parenthesis is never closed: 2 ')' are missing up to the end in line 1",
            6,
        ),
        ("(and (or (b c", "this parenthesis is never closed", 10),
        ("(and (or (b :", "this parenthesis is never closed", 10),
        (
            "(and (on a (b c)",
            "this parenthesis is not closed before the one in line 1, column 12",
            6,
        ),
        ("(a))", "this closing parenthesis has no opening one", 4),
        ("(a) b", "stray 'b'; expected '('", 5),
        ("(" * (MAX_DEPTH + 1), f"lists are nested deeper than {MAX_DEPTH}", MAX_DEPTH + 1),
        (
            "(a " + "b" * (MAX_WORD_LENGTH + 1) + ")",
            "a word of 1,001 characters; at most 1,000 are allowed",
            4,
        ),
        ("(a b\x07c)", "the character U+0007 is neither printable nor a blank", 5),
    ],
)
def test_what_is_no_nested_list_is_refused(text: str, reason: str, column: int) -> None:
    """Unbalanced parentheses, stray words and words above the limits are rejected."""
    assert refusal(text) == (reason, 1, column)


def test_what_the_limits_allow_is_read() -> None:
    """The deepest list, the longest word and negative numbers are read."""
    word = "É" + "b" * (MAX_WORD_LENGTH - 1)
    (group,) = Source("t", "(" * MAX_DEPTH + word + ")" * MAX_DEPTH).groups()
    assert [token.text for token in words_of(group)][MAX_DEPTH] == word.lower()
    (group,) = Source("t", "(b?x - block -1 -.5 -2.E+3 a-b)").groups()
    assert [token.text for token in words_of(group)][1:-1] == [
        "b",
        "?x",
        "-",
        "block",
        "-1",
        "-.5",
        "-2.e+3",
        "a-b",
    ]
