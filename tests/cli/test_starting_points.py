"""``tmkit list``, ``tmkit new`` and ``tmkit completion``."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from support.commands import Outcome, tmkit
from support.processes import run_process

from tmkit._support.data import resolve_name
from tmkit.cli.completion import Kind

TMKIT = [sys.executable, "-m", "tmkit.cli"]


def run(*arguments: str, folder: Path, **environment: str) -> Outcome:
    """Run the command in a folder."""
    return tmkit(folder, *arguments, **{"COLUMNS": "200", **environment})


@pytest.mark.parametrize(
    ("kind", "folder", "suffixes", "some"),
    [
        ("robots", "scenes/robots", (".toml",), {"panda", "ur5"}),
        ("scenes", "scenes", (".robray", ".json"), {"panda_table", "blocks3", "unsure_blocks"}),
        ("domains", "domains", (), {"blocks", "kitchen"}),
    ],
)
def test_listed_names_can_be_used(
    kind: str, folder: str, suffixes: tuple[str, ...], some: set[str], tmp_path: Path
) -> None:
    """Each name is that of the listed file or folder and has a description, in both formats."""
    listed = json.loads(run("list", kind, "--json", folder=tmp_path).out)
    names = [entry["name"] for entry in listed]
    assert some <= set(names)
    assert names == sorted(names)
    for entry in listed:
        path = Path(entry["path"])
        assert resolve_name(entry["name"], folder, suffixes=suffixes) in (path, path.parent)
        assert len(entry["description"]) > 20
        assert entry["missing_packages"] == []
    lines = run("list", kind, folder=tmp_path).out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        [entry["name"], entry["description"]] for entry in listed
    ]


def test_an_unknown_kind_is_rejected(tmp_path: Path) -> None:
    """The message contains the kinds and suggests the nearest."""
    ended = run("list", "robot", folder=tmp_path)
    assert ended.code == 2
    assert f"'robot' is not one of {', '.join(Kind)}; did you mean 'robots'?" in " ".join(
        ended.err.split()
    )
    assert "Value error" not in ended.err


@pytest.mark.parametrize(("kind", "name"), [("scene", "my_cell"), ("domain", "my-words")])
def test_new_files_can_be_planned_with(kind: str, name: str, tmp_path: Path) -> None:
    """The command that ``tmkit new`` prints finds a valid plan."""
    outcome = run("new", kind, name, folder=tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    program, *arguments = shlex.split(outcome.out.splitlines()[-1].removeprefix("Try it: "))
    assert program == "tmkit"
    planned = run(*arguments, folder=tmp_path)
    assert planned.code == 0, planned.err
    domain = ["--domain", f"./{name}"] if kind == "domain" else []
    checked = run("check", "plan.json", *domain, folder=tmp_path)
    assert checked.code == 0, checked.out + checked.err


@pytest.mark.parametrize(("kind", "file"), [("scene", "mine.robray"), ("domain", "mine")])
def test_nothing_is_overwritten(kind: str, file: str, tmp_path: Path) -> None:
    """An existing file or folder is an error with its name."""
    (tmp_path / file).write_text("precious")
    ended = run("new", kind, "mine", folder=tmp_path)
    assert ended.code == 2
    assert ended.err.startswith(
        f"error: {file}: cannot be written: File exists; choose another name"
    )
    assert (tmp_path / file).read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == [file]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("domain", "My Words"), "'My Words' is not a PDDL name"),
        (("domain", "none/mine"), "none/mine: cannot be written: No such file or directory"),
        (("scene", "cell.urdf"), "'cell.urdf' does not end in .robray"),
        (("scene", "none/cell"), "none/cell.robray: cannot be written: No such file or directory"),
    ],
)
def test_invalid_names_are_rejected(
    arguments: tuple[str, str], message: str, tmp_path: Path
) -> None:
    """Names that PDDL, the format or the file system rejects are errors; nothing is written."""
    ended = run("new", *arguments, folder=tmp_path)
    assert ended.code == 2
    assert message in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        (["com"], ["completion"]),
        (["plan", "panda_t"], ["panda_table"]),
        (["plan", "panda_table", "--robot", "baxter"], ["baxter", "baxter_left"]),
        (["check", "plan.json", "--domain", "ha"], ["handover", "hanoi"]),
        (["robot", "check", "--write-s"], ["--write-srdf"]),
        (["plan", "./none"], []),
    ],
)
def test_bash_completes(line: list[str], completions: list[str], tmp_path: Path) -> None:
    """With the printed script, bash completes commands, options, built-in names and files."""
    script = run("completion", "bash", folder=tmp_path)
    assert (script.code, script.err) == (0, "")
    command = tmp_path / "tmkit"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(TMKIT)} "$@"\n')
    command.chmod(0o755)
    words = shlex.join(["tmkit", *line])
    call = f"COMP_WORDS=({words}); COMP_CWORD={len(line)}; _tmkit_completion tmkit"
    code = f'{script.out}\n{call}; echo "${{COMPREPLY[*]}}"'
    variables = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ended = run_process(
        ["bash", "-c", code], env=variables, capture_output=True, text=True, check=False
    )
    assert (sorted(ended.stdout.split()), ended.stderr) == (completions, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script(shell: str, tmp_path: Path) -> None:
    """The script runs the command with the completion variable of the shell."""
    script = run("completion", shell, folder=tmp_path)
    assert (script.code, script.err) == (0, "")
    assert f"_TMKIT_COMPLETE=complete_{shell}" in script.out
