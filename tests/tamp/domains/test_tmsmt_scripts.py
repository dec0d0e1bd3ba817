"""Domain semantics in scripts of the original TMKit: execution as Python 2, plans and errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.commands import tmkit
from support.shown_plans import plan_and_show

import tmkit as tk
from tmkit.cli import ExitCode
from tmkit.errors import FileFormatError, RobotError
from tmkit.formats import load_goal_scene
from tmkit.graph import AttachedShape, Box, Cylinder, SceneGraph, Sphere
from tmkit.pddl import load_domain, load_problem
from tmkit.tamp.domains.tmsmt_scripts import aminopy, start, tmsmtpy
from tmkit.tamp.domains.tmsmt_scripts.script import run_script

HAND = """
frame magnet { parent panda_hand; translation [0, 0, 0.142]; quaternion [1, 0, 0, 0]; }
"""
"""A hand below the fingers of the Panda, which do not touch the objects that it holds."""

START = """
m panda_joint1 panda_joint2 panda_joint3 panda_joint4 panda_joint5 panda_joint6 panda_joint7
p 0.0 -0.785 0.0 -2.356 0.0 1.571 0.785
"""

DOMAIN = """
(define (domain crates)
  (:types crate - object slot - object)
  (:predicates (loaded ?c - crate) (stored ?c - crate ?s - slot) (vacant ?s - slot) (idle) (lit))
  (:action light :parameters () :precondition (not (lit)) :effect (lit))
  (:action fetch :parameters (?c - crate ?s - slot)
    :precondition (and (stored ?c ?s) (idle) (lit))
    :effect (and (loaded ?c) (not (stored ?c ?s)) (vacant ?s) (not (idle))))
  (:action drop :parameters (?c - crate ?s - slot)
    :precondition (and (loaded ?c) (vacant ?s))
    :effect (and (stored ?c ?s) (not (loaded ?c)) (not (vacant ?s)) (idle))))
"""

SCRIPT = """
import aminopy as aa
import tmsmtpy as tm
import TMSMT
import CL as cl

HAND = "magnet"
STEP = 1 / 10.0
GAP = 1e-4

def slots(scene, visit):
    for surface in tm.collect_frame_type(scene, "surface"):
        for i in range(-2, 3):
            for j in range(-2, 3):
                visit(surface, i, j)

def crates(scene):
    return tm.collect_frame_type(scene, "moveable")

def slot_of(frame):
    offset = aa.translation(aa.frame_fixed_tf(frame))
    return tm.mangle(frame.parent, int(round(offset.x / STEP)), int(round(offset[1] / STEP)))

def state(scene, config):
    facts, taken = [], {}
    def describe(crate):
        try:
            is_stored = aa.frame_isa(scene[crate["parent"]], "surface")
        except NameError:
            is_stored = False
        if is_stored:
            taken[slot_of(crate)] = True
            facts.append(["STORED", crate.name, slot_of(crate)])
        elif crate.parent == HAND:
            taken[HAND] = True
            facts.append(["LOADED", crate.name])
    map(describe, crates(scene))
    if HAND not in taken:
        facts.append(["IDLE"])
    def vacate(surface, i, j):
        name = tm.mangle(surface.name, i, j)
        if name not in taken:
            facts.append(["VACANT", name])
    slots(scene, vacate)
    return facts

def goal(scene, config):
    return [["AND"] + [fact for fact in state(scene, config) if fact[0] == "STORED"]]

def objects(scene):
    names = ["SLOT"]
    slots(scene, lambda surface, i, j: names.append(tm.mangle(surface.name, i, j)))
    return [["CRATE"] + [crate.name for crate in crates(scene)], names]

def half(scene, name):
    shape = scene[name].collision[0].shape
    if aa.shape_is_box(shape):
        return shape.dimension[2] / 2

