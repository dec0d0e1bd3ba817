"""Inputs that random mutation found, each of which once ended in something else than an error that names the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tmkit as tk
from tmkit.errors import FileFormatError, MeshError, SceneError
from tmkit.formats import scene_from_json, scene_to_json


@pytest.mark.parametrize("shape", ["shape box; dimension [1, 1, 1e308];", "shape sphere; radius 1e200;"])
def test_a_solid_too_large_for_its_inertia(tmp_path: Path, shape: str) -> None:
    """Sizes whose squares are no numbers any more are refused, where the mass is given."""
    path = tmp_path / "large.robray"
    path.write_text(f"frame a {{\n  mass 2;\n  geometry {{ {shape} }}\n}}\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"large.robray:\d.*so large that the inertia cannot be worked out"):
        tk.load_scene(path)


def test_half_a_character_in_a_name() -> None:
    """A lone surrogate, which JSON can write and no text can hold, is refused with its key."""
    document = json.loads(json.dumps(scene_to_json(tk.SceneGraph())))
    document["frames"][0]["body"] = "wor\ud800ld"
    with pytest.raises((FileFormatError, SceneError), match=r"body.*half a character"):
        scene_from_json(document, source="scene.json")


def test_nothing_is_told_of_folders_that_may_not_be_read(tmp_path: Path) -> None:
    """A missing mesh in a folder outside gets no hint of what lies there; one in a folder around does."""
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    for folder in (tmp_path, inner):
        (folder / "secret.stl").write_bytes(b"")
    (inner / "x.robray").write_text('frame x { geometry { mesh "../../../secrets.stl"; } }', encoding="utf-8")
    with pytest.raises(MeshError, match="there is no file") as caught:
        tk.load_scene(inner / "x.robray")
    assert "did you mean" not in str(caught.value)
    (inner / "x.robray").write_text('frame x { geometry { mesh "secrets.stl"; } }', encoding="utf-8")
    with pytest.raises(MeshError, match=r"did you mean 'secret\.stl'"):
        tk.load_scene(inner / "x.robray")
