"""JSON files: a repeated key is rejected, with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tmkit._support.json_files import _find_repeated_key, read_json
from tmkit.errors import FileFormatError

CASES = {
    '{"a": 1, "a": 2}': (1, 10, "a"),
    '{"a": {"b": [1, {"c": 1,\n "c": 2}]}}': (2, 2, "c"),
    '{"a": "{\\"a\\": 1", "b": ["a", "a"],\n\n"\\u0061": 3}': (3, 1, "a"),
    '[{"a": 1}, {"a": 1}, {"": 1, "": 1}]': (1, 30, ""),
    '{"a:": "}", "b": "a:", "a:": 1}': (1, 24, "a:"),
}


@pytest.mark.parametrize("text", CASES)
def test_a_key_that_is_given_twice(tmp_path: Path, text: str) -> None:
    """The error has line, column and name of the second one."""
    line, column, name = CASES[text]
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        FileFormatError, match=rf"x\.json:{line}:{column}: the key '{name}' is given twice"
    ):
        read_json(path, limit=1000)


@given(
    st.lists(
        st.tuples(st.text('ab:{}"\\\u0061', max_size=3), st.booleans()),
        unique_by=lambda pair: pair[0],
    )
)
def test_other_documents_are_read(members: list[tuple[str, bool]]) -> None:
    """Keys that differ are no repetition, with any marks in keys and values."""
    document = {key: {key: key} if nested else [key, key] for key, nested in members}
    assert _find_repeated_key(json.dumps(document)) == ("", 0)
