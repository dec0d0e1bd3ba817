"""Documentation tests: marked code blocks are run, page by page, in a temporary folder.

The marks are HTML comments on the line before a fenced block, invisible in the rendered page:

* ``<!-- run -->``: Python, run; the blocks of a page share their names;
* ``<!-- output -->``: output of the block before it, exactly, its lines wrapped at 120 columns;
* ``<!-- file: NAME -->``: a file of that name;
* ``<!-- shell -->``: a command line beginning with ``tmkit``.

README's Python block needs no mark. Tutorials are notebooks: a kernel runs them
(``tools/notebooks.py``).
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from check_pages import SEARCHES, broken_links, wrong_searches
from notebooks import TUTORIALS, WIDTH, blocks_of, execute, notebook_of, wrap
from support.browser import open_browser
from support.commands import tmkit
from support.processes import run_process

from tmkit.graph import SceneGraph, tree_svg

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
TABLES = sorted((RESULTS / "tables").iterdir())
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if page not in TABLES)
ARENA = ROOT / "tests" / "benchmarks" / "comparison" / "README.md"
MOST_WORDS = 55_000
"""Largest number of words of all pages, code included."""

LESSONS = [page for page in PAGES if page.parent == TUTORIALS]


def run_page(page: Path) -> None:
    """Run the marked blocks of a page in the current folder."""
    names: dict[str, object] = {"__name__": "__docs__"}
    printed = ""
    for block in blocks_of(page):
        if block.mark == "run":
            code = compile(
                "\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True
            )
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, names)
            printed = output.getvalue()
        elif block.mark == "shell":
            first, *arguments = shlex.split(block.text.removeprefix("$ ").replace("\\\n", ""))
            assert first == "tmkit", f"{page.name}:{block.line}: only tmkit is run"
            run = tmkit(Path.cwd(), *arguments)
            assert run.code == 0, f"{page.name}:{block.line}: {run.err}"
            printed = run.out
        elif block.mark == "output":
            assert wrap(printed) == block.text, f"{page.name}:{block.line}: prints otherwise"
        elif block.mark:
            Path(block.mark.removeprefix("file: ")).write_text(block.text, encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ARENA, *(page for page in PAGES if page not in LESSONS)],
    ids=lambda page: page.name,
)
def test_marked_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every marked block runs without an error, and prints the output on the page."""
    monkeypatch.chdir(tmp_path)
    run_page(page)


# of the machinery of Jupyter; a warning in a cell is an error
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.name)
def test_tutorials_run_as_notebooks(page: Path, tmp_path: Path) -> None:
    """A kernel runs every cell, which prints the page's output, and written files are shown."""
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    notebook = notebook_of(page)
    nbformat.validate(nbformat.from_dict(notebook))
    execute(notebook, tmp_path)
    for block in blocks_of(page):
        if block.directive == "result":
            assert (tmp_path / block.argument).stat().st_size > 10_000
    for drawn in tmp_path.glob("*.svg"):
        picture = ROOT / "docs" / "images" / "tutorials" / f"{page.stem}_{drawn.name}"
        assert drawn.read_text(encoding="utf-8") == picture.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.name)
def test_notebooks_need_no_other_file(page: Path) -> None:
    """No role, label or mark of Sphinx remains in a notebook, and no link is a local path."""
    for cell in notebook_of(page)["cells"]:
        if cell["cell_type"] == "markdown":
            assert not re.search(r"\{\w+\}`|^\([\w-]+\)=$|<!--|```\{", cell["source"], re.MULTILINE)
            for target in re.findall(r"\]\(([^)]+)\)", cell["source"]):
                assert target.startswith(("attachment:", "https://")), target
                assert not target.startswith("attachment:") or target[11:] in cell["attachments"]


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_every_mark_stands_before_a_block(page: Path) -> None:
    """No mark is lost by a blank line or a misspelling."""
    text = page.read_text(encoding="utf-8")
    marks = re.findall(r"^<!-- (?:run|output|shell|file\b.*) -->$", text, re.MULTILINE)
    marked = [
        block
        for block in blocks_of(page)
        if block.mark and (block.mark != "run" or page.name != "README.md")
    ]
    assert len(marks) == len(marked)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name
)
def test_lines_of_pages_fit_the_width(page: Path) -> None:
    """Lines have at most 120 columns, except in tables."""
    lines = enumerate(page.read_text(encoding="utf-8").split("\n"), start=1)
    long = [number for number, line in lines if len(line) > WIDTH and not line.startswith("|")]
    assert long == []


