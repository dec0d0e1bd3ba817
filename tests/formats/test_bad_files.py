"""A corpus of broken files: each is rejected with the message in its index.

Each folder of ``tests/data/bad`` has an ``index.toml`` of cases. Of a case there are:

* ``file``: the broken file, beside the index;
* ``scene``: files or names of scenes of ours that are loaded before it;
* ``kind``: ``scene`` (the default), ``robot`` (a robot description), ``plan``, ``tmp`` (a plan of
  the original), or ``group`` (an SRDF file whose ``group`` is looked up in the ``scene``);
* ``error``: the class of the error, exactly;
* ``match``: a regular expression found in the message: file, line, and column where the format has
  it;
* ``names``: the file in the message, if it is not the broken one;
* ``shown``: true where ``tmkit scene dump`` makes a note and shows the rest;
* ``note``: the fault.

The PDDL files have tests of their own.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tmkit import cli
from tmkit.cli import ExitCode
from tmkit.errors import TmkitError
from tmkit.formats import load_scene
from tmkit.formats.srdf import read_srdf
from tmkit.formats.srdf.values import group_members
from tmkit.formats.tmp_file import read_tmp
from tmkit.plans import load_plan
from tmkit.robots import load_manipulator

BAD = Path(__file__).parent.parent / "data" / "bad"
LONGEST_MESSAGE = 1000  # characters, the folder of the file left out
INDICES = sorted(path for path in BAD.glob("*/index.toml") if path.parent.name != "pddl")
COMMANDS = {"scene": ("scene", "dump"), "plan": ("check",)}
Case = dict[str, Any]


def cases_of(index: Path) -> list[Case]:
    """Return the cases of an index, each with its ``folder``."""
    cases: list[Case] = tomllib.loads(index.read_text(encoding="utf-8"))["case"]
    return [{**case, "folder": index.parent} for case in cases]


CASES = [case for index in INDICES for case in cases_of(index)]
COMMAND_CASES = [
    case for case in CASES if case.get("kind", "scene") in COMMANDS and not case.get("shown")
]


def case_name(case: Case) -> str:
    """Return a name for a case."""
    return f"{case['folder'].name}/{case['file']}" + (
        f"[{case['group']}]" if "group" in case else ""
    )


def files_of(case: Case) -> list[str]:
    """Return the files to load, the invalid one last; other names are built-in scenes."""
    named_paths = [(name, case["folder"] / name) for name in (*case.get("scene", ()), case["file"])]
    return [str(path) if path.exists() else name for name, path in named_paths[:-1]] + [
        str(named_paths[-1][1])
    ]


def read(case: Case) -> object:
    """Read an invalid file as its kind."""
    *scene, file = files_of(case)
    kind = case.get("kind", "scene")
    if kind == "scene":
        return load_scene(*scene, file)
    if kind == "robot":
        return load_manipulator(Path(file))
    if kind == "plan":
        return load_plan(file)
    if kind == "tmp":
        return read_tmp(file)
    assert kind == "group", f"unknown kind '{kind}'"
    return group_members(read_srdf(file), load_scene(*scene), group=case["group"])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_broken_file_is_rejected_with_its_message(case: Case) -> None:
    """The class and message are those of the index; the message is short and names the file."""
    with pytest.raises(TmkitError) as caught:
        read(case)
    message = str(caught.value)
    assert type(caught.value).__name__ == case["error"]
    assert re.search(case["match"], message), message
    assert case.get("names", case["file"]) in message
    assert len(message.replace(str(case["folder"]), "")) < LONGEST_MESSAGE


@pytest.mark.parametrize("case", COMMAND_CASES, ids=case_name)
def test_the_command_line_says_what_is_wrong(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The command ends with the code of bad input, one message and no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["tmkit", *COMMANDS[case.get("kind", "scene")], *files_of(case)]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr()
    assert ended.value.code == ExitCode.BAD_INPUT
    assert len(re.findall(r"^error:", output.err, re.MULTILINE)) == 1
    assert "Traceback" not in output.err + output.out
    assert case.get("names", case["file"]) in output.err


@pytest.mark.parametrize("index", INDICES, ids=lambda index: index.parent.name)
def test_the_index_tells_of_every_file(index: Path) -> None:
    """Every invalid file has a case, or is named by another file."""
    used = {name for case in cases_of(index) for name in (case["file"], *case.get("scene", ()))}
    rest = {path.name for path in index.parent.iterdir() if path.is_file()} - used - {index.name}
    texts = [
        path.read_bytes() for path in index.parent.iterdir() if path.is_file() and path != index
    ]
    assert not {name for name in rest if not any(name.encode() in text for text in texts)}


def test_no_case_is_told_of_twice() -> None:
    """Each broken file, or group of it, has one case."""
    names = [case_name(case) for case in CASES]
    assert len(names) == len(set(names))
