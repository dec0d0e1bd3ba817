"""Claims of the papers: the page names tests and commands that exist, and the numbers agree."""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from papers import language, relations, task_motion_kit, uncertainty
from papers.claims import Claim, claims_of, fault_of
from papers.rows import ROOT, Row
from papers.tables import TABLES

from tmkit.formats import load_scene

PAGE = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")


# --- the page


def test_what_shows_the_claims_exists() -> None:
    """Every test of the page is defined, and every command has valid options."""
    faults = {f"papers.md:{claim.line}": fault_of(claim) for claim in claims_of(PAGE)}
    assert {place: fault for place, fault in faults.items() if fault} == {}


def test_every_paper_has_its_claims() -> None:
    """The page has a table for each paper of the program, without repeated claims."""
    claims = list(claims_of(PAGE))
    counts = Counter(claim.paper for claim in claims)
    assert list(counts) == list(TABLES)
    assert min(counts.values()) >= 20
    repeated = Counter((claim.paper, claim.cells[0]) for claim in claims)
    assert [claim for claim, count in repeated.items() if count > 1] == []


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        (("a", "b", "c"), "3 cells, expected a claim with its place, and what shows it"),
        (("a", "`tmkit demo`"), "2 cells, expected"),
        (("a (b)", "tmkit demo"), "expected one test or command in backticks, not tmkit demo"),
        (("a (b)", "`tests/papers/test_paper.py::test_a`"), "no file tests/papers/test_paper.py"),
        (
            ("a (b)", "`tests/papers/test_papers.py::test_what_shows_a_claim_exists`"),
            "no test 'test_what_shows_a_claim_exists' in tests/papers/test_papers.py; did you mean"
            " 'test_what_shows_the_claims_exists'",
        ),
        (("a (b)", "`tests/papers/claims.py::fault_of`"), "no test 'fault_of' in"),
        (("a (b)", "`tmkit dance`"), "no command of tmkit: tmkit dance"),
        (("a (b)", "`tmkit demo --ou x`"), "tmkit demo --ou x: No such option: --ou"),
        (("a (b)", "`python examples/no.py`"), "no program examples/no.py"),
        (("a (b)", "`python -m tests.paper`"), "no program tests/paper/__main__.py"),
        (("a (b)", "`python examples/hand_eye.py --outt x`"), "hand_eye.py has no option --outt"),
    ],
)
def test_faults_of_claims_are_named(cells: tuple[str, ...], fault: str) -> None:
    """The message has the missing name, and the nearest one."""
    assert fault in fault_of(Claim(1, "A paper", cells))


# --- the numbers


@pytest.mark.parametrize(
    "rows",
    [
        task_motion_kit.chains,
        lambda: [task_motion_kit.task_state(), task_motion_kit.versions()],
        relations.rows_of_scene_graph,
        relations.rows_of_semantics,
        language.rows,
        uncertainty.equations,
        lambda: [uncertainty.path()],
    ],
)
def test_numbers_agree(rows: Callable[[], Iterable[Row]]) -> None:
    """Every computed number agrees with that of the paper, or with the rule of the paper."""
    table = list(rows())
    assert table
    assert [row for row in table if not row.is_equal] == []


def test_state_of_figure_5() -> None:
    """Holding A, with B on C and C at the location (0, 0) of the table: no other facts."""
    assert task_motion_kit.state_of_figure_5() == set(task_motion_kit.FIGURE_5)


@pytest.mark.parametrize(("blocks", "locations"), [(1, 1), (2, 3), (3, 3), (3, 5)])
def test_search_has_every_arrangement(blocks: int, locations: int) -> None:
    """The versions are as many as the arrangements, each once, with the parents of its own."""
    search = task_motion_kit.search(blocks=blocks, locations=locations)
    assert len(set(search.arrangements)) == len(search.versions)
    assert len(search.versions) == task_motion_kit.number_of_arrangements(blocks, locations)
    assert len({scene.digest() for scene in search.versions}) == len(search.versions)
    start, block, parent, pose = search.edits[-1]
    assert search.versions[start].reparent(block, parent, pose=pose) == search.versions[-1]


def test_versions_share_memory() -> None:
    """A version takes less than a tenth of a scene that shares its shapes alone."""
    of_version, of_scene = task_motion_kit.bytes_of_versions()
    assert 100 < of_version < 0.1 * of_scene


def test_language_is_shorter_than_generated_code() -> None:
    """The model of the kitchen table has fewer lines than the C++ code of its scene."""
    model, generated = language.numbers_of_lines()
    assert 40 < model < generated


def test_graph_of_figure_4() -> None:
    """Transforms, and the root, have one fill, nodes with geometry another."""
    row = language.graph_of_figure_4(load_scene(language.MODEL))
    assert row.is_equal
    assert row.tmkit == "6 yellow nodes with the root, 5 green nodes"


def test_region_of_a_bending_arm() -> None:
    """In each posture, 95 % of the simulated arms have their tools in the region."""
    rows = list(uncertainty.arm())
    assert len(rows) == 3
    assert all(row.is_equal for row in rows)


def test_map_with_an_uncertain_neck() -> None:
    """The instrument, nearly a metre off, is found to centimetres."""
    row = uncertainty.neck_map()
    assert row.is_equal
    assert row.tmkit == "975 mm before, 19 mm after the observations"


def test_times_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 4 has three rows with numbers of this machine."""
    monkeypatch.setattr(uncertainty, "QUERIES", 200)
    rows = list(uncertainty.times())
    assert [row.is_equal for row in rows] == [None] * 3
    assert all(float(row.tmkit) > 0.0 for row in rows)


def test_program_prints_and_writes_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is printed and written; a number that disagrees gives exit code 1."""
    page = tmp_path / "numbers.md"
    row = Row("eq. 1", "2", "2.0", is_equal=True, comment="exact")
    for is_equal, code, cell in ((True, 0, "yes"), (None, 0, "no comparison"), (False, 1, "NO")):
        other = Row("eq. 2", "3", "4", is_equal=is_equal, comment="-")
        monkeypatch.setattr("papers.tables.TABLES", {"A paper": lambda other=other: [row, other]})
        monkeypatch.setattr(sys, "argv", ["papers", "--out", str(page)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / "tests" / "papers" / "__main__.py"), run_name="__main__")
        assert ended.value.code == code
        lines = page.read_text(encoding="utf-8").splitlines()
        assert lines[3:] == [
            "",
            "## A paper",
            "",
            "| number | paper | tmkit | agrees | remark |",
            "|---|---|---|---|---|",
            "| eq. 1 | 2 | 2.0 | yes | exact |",
            f"| eq. 2 | 3 | 4 | {cell} | - |",
        ]
        assert capsys.readouterr().out == page.read_text(encoding="utf-8")