def test_results_link_to_every_table() -> None:
    """No table is forgotten."""
    pages = "".join(page.read_text(encoding="utf-8") for page in RESULTS.glob("*.md"))
    assert set(re.findall(r"\]\(tables/([^)]+)\)", pages)) == {table.name for table in TABLES}


@pytest.mark.parametrize("page", sorted(RESULTS.glob("*.md")), ids=lambda page: page.name)
def test_a_page_of_results_is_short(page: Path) -> None:
    """A page has at most 1,200 words; complete tables are files."""
    words = page.read_text(encoding="utf-8").split()
    assert sum(bool(re.search(r"\w", word)) for word in words) <= 1200


@pytest.mark.parametrize("page", [*RESULTS.glob("*.md"), *TABLES], ids=lambda page: page.name)
def test_files_that_results_name_exist(page: Path) -> None:
    """Scripts, and the targets of links; in tables these are plain Markdown, which has no roles."""
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"\btests/(?:\w+/)*\w+\.(?:py|cpp)", text)
    targets = re.findall(r"\]\((?!https:)([^)#]+)", text)
    assert [name for name in names if not (ROOT / name).is_file()] == []
    assert [target for target in targets if not (page.parent / target).is_file()] == []
    assert page not in TABLES or not re.search(r"\[\]\(|\{\w+\}`", text)


def test_the_documentation_does_not_grow() -> None:
    """All pages but those of the generated reference have a limit, which is lowered with them."""
    pages = [page for page in PAGES if page.parent.name != "api"]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MOST_WORDS


def test_the_reference_has_a_page_for_every_package() -> None:
    """Each package of tmkit with public names has a page in the reference; the command, its own."""
    folder = ROOT / "docs" / "reference" / "api"
    packages = (
        {path.parent.name for path in (ROOT / "tmkit").glob("*/__init__.py")} | {"errors"}
    ) - {"cli", "_support"}
    missing = {
        name
        for name in packages
        if f".. package:: tmkit.{name}\n" not in (folder / f"{name}.md").read_text(encoding="utf-8")
    }
    assert missing == set()


def test_readme_shows_the_example_of_branching() -> None:
    """README has the exact text of the example; its output is tested as on every page."""
    example = (ROOT / "examples" / "branching.py").read_text(encoding="utf-8")
    assert (
        f"```python\n{example[example.index('import tmkit') :]}```\n\n<!-- output -->"
        in (ROOT / "README.md").read_text()
    )


