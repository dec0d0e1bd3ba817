"""Grammar of robray files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tmkit.errors import FileFormatError
from tmkit.formats.robray.grammar import (
    AllowCollision,
    FrameBlock,
    Name,
    SourceText,
    Statement,
    parse_robray,
)


def parse(text: str) -> tuple[Statement, ...]:
    """Parse a text."""
    return parse_robray(SourceText(Path("x.robray"), tuple(text.split("\n"))), text)


def test_comments_are_blanks() -> None:
    """All three kinds of comments are skipped, also with stars or comment signs inside."""
    text = "// a { \n# b } /* \n/* c \n ** // # \n **/ def a 1; /* d */ def /**/ b 2; // end"
    assert len(parse(text)) == 2


def test_names_may_contain_dashes_and_be_quoted() -> None:
    """A name may contain dashes, a quoted name any character; keywords match whole words only."""
    first, second, allow = parse(
        'frame left-arm_2 {} frame "my frame {" {} allow_collision frame-a "b c";'
    )
    assert isinstance(first, FrameBlock)
    assert first.name == Name("left-arm_2", (1, 7))
    assert isinstance(second, FrameBlock)
    assert second.name == Name("my frame {", (1, 27), is_quoted=True)
    assert isinstance(allow, AllowCollision)
    assert (allow.first.text, allow.second.text) == ("frame-a", "b c")


def test_empty_files_blocks_and_optional_semicolon() -> None:
    """Nothing is a scene; blocks may be empty; an include may end in a semicolon."""
    assert parse("") == parse(" // nothing") == ()
    assert len(parse('include "a"; include "b" class c {} frame d { geometry {} }')) == 4


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("frame a { translation [1, 2, 3] }", 1, 33, "unexpected '}', expected ';'"),
        (
            "frame a {\n  translation [1, 2 +];\n}",
            2,
            22,
            r"unexpected '\]', expected '\(' or '-' or a name or a number",
        ),
        (
            "frame a {\n",
            1,
            10,
            "the file ends too early: expected 'frame' or 'geometry' or '}' or a name",
        ),
        ("frame { }", 1, 7, "unexpected '{', expected a name or a quoted text"),
        ("frame a { isa; }", 1, 14, "unexpected ';'"),
        ("def a 10cm;", 1, 9, "unexpected 'cm', expected ';' or an operator"),
        (
            "def a b-0.5;",
            1,
            10,
            "unexpected '.5'.*names may contain dashes, write spaces around a minus sign",
        ),
        ("class a { frame b {} }", 1, 19, "a frame cannot stand here"),
        ("class a { geometry {} }", 1, 20, "a geometry cannot stand here"),
        ("frame a { class b {} }", 1, 19, "a class cannot stand here"),
        ("geometry { }", 1, 1, "unexpected 'geometry'"),
        ("allow_collision a;", 1, 18, "unexpected ';'"),
        ("def a 1 /* never\nclosed", 1, 9, "this comment is never closed"),
        ('include "a', 1, 9, "this quoted text is not closed on its line"),
        ("frame a § {}", 1, 9, "unexpected character '§'"),
        ("def a = 1;", 1, 7, "unexpected character '='"),
        ("frame a { b [[1]]; }", 1, 14, r"unexpected '\['"),
    ],
)
def test_syntax_errors_show_place_and_expectation(
    text: str, line: int, column: int, reason: str
) -> None:
    """A syntax error has file, line, column, the expected tokens and the line with a caret."""
    with pytest.raises(FileFormatError, match=rf"^x.robray:{line}:{column}: .*{reason}") as caught:
        parse(text)
    assert (caught.value.data["line"], caught.value.data["column"]) == (line, column)
    shown, caret = str(caught.value).split("\n")[-2:]
    assert shown == "    " + text.split("\n")[line - 1]
    assert caret == " " * (4 + column - 1) + "^"


@given(st.text(alphabet='abf {}[]();,"-+*/^.0129\n#π_é§', max_size=40))
def test_any_text_parses_or_is_rejected(text: str) -> None:
    """Any text gives statements or a FileFormatError with a location."""
    problem: FileFormatError | None = None
    try:
        parse(text)
    except FileFormatError as error:
        problem = error
    assert problem is None or (problem.data["line"] >= 1 and problem.data["column"] >= 1)


@given(st.binary(max_size=30))
def test_files_that_are_no_text_are_refused(data: bytes) -> None:
    """Bytes that are not UTF-8 are rejected; a byte order mark and other line ends are accepted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.robray"
        path.write_bytes(b"\xef\xbb\xbf" + data)
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            with pytest.raises(FileFormatError, match="not UTF-8"):
                SourceText.read(path)
            return
        source, text = SourceText.read(path)
        assert "\r" not in text
        assert "\n".join(source.lines) == text