def fetch(scene, config, op):
    (action, crate, surface, i, j) = op
    begin = tm.op_nop(scene, config)
    target = tm.op_tf_abs(begin, crate)
    above = aa.mul(aa.tf2(1, [0, 0, STEP]), target)
    reach = tm.op_motion(begin, aa.scene_chain(scene, "", HAND), above)
    touch = tm.op_cartesian(reach, aa.scene_chain(reach.final_scene, "", HAND), target)
    held = tm.op_reparent(touch, HAND, crate)
    lift = aa.scene_chain(held["final_scene"], "", crate)
    return tm.op_cartesian(held, lift, aa.mul(aa.tf2(aa.zangle(0), [0, 0, STEP / 2]), target))

def drop(scene, config, op):
    (action, crate, surface, i, j) = op
    begin = tm.op_nop(scene, config)
    z = half(scene, crate) + half(scene, surface) + GAP
    target = aa.mul(tm.op_tf_abs(begin, surface), aa.tf2(1, [i * STEP, j * STEP, z]))
    chain = aa.scene_chain(begin.final_scene, "", crate)
    placed = tm.op_motion(begin, chain, target)
    return tm.plan([tm.op_reparent(placed, surface, crate)])

def blocked(scene, op, frames):
    isa = lambda name: name != "" and aa.frame_isa(scene[name], "moveable")
    owners = [name if isa(name) else scene[name].parent for name in frames]
    near = [scene[name] for name in owners if isa(name) and name != op[1]]
    return [["STORED", frame.name, slot_of(frame)] for frame in near if frame.parent != HAND]

tm.bind_scene_state(state)
tm.bind_goal_state(goal)
tm.bind_scene_objects(objects)
tm.bind_collision_constraint(blocked)
tm.bind_refine_operator(fetch, "FETCH")
tm.bind_refine_operator(drop, "DROP")
"""

PLAN = ("plan", "panda_table", "blocks2", "hand.robray", "crates.pddl", "crates.py", "-q", "q0.tmp")
CHECK = ("--scene", "panda_table", "--scene", "blocks2", "--scene", "hand.robray")
SEMANTICS = ("--domain", "crates.pddl", "--semantics", "crates.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the domain, the script, the hand and the start."""
    for name, text in {
        "hand.robray": HAND,
        "q0.tmp": START,
        "crates.pddl": DOMAIN,
        "crates.py": SCRIPT,
    }.items():
        (tmp_path / name).write_text(text.lstrip(), encoding="utf-8")
    return tmp_path


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace a text that a file contains."""
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new), encoding="utf-8")


def require_valid(folder: Path, plan: str, *options: str) -> None:
    """Check that a plan file is valid for its scene and script."""
    ended = tmkit(folder, "check", plan, *CHECK, *SEMANTICS, *options)
    assert (ended.code, "the plan is valid" in ended.out) == (ExitCode.DONE, True), ended


# --- plans


@pytest.mark.parametrize("suffix", ["tmp", "json"])
def test_a_script_plans_motions(folder: Path, suffix: str) -> None:
    """Its plan is valid, has the script's operators, and is the same for the same seed."""
    goal = ("--goal", "(and (stored b table__0__1) (stored a table__-1__-2))")
    for name in ("plan", "again"):
        ended = tmkit(folder, *PLAN, *goal, "-o", f"{name}.{suffix}")
        assert ended.code == ExitCode.DONE, ended
    assert [line for line in ended.out.splitlines() if line.startswith("  1.")] == ["  1. (light)"]
    written = (folder / f"plan.{suffix}").read_bytes()
    assert written == (folder / f"again.{suffix}").read_bytes()
    require_valid(folder, f"plan.{suffix}")
    if suffix == "tmp":
        lines = written.decode().splitlines()
        assert [line for line in lines if line.startswith("r ")][:2] == ["r b magnet", "r b table"]


