"""Files that are parts of scenes, loaded alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmkit as tk
from tmkit._support.source_location import ImportNote
from tmkit.errors import FileFormatError

GRASP = (
    "frame grasp { parent right_endpoint; quaternion [0, 1, 0, 0]; translation [0, 0, 0.075]; }\n"
)


def write(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


def test_a_part_alone_is_no_scene(tmp_path: Path) -> None:
    """A part of a scene is rejected unless the load allows it."""
    path = write(tmp_path / "grasp.robray", GRASP)
    with pytest.raises(
        FileFormatError,
        match=r"grasp.robray:1:\d+: the frame 'grasp' has the parent 'right_endpoint'",
    ):
        tk.load_scene(path)


def test_a_part_is_shown_with_what_it_hangs_off_as_a_root(tmp_path: Path) -> None:
    """Frames keep their poses, and pairs of unknown frames are omitted, both with a note."""
    path = write(tmp_path / "grasp.robray", GRASP + "allow_collision left_w1 grasp;\n")
    notes: list[ImportNote] = []
    scene = tk.load_scene(path, complete=False, on_note=notes.append)
    assert scene.parent("grasp") == "right_endpoint"
    assert scene.parent("right_endpoint") is None
    assert scene.local_pose("grasp") == tk.Pose([0, 0, 0.075], [0, 1, 0, 0])
    assert scene.allowed_pairs == ()
    assert [(note.line, note.text) for note in notes] == [
        (1, "'right_endpoint', the parent of 'grasp', is declared by no file and shown as a root"),
        (2, "'left_w1' is declared by no file, so the pair is ignored"),
    ]


def test_a_whole_scene_is_the_same_either_way() -> None:
    """A complete scene is unchanged."""
    assert tk.load_scene("blocks3", "panda_table", complete=False) == tk.load_scene(
        "blocks3", "panda_table"
    )


def test_a_slip_of_the_pen_is_pointed_out(tmp_path: Path) -> None:
    """A misspelt parent becomes a root too, with the nearest name in the note."""
    path = write(tmp_path / "slip.robray", "frame table { }\nframe a { parent tabel; }\n")
    notes: list[ImportNote] = []
    assert tk.load_scene(path, complete=False, on_note=notes.append).parent("a") == "tabel"
    assert "did you mean 'table'" in notes[0].text
