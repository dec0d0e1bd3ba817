"""Stacking problems of Lagriffoul et al.: discs on pegs, cubes on a table, unsupported input."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.comparison.lagriffoul_stacking import read_problem, seat_height
from hypothesis import given, settings, strategies as st
from support.classic import facts_of
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import FileFormatError, MeshError, MissingFileError, TaskError
from tmkit.robots import load_manipulator
from tmkit.tamp import PlanStatus, load_planning_domain

_SIDES = np.arange(12) * np.pi / 6.0
"""Angles of the corners of a disc [rad]."""

_BODY, _HOLLOW, _HEIGHT = 0.05, 0.045, 0.09
"""Heights of the rim, the hollow and the knob of a disc [m]."""

_KNOB_RADIUS, _HOLE_RADIUS = 0.012, 0.02
"""Radii of pegs and knobs, and of hollows [m]."""

_TABLE_Z = 0.1
"""Height of the feet of the pegs [m]."""


def _write_mesh(path: Path, rings: Iterable[tuple[float, float]]) -> None:
    """Write rings of vertices, each of a radius and a height [m]."""
    points = [(r * np.cos(a), r * np.sin(a), z) for r, z in rings for a in _SIDES]
    lines = [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in points]
    lines += [f"f {k + 1} {k + 2} {k + 3}" for k in range(len(points) - 2)]
    path.write_text("\n".join(lines), encoding="utf-8")


def _write_box(path: Path, half: float, top: float) -> None:
    """Write a box, from height 0, with half its width and its height [m]."""
    points = [(x * half, y * half, z) for x in (-1, 1) for y in (-1, 1) for z in (0.0, top)]
    lines = [f"v {x} {y} {z}" for x, y, z in points]
    lines += [f"f {k + 1} {k + 2} {k + 3}" for k in range(len(points) - 2)]
    path.write_text("\n".join(lines), encoding="utf-8")


def _object(
    name: str, mesh: str, *place: float, movable: bool = False, surface: Iterable[float] = ()
) -> str:
    x, y, z = place
    keys = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")
    bounds = "".join(f"<{k}>{v}</{k}>" for k, v in zip(keys, surface, strict=False))
    return (
        f"<obj>\n<name>{name}</name>\n<geom>{mesh}</geom>\n"
        f"<pose>1 0 0 {x} 0 1 0 {y} 0 0 1 {z}</pose>\n"
        f"<moveable>{str(movable).lower()}</moveable>\n"
        f"{f'<sssp>{bounds}</sssp>' if bounds else ''}</obj>\n"
    )


def _write_scene(
    folder: Path, objects: Iterable[str], names: str, goal: str, base: float = -0.7
) -> Path:
    """Write the XML file in a folder beside the meshes, as the public files, and its goal."""
    (folder / "task.pddl").write_text(
        f"(define (problem task)\n(:domain d)\n(:objects {names})\n(:init)\n(:goal {goal}))",
        encoding="utf-8",
    )
    base_pose = f"<basepose>1 0 0 0 0 1 0 0 0 0 1 {base}</basepose>"
    file = folder / "xml" / "scene.xml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f"<problem>\n<objects>\n{''.join(objects)}</objects>\n"
        f"<robots><robot>{base_pose}</robot></robots>\n</problem>\n",
        encoding="utf-8",
    )
    return file


def _write_hanoi(
    folder: Path, goal: str, *, radii: Iterable[float] = (0.03, 0.04), spacing: float = 0.15
) -> Path:
    """Write three pegs in a row and discs on the first peg, the last one lowest.

    Args:
        folder: folder of the files.
        goal: goal of the PDDL problem.
        radii: radii of the discs, in ascending order [m].
        spacing: distance between neighbouring pegs [m].
    """
    radii = tuple(radii)
    meshes = folder / "meshes"
    meshes.mkdir(exist_ok=True)
    _write_mesh(meshes / "peg.obj", [(_KNOB_RADIUS, 0.0), (_KNOB_RADIUS, _HEIGHT - _BODY)])
    point = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    objects = []
    for k, radius in enumerate(radii):
        _write_mesh(
            meshes / f"disc{k + 1}.obj",
            [
                (radius, 0.0),
                (_HOLE_RADIUS, 0.0),
                (_HOLE_RADIUS, _HOLLOW),
                (radius, _BODY),
                (_KNOB_RADIUS, _BODY),
                (_KNOB_RADIUS, _HEIGHT),
            ],
        )
        # 1 mm above its support, as in the files
        z = _TABLE_Z + (len(radii) - 1 - k) * (_BODY + 0.001) + 0.001
        objects.append(
            _object(
                f"disc{k + 1}", f"disc{k + 1}.obj", 0.7, spacing, z, movable=True, surface=point
            )
        )
    for k in range(3):
        y = spacing * (1 - k)
        objects.append(
            _object(f"peg{k + 1}", "peg.obj", 0.7, y, _TABLE_Z, surface=(0, 0, 0, 0, 0, 0))
        )
    names = " ".join(["peg1 peg2 peg3", *(f"d{k + 1}" for k in range(len(radii)))])
    return _write_scene(folder, objects, names, goal)


def _write_blocks(folder: Path, goal: str, *, more: str = "") -> Path:
    """Write two cubes on a table beside an empty tray."""
    meshes = folder / "meshes"
    meshes.mkdir(exist_ok=True)
    _write_box(meshes / "cube.obj", 0.04, 0.08)
    _write_box(meshes / "table.obj", 0.2, 0.5)
    top = (-0.2, 0.2, -0.2, 0.2, 0.5, 0.5)
    point = (0.0, 0.0, 0.0, 0.0, 0.08, 0.08)
    objects = [
        _object("table", "table.obj", 0.6, -0.25, -0.65, surface=top),
        _object("red_tray", "table.obj", 0.6, 0.25, -0.65, surface=top),
        _object("block_a", "cube.obj", 0.6, -0.35, -0.14, movable=True, surface=point),
        _object("block_b", "cube.obj", 0.6, -0.2, -0.145, movable=True, surface=point),
        more,
    ]
    return _write_scene(folder, objects, "table red-tray -surface a b -objs", goal, base=-1.67)


def test_two_discs_are_carried_to_another_peg(tmp_path: Path) -> None:
    """In three moves, one of them to the second peg."""
    goal = "(and (on d2 peg3) (on d1 d2))"
    problem = read_problem(_write_hanoi(tmp_path, goal))
    scene = problem.scene
    assert problem.goals == ("(on disc2 peg3)", "(on disc1 disc2)")
    assert scene.frames_of_class("peg") == ("peg1", "peg2", "peg3")
    assert scene.parent("disc2") == "peg1"
    assert scene.parent("disc1") == "disc2"
    # let down onto their supports
    assert scene.local_pose("disc2").translation[2] == pytest.approx(0.0, abs=1e-9)
    assert scene.local_pose("disc1").translation[2] == pytest.approx(_BODY, abs=1e-6)
    plan = tk.solve(problem, tk.PlanningOptions(max_iterations=8)).plan
    assert plan is not None
    assert len(plan.steps) == 6
    assert tk.validate_plan(plan, domain=problem.domain).is_valid


@settings(max_examples=scaled_examples(0.2))
@given(
    radii=st.lists(st.integers(26, 70), min_size=1, max_size=3, unique=True).map(sorted),
    spacing=st.integers(90, 160),
)
def test_the_shapes_of_discs_are_those_of_their_meshes(
    tmp_path_factory: pytest.TempPathFactory, radii: list[int], spacing: int
) -> None:
    """Widths across parallel sides, heights and the order of the stack."""
    folder = tmp_path_factory.mktemp("hanoi")
    lengths = [radius / 1000.0 for radius in radii]
    lowest = f"d{len(radii)}"
    file = _write_hanoi(folder, f"(on {lowest} peg3)", radii=lengths, spacing=spacing / 1000.0)
    problem = read_problem(file)
    scene = problem.scene
    chain = [*(f"disc{k + 1}" for k in range(len(radii))), "peg1"]
    for disc, support, radius in zip(chain, chain[1:], lengths, strict=False):
        assert scene.parent(disc) == support
        assert seat_height(scene, disc) == pytest.approx(_BODY, abs=1e-6)
        *ring, lid, knob = scene.shapes(disc)
        corners = np.vstack(
            [part.pose.apply(corner) for part in ring for corner in part.shape.bounds]
        )
        assert len(ring) == len(_SIDES)
        assert np.linalg.norm(corners[:, :2], axis=1).max() == pytest.approx(radius, abs=1e-5)
        assert lid.pose.translation[2] == pytest.approx((_BODY + _HOLLOW) / 2.0, abs=1e-6)
        assert knob.shape.bounds[1][2] * 2.0 == pytest.approx(_HEIGHT - _BODY, abs=1e-6)
    facts = facts_of(scene, load_planning_domain(problem.domain, robot=load_manipulator("panda")))
    assert f"(clear {chain[0]})" in facts
    fits = {fact for fact in facts if fact.startswith("(fits disc") and "peg" not in fact}
    pairs = [(i, j) for j in range(len(radii)) for i in range(j)]
    assert fits == {f"(fits disc{i + 1} disc{j + 1})" for i, j in pairs}


def test_pegs_too_close_for_two_discs_are_proved(tmp_path: Path) -> None:
    """The second widest disc overlaps the widest one on neighbouring pegs."""
    file = _write_hanoi(tmp_path, "(on d2 peg2)", radii=(0.045, 0.05), spacing=0.09)
    result = tk.solve(read_problem(file), tk.PlanningOptions(max_iterations=2))
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "'disc2' cannot leave 'peg1'" in result.explanation


def test_cubes_are_stacked_on_a_tray(tmp_path: Path) -> None:
    """By two moves, for either of two goals."""
    goal = "(or (and (on-surface a red-tray) (on b a)) (and (on-surface b red-tray) (on a b)))"
    problem = read_problem(_write_blocks(tmp_path, goal))
    assert problem.scene.parent("block_a") == problem.scene.parent("block_b") == "table"
    assert problem.goals == (
        "(or (and (on-surface block_a red_tray) (on block_b block_a))"
        " (and (on-surface block_b red_tray) (on block_a block_b)))",
    )
    plan = tk.solve(problem, tk.PlanningOptions(max_iterations=8)).plan
    assert plan is not None
    assert len(plan.steps) == 4
    assert tk.validate_plan(plan, domain=problem.domain).is_valid


@pytest.mark.parametrize(
    ("replaced", "replacement", "message"),
    [
        ("<name>disc1</name>\n", "", r"scene\.xml:3: <obj> needs <name>"),
        ("<name>disc1</name>", "<name>disc2</name>", r"no other object has, received 'disc2'"),
        ("<name>disc1</name>", "<name> </name>", r"no other object has, received ''"),
        ("<geom>disc1.obj</geom>\n", "", r"scene\.xml:3: <obj> needs <geom>"),
        ("<geom>disc1.obj</geom>", "<geom>../disc1.obj</geom>", "name of a mesh file"),
        ("<geom>disc1.obj</geom>", "<geom>/etc/passwd</geom>", "name of a mesh file"),
        ("<geom>disc1.obj</geom>", "<geom>**</geom>", "name of a mesh file"),
        ("<moveable>true", "<moveable>maybe", "'true' or 'false', received 'maybe'"),
        ("<moveable>true</moveable>", "<movable>true</movable>", "needs <moveable>, it has"),
        ("<pose>1 0 0 0.7", "<pose>1 0 0 x", r"<pose>: expected three rows .*'x'"),
        ("<pose>1 0 0 0.7", "<pose>1 0 0 nan", r"<pose>: expected three rows"),
        ("<pose>1 0 0 0.7", "<pose>1 0 0", r"<pose>: expected three rows"),
        ("<xmin>0</xmin>", "<xmin>wide</xmin>", "<xmin>: expected a finite number.*'wide'"),
        ("<xmin>0</xmin>", "<xmin>inf</xmin>", "<xmin>: expected a finite number.*'inf'"),
        ("<xmin>0</xmin>", "", "<sssp> needs <xmin>"),
        ("<robot>", "<robots>", r"is not well-formed XML"),
        ("basepose>", "base>", "<robot> needs <basepose>"),
        ("<problem>", "<!DOCTYPE x [<!ENTITY e 'e'>]><problem>", "declares a document type"),
        ("<problem>", "<problem>&lol;", r"Entity 'lol' not defined"),
        ("problem>", "world>", "expected <problem> as the outermost element, received <world>"),
        ("0 1 0 0.15 0 0 1", "0 1 0 0.25 0 0 1", "'disc[12]' stands on none of peg1, peg2, peg3"),
    ],
)
def test_wrong_files_are_rejected(
    tmp_path: Path, replaced: str, replacement: str, message: str
) -> None:
    """With the file and the element."""
    file = _write_hanoi(tmp_path, "(on d2 peg3)")
    text = file.read_text(encoding="utf-8")
    assert replaced in text
    count = -1 if replaced.endswith(">") and not replaced.startswith("<") else 1
    file.write_text(text.replace(replaced, replacement, count), encoding="utf-8")
    with pytest.raises(FileFormatError, match=message) as caught:
        read_problem(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("(on d2 peg9)", r"task\.pddl:5:.*no object 'peg9'; did you mean 'peg3'\?"),
        ("(on d9 peg3)", r"task\.pddl:5:.*no object 'd9'"),
        ("(and (on d2 peg3) (on d1 cube))", r"no object 'cube'"),
        ("(above d2 peg3)", r"expected 'and', 'or', \(on OBJECT OBJECT\)"),
        ("(on d2)", r"expected 'and', 'or', \(on OBJECT OBJECT\)"),
        ("(not (on d2 peg3))", r"expected 'and', 'or', \(on OBJECT OBJECT\)"),
    ],
)
def test_wrong_goals_are_rejected(tmp_path: Path, goal: str, message: str) -> None:
    """Of a PDDL problem that the caller names, with its line and the nearest name."""
    file = _write_hanoi(tmp_path, goal)
    with pytest.raises((FileFormatError, TaskError), match=message):
        read_problem(file, tmp_path / "task.pddl")


def test_a_goal_with_unknown_blocks_is_not_selected(tmp_path: Path) -> None:
    """Another PDDL problem is searched for, and the block of a named one is reported."""
    file = _write_blocks(tmp_path, "(on block_z a)")
    with pytest.raises(FileFormatError, match=r"scene\.xml: expected one PDDL problem.*found none"):
        read_problem(file)
    with pytest.raises(TaskError, match=r"task\.pddl:5:.*no object 'block_z'; did you mean 'bloc"):
        read_problem(file, tmp_path / "task.pddl")
    missing = tmp_path / "tasks.pddl"
    with pytest.raises(MissingFileError, match=r"tasks\.pddl"):
        read_problem(file, missing)


def test_missing_and_wrong_meshes_are_rejected(tmp_path: Path) -> None:
    """With the name of the mesh."""
    file = _write_hanoi(tmp_path, "(on d2 peg3)")
    mesh = tmp_path / "meshes" / "disc1.obj"
    mesh.write_text("v 0 0 zero\n", encoding="utf-8")
    with pytest.raises(MeshError, match=r"disc1\.obj:1"):
        read_problem(file)
    mesh.unlink()
    with pytest.raises(MeshError, match=r"disc1\.obj.*no such file"):
        read_problem(file)
    _write_mesh(mesh, [(0.03, 0.0), (0.02, 0.0)])
    with pytest.raises(FileFormatError, match=r"scene\.xml:3"):
        read_problem(file)


def test_large_files_are_rejected(tmp_path: Path) -> None:
    """Before they are parsed."""
    file = _write_hanoi(tmp_path, "(on d2 peg3)")
    with file.open("a", encoding="utf-8") as stream:
        stream.truncate(2**31)
    with pytest.raises(FileFormatError, match=r"scene\.xml.*(MB|MiB|GB|bytes)"):
        read_problem(file)


@pytest.mark.parametrize(
    ("name", "steps"), [("hanoi3", 14), ("blocksworldC", 6), ("blocksworldD", 10)]
)
def test_public_problems_are_solved(name: str, steps: int) -> None:
    """Problems 1 and 2 of the folder ``tmp-benchmark-data`` of caelan/pybullet-planning."""
    if not (folder := os.environ.get("TMKIT_LAGRIFFOUL")):
        pytest.skip("TMKIT_LAGRIFFOUL names no folder with the problems of Lagriffoul et al.")
    (file,) = Path(folder).rglob(f"{name}.xml")
    problem = read_problem(file)
    plan = tk.solve(problem).plan
    assert plan is not None
    assert tk.validate_plan(plan, domain=problem.domain).is_valid
    assert len(plan.steps) == steps