@pytest.mark.parametrize(
    "name",
    [
        "branching",
        "loaded_tray",
        "common_errors",
        "spray_painting",
        "two_robots",
        "integrating_velocities",
        "scene_versions",
    ],
)
def test_examples_of_scenes_run(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The short examples run by themselves, and print the same each time."""
    monkeypatch.setattr(sys, "argv", [name, "--out", str(tmp_path)])
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
    assert tree_svg(scene) == (ROOT / "docs" / "images" / "scene_tree.svg").read_text(
        encoding="utf-8"
    )


def test_the_example_of_looks_shows_the_difference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With looks the block stands in its place, without it does not, and both have pictures."""
    monkeypatch.setattr(sys, "argv", ["look_before_pick", "--out", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "look_before_pick.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "planned: (look a) (look b) (pick-up a table__-2__2) (stack a b)" in printed
    assert "which is not on b" in printed
    assert "which is on b" in printed
    written = {
        "look_before_pick.html",
        "look_before_pick_after_looks.png",
        "look_before_pick_without_looks.png",
    }
    assert {path.name for path in tmp_path.iterdir()} == written


@pytest.mark.parametrize("name", ["own_domain", "python_domain"])
def test_the_examples_of_domains_give_plans_that_hold(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tasks on the pages of domains are planned, validated, and written as pages."""
    monkeypatch.setattr(sys, "argv", [name, "--out", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert "ValidationReport(valid, 4 actions" in capsys.readouterr().out
    assert (tmp_path / f"{name}.html").stat().st_size > 100_000


@pytest.mark.parametrize("name", ["press_button", "wipe_table", "peg_in_hole"])
def test_the_examples_of_own_actions_succeed_in_simulation(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each plan is valid, and the simulation has no note of a contact that is not planned."""
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ValidationReport(valid, 2 actions") for line in printed)
    assert printed[-1] == "simulation succeeded: True"


def messages_in_source() -> list[str]:
    """Return the texts of the package and its core, with a zero byte for each placeholder."""
    texts = []
    for path in sorted((ROOT / "tmkit").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                texts.append(
                    "".join(
                        str(p.value) if isinstance(p, ast.Constant) else "\0" for p in node.values
                    )
                )
    return texts


def test_troubleshooting_quotes_messages_that_exist() -> None:
    """Each message of the page is printed by the package: its words are in one source text."""
    page = (ROOT / "docs" / "howto" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    texts = messages_in_source()
    assert len(quoted) > 30
    for message in quoted:
        words = [part for part in message.split("…") if part.strip(" ;:'")]
        pattern = re.compile(".*".join(map(re.escape, words)), re.DOTALL)
        assert any(pattern.search(text) for text in texts), message


def test_broken_links_are_found(tmp_path: Path) -> None:
    """Missing files and anchors, pages outside the folder, and frames are reported; others not."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="sub/page.html#here">a</a><a href="#top">b</a><a'
        ' href="https://example.org/x">c</a><a href="sub/page.html#gone">d</a><img'
        ' src="gone.png"><a href="../outside.html">e</a><iframe src="/gone.html"></iframe><a'
        ' href="sub/">f</a>'
    )
    (tmp_path / "sub" / "page.html").write_text(
        '<h2 id="here"></h2><a href="../index.html#top">g</a>'
    )
    broken, followed = broken_links(tmp_path)
    links = [line.split(": ")[1] for line in broken]
    assert links == ["sub/page.html#gone", "gone.png", "../outside.html", "/gone.html", "sub/"]
    assert followed == 8


def test_a_search_that_finds_another_page_first_is_reported(tmp_path: Path) -> None:
    """Pages with the scorer of the docs: a title precedes names and text; a missing word, none."""
    pytest.importorskip("sphinx", reason="pages are built by the extra docs")
    texts = {
        "index": "Start\n=====\n\ngrasp grasp grasp\n\n.. toctree::\n\n   grasps\n   names\n",
        "grasps": "Grasp samplers\n==============\n\nThey yield poses of the hand.\n",
        "names": "Names\n=====\n\n.. py:class:: tmkit.grasp\n\n   A value of a grasp.\n",
    }
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    for name, text in texts.items():
        (source / f"{name}.rst").write_text(text)
    scorer = ROOT / "docs" / "static" / "search_scorer.js"
    arguments = ["-q", "-C", "-D", f"html_search_scorer={scorer}", str(source), str(built)]
    run_process([sys.executable, "-m", "sphinx", *arguments], check=True)
    searches = {"grasp": "grasps.html", "poses": "names.html", "gripper": "grasps.html"}
    with open_browser() as browser:
        assert wrong_searches(browser, built, searches) == [
            "search for 'poses': finds grasps.html first, expected names.html",
            "search for 'gripper': finds no page first, expected grasps.html",
        ]


def test_pages_of_the_searches_exist() -> None:
    """Each search that is checked in the built pages leads to a page of the docs."""
    pages = [(ROOT / "docs" / page).with_suffix(".md") for page in SEARCHES.values()]
    assert [page for page in pages if page not in PAGES] == []
