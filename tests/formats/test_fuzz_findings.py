"""Inputs found by fuzzing that once raised an error without the name of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tmkit as tk
from tmkit.cli.inputs import GoalOptions, read_goals
from tmkit.errors import FileFormatError, MeshError, MissingFileError, SceneError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.formats.json.shapes import read_points
from tmkit.formats.tmp_file import read_tmp
from tmkit.robots import manipulator_from_srdf
from tmkit.tamp import load_tmp_plan


@pytest.mark.parametrize(
    "shape", ["shape box; dimension [1, 1, 1e308];", "shape sphere; radius 1e200;"]
)
def test_a_solid_too_large_for_its_inertia(tmp_path: Path, shape: str) -> None:
    """Sizes whose squares overflow are rejected at the mass."""
    path = tmp_path / "large.robray"
    path.write_text(f"frame a {{\n  mass 2;\n  geometry {{ {shape} }}\n}}\n", encoding="utf-8")
    with pytest.raises(
        FileFormatError,
        match=r"large.robray:\d.*(so large that the inertia|the volume is beyond the range)",
    ):
        tk.load_scene(path)


def test_half_a_character_in_a_name() -> None:
    """A lone surrogate, which JSON allows and text does not, is rejected with its key."""
    document = json.loads(json.dumps(scene_to_dict(tk.SceneGraph())))
    document["frames"][0]["body"] = "wor\ud800ld"
    with pytest.raises((FileFormatError, SceneError), match=r"body.*half a character"):
        scene_from_dict(document, source="scene.json")


def test_nothing_is_told_of_folders_that_may_not_be_read(tmp_path: Path) -> None:
    """Only readable folders appear in the hint about a missing mesh."""
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    for folder in (tmp_path, inner):
        (folder / "secret.stl").write_bytes(b"")
    (inner / "x.robray").write_text(
        'frame x { geometry { mesh "../../../secrets.stl"; } }', encoding="utf-8"
    )
    with pytest.raises(MeshError, match="there is no file") as caught:
        tk.load_scene(inner / "x.robray")
    assert "did you mean" not in str(caught.value)
    (inner / "x.robray").write_text(
        'frame x { geometry { mesh "secrets.stl"; } }', encoding="utf-8"
    )
    with pytest.raises(MeshError, match=r"did you mean 'secret\.stl'"):
        tk.load_scene(inner / "x.robray")


LONG = "a" * 300
"""A name longer than file systems take."""


@pytest.mark.parametrize(
    "uri",
    [
        f"{LONG}.stl",
        f"{LONG}/x.stl",
        "x/" * 3000 + "x.stl",
        f"package://{LONG}/x.stl",
        f"package://tmkit/{LONG}.stl",
        f"package://example{'-' * 300}robot{'.' * 300}data/x.stl",
        f"file://{LONG}.stl",
        f"file:///{LONG}.stl",
        "package://tmkit/%00.stl",
        "file://%00.stl",
    ],
    ids=[
        "long",
        "long-folder",
        "long-path",
        "package",
        "in-package",
        "like-a-distribution",
        "file",
        "file-from-root",
        "nul",
        "file-nul",
    ],
)
@pytest.mark.parametrize("form", ["robray", "include", "urdf"])
def test_a_file_name_that_no_system_takes(tmp_path: Path, uri: str, form: str) -> None:
    """A name that is too long, or has a NUL in it, is one of a file that is not there."""
    texts = {
        "robray": f'frame a {{ geometry {{ mesh "{uri}"; }} }}',
        "include": f'include "{uri}"',
        "urdf": (
            '<robot name="r"><link name="a"><collision><geometry><mesh'
            f' filename="{uri}"/></geometry></collision></link></robot>'
        ),
    }
    path = tmp_path / f"main.{'urdf' if form == 'urdf' else 'robray'}"
    path.write_text(texts[form], encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"main\.\w+:1:?\d*: .*(no file|NUL)"):
        tk.load_scene(path)


def test_a_long_name_of_the_users_own(tmp_path: Path) -> None:
    """A scene, robot, plan, start or domain of a name that is too long is not there."""
    scene = tk.load_scene("panda_table")
    name = str(tmp_path / LONG)
    for ask in (
        lambda: tk.load_scene(f"{name}.robray"),
        lambda: tk.load_scene(LONG),
        lambda: tk.load_manipulator(f"{name}.toml"),
        lambda: tk.load_plan(f"{name}.json"),
        lambda: read_tmp(f"{name}.tmp"),
        lambda: tk.plan(scene, domain=f"{name}/", goal="(on a b)", robot="panda"),
        lambda: manipulator_from_srdf(f"{name}.srdf", scene),
    ):
        with pytest.raises(MissingFileError, match="aaaa"):
            ask()


def test_a_mesh_of_a_long_source(tmp_path: Path) -> None:
    """A JSON scene with an overlong source of a mesh is rejected with its path."""
    document = {
        "allowed": [],
        "format": "tmkit-scene",
        "frames": [],
        "version": 1,
        "shapes": {"x": {"kind": "mesh", "source": f"package://tmkit/{LONG}.stl"}},
    }
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"scene\.json.*is not installed here"):
        tk.load_scene(path)


def test_a_solid_too_small_for_its_inertia(tmp_path: Path) -> None:
    """A mesh scaled until its volume is not a number any more has no mass to spread."""
    (tmp_path / "m.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    path = tmp_path / "small.robray"
    path.write_text(
        'frame a { mass 1; geometry { mesh "m.obj"; scale 1e-320; } }', encoding="utf-8"
    )
    with pytest.raises(
        FileFormatError, match=r"small\.robray:1:\d+: .*without a representable volume"
    ):
        tk.load_scene(path)


PLAN = Path(__file__).parents[1] / "data" / "plans" / "version2.json"


@pytest.mark.parametrize("value", [1e6, 18446744073709551616, 1e308])
def test_a_path_without_an_end_is_soon_rejected(value: float, tmp_path: Path) -> None:
    """A joint value of any size makes an invalid plan, without a long check or a warning."""
    document = json.loads(PLAN.read_text(encoding="utf-8"))
    document["steps"][0]["segments"][3]["path"][-1][0] = value
    (tmp_path / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    problems = tk.validate_plan(tk.load_plan(tmp_path / "plan.json")).problems
    assert any("is too long to be checked" in problem for problem in problems), problems


def test_a_tmp_waypoint_of_any_size_is_read_without_a_warning(tmp_path: Path) -> None:
    """Numbers whose squares are none make no straight line; pytest makes an error of a warning."""
    plan = tk.load_plan(PLAN)
    tk.save_plan(plan, tmp_path / "plan.tmp")
    lines = (tmp_path / "plan.tmp").read_text(encoding="utf-8").splitlines()
    last = max(index for index, line in enumerate(lines) if line.startswith("p "))
    lines[last] = " ".join(["p", "1e300", *lines[last].split()[2:]])
    (tmp_path / "plan.tmp").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = load_tmp_plan(
        tmp_path / "plan.tmp", plan.scene, q=plan.q, robot=plan.robots, goal=plan.goal
    )
    assert not tk.validate_plan(read).is_valid


def test_a_goal_file_with_no_rotation_is_named(tmp_path: Path) -> None:
    """A quaternion of zeros is reported at its place in the goal file."""
    goals = [{"object": "a", "at": "table", "pose": [0, 0, 0, 0, 0, 0, 0]}]
    (tmp_path / "goal.json").write_text(json.dumps(goals), encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"goal.json: \[0\].*quat_xyzw is zero"):
        read_goals(GoalOptions(goal_file=tmp_path / "goal.json"))


@pytest.mark.parametrize(
    "header", ["{'descr': (", "{", "{'descr': '<f8', 'shape': (3", "(((", '"""']
)
def test_an_array_header_with_an_open_bracket(header: str, tmp_path: Path) -> None:
    """Every exception of the parser of array headers becomes an error that names the file."""
    text = (header + " " * (117 - len(header)) + "\n").encode()
    (tmp_path / "p.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(FileFormatError, match=r"p.npy: no NumPy file: "):
        read_points(tmp_path / "p.npy")
