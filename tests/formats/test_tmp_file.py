"""The lines of the original's plan files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tmkit.errors import FileFormatError, MissingFileError
from tmkit.formats.tmp_file import (
    TmpAction,
    TmpComment,
    TmpEntry,
    TmpMotion,
    TmpReparent,
    Waypoint,
    first_configuration,
    read_tmp,
    tmp_text,
    write_tmp,
)


def test_every_kind_of_line(tmp_path: Path) -> None:
    """Comments, actions, motions and changes of parent are read; blanks are skipped."""
    path = tmp_path / "plan.tmp"
    path.write_text(
        "# by hand\n\n m a-1 b  # joints\np 1 2.5e-3\t# here\r\np -.5 1d0\na pick-up x y\nr x hand"
        " # held\n"
    )
    file = read_tmp(path)
    assert file.entries == (
        TmpComment("by hand"),
        TmpMotion(("a-1", "b"), (Waypoint((1.0, 0.0025)), Waypoint((-0.5, 1.0)))),
        TmpAction(("pick-up", "x", "y")),
        TmpReparent("x", "hand"),
    )
    assert first_configuration(file)[1] == {"a-1": 1.0, "b": 0.0025}


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("x 1", "1:1", "unknown statement 'x'; a line begins with 'a' "),
        ("p 1", "1:1", "a waypoint belongs to a motion"),
        ("m a\np 1\na go\np 1", "4:1", "a waypoint belongs to a motion"),
        ("m a\nr b c", "1:1", "a motion needs at least one waypoint"),
        ("m a", "1:1", "a motion needs at least one waypoint"),
        ("m a b a\np 1 2 3", "1:7", "the joint 'a' is named twice"),
        (
            "m a b\np 1",
            "2:4",
            "expected 2 numbers for the joints of line 1, received 1; the one for 'b' is missing",
        ),
        ("m a\np 1 2", "2:5", "expected 1 numbers for the joints of line 1, received 2"),
        ("m a\np nan", "2:3", "expected a finite number, received 'nan'"),
        ("m a\np 1e999", "2:3", "expected a finite number"),
        ("m a\np 1_0", "2:3", "expected a finite number"),
        ("a", "1:2", "expected the name of an action"),
        ("r a", "1:4", "expected a frame and its new parent, received 1"),
    ],
)
def test_broken_lines_are_rejected_with_place(
    text: str, place: str, reason: str, tmp_path: Path
) -> None:
    """A syntax error has file, line and column."""
    path = tmp_path / "plan.tmp"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=rf"plan.tmp:{place}: .*{reason}"):
        read_tmp(path)


def test_a_missing_file_and_one_without_motion(tmp_path: Path) -> None:
    """A missing file and a file without a configuration are errors."""
    with pytest.raises(MissingFileError, match="there is no plan file"):
        read_tmp(tmp_path / "none.tmp")
    (tmp_path / "empty.tmp").write_text("# nothing\n")
    with pytest.raises(FileFormatError, match="gives no configuration"):
        first_configuration(read_tmp(tmp_path / "empty.tmp"))


names = st.text(alphabet="abc_-.019é", min_size=1, max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def motions(draw: st.DrawFn) -> TmpMotion:
    """Draw a motion."""
    joints = draw(st.lists(names, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*[numbers] * len(joints)), min_size=1, max_size=4))
    return TmpMotion(tuple(joints), tuple(Waypoint(row) for row in rows))


entries = st.lists(
    st.one_of(
        motions(),
        st.lists(names, min_size=1, max_size=4).map(lambda words: TmpAction(tuple(words))),
        st.builds(TmpReparent, names, names),
        names.map(TmpComment),
    ),
    max_size=8,
)


@given(entries)
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, written: list[TmpEntry]
) -> None:
    """Entries read back equal, with bitwise equal numbers without plus signs in exponents."""
    path = tmp_path_factory.mktemp("tmp") / "plan.tmp"
    write_tmp(written, path)
    assert list(read_tmp(path).entries) == written
    assert tmp_text(read_tmp(path).entries) == path.read_text(encoding="utf-8")
    assert "e+" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", "a b", "a#", "a\tb"])
def test_names_that_the_format_cannot_hold_are_rejected(name: str) -> None:
    """A name with a blank or a comment sign would read back differently."""
    with pytest.raises(FileFormatError, match="cannot be written"):
        tmp_text([TmpAction(("go", name))])
