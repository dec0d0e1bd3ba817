"""Problem sources of batch files: only allowed sources are imported, and errors have a line."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import tmkit

from tmkit.batch import load_batch, open_results, run_batch
from tmkit.errors import FileFormatError

SOURCES = '''
"""Problem sources of a user's project."""
import pathlib
from dataclasses import dataclass

import tmkit as tk

pathlib.Path(__file__).with_suffix(".imported").touch()
NO_SOURCE = 3


@dataclass(frozen=True)
class Stack:
    goal: str = "(on a b)"
    options: tk.PlanningOptions = tk.PlanningOptions(max_iterations=3)

    def problem(self, seed):
        if seed > 7:
            raise LookupError("seeds are 0 to 7")
        scene = tk.load_scene("panda_table", "blocks2")
        return tk.PlanningProblem(scene, goal=self.goal), self.options

    @property
    def digest(self):
        return f"{self.goal}{self.options}"


class NoDigest:
    def problem(self, seed):
        raise AssertionError


class OnlyProblem(Stack):
    def problem(self, seed):
        return super().problem(seed)[0]


def stack(*, swapped):
    return Stack("(on b a)" if swapped else "(on a b)")


def broken(**parameters):
    raise ValueError(f"received {sorted(parameters)}")


def class_itself():
    return Stack
