"""Problems of Lagriffoul et al.: sticks between tables and at points, unsupported input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.comparison.arena import load_suite
from benchmarks.comparison.lagriffoul_problems import random_sorting, read_lagriffoul_problem

import tmkit as tk
from tmkit.errors import FileFormatError, TaskError
from tmkit.plans import ObjectAt

_CORNERS = [(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (0.0, 1.0)]


def _mesh(folder: Path, name: str, *size: float) -> None:
    rows = [f"v {x * size[0]} {y * size[1]} {z * size[2]}" for x, y, z in _CORNERS]
    faces = [
        "1 2 3",
        "2 3 4",
        "5 6 7",
        "6 7 8",
        "1 2 5",
        "2 5 6",
        "3 4 7",
        "4 7 8",
        "1 3 5",
        "3 5 7",
        "2 4 6",
        "4 6 8",
    ]
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(
        "\n".join([*rows, *(f"f {face}" for face in faces)]), encoding="utf-8"
    )


def _object(
    name: str, mesh: str, x: float, y: float, z: float, *, movable: bool = False, top: str = ""
) -> str:
    pose = f"0 -1 0 {x} 1 0 0 {y} 0 0 1 {z}" if top else f"1 0 0 {x} 0 1 0 {y} 0 0 1 {z}"
    bounds = dict(
        zip(("xmin", "xmax", "ymin", "ymax", "zmin", "zmax"), top.split(), strict=bool(top))
    )
    surface = "".join(f"<{key}>{value}</{key}>" for key, value in bounds.items())
    return (
        f"<obj><name>{name}</name><geom>{mesh}</geom><pose>{pose}</pose><moveable>{str(movable).lower()}</moveable>"
        f"{f'<sssp>{surface}</sssp>' if top else ''}</obj>"
    )


def _write_problem(folder: Path, goal: str, *, more: str = "", objects: str = "sb1") -> Path:
    """Write a problem with two tables, a stick on one of them, and a goal point on the other."""
    meshes = folder / "meshes"
    for mesh, *size in (
        ("table.obj", 0.5, 0.35, 0.6),
        ("stick.obj", 0.02, 0.02, 0.2),
        ("arena.obj", 2.75, 2.75, 0.3),
    ):
        _mesh(meshes, str(mesh), *map(float, size))
    region = "-0.5 0.5 -0.35 0.35 0.602 0.602"
    shown = [
        _object("stick_blue1", "stick.obj", 1.5, 0.1, 0.602, movable=True),
        _object("table1", "table.obj", 1.7, 0.0, 0.0, top=region),
        _object("table2", "table.obj", -1.7, 0.0, 0.0, top=region),
        _object("target_blue1", "stick.obj", -1.5, -0.1, 0.602, top="0 0 0 0 0 0"),
        _object("arena", "arena.obj", 0.0, 0.0, 0.0),
    ]
    robots = "<robots><robot><basepose>1 0 0 0 0 1 0 0 0 0 1 0</basepose></robot></robots>"
    (folder / "pb.pddl").write_text(
        f"(define (problem pb) (:domain clutter) (:objects table1 table2 tb1 -surface {objects}"
        " -objs)\n"
        # without the last parenthesis, as in the files
        f"(:init (arm-empty)) (:goal (and {goal} (arm-empty)))",
        encoding="utf-8",
    )
    file = folder / "scene.xml"
    file.write_text(
        f"<problem><objects>{''.join(shown)}{more}</objects>{robots}</problem>", encoding="utf-8"
    )
    return file


def test_a_stick_is_carried_to_another_table(tmp_path: Path) -> None:
    """The name in PDDL is an abbreviation; the surface of the file is above the table's mesh."""
    _write_problem(tmp_path, "(on-surface bs1 table2)", objects="bs1")
    source = 'source = "benchmarks.comparison.lagriffoul_problems:stick_source"'
    parameters = f'parameters = {{ file = "{tmp_path / "scene.xml"}" }}'
    batch = tmp_path / "batch.toml"
    batch.write_text(
        f"[[problems]]\n{source}\n{parameters}\noptions = {{ max_iterations = 4 }}\n",
        encoding="utf-8",
    )
    problem, options = load_suite(batch).entries[0].source.problem(0)
    scene = problem.scene
    assert problem.goals == ("(on stick_blue1 table2)",)
    assert scene.parent("stick_blue1") == "table1"
    np.testing.assert_allclose(
        scene.pose("stick_blue1", relative_to="world").translation, [1.5, 0.1, 0.602], atol=1e-12
    )
    np.testing.assert_allclose(scene.pose("table1", relative_to="world").translation[2], 0.601)
    # walls around the robot, which is not inside of something solid
    assert len(scene.shapes("arena")) == 4
    plan = tk.solve(problem, options).plan
    assert plan is not None
    assert tk.validate_plan(plan).is_valid