def test_a_goal_scene_is_read_by_the_script(folder: Path) -> None:
    """The goal contains the stated objects only; motionless actions change stored facts."""
    (folder / "goal.robray").write_text(
        "frame b { parent table; isa movable; translation [0, 0.1, 0.03]; }\n", encoding="utf-8"
    )
    ended = tmkit(folder, *PLAN, "-g", "goal.robray", "-o", "plan.tmp", "--write-facts=facts.pddl")
    assert ended.code == ExitCode.DONE, ended
    assert "for (and (stored b table__0__1))" in ended.out
    require_valid(folder, "plan.tmp")
    problem = load_problem(folder / "facts.pddl", load_domain(folder / "crates.pddl"))
    assert str(problem.goal) == "(and (stored b table__0__1))"
    assert {"(idle)", "(stored a table__-2__1)"} <= {str(fact) for fact in problem.init}


def test_initial_facts_come_from_a_facts_file(folder: Path) -> None:
    """A facts file adds initial facts and goals; the .tmp plan has the facts in its header."""
    (folder / "facts.pddl").write_text(
        "(define (problem day) (:domain crates) (:init (lit)) (:goal (lit)))", encoding="utf-8"
    )
    goal = ("--goal", "(loaded a)")
    ended = tmkit(folder, *PLAN, "facts.pddl", *goal, "-o", "plan.tmp", "--json")
    assert ended.code == ExitCode.DONE, ended
    assert "# Fact: (lit)\n" in (folder / "plan.tmp").read_text(encoding="utf-8")
    require_valid(folder, "plan.tmp")
    rewrite(folder / "plan.tmp", "# Fact: (lit)", "# Fact: lit)")
    ended = tmkit(folder, "check", "plan.tmp", *CHECK, *SEMANTICS)
    assert ended.code == ExitCode.BAD_INPUT
    assert "plan.tmp: a fact in its header is invalid" in ended.err


def test_collisions_use_the_collision_constraint(folder: Path) -> None:
    """Crates that collide with an action are moved first, by the facts of the constraint."""
    rewrite(
        folder / "crates.py",
        "def blocked(scene, op, frames):",
        "def blocked(scene, op, frames):\n"
        '    with open("calls.txt", "a") as log: log.write("%s %s\\n" % (op[0], sorted(frames)))',
    )
    wall = "dimension [0.03, 0.08, 0.05]; } }\n"
    (folder / "hand.robray").write_text(
        f"{HAND}frame wall {{ parent a; translation [0.1, 0, 0]; geometry {{ shape box; {wall}",
        encoding="utf-8",
    )
    ended = tmkit(folder, *PLAN, "--goal", "(stored b table__-1__1)", "-o", "plan.tmp")
    assert ended.code == ExitCode.DONE, ended
    assert "(fetch a" in ended.out
    require_valid(folder, "plan.tmp")
    assert "DROP ['b', 'wall']" in (folder / "calls.txt").read_text(encoding="utf-8")


def test_no_plan_is_explained(folder: Path) -> None:
    """A crate out of reach, and the failure that a script reports, are in the explanation."""
    (folder / "hand.robray").write_text(
        f"{HAND}frame far {{ parent table; isa movable; translation [0.9, 0.9, 0.03];"
        " geometry { shape box; dimension [0.05, 0.05, 0.05]; } }\n",
        encoding="utf-8",
    )
    rewrite(folder / "crates.py", "range(-2, 3)", "range(-9, 10)")
    limits = ("--max-iterations", "2")
    ended = tmkit(folder, *PLAN, "--goal", "(loaded far)", *limits)
    assert ended.code == ExitCode.NO, ended
    assert "out of the arm's reach" in ended.out
    rewrite(
        folder / "crates.py",
        "    target = tm.op_tf_abs(begin, crate)",
        "    raise tm.PlanningFailure('the crane is in service')",
    )
    ended = tmkit(folder, *PLAN, "--goal", "(loaded a)", *limits)
    assert ended.code == ExitCode.NO, ended
    assert "the script reports a failure: the crane is in service" in ended.out


