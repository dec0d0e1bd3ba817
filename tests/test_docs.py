"""The documentation does what it says: its marked code blocks are run, page by page, in a folder that is thrown away.

The marks are HTML comments on the line before a fenced block, invisible in the rendered page:

* ``<!-- run -->``: Python, run; the blocks of a page share their names;
* ``<!-- output -->``: what the block before it prints, exactly, its lines wrapped at 120 columns;
* ``<!-- file: NAME -->``: a file of that name;
* ``<!-- shell -->``: a command line beginning with ``tmkit``.

README's Python block needs no mark.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from tmkit.graph import SceneGraph, tree_svg

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
WIDTH = 120
_BLOCK = re.compile(r"^(?:<!-- (run|output|shell|file: \S+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its mark without the brackets, its language, its text and the line on which it begins."""

    mark: str
    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page that have a mark or are README's Python."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        mark, language, body = match[1] or "", match[2], match[3]
        if page.name == "README.md" and language == "python":
            mark = "run"
        if mark:
            found.append(Block(mark, language, body, text.count("\n", 0, match.start(3)) + 1))
    return found


def wrapped(text: str) -> str:
    """Return a text whose lines are wrapped at blanks to the width of a page."""
    lines = [
        textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False) or [""] for line in text.split("\n")
    ]
    return "\n".join(part for line in lines for part in line)


def run_page(page: Path) -> None:
    """Run the marked blocks of a page in the current folder."""
    names: dict[str, object] = {"__name__": "__docs__"}
    printed = ""
    for block in blocks_of(page):
        if block.mark == "run":
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True)
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, names)
            printed = output.getvalue()
        elif block.mark == "shell":
            program = "import sys; from tmkit.cli import main; sys.argv[0] = 'tmkit'; main()"
            first, *arguments = shlex.split(block.text.removeprefix("$ ").replace("\\\n", ""))
            assert first == "tmkit", f"{page.name}:{block.line}: only tmkit is run"
            command = [sys.executable, "-c", program, *arguments]
            finished = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
            assert finished.returncode == 0, f"{page.name}:{block.line}: {finished.stderr}"
            printed = finished.stdout
        elif block.mark == "output":
            assert wrapped(printed) == block.text, f"{page.name}:{block.line}: prints otherwise"
        else:
            Path(block.mark.removeprefix("file: ")).write_text(block.text, encoding="utf-8")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_marked_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every marked block runs without an error, and prints what the page says it prints."""
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_every_mark_stands_before_a_block(page: Path) -> None:
    """No mark is lost by a blank line or a misspelling."""
    text = page.read_text(encoding="utf-8")
    marks = re.findall(r"^<!-- (?:run|output|shell|file\b.*) -->$", text, re.MULTILINE)
    assert len(marks) == sum(block.mark != "run" or page.name != "README.md" for block in blocks_of(page))


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name)
def test_lines_of_pages_fit_the_width(page: Path) -> None:
    """Lines have at most 120 columns, except rows of tables; pages of results are written by scripts."""
    lines = enumerate(page.read_text(encoding="utf-8").split("\n"), start=1)
    long = [number for number, line in lines if len(line) > WIDTH and not line.startswith("|")]
    assert page.parent.name == "results" or long == []


def test_the_reference_has_a_page_for_every_package() -> None:
    """Each package of tmkit with public names has a page in the reference; the command has pages of its own."""
    folder = ROOT / "docs" / "reference" / "api"
    packages = ({path.parent.name for path in (ROOT / "tmkit").glob("*/__init__.py")} | {"errors"}) - {
        "cli",
        "_support",
    }
    missing = {
        name
        for name in packages
        if f".. package:: tmkit.{name}\n" not in (folder / f"{name}.md").read_text(encoding="utf-8")
    }
    assert missing == set()


def test_readme_shows_the_example_of_branching() -> None:
    """README has the very text of the example; that it prints what README says is tested as for every page."""
    example = (ROOT / "examples" / "branching.py").read_text(encoding="utf-8")
    assert (
        f"```python\n{example[example.index('import tmkit') :]}```\n\n<!-- output -->"
        in (ROOT / "README.md").read_text()
    )


@pytest.mark.parametrize(
    "name", ["branching", "loaded_tray", "common_errors", "spray_painting", "two_robots", "integrating_velocities"]
)
def test_examples_of_scenes_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The short examples run by themselves, and print the same each time."""
    printed = []
    for _ in range(2):
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_the_drawing_in_the_page_on_looking_at_scenes_is_what_is_drawn() -> None:
    """The picture is that of the scene in the page."""
    page = (ROOT / "docs" / "howto" / "looking_at_scenes.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    exec(page[page.index("<!-- run -->\n```python\n") + 23 :].split("```", 1)[0], names)
    scene = names["scene"]
    assert isinstance(scene, SceneGraph)
    assert tree_svg(scene) == (ROOT / "docs" / "images" / "scene_tree.svg").read_text(encoding="utf-8")


def test_the_example_of_looks_shows_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    """With looks the block stands where it should, without it does not."""
    runpy.run_path(str(ROOT / "examples" / "look_before_pick.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "planned: (look a) (look b) (pick-up a table__-2__2) (stack a b)" in printed
    assert "which is not on b" in printed
    assert "which is on b" in printed


@pytest.mark.parametrize("name", ["own_domain", "python_domain"])
def test_the_examples_of_domains_give_plans_that_hold(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What the pages on domains show is planned, and passes the check."""
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert "ValidationReport(valid, 4 actions" in capsys.readouterr().out


def test_changes_of_names_lead_to_names_that_exist() -> None:
    """The right column of the page has names that can be imported; the left column has none of them."""
    text = (ROOT / "docs" / "reference" / "changes_of_names.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(tmkit[\w.]+)\.(\w+)` \| `(tmkit[\w.]+)\.(\w+)` \|$", text, re.MULTILINE)
    moves = re.findall(r"^From `(tmkit[\w.]+)` to `(tmkit[\w.]+)`:\n\n((?:.+\n)+)", text, re.MULTILINE)
    assert len(rows) > 20
    assert len(moves) > 10
    for before, old, package, new in rows:
        assert (before, old) != (package, new)
        assert hasattr(importlib.import_module(package), new), new
    for _, package, names in moves:
        for name in re.findall(r"`(\w+)`", names):
            assert hasattr(importlib.import_module(package), name), name
