"""Cost of importing tmkit, and the errors of a failed import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import run_process

import tmkit
from tmkit._support.other_distribution import explain_other_distribution


def run_python(code: str, *, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter in a folder."""
    command = [sys.executable, "-W", "error", "-c", code]
    variables = {**os.environ, **environment}
    return run_process(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


@pytest.fixture
def bare_source(tmp_path: Path) -> Path:
    """Copy the Python sources as a clone holds them, without the compiled core."""
    package = Path(tmkit.__file__).parent
    ignored = shutil.ignore_patterns("*.so", "_libraries", "__pycache__", "core", "data_files")
    shutil.copytree(package, tmp_path / "tmkit", ignore=ignored)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'tmkit'\n")
    return tmp_path


def test_the_bare_source_folder_says_what_to_do(bare_source: Path) -> None:
    """Without the compiled core, importing tmkit is one ImportError with the command."""
    # -S and an empty path: an installed tmkit must not be imported instead.
    code = f"import sys; sys.path.insert(0, {str(bare_source)!r}); import tmkit"
    command = [sys.executable, "-I", "-S", "-c", code]
    run = run_process(command, cwd=bare_source, capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert run.returncode == 1
    assert last.startswith(
        "ImportError: this is tmkit's source folder, whose compiled core is not installed"
    )
    assert "pip install -e ." in last
    assert "During handling" not in run.stderr


@pytest.fixture
def beside_the_other(bare_source: Path) -> Path:
    """Return a folder with the Python sources and the metadata of the other ``tmkit``."""
    (bare_source / "pyproject.toml").unlink()
    metadata = bare_source / "tmkit-0.0.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tmkit\nVersion: 0.0.5\n")
    (metadata / "RECORD").write_text("tmkit/__init__.py,,\ntmkit-0.0.5.dist-info/METADATA,,\n")
    return bare_source


def test_the_other_project_of_the_name_is_named(beside_the_other: Path) -> None:
    """If the core cannot be loaded and PyPI's ``tmkit`` is there, the error names it."""
    code = f"import sys; sys.path.insert(0, {str(beside_the_other)!r}); import tmkit"
    command = [sys.executable, "-I", "-S", "-c", code]
    run = run_process(command, cwd=beside_the_other, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "'tmkit' 0.0.5 from PyPI is installed, which is another project" in run.stderr
    assert "run 'pip uninstall tmkit', then install tmkit-robotics again" in run.stderr


IMPORT_EACH = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
files = pathlib.Path(sys.argv[1]).glob("tmkit/*/__init__.py")
packages = sorted(file.parent.name for file in files)
for package in packages:
    if package != "cli":
        if os.fork() == 0:
            try:
                __import__(f"tmkit.{package}").errors
            except ImportError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
sys.argv[1:] = ["--version"]
from tmkit.cli import main
main()
"""


def without_tmkit(folder: Path, scratch: Path) -> str:
    """Return a folder of modules, or of links to all but tmkit if it is installed there."""
    if not (folder / "tmkit").exists():
        return str(folder)
    links = scratch / "others" / folder.name
    if not links.exists():
        links.mkdir(parents=True)
        for entry in folder.iterdir():
            if not entry.name.startswith(("tmkit", "_editable")):
                (links / entry.name).symlink_to(entry)
    return str(links)


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("init", ["import sys", None])
def test_a_damaged_installation_says_so(
    init: str | None, is_listed: bool, beside_the_other: Path
) -> None:
    """If the other project replaced ``tmkit/__init__.py``, no package or command loads.

    The core would work, but without the exceptions that it raises. Removed it is when the other
    project is uninstalled.
    """
    package = beside_the_other / "tmkit"
    core = Path(tmkit._core.__file__)
    for name in (core.name, "_libraries"):
        (package / name).symlink_to(core.parent / name)
    if init is None:
        (package / "__init__.py").unlink()
    else:
        (package / "__init__.py").write_text(init)
    if not is_listed:
        shutil.rmtree(beside_the_other / "tmkit-0.0.5.dist-info")
    # -S: without an editable install
    command = [sys.executable, "-S", "-c", IMPORT_EACH, str(beside_the_other)]
    modules = [
        without_tmkit(Path(folder), beside_the_other)
        for folder in sys.path
        if Path(folder).is_dir()
    ]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(beside_the_other), *modules])}
    run = run_process(
        command, cwd=beside_the_other, env=variables, capture_output=True, text=True, check=False
    )
    lines = run.stdout.splitlines()
    assert len(lines) > 12
    what = "is another project's" if init else "is missing"
    who = (
        "'tmkit' 0.0.5 from PyPI is installed"
        if is_listed
        else "'tmkit' on PyPI is another project"
    )
    reason = f"the installation of tmkit is damaged: {package}/__init__.py {what}; {who}"
    assert [line for line in lines if not line.startswith(reason)] == []
    assert run.returncode == 2
    assert run.stderr.startswith(f"error: tmkit cannot be loaded: {reason}")
    assert run.stderr.rstrip().endswith(
        "run 'pip uninstall tmkit', then install tmkit-robotics again"
    )


def test_only_the_other_project_is_blamed(beside_the_other: Path) -> None:
    """No distribution, and one of this project by its former name, are no other project."""
    assert explain_other_distribution([str(beside_the_other)]).startswith("; 'tmkit' 0.0.5")
    assert explain_other_distribution([str(beside_the_other / "tmkit")]) == ""
    core = "tmkit/_core.cpython-311-x86_64-linux-gnu.so"
    (beside_the_other / core).touch()  # readers of metadata may leave out files that are not there
    with (beside_the_other / "tmkit-0.0.5.dist-info" / "RECORD").open("a") as record:
        record.write(f"{core},,\n")
    assert explain_other_distribution([str(beside_the_other)]) == ""


HEAVY = [
    "PIL",
    "antlr4",
    "collada",
    "gtsam",
    "imageio",
    "lark",
    "lxml",
    "matplotlib",
    "msgspec",
    "ompl",
    "pddlpy",
    "pybullet",
    "pyrsistent",
    "rosbags",
    "scipy",
    "shapely",
    "trimesh",
    "viser",
    "z3",
]
SELDOM = [
    "tmkit.formats.json.scene",
    "tmkit.formats.srdf.values",
    "tmkit.manipulation.swept_volume",
    "tmkit.motion.reachable_region",
    "tmkit.robots.infer_arm",
    "tmkit.robots.srdf_arms",
    "tmkit.simulation",
    "tmkit.tamp.validation.check",
]
HELP = """
from tmkit.cli import main
sys.argv = ["tmkit", "--help"]
try:
    main()
except SystemExit:
    pass
"""


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        pytest.param(
            "import tmkit", [*HEAVY, "importlib.metadata", "numpy", "rich", "typer"], id="tmkit"
        ),
        pytest.param(
            "import tmkit as tk; tk.SceneGraph; tk.plan",
            [*HEAVY, *SELDOM, "rich", "typer"],
            id="plan",
        ),
        pytest.param(
            HELP,
            [
                *HEAVY,
                "numpy",
                "tmkit.pddl",
                "tmkit.tamp.planning",
                "tmkit.tamp.run",
                "tmkit.motion",
                "tmkit.manipulation",
            ],
            id="help",
        ),
    ],
)
def test_importing_is_light(code: str, heavy: list[str], tmp_path: Path) -> None:
    """Libraries that are slow to import are imported on use, not by ``import tmkit``."""
    loaded = f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    run = run_python(f"import sys\n{code}\n{loaded}", folder=tmp_path)
    assert (run.returncode, run.stderr) == (0, "[]\n")


def test_importing_prints_nothing_and_leaves_logging_alone(tmp_path: Path) -> None:
    """A library is silent: no output, no handler, no warning."""
    code = (
        "import logging, tmkit; assert not logging.root.handlers; tmkit.SceneGraph().add_frame('a',"
        " 'world')"
    )
    run = run_python(code, folder=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_public_names_are_there(tmp_path: Path) -> None:
    """``dir`` lists ``tmkit.__all__``, whose names all exist; others are AttributeErrors."""
    code = (
        "import tmkit; [getattr(tmkit, n) for n in tmkit.__all__]; assert set(tmkit.__all__) <="
        " set(dir(tmkit))"
    )
    run = run_python(code, folder=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    with pytest.raises(AttributeError, match="module 'tmkit' has no attribute 'SceneGraf'"):
        tmkit.SceneGraf  # noqa: B018  # that it fails is the test


def test_names_of_packages_stay_what_they_are(tmp_path: Path) -> None:
    """With every module imported, no public name of a package is a submodule of that name."""
    code = """
import importlib, pkgutil, types
import tmkit
modules = [tmkit] + [
    importlib.import_module(entry.name)
    for entry in pkgutil.walk_packages(tmkit.__path__, "tmkit.")
    if not entry.name.startswith(("tmkit.data_files", "tmkit.cli.__main__"))
]
packages = [
    module for module in modules if hasattr(module, "__path__") and hasattr(module, "__all__")
]
names = [(package, name) for package in packages for name in package.__all__]
print([
    f"{package.__name__}.{name}"
    for package, name in names
    if isinstance(getattr(package, name), types.ModuleType)
])
print(len(names) > 300, all(name in dir(package) for package, name in names))
"""
    run = run_python(code, folder=tmp_path)
    assert (run.stdout, run.stderr) == ("[]\nTrue True\n", "")


def test_a_name_goes_before_its_submodule(tmp_path: Path) -> None:
    """A function with the name of its module stays the function in any import order."""
    code = """
import tmkit.robots.infer_arm
import tmkit as tk
from tmkit.robots import infer_arm
print(callable(infer_arm), tk.robots.infer_arm is infer_arm)
before = tk.motion.reachable_region
import tmkit.motion.reachable_region
print(callable(before), tk.motion.reachable_region is before)
try:
    tk.graph.two  # of a comment in the block of names
except AttributeError as error:
    print(error)
"""
    run = run_python(code, folder=tmp_path)
    expected = "True True\nTrue True\nmodule 'tmkit.graph' has no attribute 'two'\n"
    assert (run.stdout, run.stderr) == (expected, "")


def test_packages_need_no_import_statement(tmp_path: Path) -> None:
    """A package of tmkit is imported on first use; unknown names are AttributeErrors."""
    code = """
import tmkit as tk
print(tk.relations.PoseSemantics.__name__, tk.spatial.adjoint.__name__, tk.graph.tree_svg.__name__)
print([hasattr(tk.graph, name) for name in ("no_such_name", "_private", "__wrapped__")])
"""
    run = run_python(code, folder=tmp_path)
    assert (run.stdout, run.stderr) == (
        "PoseSemantics adjoint tree_svg\n[False, False, False]\n",
        "",
    )
