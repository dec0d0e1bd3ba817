"""Messages for words and syntax of other formats in robray files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tmkit as tk
from tmkit.errors import FileFormatError


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("frame a { isa regoin; }", "did you mean 'region'"),
        (
            "frame a { isa block; }",
            'class block { }, or include "package://tmkit/scenes/classes.robray"',
        ),
        ("frame a { isa [movable, red]; }", "write 'isa' once for each"),
        ("frame a { isa movable, red; }", "write 'isa' once for each class"),
        ("frame a { class movable; }", "write 'isa NAME;'"),
        ('frame a { geometry { shape mesh; mesh "a.obj"; } }', "write 'mesh \"FILE\";'"),
        ('frame a { geometry { file "a.obj"; } }', "write 'mesh \"FILE\";'"),
        ("frame a { geometry { mesh a.obj; } }", "a file name needs quotes"),
        ("frame a { geometry { shape box; size [1, 1, 1]; } }", "write 'dimension [x, y, z];'"),
        ("frame a { geometry { box [1, 1, 1]; } }", "write 'shape box; dimension [x, y, z];'"),
        ("frame a { shape box; }", "write it in a block 'geometry { ... }'"),
        ("frame a { position [0, 0, 1]; }", "write 'translation [x, y, z];'"),
        ("frame a { orientation [0, 0, 0, 1]; }", "write 'quaternion [x, y, z, w];'"),
        ("frame a { translation = [0, 0, 1]; }", "a value follows its name"),
        ("frame a { translation 0.1 0 0; }", "several numbers need brackets"),
        ("frame a { translation [10 cm, 0, 0]; }", "a product, as in '10*cm'"),
        (
            "frame a { translation [10*cm, 0, 0]; }",
            'def cm NUMBER;, or include "package://tmkit/scenes/classes.robray"',
        ),
        ("frame a { translation [h, 0, 0]; } def h 0.3;", "define it first: def h NUMBER;"),
        ("frame a b { }", "a name with blanks needs quotes"),
        ("frame a { type hinge; }", "write 'type revolute;'"),
        ("frame a { type revolute; axis z; }", "the axis z is [0, 0, 1]"),
        ("frame a { joint revolute; }", "write 'type revolute;'"),
        ("frame a { geometry { shape sphere; color red; } }", "write 'isa red;' for the colour"),
        ("frame a { geometry { color [1, 0, 0, 1]; } }", "write the fourth as 'alpha ...;'"),
        ("include panda_table", "a file name needs quotes"),
        ('include "table"', 'the built-in scene is "package://tmkit/scenes/table.robray"'),
        ('<robot name="a"/>', "a robray file is not XML"),
    ],
)
def test_a_word_of_another_format_gets_the_robray_form(
    tmp_path: Path, text: str, hint: str
) -> None:
    """The message has the place of the word and what to write instead."""
    file = tmp_path / "scene.robray"
    file.write_text(text)
    with pytest.raises(FileFormatError, match=rf"scene.robray:1:\d+: .*{re.escape(hint)}"):
        tk.load_scene(file)


def test_region_and_rack_need_no_definition(tmp_path: Path) -> None:
    """Classes with a meaning in the planner are known, and may still be defined."""
    file = tmp_path / "scene.robray"
    file.write_text("frame a { isa region; isa rack; }")
    assert tk.load_scene(file).classes("a") == ("region", "rack")
    file.write_text("class region { mass 1; } frame a { isa region; }")
    with pytest.raises(FileFormatError, match="this frame has none"):
        tk.load_scene(file)


def test_a_file_beside_the_including_one_precedes_a_built_in_scene(tmp_path: Path) -> None:
    """The hint about a built-in scene appears only where there is no such file."""
    (tmp_path / "table").write_text("")
    file = tmp_path / "scene.robray"
    file.write_text('include "table"')
    with pytest.raises(FileFormatError, match="unknown scene format"):
        tk.load_scene(file)
