"""tmkit without the libraries of its extras: all errors name the extra to install."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from support.absent_libraries import COMMAND, EXTRAS, optional_modules, run_without

import tmkit
from tmkit._support.named_code import import_named_module
from tmkit.errors import MissingExtraError, TaskError
from tmkit.robots import load_manipulator
from tmkit.tamp import load_planning_domain

_IMPORT_ALL = """
import importlib, pathlib
from tmkit.errors import MissingExtraError

for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    parts = path.relative_to(pathlib.Path(sys.argv[1]).parent).with_suffix("").parts
    is_program = parts[-1] in ("__main__", "job_main", "translator_server")
    if is_program or "data_files" in parts or "core" in parts:
        continue
    name = ".".join(parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
    except MissingExtraError as error:
        print(json.dumps([name, error.data["extra"], error.data["module"]]))
"""

_CALL = """
from pathlib import Path
import numpy as np
import tmkit as tk
from tmkit.errors import MissingExtraError
for name in ("a.dae", "a.usda", "a.xml", "a.xacro", "a.png", "a.h5", "a.yaml"):
    Path(name).write_text("<x/>")
Path("bag").mkdir()
Path("bag/metadata.yaml").write_text("")
Path("heights.json").write_text("{}")
try:
    exec(sys.argv[1])
except MissingExtraError as error:
    print(json.dumps([error.data["extra"], error.data["module"], str(error)]))
"""

_PLAN = (
    "plan = tk.plan(tk.load_scene('panda_table', 'blocks1'), goal='(holding a)',"
    " robot='panda').plan\n"
)
_BATCH = """
from tmkit.batch import run_batch
from tmkit.batch.problems import Batch, BatchEntry, FixedProblem
problem = tk.PlanningProblem(tk.load_scene("panda_table", "blocks1"), goal="(holding a)")
run_batch(Batch((BatchEntry("a", FixedProblem(problem)),)), "b")
"""
_PIXELS = "np.zeros((4, 4, 3), np.uint8)"
_SCENE = "scene = tk.SceneGraph().add_frame('a', 'world')\n"

CALLS = [
    ("viser", "viewer", "tk.save_html(tk.load_scene('panda_table'), 'a.html')"),
    ("viser", "viewer", "from tmkit.visualization import Viewer\nViewer(port=0)"),
    ("viser", "viewer", "tk.show(tk.load_scene('panda_table'))"),
    (
        "PIL",
        "pictures",
        f"from tmkit.simulation.pictures.recording import *\nwrite_picture('a.png', {_PIXELS})",
    ),
    (
        "PIL",
        "pictures",
        f"from tmkit.simulation.pictures.recording import *\nadd_caption({_PIXELS}, 'a')",
    ),
    ("PIL", "pictures", "from tmkit.simulation.pictures.recording import Film\nFilm('a.gif')"),
    ("PIL", "pictures", f"from tmkit.plans.lerobot import png_bytes\npng_bytes({_PIXELS})"),
    ("PIL", "pictures", _PLAN + "tk.simulate(plan, picture='b.png')"),
    ("PIL", "pictures", _PLAN + "tk.simulate(plan, record='b.gif')"),
    (
        "matplotlib",
        "pictures",
        "from tmkit.visualization.drawing import require_plots\nrequire_plots('b.png')",
    ),
    ("imageio", "pictures", "from tmkit.simulation.pictures.recording import Film\nFilm('a.mp4')"),
    (
        "imageio_ffmpeg",
        "pictures",
        "from tmkit.simulation.pictures.recording import Film\nFilm('a.mp4')",
    ),
    (
        "collada",
        "formats",
        "from tmkit.formats.mesh.meshes import read_mesh\nread_mesh(Path('a.dae'))",
    ),
    ("pxr", "formats", "tk.load_scene('./a.usda')"),
    (
        "pxr",
        "formats",
        f"{_SCENE}from tmkit.formats import convert_scene\nconvert_scene(scene, 'b.usda')",
    ),
    ("xacro", "formats", "tk.load_scene('./a.xacro', reading=tk.ReadingOptions(allow_xacro=True))"),
    (
        "coacd",
        "formats",
        (
            "from tmkit.formats.convex_pieces import *\nconvex_pieces(tk.Mesh(np.eye(4, 3), [[0, 1,"
            " 2], [0, 1, 3]]))"
        ),
    ),
    (
        "h5py",
        "formats",
        "from tmkit.manipulation.grasp_files.loading import *\nread_grasps(Path('a.h5'))",
    ),
    (
        "yaml",
        "formats",
        "from tmkit.manipulation.grasp_files.loading import *\nread_grasps(Path('a.yaml'))",
    ),
    (
        "h5py",
        "formats",
        "Path('a.h5').write_bytes(b'\\x89HDF\\r\\n\\x1a\\n')\n"
        "from tmkit.manipulation import load_grasps\n"
        "load_grasps('a.h5', tk.load_scene('panda_table', 'blocks1'), 'a')",
    ),
    (
        "yaml",
        "formats",
        "Path('a.yaml').write_text('[]')\n"
        "from tmkit.manipulation import load_grasps\n"
        "load_grasps('a.yaml', tk.load_scene('panda_table', 'blocks1'), 'a')",
    ),
    ("mujoco", "formats", "Path('a.xml').write_text('<mujoco/>')\ntk.load_scene('./a.xml')"),
    (
        "mujoco",
        "engines",
        _PLAN + "tk.simulate(plan, options=tk.SimulationOptions(engine='mujoco'))",
    ),
    (
        "mujoco",
        "engines",
        (
            "from tmkit.simulation.rendering.studio import"
            " select_renderer\nselect_renderer('filament')"
        ),
    ),
    (
        "z3",
        "planners",
        "from tmkit.task_planning import Z3Planner\n"
        + _PLAN.replace("robot=", "options=tk.PlanningOptions(task_planner=Z3Planner()), robot="),
    ),
    (
        "ompl",
        "planners",
        "from tmkit.motion.ompl.planner import OmplPlanner\n"
        + _PLAN.replace(
            "robot=", "options=tk.PlanningOptions(motion_planner=OmplPlanner()), robot="
        ),
    ),
    ("unified_planning", "planners", "tk.task_planning.problem_to_unified(None)"),
    (
        "zenoh",
        "world",
        (
            "from tmkit.world.service.zenoh.transport import ZenohTransport as"
            " T\nT('tcp/127.0.0.1:1', listen=False)"
        ),
    ),
    ("rosbags", "world", "from tmkit.world.bags import BagRecorder\nBagRecorder('b')"),
    ("rosbags", "world", "from tmkit.world.bags import read_bag_info\nread_bag_info('bag')"),
    (
        "rosbags",
        "world",
        _PLAN + "from tmkit.plans import export_plan\nexport_plan(plan, 'b', format='ros2')",
    ),
    ("msgspec", "world", "from tmkit.store import Store\nStore('b')"),
    ("msgspec", "world", "from tmkit.world import WorldServer"),
    ("msgspec", "learning", "from tmkit.batch.results import Journal\nJournal(Path('b'))"),
    ("gtsam", "world", "from tmkit.estimation.pose_graph import *\nsolve_with_gtsam(None)"),
    ("gymnasium", "learning", "from tmkit.envs import SymbolicEnv"),
    (
        "pyarrow",
        "learning",
        _PLAN + "from tmkit.plans import export_plan\nexport_plan(plan, 'b', format='lerobot')",
    ),
    ("pyarrow", "learning", _BATCH),
    ("distributed", "learning", _BATCH),
    ("pygls", "editor", "from tmkit.lsp import language_server"),
]
"""A module that is hidden, the extra that the error must name, and code that needs it."""

DISTRIBUTIONS = {
    "PIL": "pillow",
    "collada": "pycollada",
    "pxr": "usd-core",
    "yaml": "pyyaml",
    "z3": "z3-solver",
    "unified_planning": "unified-planning",
    "zenoh": "eclipse-zenoh",
    "imageio_ffmpeg": "imageio",
}
"""Distributions, in the extras, of modules of another name."""

ONLY_GIVEN = {"google-re2", "typing-extensions"}
"""Libraries that users hand over, or that another library of the extra needs."""


def test_every_library_of_an_extra_is_tried() -> None:
    """The table of calls has each library with each of its extras."""
    tried = {(extra, DISTRIBUTIONS.get(module, module)) for module, extra, _ in CALLS}
    declared = {(extra, name) for extra, names in EXTRAS.items() for name in names - ONLY_GIVEN}
    assert tried == declared


@pytest.mark.parametrize(("module", "extra", "code"), CALLS)
def test_a_missing_library_is_named_with_its_extra(
    module: str, extra: str, code: str, tmp_path: Path
) -> None:
    """Each function without its library raises an error of one line with extra and command."""
    ended = run_without([module], _CALL, code, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout, "no MissingExtraError"
    named, missing, message = json.loads(ended.stdout.splitlines()[-1])
    assert (named, missing) == (extra, module)
    assert f"pip install -e '.[{extra}]'" in message
    assert "\n" not in message


def test_every_module_can_be_imported_or_names_its_extra(tmp_path: Path) -> None:
    """With the requirements alone, importing a module works or raises an error with the extra."""
    ended = run_without(
        optional_modules(), _IMPORT_ALL, Path(tmkit.__file__).parent, folder=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    failures = [json.loads(line) for line in ended.stdout.splitlines()]
    for name, extra, module in failures:
        assert DISTRIBUTIONS.get(module, module) in EXTRAS[extra], name
    parts = {name.split(".")[1] for name, _, _ in failures}
    assert parts <= {"store", "world", "envs", "lsp"}


def test_a_semantics_that_lacks_a_library_is_not_blamed() -> None:
    """An ImportError of a semantics passes unchanged, not as an error about actions."""
    domain = load_planning_domain("blocks", robot=load_manipulator("panda"))
    with (
        pytest.raises(ModuleNotFoundError, match="No module named 'no_such_library'"),
        domain.attribute_errors("the state"),
    ):
        importlib.import_module("no_such_library")
    with (
        pytest.raises(TaskError, match="a semantics defines every action"),
        domain.attribute_errors("the state"),
    ):
        raise KeyError


def test_code_of_users_that_needs_an_extra_names_it(tmp_path: Path) -> None:
    """A semantics file, a module of blocks and a cost that need an extra raise its error."""
    needs = (
        "from tmkit.errors import MissingExtraError\nraise MissingExtraError.of('x needs', 'world',"
        " 'x')\n"
    )
    (tmp_path / "mine.pddl").write_text("(define (domain mine) (:predicates (p)))")
    (tmp_path / "mine.py").write_text(needs)

    def cost(step: object) -> float:
        raise MissingExtraError.of("x needs", "world", "x")

    scene, arm = tmkit.load_scene("panda_table", "blocks1"), load_manipulator("panda")
    for call in (
        lambda: load_planning_domain(
            tmp_path / "mine.pddl", robot=arm, semantics=tmp_path / "mine.py"
        ),
        lambda: import_named_module(f"{tmp_path / 'mine.py'}:blocks"),
        lambda: tmkit.plan(
            scene,
            goal="(holding a)",
            robot="panda",
            options=tmkit.PlanningOptions(cost=cost, improve=1),
        ),
    ):
        with pytest.raises(MissingExtraError, match="x needs the extra 'world'"):
            call()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a plan of blocks3, made where no optional library is."""
    path = tmp_path_factory.mktemp("bare")
    plan = [
        "plan",
        "panda_table",
        "blocks3",
        "--goal",
        "(and (on a b) (on b c))",
        "--output",
        "plan.json",
    ]
    ended = run_without(optional_modules(), COMMAND, *plan, folder=path)
    assert ended.returncode == 0, ended.stderr
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "plan.json"],
        ["simulate", "plan.json"],
        ["scene", "check", "panda_table"],
        ["list", "domains"],
        ["list", "scenes"],
        ["demo", "--out", "demo"],
    ],
    ids=" ".join,
)
def test_the_commands_of_planning_need_no_extra(arguments: list[str], folder: Path) -> None:
    """Planning, validating, simulating and listing work with the requirements alone."""
    ended = run_without(optional_modules(), COMMAND, *arguments, folder=folder)
    assert ended.returncode == 0, ended.stderr