def test_a_point_is_a_pose(tmp_path: Path) -> None:
    """With any turn, at the height of the table below."""
    (goal,) = read_lagriffoul_problem(
        _write_problem(tmp_path, "(on-surface bs1 tb1)", objects="bs1")
    ).goals
    assert isinstance(goal, ObjectAt)
    assert goal.radians is None
    np.testing.assert_allclose(goal.pose.translation, [-1.5, -0.1, 0.602], atol=1e-12)


def test_what_is_not_read_is_refused(tmp_path: Path) -> None:
    """With file and line."""
    for number, (goal, more, message) in enumerate(
        (
            (
                "(on bs1 tb1)",
                "",
                r"pb\.pddl:2:.*'on' is not read: expected \(on-surface OBJECT SURFACE\)",
            ),
            (
                "(on-surface nothing table1)",
                "",
                r"expected one PDDL problem with the objects of the scene, found none",
            ),
            ("(on-surface tb1 bs1)", "", "expected an object and a surface of the scene"),
            (
                "(on-surface bs1 table1)",
                _object("stick_red1", "stick.obj", 0.0, 0.0, 0.9, movable=True),
                r"found none; name one as 'goal'",
            ),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises((FileFormatError, TaskError), match=message):
            read_lagriffoul_problem(_write_problem(folder, goal, more=more, objects="bs1"))
    floating = _object("stick_red1", "stick.obj", 0.0, 0.0, 0.9, movable=True)
    with pytest.raises(FileFormatError, match=r"scene\.xml:1: 'stick_red1' stands on no surface"):
        read_lagriffoul_problem(
            _write_problem(tmp_path, "(on-surface bs1 table1)", more=floating, objects="bs1 rs1")
        )
    broken = _object("stick_red1", "stick.obj", 0.0, 0.0, 0.9).replace("<pose>1 0", "<pose>2 0")
    with pytest.raises(FileFormatError, match="expected three rows of a pose's matrix"):
        read_lagriffoul_problem(
            _write_problem(tmp_path, "(on-surface bs1 table1)", more=broken, objects="bs1")
        )


@pytest.mark.parametrize("number", range(4))
def test_random_sticks_stand_apart(number: int) -> None:
    """All of them on a table, none within 9 cm of another, and the same for the same number."""
    problem = random_sorting(number, 14)
    scene = problem.scene
    sticks = scene.frames_of_class("movable")
    assert len(sticks) == 14
    points = np.array([scene.pose(name, relative_to="world").translation for name in sticks])
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    assert distances[~np.eye(14, dtype=bool)].min() > 0.09
    assert random_sorting(number, 14).scene == scene
    assert random_sorting(number + 1, 14).scene != scene


def test_the_base_stands_closer_for_a_deep_stick() -> None:
    """The arm reaches stick1 only from where the round chassis nearly touches the table."""
    plan = tk.solve(random_sorting(5, 6), tk.PlanningOptions(max_iterations=4)).plan
    assert plan is not None
    assert tk.validate_plan(plan).is_valid
