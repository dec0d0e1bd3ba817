"""Problem files: content, errors with file, line and key, and no execution of code."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit._support.toml_files import line_of_key
from tmkit.errors import ConfigurationError, FileFormatError, MissingFileError
from tmkit.formats import ReadingOptions
from tmkit.formats.goal_scene import GoalScene
from tmkit.plans import ArmAt, ObjectAt, ObjectIn
from tmkit.tamp import PlanningOptions, load_planning_problem

PROBLEM = """# two blocks
scene = ["panda_table", "blocks2"]
domain = "blocks"
goal = "(on a b)"
robots = "panda"

[q]
panda_joint1 = 0.25

[options]
seed = 3
max_iterations = 8
"""


def write(folder: Path, text: str = PROBLEM, name: str = "problem.toml") -> Path:
    """Write a file with the text and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_problem_file_is_a_problem_and_options(tmp_path: Path) -> None:
    """The plan equals that of the same arguments in Python."""
    problem, options = load_planning_problem(write(tmp_path))
    assert options == PlanningOptions(seed=3, max_iterations=8)
    scene = tk.load_scene("panda_table", "blocks2")
    assert problem.scene == scene
    base = tk.load_manipulator("panda").ready_configuration(scene)
    expected = scene.configuration({"panda_joint1": 0.25}, base=base)
    assert problem.q is not None
    assert np.array_equal(problem.q, expected)
    of_file, of_python = (
        tk.solve(problem, options),
        tk.plan(
            scene, expected, goal="(on a b)", seed=3, options=tk.PlanningOptions(max_iterations=8)
        ),
    )
    assert of_file.plan is not None
    assert of_python.plan is not None
    tk.save_plan(of_file.plan, tmp_path / "file.json")
    tk.save_plan(of_python.plan, tmp_path / "python.json")
    assert (tmp_path / "file.json").read_bytes() == (tmp_path / "python.json").read_bytes()


def test_goals_of_all_kinds(tmp_path: Path) -> None:
    """Goals are text, objects at points and poses, arms, scenes and PDDL files."""
    goals = """[
 "(handempty)",
 {object = "a", at = "table", pose = [0.1, 0.1, 0.05]},
 {object = "b", at = "table", pose = [0, 0, 0.05, 0, 0, 0, 1], m = 0.001},
 {joints = {panda_joint1 = 0.5}},
 {scene = "blocks2"},
]"""
    problem, _ = load_planning_problem(write(tmp_path, PROBLEM.replace('"(on a b)"', goals)))
    *plain, shown = problem.goals
    assert plain == [
        "(handempty)",
        ObjectAt("a", tk.Pose([0.1, 0.1, 0.05]), relative_to="table", radians=None),
        ObjectAt("b", tk.Pose([0, 0, 0.05]), relative_to="table", metres=0.001),
        ArmAt({"panda_joint1": 0.5}),
    ]
    assert isinstance(shown, GoalScene)
    assert set(shown.goal_frames) == {"a", "b"}
    nested = tmp_path / "deeper"
    nested.mkdir()
    file, _ = load_planning_problem(write(nested, PROBLEM.replace('"(on a b)"', '"goals/p.pddl"')))
    assert file.goals == (nested / "goals/p.pddl",)


def test_a_goal_in_a_region(tmp_path: Path) -> None:
    """The region must be in the scene."""
    text = PROBLEM.replace('"(on a b)"', '{object = "a", in = "tray"}')
    with pytest.raises(FileFormatError, match=r"problem\.toml:4: goal: unknown frame 'tray'"):
        load_planning_problem(write(tmp_path, text))
    text = text.replace("tray", "table")
    assert load_planning_problem(write(tmp_path, text))[0].goals == (ObjectIn("a", "table"),)


def test_values_for_no_limit(tmp_path: Path) -> None:
    """The values are ``"all"`` and ``inf``."""
    text = PROBLEM.replace("seed = 3", 'improve = "all"\ntime_limit = inf')
    _, options = load_planning_problem(write(tmp_path, text))
    assert options == PlanningOptions(improve=None, time_limit=math.inf, max_iterations=8)


