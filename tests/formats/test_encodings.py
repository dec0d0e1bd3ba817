"""UTF-8, UTF-16 and UTF-32 texts with a byte order mark, in every text format and in strings."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tmkit as tk
from tmkit._support.toml_files import read_toml
from tmkit.errors import FileFormatError, TmkitError
from tmkit.formats import load_scene
from tmkit.formats.mesh.meshes import read_mesh
from tmkit.formats.srdf import read_srdf
from tmkit.formats.tmp_file import read_tmp
from tmkit.pddl import load_domain, parse_domain, parse_goal, parse_problem

ENCODINGS = {
    "utf-8": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "utf-32-le": (codecs.BOM_UTF32_LE, "utf-32-le"),
    "utf-32-be": (codecs.BOM_UTF32_BE, "utf-32-be"),
}
DOMAIN = "; über\n(define (domain d) (:predicates (p)) (:action a :parameters () :effect (p)))\n"
PROBLEM = "(define (problem q) (:domain d) (:init) (:goal (p)))\n"
OBJ = "# für alle\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
SCENE = json.dumps(tk.formats.scene_to_dict(tk.SceneGraph().add_frame("tür", "world")))
SDF = '<sdf version="1.9"><model name="m"><link name="tür"/></model></sdf>'
TEXTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "x.robray": ('frame "tür" {}\n', load_scene),
    "x.rsg": ("root w\nGroup w { child b }\nNode b { }\n", load_scene),
    "x.urdf": ('<robot name="r"><link name="tür"/></robot>\n', load_scene),
    "declared.urdf": (
        '<?xml version="1.0" encoding="utf-8"?>\n<robot name="r"><link name="tür"/></robot>\n',
        load_scene,
    ),
    "odd.urdf": ('<?xml version="0.0"?>\n<robot name="r"><link name="tür"/></robot>\n', load_scene),
    "x.sdf": (SDF, load_scene),
    "x.srdf": (
        '<robot name="r"><group name="tür"><link name="a"/></group></robot>',
        lambda path: read_srdf(path).groups,
    ),
    "x.json": (SCENE, load_scene),
    "x.tmp": ("# über\n", lambda path: [entry.text for entry in read_tmp(path).entries]),  # type: ignore[union-attr]
    "x.toml": ('a = "über"\n', lambda path: read_toml(path, "a table")[0]),
    "x.pddl": (DOMAIN, load_domain),
    "x.obj": (OBJ, lambda path: read_mesh(path).vertices.tolist()),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_read_in_each_encoding(tmp_path: Path, name: str, encoding: str) -> None:
    """The content is that of the same text in UTF-8 without a mark."""
    text, read = TEXTS[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    expected = read(path)
    mark, codec = ENCODINGS[encoding]
    path.write_bytes(mark + text.encode(codec))
    assert read(path) == expected


@pytest.mark.parametrize("declared", ["utf-16", "UTF-16LE"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF16_LE])
def test_xml_that_declares_utf_16(tmp_path: Path, declared: str, mark: bytes) -> None:
    """XML may omit the byte order mark; locations in errors are those of the text."""
    path = tmp_path / "x.urdf"
    text = (
        f'<?xml version="1.0" encoding="{declared}"?>\n<robot name="r">\n<link/><link'
        ' name="a"/></robot>\n'
    )
    path.write_bytes(mark + text.replace("<link/>", "").encode("utf-16-le"))
    assert "a" in load_scene(path)
    path.write_bytes(mark + text.encode("utf-16-le"))
    with pytest.raises(FileFormatError, match=r"x\.urdf:3: <link> needs the attribute 'name'"):
        load_scene(path)


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_not_in_the_encoding_of_its_mark(tmp_path: Path, name: str) -> None:
    """The error names the encoding and the file."""
    path = tmp_path / name
    path.write_bytes(codecs.BOM_UTF16_LE + b"\x00\xd8a\x00b")
    with pytest.raises(
        TmkitError, match=rf"{path.name}.*is not UTF-16 text, of which it has the byte order mark"
    ):
        TEXTS[name][1](path)


def test_strings_are_read_as_files() -> None:
    """A byte order mark at the beginning of PDDL in a string is omitted, as in a file."""
    mark = "\ufeff"
    domain = parse_domain(mark + DOMAIN)
    assert domain == parse_domain(DOMAIN)
    assert parse_problem(mark + PROBLEM, domain) == parse_problem(PROBLEM, domain)
    assert parse_goal(mark + "(p)", domain, objects={}) == parse_goal("(p)", domain, objects={})
