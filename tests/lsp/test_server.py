"""The server over its standard streams, as an editor uses it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.language_client import LanguageClient

pytest.importorskip("pygls")

DESK = "def cm 1e-2;\nframe desk { }\nframe cup { parent desk; translation [0, 0, 2*cm]; }\n"


def test_a_session_of_an_editor(tmp_path: Path) -> None:
    """Diagnostics, hover and completion of a session; other files and places give nothing."""
    path, room = tmp_path / "desk.robray", tmp_path / "room.rsg"
    with LanguageClient() as editor:
        editor.open(path, DESK)
        assert editor.diagnostics(path) == []
        shown = editor.at("hover", path, 2, 21)["contents"]["value"]
        assert shown.startswith("frame `desk`, child of `world`")
        assert "the joint" in editor.at("hover", path, 2, 0)["contents"][
            "value"
        ] or "A frame" in str(editor.at("hover", path, 2, 0))
        (place,) = editor.at("definition", path, 2, 47)
        assert place == {
            "uri": path.as_uri(),
            "range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 4}},
        }
        assert {"desk", "cup"} == {item["label"] for item in editor.at("completion", path, 2, 19)}
        editor.change(path, DESK.replace("parent desk", "parent dask"))
        (found,) = editor.diagnostics(path)
        assert found["severity"] == 2
        assert "did you mean 'desk'?" in found["message"]
        editor.change(path, DESK.replace("[0, 0,", "[0, 0"))
        (found,) = editor.diagnostics(path)
        assert found["severity"] == 1
        assert found["range"]["start"] == {"line": 2, "character": 43}
        editor.open(room, "root a\nGroup a { chidl b }\nGroup c { child }\n")
        assert [one["range"]["start"]["line"] for one in editor.diagnostics(room)] == [1, 2]
        editor.open(tmp_path / "other.txt", "frame")
        assert editor.at("hover", tmp_path / "other.txt", 0, 1) is None
        assert editor.at("completion", path, 99, 99) is not None
        editor.tell("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
        assert editor.diagnostics(path) == []
        assert editor.at("completion", path, 0, 0) == []


def test_columns_are_counted_as_the_editor_counts(tmp_path: Path) -> None:
    """Characters beyond the basic plane are two units of UTF-16, and four of UTF-8."""
    path = tmp_path / "a.robray"
    text = '/* \U0001f600 \u2028 */ frame "\U0001f600" { parent nobody; }\r\n'
    for encoding, units in (("utf-16", 2), ("utf-32", 1), ("utf-8", 4)):
        with LanguageClient(
            sys.executable, "-m", "tmkit.cli", "lsp", encodings=(encoding,)
        ) as editor:
            assert editor.capabilities["positionEncoding"] == encoding
            editor.open(path, text)
            (found,) = editor.diagnostics(path)
            lines = {"utf-16": 1, "utf-32": 1, "utf-8": 3}[encoding]  # U+2028
            begin = text.index("nobody") + 2 * (units - 1) + lines - 1
            assert found["range"] == {
                "start": {"line": 0, "character": begin},
                "end": {"line": 0, "character": begin + 6},
            }
            assert editor.at("hover", path, 0, begin - 10) is not None


def test_errors_of_an_included_file_refer_to_it(tmp_path: Path) -> None:
    """They stand on the first line with their place, and end when the corrected file is saved."""
    (tmp_path / "b.robray").write_text("\nframe {")
    path = tmp_path / "a.robray"
    with LanguageClient() as editor:
        editor.open(path, 'include "b.robray"\n')
        (found,) = editor.diagnostics(path)
        assert found["message"].startswith("b.robray:2:")
        assert found["relatedInformation"][0]["location"]["uri"] == (tmp_path / "b.robray").as_uri()
        editor.open(tmp_path / "b.robray", "frame b { }\n")
        editor.tell(
            "textDocument/didSave", {"textDocument": {"uri": (tmp_path / "b.robray").as_uri()}}
        )
        assert editor.diagnostics(path) == []