REFUSED = [
    (
        'scene = ["panda_table", "blocks2"]\n',
        "",
        r"problem\.toml: the document: needs the key 'scene'",
    ),
    ('goal = "(on a b)"\n', "", r"problem\.toml: the document: needs the key 'goal'"),
    ("seed = 3", "sed = 3", r"problem\.toml:11: options\.sed: unknown key; did you mean 'seed'\?"),
    (
        "seed = 3",
        "seed = -3",
        r"problem\.toml:11: options\.seed: seed must be at least 0, not -3\n    seed = -3",
    ),
    (
        "seed = 3",
        "seed = 1.5",
        r":11: options\.seed: seed must be a whole number, at least 0, not 1\.5",
    ),
    ("seed = 3", "suggest = 1", r":11: options\.suggest: suggest must be True or False, not 1"),
    (
        "seed = 3",
        "time_limit = nan",
        r":11: options\.time_limit: time_limit must be positive seconds, not nan",
    ),
    ("seed = 3", 'improve = "some"', r":11: options\.improve: improve must be a whole number"),
    (
        "seed = 3",
        "samplers = 1",
        r":11: options\.samplers: is an object, which only Python can give",
    ),
    (
        "seed = 3",
        'motion_planner = "ompl"',
        r":11: options\.motion_planner: .*Python.*, or --motion-planner by name",
    ),
    (
        "seed = 3",
        'task_planner = "smt"',
        r":11: options\.task_planner: .*Python.*, or --task-planner by name",
    ),
    ("robots", "robot", r":5: robot: unknown key; did you mean 'robots'\?"),
    (
        "panda_joint1",
        "panda_jointl",
        r":8: q\.panda_jointl: unknown joint 'panda_jointl'; did you mean 'panda_joint",
    ),
    ("0.25", '"left"', r":8: q\.panda_joint1: expected a finite number"),
    ("blocks2", "blocks22", r":2: scene: tmkit has no 'blocks22' in scenes; did you mean 'blocks"),
    (
        '["panda_table", "blocks2"]',
        "[]",
        r":2: scene: expected at least one, received an empty list",
    ),
    ('["panda_table", "blocks2"]', "3", r":2: scene: expected a text"),
    ('["panda_table", "blocks2"]', '["panda_table", 3]', r":2: scene\[1\]: expected a text"),
    (
        '"panda"',
        '"pand"',
        r":5: robots: tmkit has no 'pand' in scenes/robots; did you mean 'panda'",
    ),
    ('"(on a b)"', '["(on a b)",\n {object = "a"}]', r":4: goal\[1\]: needs the key 'at'"),
    ('"(on a b)"', '{object = "c", in = "table"}', r":4: goal: unknown frame 'c'"),
    (
        '"(on a b)"',
        "{joints = {panda_joint1 = 99.0}}",
        r":4: goal: joint 'panda_joint1' is to be at 99, outside",
    ),
    ('"(on a b)"', '["q.pddl", "p.pddl"]', r":4: goal: .*one problem file at most"),
    ("[options]", "[option]", r":10: option: unknown key; did you mean 'options'\?"),
    ("[options]", "[options", r"problem\.toml:10:9: is not TOML"),
    (
        '"blocks"',
        '"block"',
        r":3: domain: 'block' is not a built-in domain \(did you mean 'blocks'\?\)",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_errors_have_the_line_and_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    """No key is ignored, and no error is a traceback."""
    assert PROBLEM.count(old) >= 1
    with pytest.raises(FileFormatError, match=message):
        load_planning_problem(write(tmp_path, PROBLEM.replace(old, new, 1)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The error has the nearest existing name."""
    write(tmp_path)
    with pytest.raises(MissingFileError, match=r"problem\.tml'; did you mean '.*problem\.toml'"):
        load_planning_problem(tmp_path / "problem.tml")


TRAP = (
    "from pathlib import Path\nPath(__file__).with_name('was-run').touch()\nclass Semantics: ...\n"
)


@pytest.mark.parametrize(
    "line",
    [
        'domain = "trap/"',
        'domain = "./trap"',
        'domain = "trap/domain.pddl"',
        'domain = "trap"',
        'semantics = "trap/"',
        'semantics = "trap/semantics.py"',
        'domain = "trap/domain.pddl"\nsemantics = "trap/semantics.py"',
        'domain = "../domains/blocks"',
    ],
)
def test_no_file_runs_code(tmp_path: Path, line: str) -> None:
    """A domain folder is rejected with its line; only the caller's option allows it."""
    folder = tmp_path / "trap"
    folder.mkdir()
    pddl = (tk.data_path("domains/blocks") / "domain.pddl").read_text()
    write(folder, pddl, "domain.pddl")
    write(folder, TRAP, "semantics.py")
    path = write(tmp_path, PROBLEM.replace('domain = "blocks"', line))
    with pytest.raises(
        FileFormatError, match=r"problem\.toml:[34]: (domain|semantics): .*no problem file may run"
    ):
        load_planning_problem(path)
    problem, options = load_planning_problem(write(tmp_path), domain=folder)
    assert not (folder / "was-run").exists()
    with pytest.raises(FileFormatError, match="does not derive from DomainSemantics"):
        tk.solve(problem, options)
    assert (folder / "was-run").exists()


def test_pddl_of_the_file_with_built_in_semantics(tmp_path: Path) -> None:
    """PDDL is data, so a file may bring its own if the semantics are built in."""
    pddl = (tk.data_path("domains/blocks") / "domain.pddl").read_text()
    write(tmp_path, pddl, "words.pddl")
    text = PROBLEM.replace('domain = "blocks"', 'domain = "words.pddl"\nsemantics = "blocks"')
    assert tk.solve(*load_planning_problem(write(tmp_path, text))).is_solved


def test_files_outside_the_project_are_not_read(tmp_path: Path) -> None:
    """Links do not circumvent this; a folder that the caller allows is read."""
    outside, inside = tmp_path / "other" / "secret", tmp_path / "project" / "problems"
    outside.mkdir(parents=True)
    inside.mkdir(parents=True)
    for name in ("blocks2.robray", "classes.robray"):
        write(outside, (tk.data_path("scenes") / name).read_text(), name)
    write(inside, (tk.data_path("scenes") / "classes.robray").read_text(), "classes.robray")
    (inside / "link.robray").symlink_to(outside / "blocks2.robray")
    for named in (
        "../../other/secret/blocks2.robray",
        str(outside / "blocks2.robray"),
        "link.robray",
    ):
        path = write(inside, PROBLEM.replace('"blocks2"', f'"{named}"'))
        with pytest.raises(
            FileFormatError, match=r"problem\.toml:2: scene\[1\]: .* lies outside the folders"
        ):
            load_planning_problem(path)
        assert (
            "b"
            in load_planning_problem(path, reading=ReadingOptions(allow_folders=[outside]))[0].scene
        )


def test_a_range_error_in_python_names_the_option() -> None:
    """The error of a file is that of the class."""
    with pytest.raises(ConfigurationError, match="seed must be at least 0, not -3"):
        PlanningOptions(seed=-3)


_names = st.sampled_from(["a", "b", "seed", "seeds", "k"])


@given(
    st.lists(
        st.tuples(_names, st.lists(_names, unique=True, max_size=4)),
        max_size=4,
        unique_by=lambda t: t[0],
    )
)
def test_the_line_of_a_key_is_that_of_its_definition(tables: list[tuple[str, list[str]]]) -> None:
    """Comments and texts with the same name are ignored."""
    lines, expected = ["# a b seed seeds k", 'x = """', "a = 1", "seed = 2", '"""'], {}
    for name, keys in tables:
        expected[(name,)] = len(lines) + 1
        lines.append(f"[{name}]  # seed")
        for key in keys:
            expected[name, key] = len(lines) + 1
            lines.append(f"{key} = 1  # a b seeds")
    for keys, line in expected.items():
        assert line_of_key("\n".join(lines), list(keys)) == line
