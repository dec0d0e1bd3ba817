"""tmkit without pybullet: everything but simulation works with the robots that it contains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import run_process

import tmkit as tk
from tmkit.simulation.rendering.filament import is_available

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pybullet", "pybullet_data"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Blocker())
"""
PLANNED = """
import tmkit as tk
scene = tk.load_scene("panda_table", "blocks2")
result = tk.plan(scene, goal="(on a b)", robot="panda", seed=3)
tk.save_plan(result.plan, sys.argv[1])
print(tk.validate_plan(tk.load_plan(sys.argv[1])).is_valid)
try:
    tk.simulate(result.plan)
except tk.errors.MissingExtraError as error:
    print(error)
"""
COMMAND = "sys.argv[0] = 'tmkit'; from tmkit.cli import main; main()"


def run(code: str, *arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter in which neither pybullet nor its data can be found."""
    command = [sys.executable, "-c", BLOCKED + code, *map(str, arguments)]
    return run_process(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_plan_for_the_panda_is_the_same(tmp_path: Path) -> None:
    """The Panda that tmkit contains plans and validates with the motions of pybullet's Panda."""
    ended = run(PLANNED, "plan.json", folder=tmp_path)
    assert ended.stdout.startswith(
        "True\nsimulating needs pybullet: pip install 'pybullet>=3.2.7'"
    ), ended.stderr
    scene = tk.load_scene("panda_table", "blocks2")
    result = tk.plan(scene, goal="(on a b)", robot="panda", seed=3)
    assert result.plan is not None
    tk.save_plan(result.plan, tmp_path / "with.json")
    without, with_it = (
        json.loads((tmp_path / name).read_text()) for name in ("plan.json", "with.json")
    )
    assert without["steps"] == with_it["steps"]
    assert tk.validate_plan(tk.load_plan(tmp_path / "plan.json")).is_valid


def test_the_contained_panda_is_that_of_pybullet() -> None:
    """Both descriptions have equal frames, joints, masses and collision shapes, but not visuals."""
    from pybullet_data import getDataPath

    contained = tk.load_scene(tk.data_path("scenes/packages/pybullet_data/franka_panda/panda.urdf"))
    original = tk.load_scene(Path(getDataPath(), "franka_panda", "panda.urdf"))
    assert contained.frame_names == original.frame_names
    for frame in original.frame_names:
        assert contained.parent(frame) == original.parent(frame)
        assert contained.joint(frame) == original.joint(frame)
        assert contained.inertia(frame) == original.inertia(frame)
        solid, its = (
            [shape for shape in scene.shapes(frame) if shape.collision]
            for scene in (contained, original)
        )
        assert [(shape.shape, shape.pose) for shape in solid] == [
            (shape.shape, shape.pose) for shape in its
        ]


def test_the_command_lists_what_is_missing(tmp_path: Path) -> None:
    """``tmkit list`` names the package of each scene; Panda, UR5 and Baxter need no pybullet."""
    listed = json.loads(run(COMMAND, "list", "scenes", "--json", folder=tmp_path).stdout)
    missing = {entry["name"] for entry in listed if entry["missing_packages"]}
    assert missing == {"iiwa_kitchen", "iiwa_nozzle", "iiwa_table", "xarm_table"}
    assert {tuple(entry["missing_packages"]) for entry in listed} == {(), ("pybullet_data",)}


@pytest.mark.parametrize("scene", ["iiwa_table", "xarm_table"])
def test_the_message_says_what_to_install(scene: str, tmp_path: Path) -> None:
    """A robot whose description is in pybullet is rejected with the install command."""
    ended = run(COMMAND, "scene", "dump", scene, folder=tmp_path)
    assert ended.returncode == 2
    assert (
        "the package 'pybullet_data' is not installed: pip install pybullet (or give its folder"
        in ended.stderr
    )


def test_a_plan_with_pybullet_s_meshes_says_what_to_install(tmp_path: Path) -> None:
    """A saved plan with pybullet's iiwa names its meshes; the error names the missing package."""
    result = tk.plan(tk.load_scene("iiwa_table", "blocks1"), goal="(holding a)", robot="iiwa")
    assert result.plan is not None
    tk.save_plan(result.plan, tmp_path / "plan.json")
    ended = run(COMMAND, "check", "plan.json", folder=tmp_path)
    assert ended.returncode == 2
    assert (
        "is not installed here; pip install pybullet, or give its folder by package_path"
        in ended.stderr
    )


def test_the_demo_simulates_in_mujoco(tmp_path: Path) -> None:
    """The demo uses MuJoCo, and omits pictures if no renderer is installed either."""
    ended = run(COMMAND, "demo", "--out", tmp_path / "demo", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "Simulated: SimulationReport(succeeded;" in ended.stdout
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written >= {"plan.json", "plan.html", "report.json"}
    if is_available():
        assert written >= {"demo.png", "demo.webp"}
    else:
        assert "Vulkan driver, such as Debian's mesa-vulkan-drivers; or pybullet" in ended.stdout


def test_the_demo_ends_with_what_to_install(tmp_path: Path) -> None:
    """Without any engine, the demo plans and validates, and then names what to install."""
    code = "sys.modules['mujoco'] = None\n" + COMMAND
    ended = run(code, "demo", "--out", tmp_path / "demo", folder=tmp_path)
    assert ended.returncode == 2
    assert "Checked:" in ended.stdout
    assert ended.stderr.startswith("error: simulating needs pybullet: pip install")
    assert "or the engine 'mujoco' of the extra 'engines'" in ended.stderr
    assert (tmp_path / "demo" / "plan.json").is_file()