def test_the_demo_tells_what_it_leaves_out(tmp_path: Path) -> None:
    """Without pillow and viser the demo writes plan and report, and names the extras."""
    ended = run_without(
        ["PIL", "viser"], COMMAND, "demo", "--out", "demo", "--json", folder=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["ok"]
    assert [reason.partition(": ")[2].split(" in ")[0] for reason in result["left_out"]] == [
        "pip install -e '.[viewer]'",
        "pip install -e '.[pictures]'",
    ]
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"plan.json", "report.json"}


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["view", "panda_table"], "viewer"),
        (["view", "panda_table", "--html", "a.html"], "viewer"),
        (["store", "ls", "worlds"], "world"),
        (["serve", "panda_table"], "world"),
        (["lsp"], "editor"),
        (["scene", "convert", "panda_table", "-o", "a.usda"], "formats"),
        (["simulate", "plan.json", "--engine", "mujoco"], "engines"),
        (["simulate", "plan.json", "--picture", "a.png"], "pictures"),
        (["simulate", "plan.json", "--record", "a.gif"], "pictures"),
    ],
)
def test_commands_name_the_extra_in_one_line(
    arguments: list[str], extra: str, folder: Path
) -> None:
    """A command that needs an extra ends with the exit code of bad input, and the command."""
    ended = run_without(optional_modules(), COMMAND, *arguments, folder=folder)
    assert ended.returncode == 2
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert f"needs the extra '{extra}': pip install -e '.[{extra}]'" in lines[0].replace(
        " need the", " needs the"
    )
