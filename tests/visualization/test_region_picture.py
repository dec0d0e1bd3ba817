"""Pictures of the reachable region."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tmkit.errors import MissingExtraError, OutputError
from tmkit.motion.reachable_region import ReachableRegion
from tmkit.visualization.region_picture import draw_region


def region(count: int) -> ReachableRegion:
    """Return random points around a box that is flat when seen from above."""
    points = np.random.default_rng(0).normal(size=(count, 3))
    box = np.array([[0.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.1, 0.2], [0.0, 0.0, 0.2]])
    return ReachableRegion("arm", "tool", "world", count + 5, points, points, (box,))


@pytest.mark.parametrize("count", [0, 50])
def test_a_picture_is_repeatable(count: int, tmp_path: Path) -> None:
    """Equal regions give equal bytes, also when nothing is free or a link is flat in a view."""
    pytest.importorskip("matplotlib")
    first, again = (draw_region(region(count), tmp_path / name) for name in ("a.png", "b.png"))
    assert first.read_bytes() == again.read_bytes()
    with Image.open(first) as image:
        assert image.size == (1300, 490)
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "b.png"}


def test_a_picture_must_be_a_png(tmp_path: Path) -> None:
    """Other names are rejected before anything is drawn."""
    with pytest.raises(OutputError, match=r"cannot be written: a plot must end in \.png"):
        draw_region(region(3), tmp_path / "a.jpg")


def test_a_missing_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without matplotlib the error names the extra."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        MissingExtraError,
        match=r"needs the extra 'pictures': pip install -e '\.\[pictures\]' in the folder",
    ):
        draw_region(region(3), tmp_path / "a.png")
