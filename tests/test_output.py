"""Files are written whole or not at all, and what a killed process left is removed by the next."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tmkit.errors import OutputError
from tmkit.files import output
from tmkit.files.output import write_bytes, write_text

WRITER = """
import os, signal, sys
from pathlib import Path
from tmkit.files import output

def replace(first, second):
    print("ready", flush=True)
    sys.stdin.read()

output.os.replace = replace
output.write_text(Path(sys.argv[1]), "half")
"""


def writer(path: Path) -> subprocess.Popen[str]:
    """Start a process that has written a file beside its place, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    """What is written is there, and nothing else."""
    path = tmp_path / "x.json"
    write_text(path, "one")
    write_bytes(path, b"two")
    assert path.read_text(encoding="utf-8") == "two"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised while writing, the old file stays, and nothing beside it."""
    path = tmp_path / "x.json"
    write_text(path, "old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_goes_and_what_others_write_stays(tmp_path: Path) -> None:
    """The next who writes the same file removes what a dead process has left of it, and nothing else."""
    path = tmp_path / "x.json"
    write_text(path, "old")
    dead, living, other = writer(path), writer(path), writer(tmp_path / "y.json")
    foreign = tmp_path / ".x.json.mine"
    foreign.write_text("mine", encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 5
    for process in (dead, other):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert path.read_text(encoding="utf-8") == "old"
    write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "new"
    left = {entry.name.rpartition(".")[0] for entry in tmp_path.iterdir() if entry not in (path, foreign)}
    assert left == {".x.json", ".y.json"}
    assert len(list(tmp_path.iterdir())) == 4
    living.communicate("")
    write_text(path, "last")
    write_text(tmp_path / "y.json", "last")
    assert set(tmp_path.iterdir()) == {path, foreign, tmp_path / "y.json"}


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(OutputError, match=r"cannot write '.*x.json': No such file"):
        write_text(tmp_path / "nowhere" / "x.json", "text")
