"""Small files that include each other many times, which every format rejects early.

Each file includes the next ten times, so twelve files describe 10^11 models.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import run_process

from tmkit._support.limits import ReadingLimits
from tmkit.errors import FileFormatError
from tmkit.formats import ReadingOptions, load_scene
from tmkit.formats.srdf.values import RobotSemantics, SrdfGroup, group_members
from tmkit.graph import Continuous, SceneGraph

FILES = 12
COPIES = range(10)
SECONDS = 120
"""Longest run of a process; without the limit it takes hours, or all memory."""


def sdf(following: str | None) -> str:
    """Return an SDF model that includes another."""
    parts = [
        f"<include><uri>{following}</uri><name>m{copy}</name></include>"
        for copy in COPIES
        if following
    ]
    return f'<sdf version="1.9"><model name="m"><link name="l"/>{"".join(parts)}</model></sdf>'


def robray(following: str | None) -> str:
    """Return a robray file that includes another."""
    return "".join(f'include "{following}" ' for _ in COPIES if following) + "def x 1;"


def rsg(following: str | None) -> str:
    """Return an RSG-DSL file that imports another under several prefixes."""
    imports = "".join(f'import "{following}" as m{copy} at w\n' for copy in COPIES if following)
    return f"{imports}root w\nGroup w {{ child b }}\nNode b {{ }}\n"


def usda(following: str | None) -> str:
    """Return a USD layer that references another."""
    parts = [
        f'def Xform "m{copy}" (references = @{following}@</m>) {{}}\n'
        for copy in COPIES
        if following
    ]
    return f'#usda 1.0\n(defaultPrim="m")\ndef Xform "m" {{\n{"".join(parts)}}}\n'


def usda_inside(following: str | None) -> str:
    """Return a USD layer whose prims inherit from each other, without other files."""
    parts = []
    for number in range(FILES):
        copies = "".join(
            f'def Xform "m{copy}" (inherits = </c{number + 1}>) {{}}\n' for copy in COPIES
        )
        parts.append(f'class Xform "c{number}" {{\n{copies if number + 1 < FILES else ""}}}\n')
    return f'#usda 1.0\n{"".join(parts)}def Xform "m" (inherits = </c0>) {{}}\n'


FORMATS: dict[str, tuple[str, Callable[[str | None], str], str]] = {
    "sdf": ("sdf", sdf, "more than 5000 files are included"),
    "robray": ("robray", robray, "more than 1000 files are included"),
    "rsg": ("rsg", rsg, "more than 1000 files are included"),
    "usd references": ("usda", usda, "the scene has more than 100000 frames"),
    "usd inherits": ("usda", usda_inside, "the scene has more than 100000 frames"),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_repeated_includes_are_rejected(tmp_path: Path, kind: str) -> None:
    """The process ends with an error that names a file and the limit."""
    suffix, write, message = FORMATS[kind]
    if suffix == "usda":
        pytest.importorskip("pxr")
    for number in range(FILES):
        following = f"f{number + 1}.{suffix}" if number + 1 < FILES else None
        (tmp_path / f"f{number}.{suffix}").write_text(write(following), encoding="ascii")
    ended = run_process(
        [sys.executable, "-m", "tmkit.cli", "scene", "dump", f"./f0.{suffix}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert ended.returncode == 2, ended.stderr[-1000:]
    assert message in " ".join(ended.stderr.split())
    assert f".{suffix}" in ended.stderr


def test_the_limit_of_includes_can_be_raised_and_lowered(tmp_path: Path) -> None:
    """It is one of the limits of reading, and counts a file as often as it is included."""
    (tmp_path / "tree.sdf").write_text(sdf(None), encoding="ascii")
    (tmp_path / "forest.sdf").write_text(sdf("tree.sdf"), encoding="ascii")
    assert (
        len(
            load_scene(
                tmp_path / "forest.sdf", reading=ReadingOptions(limits=ReadingLimits(includes=10))
            )
        )
        == 12
    )
    with pytest.raises(FileFormatError, match=r"forest\.sdf:1: more than 9 files are included"):
        load_scene(
            tmp_path / "forest.sdf", reading=ReadingOptions(limits=ReadingLimits(includes=9))
        )


def test_mujoco_takes_a_file_once(tmp_path: Path) -> None:
    """As in MuJoCo, a file is not included twice in one model."""
    pytest.importorskip("mujoco")
    (tmp_path / "part.xml").write_text(
        "<mujocoinclude><worldbody><site/></worldbody></mujocoinclude>"
    )
    (tmp_path / "main.xml").write_text(
        '<mujoco>\n<include file="part.xml"/>\n<include file="part.xml"/></mujoco>'
    )
    with pytest.raises(FileFormatError, match=r"main\.xml:3: 'part\.xml' is already included"):
        load_scene(tmp_path / "main.xml")


def test_json_takes_a_file_once(tmp_path: Path) -> None:
    """JSON scenes have no prefixes, so a second include is rejected before it is read."""
    (tmp_path / "arm.urdf").write_text("no XML", encoding="ascii")
    include = '{"file": "arm.urdf", "frames": {}}'
    rest = '"version": 1, "shapes": {}, "allowed": [], "frames": []'
    text = f'{{"format": "tmkit-scene", {rest}, "include": [{include}, {include}]}}'
    (tmp_path / "main.json").write_text(text, encoding="ascii")
    with pytest.raises(FileFormatError, match=r"main\.json.*'arm\.urdf' is included twice"):
        load_scene(tmp_path / "main.json")


def test_imports_with_prefixes_that_form_a_cycle(tmp_path: Path) -> None:
    """RSG-DSL files that import each other with a prefix are rejected, with the cycle."""
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        text = f'import "{other}.rsg" as x at w\nroot w\nGroup w {{ child b }}\nNode b {{ }}\n'
        (tmp_path / f"{name}.rsg").write_text(text, encoding="ascii")
    with pytest.raises(
        FileFormatError, match=r"form a cycle: \S*b\.rsg -> \S*c\.rsg -> \S*a\.rsg -> \S*b\.rsg"
    ):
        load_scene(tmp_path / "a.rsg")


def test_errors_of_imports_in_imports_are_listed(tmp_path: Path) -> None:
    """Several errors of an imported file are one error of the file that imports it."""
    bad = "root w\nGroup w { chidl b }\nGroup c { child }\n"
    (tmp_path / "bad.rsg").write_text(bad, encoding="ascii")
    for name, other in (("middle", "bad"), ("main", "middle")):
        imports = f'import "{other}.rsg" as x at w\nimport "{other}.rsg" as y at w\n'
        text = f"{imports}root w\nGroup w {{ child b }}\nNode b {{ }}\n"
        (tmp_path / f"{name}.rsg").write_text(text, encoding="ascii")
    with pytest.raises(
        FileFormatError, match=r"(?s)bad\.rsg:2.*bad\.rsg:3.*bad\.rsg:2.*bad\.rsg:3"
    ):
        load_scene(tmp_path / "main.rsg")


def test_groups_of_an_srdf_that_contain_each_other_many_times() -> None:
    """Each group is looked at once: forty groups that name the next twice would take years."""
    names = [f"g{number}" for number in range(40)]
    groups = [
        SrdfGroup(name, subgroups=(after, after)) for name, after in itertools.pairwise(names)
    ]
    semantics = RobotSemantics("r", (*groups, SrdfGroup(names[-1], links=("a",))))
    scene = SceneGraph().add_frame("a", "world", joint=Continuous([0, 0, 1], name="turn"))
    assert group_members(semantics, scene, group="g0").joints == ("turn",)
