"""``tmkit scene check --watch``: a check after each change of a file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from support.processes import Process

from tmkit.cli.scenes import check_on_change
from tmkit.errors import MissingFileError


@contextmanager
def watch(*arguments: str | Path) -> Iterator[Process]:
    """Run the command, and interrupt it at the end."""
    command = [sys.executable, "-m", "tmkit.cli", "scene", "check", *map(str, arguments), "--watch"]
    with Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 130
        finally:
            process.kill()


def write(path: Path, text: str) -> None:
    """Replace a file atomically."""
    path.with_name("new").write_text(text)
    path.with_name("new").replace(path)


def next_line(stream: IO[str], words: str) -> str:
    """Return the next line that contains some text."""
    for line in stream:
        if words in line:
            return line
    raise AssertionError(f"the stream ended without '{words}'")


def test_every_change_is_checked(tmp_path: Path) -> None:
    """A changed file, an included one and a missing one; an error is one line."""
    scene, part, missing = (tmp_path / f"{name}.robray" for name in ("scene", "part", "missing"))
    part.write_text("frame a { }\n")
    scene.write_text('include "part.robray"\nframe b { parent a; }\n')
    with watch(scene) as process:
        assert process.stdout is not None
        assert "3 frames, 0 joints" in next_line(process.stdout, "frames,")
        write(part, "frame a { }\nframe c { }\n")
        assert "4 frames, 0 joints" in next_line(process.stdout, "frames,")
        write(scene, 'include "missing.robray"\n')
        assert f"{scene}:1:" in next_line(process.stdout, "error:")
        write(missing, "frame d { type revolute; axis [0, 0, 1]; }\n")
        assert "2 frames, 1 joints" in next_line(process.stdout, "frames,")


def test_programs_get_errors_as_json(tmp_path: Path) -> None:
    """Each check is JSON on the standard output, whether it has an error or not."""
    scene = tmp_path / "scene.robray"
    scene.write_text("frame a {")
    with watch(scene, "--json") as process:
        assert process.stdout is not None
        decoder, text, documents = json.JSONDecoder(), "", []
        for change in ("frame a { }\n", ""):
            while True:
                text += process.stdout.readline()
                try:
                    document, end = decoder.raw_decode(text.lstrip())
                except ValueError:
                    continue
                break
            documents.append(document)
            text = text.lstrip()[end:]
            if change:
                write(scene, change)
    assert "expected" in documents[0]["message"]
    assert documents[1]["frames"] == 2


def test_nothing_to_watch_is_an_error(tmp_path: Path) -> None:
    """A first check that reads no file would wait forever."""

    def check(_note: object) -> None:
        raise MissingFileError("there is no file 'a'", path="a", nearest=None)

    with pytest.raises(MissingFileError, match="no file 'a'"):
        check_on_change(check, as_json=False)
