"""Examples of uncertainty: they run, check their own results, and draw their pictures."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bending_arm", "200 simulated arms"),
        ("uncertain_neck_map", "21 observations of 19 uncertain frames"),
        ("hand_eye", "NEES of new records, as fitted"),
    ],
)
def test_examples_run_and_draw(
    name: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each example asserts its results, prints them, and writes a picture."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "argv", [name, "--out", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert sentence in capsys.readouterr().out
    with Image.open(tmp_path / f"{name}.png") as image:
        assert min(image.size) > 300


def test_the_map_is_made_without_gtsam_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the extra the example names it, and does the rest."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "argv", ["uncertain_neck_map", "--out", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "uncertain_neck_map.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "gtsam is not installed; to compare with it, run pip install -e '.[world]'" in printed
    assert "one observation after the other" in printed