'''
_numbers = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Write an importable module with a unique name, and return the name."""
    name = f"named_sources_{next(_numbers)}"
    (tmp_path / f"{name}.py").write_text(SOURCES, encoding="utf-8")
    (tmp_path / f"{name}_fails.py").write_text("raise SystemExit('not now')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def _batch(folder: Path, *lines: str) -> Path:
    file = folder / "batch.toml"
    file.write_text("\n".join(["[[problems]]", *lines]), encoding="utf-8")
    return file


def test_problems_of_a_source_are_planned_in_other_processes(tmp_path: Path, module: str) -> None:
    """A source is a class or a function, with parameters and options of a grid."""
    pytest.importorskip("distributed")
    name = f"{module}:Stack"
    grid = '[problems.grid]\n"parameters.goal" = ["(on a b)", "(on b a)"]'
    file = _batch(
        tmp_path, f'source = "{name}"', "seeds = 2", "options = { max_iterations = 2 }", grid
    )
    batch = load_batch(file, allow_sources=[name])
    assert [entry.source.problem(0)[1].max_iterations for entry in batch.entries] == [2, 2]
    assert len({entry.source.digest for entry in batch.entries}) == 2
    assert run_batch(batch, tmp_path / "out", workers=1).statuses == {"solved": 4}
    goals = [row.plan.goal for row in open_results(tmp_path / "out")]
    assert [str(goal) for goal in goals] == ["(on a b)", "(on a b)", "(on b a)", "(on b a)"]
    file = _batch(tmp_path, f'source = "{module}:stack"', "parameters = { swapped = true }")
    (entry,) = load_batch(file, allow_sources=(name, f"{module}:stack")).entries
    assert entry.source.problem(0)[0].goals == ("(on b a)",)


@pytest.mark.parametrize(
    "allowed",
    [
        lambda _: [],
        lambda module: [module],
        lambda module: [f"{module}:stack"],
        lambda module: [f"{module}:Stack "],
    ],
    ids=["nothing", "the module", "another name", "another text"],
)
@pytest.mark.parametrize("place", ["the batch", "a problem file", "a grid"])
def test_only_allowed_sources_are_imported(
    tmp_path: Path, module: str, place: str, allowed: Callable[[str], list[str]]
) -> None:
    """This holds in any part of the file, also if other names are allowed."""
    name = f"{module}:Stack"
    (tmp_path / "problem.toml").write_text(f'source = "{name}"', encoding="utf-8")
    line = {
        "the batch": f'source = "{name}"',
        "a problem file": 'problem = "problem.toml"',
        "a grid": f'[problems.grid]\nsource = ["{name}"]',
    }[place]
    with pytest.raises(
        FileFormatError, match=rf"source: '{name}' is code, .*--allow-source {name} on the command"
    ):
        load_batch(_batch(tmp_path, line), allow_sources=allowed(module))
    assert not (tmp_path / f"{module}.imported").exists()
    assert module not in sys.modules


@pytest.mark.parametrize(
    ("source", "more", "match"),
    [
        (
            "nowhere_at_all:Stack",
            "",
            r"batch\.toml:2: .*source: .*cannot be imported: ModuleNotFoundError: No module",
        ),
        (
            "{0}_fails:Stack",
            "",
            r"batch\.toml:2: .*source: .*cannot be imported: SystemExit: not now",
        ),
        (
            "{0}:Stacks",
            "",
            r"batch\.toml:2: .*unknown problem source 'Stacks'; did you mean '[Ss]tack'",
        ),
        (
            "{0}:NO_SOURCE",
            "",
            r"batch\.toml:2: .*is not a problem source: expected a class or a function, received 3",
        ),
        (
            "{0}",
            "",
            (
                r"batch\.toml:2: .*expected MODULE:NAME, a module that Python can import, received"
                r" 'named_"
            ),
        ),
        (
            "{0}.py:Stack",
            "",
            r"expected MODULE:NAME, a module that Python can import, received 'named_.*py:Stack'",
        ),
        ("/tmp/{0}:Stack", "", r"expected MODULE:NAME, a module that Python can import"),
        ("{0}:Stack.problem", "", r"expected MODULE:NAME"),
        (
            "{0}:NoDigest",
            "",
            r"is not a problem source: expected a method 'problem' and a text 'digest', received <",
        ),
        (
            "{0}:class_itself",
            "",
            r"is not a problem source: expected a method 'problem' and a text 'digest'",
        ),
        (
            "{0}:OnlyProblem",
            "",
            r"is not a problem source: expected a PlanningProblem and PlanningOptions of 'problem'",
        ),
        (
            "{0}:broken",
            "",
            r"batch\.toml:2: .*'named_.*:broken' cannot be created: ValueError: received \[\]",
        ),
        (
            "{0}:stack",
            "",
            (
                r"cannot be created: TypeError: stack\(\) missing 1 required keyword-only argument:"
                r" 'swapped'"
            ),
        ),
        (
            "{0}:Stack",
            "parameters = {{ gaol = 1 }}",
            r"toml:3: .*unknown parameter 'gaol'; did you mean 'goal'",
        ),
        ("{0}:stack", "options = {{ seed = 1 }}", r"batch\.toml:3: .*unknown parameter 'options'"),
        (
            "{0}:Stack",
            "seeds = [8]",
            r"the problem of seed 8 of 'named_.*:Stack': LookupError: seeds are 0 to 7",
        ),
        (
            "{0}:Stack",
            "scene = ['blocks2']",
            r"unknown key 'scene'; .*\(known: options, parameters, source\)",
        ),
        ("{0}:Stack", "parameters = 3", r"batch\.toml:3: .*parameters: expected a"),
    ],
)
def test_errors_of_sources_have_the_line(
    tmp_path: Path, module: str, source: str, more: str, match: str
) -> None:
    """Errors of the module, the name, the call and the problem have file and line."""
    name = source.format(module)
    with pytest.raises(FileFormatError, match=match):
        load_batch(_batch(tmp_path, f'source = "{name}"', more.format()), allow_sources=[name])


def test_the_command_line_allows_sources_by_name(
    tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the option, the command ends with the error of the file."""
    pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    name = f"{module}:Stack"
    file = str(_batch(tmp_path, f'source = "{name}"'))
    outcome = tmkit(tmp_path, "batch", file, "-o", "out", "--quiet")
    assert outcome.code == 2
    assert f"--allow-source {name}" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / f"{module}.imported").exists()
    outcome = tmkit(tmp_path, "batch", file, "-o", "out", "--workers", "1", "--allow-source", name)
    assert (outcome.code, outcome.err.count("Error")) == (0, 0)
    assert "1 of 1 solved" in outcome.out
