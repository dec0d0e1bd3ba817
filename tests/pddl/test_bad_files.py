"""Broken PDDL files are rejected with the file and the line; malicious files do no harm."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tmkit.errors
from tmkit.errors import TaskError, TmkitError
from tmkit.pddl import load_domain, load_problem
from tmkit.pddl.parsing.source import MAX_WORD_COUNT

BAD = Path(__file__).parent.parent / "data" / "bad" / "pddl"
CASES: list[dict[str, Any]] = tomllib.loads((BAD / "index.toml").read_text(encoding="utf-8"))[
    "case"
]
GOOD = BAD / "good-domain.pddl"


def read(path: Path, domain: Path | None = None) -> object:
    """Read a domain, or a problem of a domain."""
    return load_domain(path) if domain is None else load_problem(path, load_domain(domain))


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_a_broken_file_is_refused(case: dict[str, Any]) -> None:
    """Each file is rejected with the error and the message of the index."""
    domain = BAD / case["domain"] if "domain" in case else None
    with pytest.raises(getattr(tmkit.errors, case["error"]), match=case["match"]) as caught:
        read(BAD / case["file"], domain)
    assert str(caught.value).startswith(f"{BAD / case['file']}:")
    if caught.value.data["line"] is not None:
        assert str(caught.value).split("\n")[2].strip() == "^"


def test_the_index_tells_of_every_file() -> None:
    """The index lists each broken file exactly once."""
    files = [case["file"] for case in CASES]
    assert sorted([*files, GOOD.name]) == sorted(path.name for path in BAD.glob("*.pddl"))
    assert len(files) >= 35


def test_the_domain_of_the_broken_problems_is_whole() -> None:
    """The problems are rejected for their own faults, since their domains are valid."""
    assert load_domain(GOOD).name == "parcels"


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    """A file as some editors write it is read like any other."""
    path = tmp_path / "windows.pddl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.read_bytes().replace(b"\n", b"\r\n"))
    assert load_domain(path) == load_domain(GOOD)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder in place of a file is named."""
    with pytest.raises(TmkitError, match=f"^{tmp_path}: .*directory"):
        load_domain(tmp_path)


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    """A symbolic link that leads nowhere ends in an error that names it."""
    (tmp_path / "loop.pddl").symlink_to(tmp_path / "loop.pddl")
    with pytest.raises(TmkitError, match=r"loop\.pddl"):
        load_domain(tmp_path / "loop.pddl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system knows no pipes with names")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe that nobody writes to does not make the reader wait."""
    os.mkfifo(tmp_path / "pipe.pddl")
    with pytest.raises(TmkitError, match=r"pipe\.pddl"):
        load_domain(tmp_path / "pipe.pddl")


def test_a_file_without_read_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be read is named."""
    (tmp_path / "secret.pddl").write_text(GOOD.read_text())
    (tmp_path / "secret.pddl").chmod(0)
    if os.access(tmp_path / "secret.pddl", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(TmkitError, match=r"secret\.pddl"):
        load_domain(tmp_path / "secret.pddl")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    """A file above the size limit is rejected before it is read, even a sparse one."""
    with (tmp_path / "huge.pddl").open("wb") as file:
        file.truncate(1 << 36)
    with pytest.raises(TmkitError, match=r"huge\.pddl"):
        load_domain(tmp_path / "huge.pddl")


def test_too_many_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text with too many words is rejected at the first word above the limit."""
    assert MAX_WORD_COUNT > 1_000_000
    monkeypatch.setattr("tmkit.pddl.parsing.source.MAX_WORD_COUNT", 50)
    with pytest.raises(
        TaskError, match=r"good-domain.pddl:\d+:\d+: the text has more than 50 words"
    ):
        load_domain(GOOD)
