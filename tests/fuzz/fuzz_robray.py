"""Fuzz the reader of robray scene files: ``fuzz_robray.py --seconds 600 --seed 1``."""

from __future__ import annotations

from pathlib import Path

from engine import Target, main

from tmkit._support.data import data_path
from tmkit.formats import load_scene

TREE = b"""\
// frames in frames, expressions, classes
include "classes.robray"
include "other.robray";
def h 0.1 * (2 + 3) ^ 2 / 4 - 0.1; # a comment
def k -h ** 2;
class heavy { mass 2; friction 0.7; isa movable; }
class crimson { color [1, 0, 0]; alpha 0.5; }
class round { isa crimson; shape sphere; radius h / 2; }
allow_collision table cup;
/* longer
   comment */
frame table {
  translation [0, 0, -h]; rpy [0, 0, 90 * deg];
  isa surface;
  geometry { shape box; dimension [1, 1, 0.1]; color [0.5, 0.5, 0.5]; isa heavy; }
  frame cup {
    quaternion [0, 0, 0, 1];
    geometry { isa round; visual 1; collision true; }
    geometry { shape cylinder; height 0.2; radius 0.05; }
  }
}
"""

ARM = b"""\
frame arm { type revolute; axis [0, 0, 1]; offset pi / 2; variable "q 1"; lower -1; upper 1; }
frame slide { parent arm; type prismatic; axis [1, 0, 0]; mass 1;
  geometry { mesh "tri.stl"; scale [1, 2, 3]; } }
frame floor { geometry { shape grid; dimension [1, 1]; delta [0.1, 0.1]; thickness 0.01;
  no-shadow 1; specular 0.5; } }
frame tip { parent slide; geometry { shape cone; height 1; start_radius 0.2; end_radius 0.1; } }
"""

OTHER = b"frame other { translation [1, 2, 3]; }\n"

STL = b"""\
solid corner
facet normal 0 0 -1
outer loop
vertex 0 0 0
vertex 0 1 0
vertex 1 0 0
endloop
endfacet
facet normal 0 -1 0
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 0 1
endloop
endfacet
facet normal -1 0 0
outer loop
vertex 0 0 0
vertex 0 0 1
vertex 0 1 0
endloop
endfacet
facet normal 1 1 1
outer loop
vertex 1 0 0
vertex 0 1 0
vertex 0 0 1
endloop
endfacet
endsolid corner
"""

WORDS = """
frame class include def geometry allow_collision parent translation quaternion rpy type axis offset
variable lower upper mass friction shape mesh color alpha specular dimension delta thickness radius
height start_radius end_radius start-radius scale visual collision no-shadow isa revolute prismatic
fixed continuous box sphere cylinder cone grid movable surface pi deg π true false ; { } [ ] ( ) , +
- * / ^ ** "" "a" "main.robray" "other.robray" "tri.stl" "../../outside.robray" "../../outside.stl"
"file://../../outside.robray" "../inputs/other.robray" "/etc/passwd" "file:///etc/passwd"
"package://tmkit/scenes/blocks3.robray" "package://x/../../outside.robray" "outside.stl"
"outside.robray" "package://inputs/other.robray" "package://tmkit/../pyproject.toml" "/dev/zero" "."
"~" "http://localhost/x.robray" world table cup arm // # /* */
"""


def target() -> Target:
    """Return the reader of robray files with scenes of ours to begin with."""
    classes = data_path("scenes/classes.robray").read_bytes()
    return Target(
        "robray",
        "main.robray",
        read,
        [TREE, ARM, OTHER, classes],
        tokens=WORDS.encode().split(),
        nestings=[
            (b"(", b")"),
            (b"-", b""),
            (b"- ", b""),
            (b"1+", b""),
            (b"2^", b""),
            (b"2 * ", b""),
            (b"frame a {", b"}"),
            (b"[", b"]"),
            (b"geometry {", b"}"),
            (b"/*", b"*/"),
            (b"class c {", b"}"),
            (b"isa crimson;", b""),
            (b"a", b""),
            (b"9", b""),
            (b"0.", b""),
            (b"\n", b""),
            (b"a-", b"a"),
            (b"frame f {}", b""),
        ],
        companions={"other.robray": OTHER, "tri.stl": STL, "classes.robray": classes},
        outside={"outside.robray": OTHER, "outside.stl": STL},
    )


def read(path: Path) -> object:
    """Load the scene."""
    return load_scene(path)


if __name__ == "__main__":
    main([target()], description=__doc__ or "")
