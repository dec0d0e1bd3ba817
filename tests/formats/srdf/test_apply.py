"""SRDF files as scene files: pairs of links that may touch."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.panda_srdf import PANDA_SRDF

from tmkit._support.source_location import ImportNote
from tmkit.formats import load_scene


@pytest.fixture
def srdf(tmp_path: Path) -> Path:
    """Return an SRDF file for the Panda."""
    path = tmp_path / "panda.srdf"
    path.write_text(PANDA_SRDF)
    return path


def test_disabled_pairs_are_allowed_for_their_reason(srdf: Path) -> None:
    """A pair has the reason of the file, or "srdf" if the file has none."""
    reasons = {
        frozenset(pair[:2]): pair[2] for pair in load_scene("panda_table", srdf).allowed_pairs
    }
    assert reasons[frozenset(("panda_link0", "panda_link4"))] == "Never"
    assert reasons[frozenset(("panda_link1", "panda_link7"))] == "srdf"


def test_unchecked_links_meet_only_enabled_ones(srdf: Path) -> None:
    """A link without default checks may touch everything but the links it is enabled with."""
    scene = load_scene("panda_table", srdf)
    assert scene.is_allowed("panda_link5", "table")
    assert scene.is_allowed("panda_link5", "panda_link0")
    assert not scene.is_allowed("panda_link5", "panda_link1")


def test_pairs_of_unknown_links_are_omitted_with_a_note(srdf: Path) -> None:
    """Links that the scene lacks are listed once, and nothing else is added."""
    notes: list[ImportNote] = []
    scene = load_scene("panda_table", srdf, on_note=notes.append)
    assert scene.frame_names == load_scene("panda_table").frame_names
    texts = [note.text for note in notes if note.path == str(srdf)]
    assert texts == ["collision pairs name a link that the scene does not have: 'camera'"]


def test_robray_includes_an_srdf(srdf: Path) -> None:
    """An include reads an SRDF like any other scene file."""
    scene = srdf.parent / "cell.robray"
    scene.write_text('include "package://tmkit/scenes/panda_table.robray"\ninclude "panda.srdf"\n')
    assert load_scene(scene) == load_scene("panda_table", srdf)
