"""Names from files have no effect on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tmkit import cli
from tmkit._support.terminal import printable
from tmkit.formats import scene_to_dict
from tmkit.graph import SceneGraph, tree_text
from tmkit.graph.display.html import tree_html

Run = Callable[..., tuple[int, str, str]]
EVIL = "cup\x1b[31m\x1b]0;title\x07\r\n\x9b2J\u202egnp.exe"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process; return its exit code and output."""

    def command(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tmkit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capfd.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return command


def evil_scene(folder: Path) -> Path:
    """Write a scene with terminal control sequences in the names of a frame, class and root."""
    scene = SceneGraph("world\x1b[2J").add_frame(EVIL, "world\x1b[2J", classes=["red\x1b[31m"])
    path = folder / "evil.json"
    path.write_text(json.dumps(scene_to_dict(scene)))
    return path


@given(st.text())
def test_what_is_printable_stays_and_the_rest_is_escaped(text: str) -> None:
    """The result is printable, and decodes to the text if the text has no backslash."""
    shown = printable(text)
    assert all(letter.isprintable() or letter in "\n\t" for letter in shown)
    assert printable(text, keep="").isprintable()
    if text.isprintable():
        assert shown == text
    elif "\\" not in text and text.isascii():
        assert shown.encode().decode("unicode_escape") == text


def test_commands_print_names_without_what_terminals_obey(run: Run, tmp_path: Path) -> None:
    """A frame's name is printed on one line with escapes; JSON contains the name itself."""
    path = evil_scene(tmp_path)
    for command in ("dump", "check"):
        _, out, err = run("scene", command, path)
        assert all(letter.isprintable() or letter == "\n" for letter in out + err)
        assert (
            command == "check"
            or r"cup\x1b[31m\x1b]0;title\x07\r\n\x9b2J\u202egnp.exe (red\x1b[31m)" in out
        )
    _, out, _ = run("scene", "dump", "--json", path)
    assert EVIL in [frame["name"] for frame in json.loads(out)["frames"]]


def test_errors_are_printed_without_what_terminals_obey(run: Run, tmp_path: Path) -> None:
    """A name in an error message is escaped on the terminal."""
    path = tmp_path / "broken.json"
    document = scene_to_dict(SceneGraph())
    document["frames"].append({"name": "a", "parent": "nowhere\x1b[31m"})
    path.write_text(json.dumps(document))
    code, out, err = run("scene", "dump", path)
    assert code == 2
    assert "\x1b" not in out + err
    assert "broken.json" in err


def test_pages_and_trees_show_names_escaped() -> None:
    """HTML and text trees hold neither markup nor control characters of a name."""
    scene = SceneGraph().add_frame("<script>\x1b[31m", "world")
    assert "<script>" not in tree_html(scene)
    assert "\x1b" not in tree_html(scene) + tree_text(scene)
