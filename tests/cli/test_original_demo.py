"""Command lines of the original TMKit with its own files, checked by tmkit.

``TMKIT_ORIGINAL`` names a checkout of the original (KavrakiLab/tmkit), whose files are used as they
are. Its Baxter is that of example-robot-data, with the link names of ``baxter_description``. Each
line is that of its source but for the name of the program: ``tmkit plan`` in place of ``tmsmt``.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.commands import tmkit
from support.shown_plans import plan_and_show

from tmkit.cli import ExitCode
from tmkit.formats.mesh.package_uris import PackageResolver

BAXTER = "package://baxter_description/urdf/baxter.urdf"

LIGHT = "(safety-light)"
BUTTON = """
frame button_base {
    parent front_table; translation [-0.3, -0.3, 0.025];
    geometry { shape box; dimension [0.1, 0.1, 0.05]; }
    frame button {
        translation [0, 0, 0.025];
        geometry { shape cylinder; radius 0.025; height 0.03; }
    }
}
"""
PUSH = """
def press(scene, config, op):
    begin = tm.op_nop(scene, config)
    hand = aa.scene_chain(scene, "", FRAME)
    return tm.op_motion(begin, hand, tm.op_tf_abs(begin, "button"))

tm.bind_refine_operator(press, "PUSH-BUTTON")
"""


@dataclass(frozen=True)
class Line:
    """A command line of the original.

    Attributes:
        source: its file in the original.
        arguments: arguments of the program.
        actions: number of actions of a shortest plan.
    """

    source: str
    arguments: str
    actions: int


INPUTS = f"{BAXTER} sussman-0.robray allowed-collision.robray"
LINES = {
    "sussman": Line(
        "demo/run/run-sussman.sh.in",
        "$demo/domains/blocksworld/tm-blocks.pddl $demo/domains/blocksworld/tm-sussman.pddl",
        6,
    ),
    "blocksworld": Line(
        "doc/md/command.md",
        "demo/domains/blocksworld/blocks-domain.pddl demo/domains/blocksworld/sussman-anomaly.pddl",
        6,
    ),
    "baxter": Line(
        "demo/run/run-baxter-sussman.sh.in",
        f"{BAXTER} $demo/baxter-sussman/sussman-0.robray"
        " $demo/baxter-sussman/allowed-collision.robray"
        " $demo/domains/blocksworld/tm-blocks.pddl $demo/domains/blocksworld/tm-blocks.py"
        " -q $demo/baxter-sussman/q0.tmp -g $demo/baxter-sussman/sussman-1.robray"
        " -o baxter-sussman.tmp --gui --write-facts=baxter-sussman.pddl --verbose",
        6,
    ),
    "safety": Line(
        "demo/run/run-baxter-sussman-safety.sh.in",
        f"{BAXTER} $demo/baxter-sussman/sussman-0.robray"
        " $demo/baxter-sussman/allowed-collision.robray"
        " $demo/domains/blocksworld/tm-blocks-safety.pddl"
        " $demo/domains/blocksworld/blocks-safety-goal.pddl $demo/domains/blocksworld/tm-blocks.py"
        " -q $demo/baxter-sussman/q0.tmp -g $demo/baxter-sussman/sussman-1.robray"
        " -o baxter-sussman-safety.tmp --gui --write-facts=baxter-sussman.pddl --verbose",
        8,
    ),
    "linear": Line(
        "demo/run/run-baxter-sussman-linear.sh.in",
        f"{BAXTER} $demo/baxter-sussman/sussman-0.robray"
        " $demo/baxter-sussman/allowed-collision.robray"
        " $demo/domains/linear-blocksworld/linear-blocksworld.pddl"
        " $demo/domains/linear-blocksworld/linear-blocksworld.py"
        " -q $demo/baxter-sussman/q0.tmp -g $demo/baxter-sussman/sussman-1.robray"
        " -o baxter-sussman-linear.tmp --gui --verbose",
        3,
    ),
    "tutorial": Line(
        "doc/md/tutorial.md, Setup and Invocation, step 4",
        f"{INPUTS} tm-blocks.pddl tm-blocks.py -q q0.tmp -g sussman-1.robray -o baxter-sussman.tmp",
        6,
    ),
    "reversed": Line(
        "doc/md/tutorial.md, Changing the goal",
        f"{INPUTS} tm-blocks.pddl tm-blocks.py -q q0.tmp -g sussman-reversed.robray"
        " -o baxter-sussman-reversed.tmp --gui",
        6,
    ),
    "four blocks": Line(
        "doc/md/tutorial.md, Changing the scene",
        f"{BAXTER} 4-blocks-start.robray allowed-collision.robray tm-blocks.pddl tm-blocks.py"
        " -q q0.tmp -g 4-blocks-goal.robray -o 4-blocks.tmp --gui",
        10,
    ),
    "light": Line(
        "doc/md/tutorial.md, Extending the Task Domain",
        f"{INPUTS} tm-blocks-light.pddl light-goal.pddl tm-blocks.py -q q0.tmp"
        " -g sussman-1.robray -o baxter-sussman-light.tmp --gui",
        8,
    ),
    "button": Line(
        "doc/md/tutorial.md, Extending the Task-Motion Domain",
        f"{BAXTER} sussman-extend.robray allowed-collision.robray tm-blocks-extend.pddl"
        " extended-facts.pddl tm-blocks-extend.py -q q0.tmp -g sussman-1.robray"
        " -o baxter-sussman-extend.tmp --gui",
        7,
    ),
}
"""The lines that plan, by name. The last line of the test shows a plan."""

SHOW = f"{INPUTS} baxter-sussman.tmp --gui"
"""``doc/md/tutorial.md``, Setup and Invocation, step 5."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the original's files, with those that its tutorial adds, and a Baxter."""
    original = os.environ.get("TMKIT_ORIGINAL")
    if not original:
        pytest.skip("TMKIT_ORIGINAL names no checkout of the original TMKit")
    urdf = PackageResolver().find(
        "package://example-robot-data/robots/baxter_description/urdf/baxter.urdf"
    )
    if urdf is None:
        pytest.skip("example-robot-data, which has the Baxter, is not installed")
    folder = tmp_path_factory.mktemp("baxter-blocks")
    (folder / "demo").symlink_to(Path(original).resolve() / "demo")
    (folder / "baxter_description/urdf").mkdir(parents=True)
    text = Path(urdf).read_text(encoding="utf-8").replace("_hand_link", "_hand")
    (folder / "baxter_description/urdf/baxter.urdf").write_text(text, encoding="utf-8")
    demo = folder / "demo"
    for source in (
        *demo.glob("baxter-sussman/*.robray"),
        demo / "baxter-sussman/q0.tmp",
        *demo.glob("domains/blocksworld/tm-blocks.*"),
    ):
        (folder / source.name).write_bytes(source.read_bytes())
    write_tutorial(folder)
    return folder