def test_plans_are_shown(folder: Path) -> None:
    """``--gui`` shows a new plan, and a .tmp plan in its scene without its domain."""
    pytest.importorskip("viser")
    goal = ["--goal", "(loaded a)", "-o", "plan.tmp"]
    assert "2. (fetch a" in plan_and_show(folder, [*PLAN[1:], *goal, "--gui"])
    scenes = ["panda_table", "blocks2", "hand.robray"]
    plan_and_show(folder, [*scenes, "plan.tmp", "--gui"])
    plan_and_show(folder, [*scenes, "--load-plan=plan.tmp", "--gui"])
    for old, new, message in (
        (
            "r a magnet",
            "r a magnte",
            "'magnte' is not a frame of the scene; did you mean 'magnet'?",
        ),
        ("a fetch", "a fetch(", "plan.tmp:10:1: 'fetch(' is not the name of an action"),
        ("panda_joint1 ", "panda_join1 ", "the scene has no joint 'panda_join1'; did you mean"),
    ):
        rewrite(folder / "plan.tmp", old, new)
        ended = tmkit(folder, "plan", *scenes, "plan.tmp", "--gui")
        assert (ended.code, message in ended.err) == (ExitCode.BAD_INPUT, True), ended
        rewrite(folder / "plan.tmp", new, old)


# --- errors


ERRORS = [
    (
        "import CL as cl",
        "print 'crates'",
        "crates.py:{line}: Missing parentheses in call to 'print'",
    ),
    (
        "import CL as cl",
        "import clx",
        "crates.py:{line}: ModuleNotFoundError: No module named 'clx'",
    ),
    ("STEP = 1 / 10.0", "STEP = 1 / 0", "crates.py:{line}: ZeroDivisionError"),
    ("tm.mangle(surface", "tm.mangel(surface", "'tmsmtpy' of tmkit has no 'mangel'; did you mean"),
    ('HAND = "magnet"', 'HAND = "magnets"', "names no frame that a joint moves; give the arm"),
    ("tm.bind_goal_state(goal)\n", "", "expected a call of tmsmtpy.bind_goal_state(function)"),
    (
        'drop, "DROP"',
        'drop, "DORP"',
        "bind_refine_operator: domain 'crates' has no action 'DORP'; did you mean 'DROP'?",
    ),
    ('["IDLE"]', '["IDEL"]', "the fact ['IDEL']: unknown predicate 'idel'; did you mean 'idle'?"),
    ('["IDLE"]', '"IDLE"', "expected a fact such as ['ON', 'a', 'b'], received 'IDLE'"),
    ('["SLOT"]', '["SLOTT"]', "unknown type 'slott'; did you mean 'slot'?"),
    (
        "tm.op_tf_abs(begin, crate)",
        'tm.op_tf_abs(begin, "bb")',
        "crates.py:{line}: fetch: NameError: the scene has no frame 'bb'; did you mean 'b'?",
    ),
    (
        "tm.op_reparent(touch, HAND, crate)",
        'tm.op_reparent(touch, "table", crate)',
        "neither 'table' nor 'table', the parents of 'a', is a hand: 'magnet'",
    ),
    (
        'reach = tm.op_motion(begin, aa.scene_chain(scene, "", HAND), above)',
        'reach = tm.op_motion(begin, aa.scene_chain(scene, "", crate), above)',
        "crates.py:{line}: fetch: no hand moves the frame 'a'; the hands are 'magnet'",
    ),
    ("    return tm.op_cartesian(held", "    tm.op_cartesian(held", "fetch returns None, expected"),
    (
        "import CL as cl",
        "import CL; CL.car",
        "crates.py:{line}: AttributeError: 'CL' of tmkit has no",
    ),
    (
        "tm.bind_scene_state(state)",
        "tm.op_motion(tm.op_nop(None, {}), None, None)",
        "crates.py:{line}: an operator moves the arm only in a function of bind_refine_operator()",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), ERRORS)
