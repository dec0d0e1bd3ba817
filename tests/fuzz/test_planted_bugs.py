"""Planted bugs: the harnesses find bugs that are planted deep in the readers, each by kind."""

from __future__ import annotations

import faulthandler
import importlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import engine
from engine import Limits, Report, Target, fuzz
from mutations import Mutator

from tmkit.errors import TmkitError

LIMITS = Limits(1024 << 20, 60.0)


def run(targets: list[Target], folder: Path, *, inputs: int, limits: Limits = LIMITS) -> Report:
    """Fuzz for so many inputs."""
    return fuzz(targets, seed=1, seconds=1200.0, inputs=inputs, limits=limits, folder=folder)


def harness(name: str) -> list[Target]:
    """Return the targets of a harness."""
    module = importlib.import_module(f"fuzz_{name}")
    return list(module.targets()) if hasattr(module, "targets") else [module.target()]


# Calls of each reader on a wrong name or a missing part, which no valid input reaches.
PLACES = {
    "robray": "tmkit.formats.robray.reader.did_you_mean",
    "urdf": "tmkit._support.xml.nearest_name",
    "srdf": "tmkit.formats.srdf.files.did_you_mean",
    "toml": "tmkit.robots.manipulator.did_you_mean",
    "json": "tmkit.formats.json.reading.did_you_mean",
    "pddl": "tmkit.pddl.parsing.source.Source._find_imbalance",
    "plans": "tmkit.formats.json.reading.did_you_mean",
    "meshes": "tmkit.formats.mesh.meshes.logger.debug",
    "arrays": "tmkit.formats.json.shapes._first_line",
    "goals": "tmkit.formats.json.reading.did_you_mean",
}


@pytest.fixture(autouse=True)
def _little_minimising(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MINIMISING_RUNS", 25)


@pytest.mark.parametrize("name", PLACES)
def test_a_planted_bug_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index error in the search for the nearest name is found among correct rejections."""
    targets = harness(name)[:1]

    def planted(*arguments: object, **named: object) -> object:
        raise IndexError("planted")

    monkeypatch.setattr(PLACES[name], planted)
    report = run(targets, tmp_path, inputs=250)
    findings = [finding for finding in report.findings if "exception IndexError" in finding]
    assert findings, report.lines()
    text = report.findings[findings[0]].with_suffix(".txt").read_text(encoding="utf-8")
    assert "IndexError: planted" in text
    assert report.kinds["value"] > len(targets[0].pool)  # other inputs were read to the end
    assert report.kinds["error"] > 0


def _crash(data: bytes) -> None:
    if b"!" in data:
        faulthandler.disable()  # it would print a long trace in the child process
        os.abort()


def _hang(data: bytes) -> None:
    if b"!" in data:
        time.sleep(60.0)


def _hoard(data: bytes) -> None:
    if b"!" in data:
        bytearray(4 << 30)


def _warn(data: bytes) -> None:
    if b"!" in data:
        warnings.warn("odd", stacklevel=2)


def _blame_nobody(data: bytes) -> None:
    if b"!" in data:
        raise TmkitError("something is wrong somewhere")


def _look_outside(data: bytes) -> None:
    if b"!" in data:
        Path("/etc/hostname").read_bytes()


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (_crash, "crash"),
        (_hang, "hang"),
        (_hoard, "memory"),
        (_warn, "exception"),
        (_blame_nobody, "nameless"),
        (_look_outside, "outside"),
    ],
)
def test_each_kind_of_finding(read: Callable[[bytes], None], kind: str, tmp_path: Path) -> None:
    """Crash, hang, memory use, warning, nameless error and outside access are found, once each."""
    target = Target(
        "odd", "main.odd", lambda path: read(path.read_bytes()), [b"a whole input\n"], tokens=[b"!"]
    )
    report = run(
        [target], tmp_path, inputs=60, limits=Limits(1024 << 20, 0.3 if kind == "hang" else 60.0)
    )
    assert [finding.split()[1] for finding in report.findings] == [kind]
    if kind != "hang":  # making it small takes a time-out for each try
        assert b"!" in next(iter(report.findings.values())).read_bytes()


def test_inputs_depend_on_the_seed_only() -> None:
    """The same seed makes the same inputs, another one others; most differ from the whole input."""
    pool = [b"frame a { parent b; translation [1, 2, 3]; }\n"]
    inputs = [
        [Mutator(seed, pool=pool, tokens=[b"x"], nestings=[]).next() for _ in range(1)]
        + [
            mutator.next()
            for mutator in [Mutator(seed, pool=pool, tokens=[b"x"], nestings=[])]
            for _ in range(50)
        ]
        for seed in (1, 1, 2)
    ]
    assert inputs[0] == inputs[1] != inputs[2]
    assert sum(data != pool[0] for data in inputs[0]) > 40