def write_tutorial(folder: Path) -> None:
    """Write the files that the tutorial of the original describes."""

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    def extended(flag: str, actions: str) -> str:
        """Return the domain with a predicate, which all actions need, and further actions."""
        text = read("tm-blocks.pddl").replace("(:predicates", f"(:predicates {flag}")
        text = text.replace(":precondition (and", f":precondition (and {flag}")
        return f"{text.rstrip().removesuffix(')')} {actions})"

    def block(name: str, parent: str) -> str:
        return (
            f"frame {name} {{ parent {parent}; translation [0, 0, block_stack];"
            " geometry { isa block; } }\n"
        )

    def facts(text: str) -> str:
        return f"(define (problem facts) (:domain blocks) {text})"

    switches = (
        f"(:action enable-motion :parameters () :effect (and {LIGHT}))"
        f" (:action disable-motion :parameters () :effect (and (not {LIGHT})))"
    )
    push = (
        "(:action push-button :parameters () :precondition (and (handempty) (running))"
        " :effect (and (not (running))))"
    )
    files = {
        "sussman-reversed.robray": 'include "class.robray"\n'
        "frame block_c { parent block_b; geometry { isa block; } }\n"
        "frame block_b { parent block_a; geometry { isa block; } }\n",
        "4-blocks-start.robray": read("sussman-0.robray") + block("block_d", "block_b"),
        "4-blocks-goal.robray": read("sussman-1.robray") + block("block_d", "block_a"),
        "tm-blocks-light.pddl": extended(LIGHT, switches),
        "light-goal.pddl": facts(f"(:goal (not {LIGHT}))"),
        "sussman-extend.robray": read("sussman-0.robray") + BUTTON,
        "tm-blocks-extend.pddl": extended("(running)", push),
        "extended-facts.pddl": facts("(:init (running)) (:goal (not (running)))"),
        "tm-blocks-extend.py": read("tm-blocks.py") + PUSH,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", LINES)
def test_lines_of_the_original(folder: Path, name: str) -> None:
    """Each line runs unchanged, and tmkit's checker finds its plan valid."""
    line = LINES[name]
    arguments = shlex.split(line.arguments.replace("$demo", "demo"))
    if "--gui" in arguments:
        pytest.importorskip("viser")
        out = plan_and_show(folder, arguments, ROS_PACKAGE_PATH=str(folder))
    else:
        ended = tmkit(folder, "plan", *arguments, ROS_PACKAGE_PATH=str(folder))
        assert ended.code == ExitCode.DONE, ended
        out = ended.out
    if "-o" not in arguments:
        assert len([row for row in out.splitlines() if row.startswith("(")]) == line.actions
        return
    plan = arguments[arguments.index("-o") + 1]
    actions = [row for row in (folder / plan).read_text().splitlines() if row.startswith("a ")]
    assert len(actions) == line.actions
    scenes = [
        word for word in arguments[: arguments.index("-q")] if word.endswith(("urdf", "robray"))
    ]
    domain, *_ = [word for word in arguments if word.endswith(".pddl")]
    (script,) = [word for word in arguments if word.endswith(".py")]
    options = [word for scene in scenes for word in ("--scene", scene)]
    options += ["--domain", domain, "--semantics", script]
    ended = tmkit(folder, "check", plan, *options, ROS_PACKAGE_PATH=str(folder))
    assert (ended.code, "the plan is valid" in ended.out) == (ExitCode.DONE, True), ended


def test_clumsy_blocks_of_the_original(folder: Path) -> None:
    """Its domain with an action of the world: each block that is dropped is taken again."""
    blocks = "demo/old/pddl/blocksworld"
    files = f"{blocks}/clumsy-blocks-domain.pddl", f"{blocks}/sussman-anomaly.pddl"
    ended = tmkit(folder, "task", *files, "--json")
    assert ended.code == ExitCode.DONE, ended
    document = json.loads(ended.out)
    assert len(document["steps"]) == 6
    dropped = ["(clear a)", "(clear b)", "(clear c)", "(handempty)"]
    dropped += ["(ontable a)", "(ontable b)", "(ontable c)"]
    actions = {tuple(row["state"]): row["action"] for row in document["actions"]}
    assert actions[tuple(dropped)] == "(pick-up b)"


def test_a_plan_of_the_original_is_shown(folder: Path) -> None:
    """The plan alone is shown in its scene, without its domain."""
    pytest.importorskip("viser")
    plan = "baxter-sussman.tmp"
    if not (folder / plan).exists():
        test_lines_of_the_original(folder, "tutorial")
    plan_and_show(folder, shlex.split(SHOW), ROS_PACKAGE_PATH=str(folder))