def test_errors_of_scripts_are_named(folder: Path, old: str, new: str, message: str) -> None:
    """The error names the file and the line, or the nearest name; it is no traceback."""
    rewrite(folder / "crates.py", old, new)
    text = (folder / "crates.py").read_text(encoding="utf-8")
    line = text[: text.find(new)].count("\n") + 1
    ended = tmkit(folder, *PLAN, "--goal", "(loaded a)", COLUMNS="400")
    assert (ended.code, ended.out) == (ExitCode.BAD_INPUT, ""), ended
    assert message.replace("{line}", str(line)) in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*PLAN, "crates.pddl"), "'crates.pddl' is a second domain, beside 'crates.pddl'"),
        ((*PLAN, "--semantics", "blocks"), "'crates.py' is a second semantics, beside 'blocks'"),
        (("plan", "q0.tmp"), "'q0.tmp' has no scene in it"),
        (("plan", "hand.robray", "bad.pddl"), "bad.pddl: expected '(define (domain ...'"),
        (("plan", "none.pddl"), "none.pddl"),
        ((*PLAN[:-3], "crates.lisp"), "'crates.lisp' is a Lisp script; scripts are in Python"),
        (("plan", "crates.pddl", "--goal", "(lit)"), "it needs the files of a scene"),
        (
            ("plan", "crates.pddl", "--problem", "q.pddl", "--robot", "panda"),
            "Invalid value for --robot: it needs the files of a scene",
        ),
        (("plan", "crates.py", "--problem", "q.pddl"), "or a PDDL domain and a PDDL problem"),
    ],
)
def test_inputs_by_suffix(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    """Inputs that are given twice, missing or of another kind are errors."""
    (folder / "bad.pddl").write_text("(defin (domain d))", encoding="utf-8")
    ended = tmkit(folder, *arguments, COLUMNS="400")
    assert (ended.code, ended.out) == (ExitCode.BAD_INPUT, ""), ended
    assert message in " ".join(ended.err.replace("│", " ").split())


def test_options_without_an_equivalent(folder: Path) -> None:
    """They are notes, and the times of each run are appended to a file."""
    (folder / "day.pddl").write_text(
        "(define (problem day) (:domain crates) (:goal (lit)))", encoding="utf-8"
    )
    ignored = ("-m", "3", "--steps", "4", "-r", "0.1")
    for _ in range(2):
        ended = tmkit(folder, *PLAN, "day.pddl", *ignored, "-T", "times.csv", "-o", "plan.tmp")
        assert ended.code == ExitCode.DONE, ended
        for option in ("-m", "--steps", "-r"):
            assert f"{option} has no effect" in ended.err
    header, row, *rows = (folder / "times.csv").read_text(encoding="utf-8").splitlines()
    assert header == "# Total, Task, Motion, Integration"
    total, *parts = map(float, row.split(","))
    assert total == pytest.approx(math.fsum(parts), abs=1e-8)
    assert len(rows) == 2
    require_valid(folder, "plan.tmp")


def test_task_planning_without_a_scene(folder: Path) -> None:
    """A domain and a problem alone are planned as by ``tmkit task``, also to a .tmp file."""
    (folder / "day.pddl").write_text(
        "(define (problem day) (:domain crates) (:objects a - crate s t - slot)"
        " (:init (stored a s) (vacant t) (idle)) (:goal (stored a t)))",
        encoding="utf-8",
    )
    ended = tmkit(folder, "plan", "crates.pddl", "day.pddl")
    assert ended.out.splitlines()[:3] == ["(light)", "(fetch a s)", "(drop a t)"]
    assert tmkit(folder, "plan", "crates.pddl", "day.pddl", "-o", "plan.tmp").code == ExitCode.DONE
    assert (folder / "plan.tmp").read_text(encoding="utf-8") == (
        "a light\na fetch a s\na drop a t\n"
    )


# --- the modules of scripts


def run(text: str) -> dict[str, Any]:
    """Execute a script and return the results that it stores by ``bind_collision_constraint``."""
    bindings = "\n".join(
        f"tm.bind_{role}(id)" for role in ("scene_state", "goal_state", "scene_objects")
    )
    source = f"import tmsmtpy as tm\nimport aminopy as aa\n{text}\n{bindings}\n"
    script = run_script(
        Path("script.py"), f"{source}tm.bind_collision_constraint(dict(globals()))".encode()
    )
    results: Any = script.functions["collision_constraint"]
    return dict(results)


def test_scripts_are_python_2() -> None:
    """Iterators are lists, and the division of integers rounds down, also in place."""
    results = run(
        "seen = []\nmap(seen.append, 'ab')\n"
        "lists = [map(abs, [-1]), filter(None, [0, 2]), zip('a', 'b'), range(2), list(xrange(2))]\n"
        "quotients = [7 / 2, -7 / 2, 7 / 2.0, (1 + 2) / (4 / 2)]\n"
        "x = 7\nx /= 2\nx += 5 / 2\ntotal = reduce(lambda a, b: a + b, range(5))\n"
    )
    assert results["seen"] == ["a", "b"]
    assert results["lists"] == [[1], [2], [("a", "b")], [0, 1], [0, 1]]
    assert results["quotients"] == [3, -4, 3.5, 1]
    assert (results["x"], results["total"]) == (5, 10)


def test_a_script_has_its_own_bindings() -> None:
    """Two scripts do not share functions, and the process has no module ``tmsmtpy``."""
    run("mine = 1")
    with pytest.raises(FileFormatError, match=r"other\.py: expected a call of tmsmtpy\.bind_scene"):
        run_script(Path("other.py"), b"import tmsmtpy")
    with pytest.raises(ImportError):
        __import__("tmsmtpy")


numbers = st.floats(-3.0, 3.0)
quaternions = (
    st.tuples(numbers, numbers, numbers, numbers)
    .filter(lambda q: math.hypot(*q) > 0.1)
    .map(lambda q: [number / math.hypot(*q) for number in q])
)
transforms = st.builds(aminopy.tf2, quaternions, st.tuples(numbers, numbers, numbers))


@given(transforms, transforms, st.tuples(numbers, numbers, numbers))
def test_transforms_are_poses(
    first: aminopy.Transform, second: aminopy.Transform, point: tuple[float, float, float]
) -> None:
    """Products, inverses and transformed points are those of poses."""
    product = aminopy.mul(first, second)
    assert max(product.pose.distance(first.pose @ second.pose)) < 1e-6
    assert max(aminopy.mul(first, aminopy.inverse(first)).pose.distance(tk.Pose())) < 1e-6
    np.testing.assert_allclose(aminopy.mul(first, point), first.pose.apply(point), atol=1e-9)
    quaternion = aminopy.mul(first.rotation, second.rotation)
    np.testing.assert_allclose(
        np.outer(quaternion, quaternion), np.outer(product.rotation, product.rotation), atol=1e-9
    )
    np.testing.assert_allclose(
        aminopy.mul(first.rotation, aminopy.inverse(first.rotation)), [0, 0, 0, 1], atol=1e-9
    )


@given(numbers)
def test_rotations_about_axes(angle: float) -> None:
    """They are those of roll, pitch and yaw."""
    for index, name in enumerate(("xangle", "yangle", "zangle")):
        rpy = [0.0, 0.0, 0.0]
        rpy[index] = angle
        transform = aminopy.tf2(aminopy.FUNCTIONS[name](angle), [0, 0, 0])
        assert transform.pose.distance(tk.Pose.from_rpy([0, 0, 0], rpy))[1] < 1e-6


def test_conversions_of_numbers() -> None:
    """A number is a scalar quaternion, and seven numbers are a rotation and a translation."""
    assert aminopy.quat(1) == (0, 0, 0, 1)
    transform = aminopy.tf([0, 0, 0, 1, 1, 2, 3])
    assert (transform["translation"], transform.rotation.w) == ((1, 2, 3), 1)
    assert aminopy.tf([1, 2, 3]) == transform == aminopy.tf(transform)
    assert aminopy.mul(2, aminopy.vec(1, 2)) == (2, 4)
    assert aminopy.vec(1, 2) + aminopy.vec(3, 4) - [1, 1] == (3, 5)
    with pytest.raises(AttributeError, match="a vector of 2 numbers has no 'z'"):
        _ = aminopy.vec(1, 2).z


def test_views_of_a_scene() -> None:
    """Frames have geometry, parents and poses; joints and parts of links name frames."""
    shapes = [AttachedShape(Box([0.1, 0.2, 0.3])), AttachedShape(Sphere(0.1), collision=False)]
    graph = (
        SceneGraph()
        .add_frame("link", "world", joint=tk.Revolute([0, 0, 1], name="joint"))
        .add_frame("tool", "link", pose=tk.Pose([1, 0, 0]), shapes=shapes, classes=["movable"])
        .add_frame("pin", "tool", shapes=[AttachedShape(Cylinder(0.1, 0.4))])
    )
    scene = aminopy.SceneView(graph)
    tool = scene["tool"]
    assert (tool["parent"], scene["link"].parent) == ("link", "")
    assert tool.tf.translation.x == 1.0
    assert len(tool.geometry) == 2
    (box,) = tool["collision"]
    assert aminopy.FUNCTIONS["shape_is_box"](box["shape"])
    assert box.shape["dimension"] == (0.1, 0.2, 0.3)
    assert scene["pin"].geometry[0].shape.height == 0.4
    assert scene["joint"] == scene["link-collision"] == scene["link"]
    assert [frame.name for frame in tmsmtpy.collect_frame_type(scene, "moveable")] == ["tool"]
    assert aminopy.scene_tf_abs(scene, {"joint": math.pi}, "tool").translation.x == -1.0
    assert aminopy.scene_tf_rel(scene, {}, "link", "tool") == tool.tf
    assert aminopy.map_frames(lambda frame: frame.name, scene) == ["link", "pin", "tool"]
    with pytest.raises(NameError, match="the scene has no frame 'tol'; did you mean 'tool'"):
        scene["tol"]
    with pytest.raises(NameError, match="the scene has no frame 'world'"):
        scene["world"]
    with pytest.raises(AttributeError, match="a box has no 'dimensions'; did you mean 'dimension'"):
        _ = box.shape.dimensions


def test_names_of_lists() -> None:
    """Names are joined by two underscores, and lists are in brackets."""
    assert tmsmtpy.mangle("table", 0, -2) == "table__0__-2"
    assert tmsmtpy.mangle("a", ["b", 1]) == "a__-LP-__b__1__-RP-"


def test_the_arms_of_a_script(folder: Path) -> None:
    """They are the chains to the frames that it names, without frames above others."""
    scene = tk.load_scene("panda_table", folder / "hand.robray")
    path = folder / "crates.py"
    rewrite(path, "STEP =", 'NAMES = ["panda_hand", "table", "panda_link3"]\nSTEP =')
    source = start.read_script(path)
    assert source is not None
    (arm,) = start.script_arms(path, source, scene)
    assert (arm.name, arm.tip, len(arm.joints)) == ("magnet", "magnet", 7)
    arm.check(scene)
    with pytest.raises(RobotError, match=r"crates\.py: the script names no frame"):
        start.script_arms(path, source, tk.load_scene("blocks2", "table"))
    assert start.read_script("blocks") is None


def test_frames_of_a_goal_scene_may_be_named_by_joints(tmp_path: Path) -> None:
    """A frame that stays and an object on a link may name a joint or a part of a link."""
    (tmp_path / "hook.robray").write_text("frame hook { parent panda_joint7; }\n", encoding="utf-8")
    (tmp_path / "goal.robray").write_text(
        'include "hook.robray"\nframe a { parent "panda_link7-collision"; isa movable; }\n',
        encoding="utf-8",
    )
    scene = tk.load_scene("panda_table", "blocks1", tmp_path / "hook.robray")
    goal = load_goal_scene(scene, tmp_path / "goal.robray")
    assert goal.goal_frames == ("a",)
    assert (goal.scene.parent("hook"), goal.scene.parent("a")) == ("panda_link7", "panda_link7")
    (tmp_path / "goal.robray").write_text(
        "frame a { parent panda_join7; isa movable; }\n", encoding="utf-8"
    )
    with pytest.raises(FileFormatError, match=r"'panda_join7', which neither goal nor start has"):
        load_goal_scene(scene, tmp_path / "goal.robray")
