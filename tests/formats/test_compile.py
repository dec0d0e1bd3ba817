"""Generated Python and C++ code builds the same scene."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from support.effort import scaled_examples
from support.processes import run_process
from support.scene_edits import scenes

import tmkit as tk
from tmkit import cli
from tmkit.errors import SceneError
from tmkit.formats import compile_scene, load_scene, read_function_blocks
from tmkit.graph import (
    AttachedShape,
    Box,
    Free,
    HeightField,
    Mesh,
    Plane,
    PointCloud,
    Revolute,
    SceneGraph,
    Stamped,
)
from tmkit.world import FunctionBlock

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "data" / "kitchen_table.rsg"


def import_module(path: Path) -> ModuleType:
    """Return a module from its file."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def scene_of_everything() -> SceneGraph:
    """Return a scene with each kind of shape, errors that are shared, odd texts and groups."""
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1 / 3]]
    shapes = [
        AttachedShape(
            Mesh(corners, [[0, 2, 1], [0, 1, 3]], source='a "b" \\u00e9'), color=[0.1, 0.2, 0.3, 1]
        ),
        AttachedShape(
            PointCloud([[0, 0, 0.1], [1 / 3, 0, 0]], radius=0.01), visual=False, level="box"
        ).replace(stamp=2.5),
        AttachedShape(HeightField([[0, 0.1], [0.2, 0.3]], size=[1, 2]), tk.Pose([0, 0, 1 / 7])),
        AttachedShape(Plane(), collision=False, friction=0.4),
    ]
    scene = SceneGraph().add_frame("odd ?? \\ name \n", "world", shapes=shapes, classes=["movable"])
    spread = np.diag([1e-6, 2e-6, 3e-6, 1e-4, 2e-4, 3e-4])
    joint = Revolute([0, 1, 1], lower=-1 / 3, name="turn", velocity=2.0)
    scene = scene.add_frame(
        "arm", "world", joint=joint, pose=tk.Pose.from_rpy([1, 2, 3], [0.1, 0.2, 0.3])
    )
    scene = scene.add_frame(
        "cup", "arm", pose=tk.GaussianPose(covariance=spread), shapes=[Box([1, 1, 1])]
    )
    scene = scene.add_stamped_pose("cup", tk.Pose([0, 0, 0.5]), stamp=1.5).set_covariance(
        "cup", spread
    )
    scene = scene.add_frame("ball", "world", joint=Free())
    for stamp, own in ((0.5, spread), (1.5, None), (2.5, 2.0 * spread)):
        pose = tk.Pose([stamp, 0, 1 / 3])
        scene = scene.add_stamped_pose("ball", pose, stamp=stamp, covariance=own)
    scene = scene.set_attribute(
        "cup", "note", {"text": '\U0001f600 "x"', "list": [1, 1.0, True, None, -1e-300]}
    )
    scene = scene.set_attribute("cup", "seen", Stamped([1, 2], 3.25))
    scene = scene.set_group(
        "cups", frames=["cup"], attributes={"k": "v"}, parents=["arm"]
    ).set_group("arm", groups=["cups"])
    scene = scene.allow_collision("arm", "cup", reason="user").add_body("spare")
    return scene.reparent("cup", "world", q=[0.2])


@given(scenes())
@settings(max_examples=scaled_examples(0.1))
def test_modules_build_the_same_scene(
    tmp_path_factory: pytest.TempPathFactory, scene: SceneGraph
) -> None:
    """The scene is equal after any edits."""
    file, *_ = compile_scene(scene, tmp_path_factory.mktemp("compiled") / "made.py")
    built = import_module(file).scene()
    assert built == scene
    assert built.digest() == scene.digest()


@pytest.mark.parametrize(
    "names", [("panda_table", "blocks3"), ("xarm_table",), ("so101_table",), (str(TABLE),)]
)
def test_shipped_scenes(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Meshes are in an array file beside the module."""
    scene = load_scene(*names)
    files = compile_scene(scene, tmp_path / "made.py")
    assert import_module(files[0]).scene() == scene
    assert [file.name for file in files[1:]] == ["made_arrays.npz"] * (len(files) - 1)


def test_everything_in_python(tmp_path: Path) -> None:
    """Odd texts, shared errors, stamps and all kinds of shapes."""
    scene = scene_of_everything()
    built = import_module(compile_scene(scene, tmp_path / "made.py")[0]).scene()
    assert built == scene
    assert built.digest() == scene.digest()


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_everything_in_cpp(tmp_path: Path) -> None:
    """A program that links with the scene graph of the core reproduces the scene's bytes."""
    libraries = sorted(ROOT.glob("build/*/libtmkit_graph.a"), key=lambda path: path.stat().st_mtime)
    if not libraries:
        pytest.skip("the core was not built in this checkout")
    made = [scene_of_everything(), load_scene(TABLE), load_scene("panda_table")]
    for number, scene in enumerate(made):
        blocks = read_function_blocks(TABLE) if number == 1 else ()
        compile_scene(scene, tmp_path / f"scene{number}.hpp", blocks=blocks)
    calls = "".join(f"put(scene{number}::scene().content_bytes());" for number in range(len(made)))
    includes = "".join(f'#include "scene{number}.hpp"\n' for number in range(len(made)))
    put = (
        'static void put(const std::string& b) { for (unsigned char c : b) std::printf("%02x", c);'
        ' std::puts(""); }'
    )
    (tmp_path / "main.cpp").write_text(
        f"#include <cstdio>\n{includes}{put}\nint main() {{ {calls}"
        ' return scene1::PlaneSegmentation::output_hook != std::string_view("sensor"); }\n'
    )
    command = [
        "g++",
        "-std=c++20",
        "-w",
        f"-I{ROOT / 'tmkit/core/include'}",
        "main.cpp",
        str(libraries[-1]),
        "-o",
        "main",
    ]
    run_process(command, cwd=tmp_path, check=True)
    lines = run_process(
        [tmp_path / "main"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [hashlib.sha256(bytes.fromhex(line)).hexdigest() for line in lines] == [
        scene.digest() for scene in made
    ]


def test_function_blocks_become_abstract_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hooks, patterns and triggers; a derived class with ``execute`` can be made."""
    monkeypatch.setattr(
        sys, "argv", ["tmkit", "scene", "compile", str(TABLE), "-o", str(tmp_path / "kitchen.py")]
    )
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    assert "Written to" in capsys.readouterr().out
    module = import_module(tmp_path / "kitchen.py")
    assert module.scene() == load_scene(TABLE)
    base = module.PlaneSegmentation
    assert issubclass(base, FunctionBlock)
    with pytest.raises(TypeError, match="abstract"):
        base()
    made = type("Made", (base,), {"execute": lambda self, *_: self.output([])})()
    assert (made.name, made.input_hook, made.output_hook) == (
        "plane_segmentation",
        "sensor_cloud",
        "sensor",
    )
    assert [part.shape for part in made.inputs["cloud"].parts] == ["point_cloud"]
    assert [part.name for part in made.outputs["planes"].parts] == ["plane_pose", "plane"]
    (block,) = read_function_blocks(TABLE)
    assert block.name == "plane_segmentation"


def test_bad_names_are_rejected(tmp_path: Path) -> None:
    """A module is imported by its name."""
    for name in ("my-scene.py", "scene.txt", "class.py"):
        with pytest.raises(SceneError, match=r"has a name such as 'my_scene\.py'"):
            compile_scene(SceneGraph(), tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_the_module_runs_alone(tmp_path: Path) -> None:
    """A separate process needs no reader of scene files."""
    compile_scene(load_scene("panda_table"), tmp_path / "made.py")
    code = (
        "import sys, made; made.scene(); print([name for name in sys.modules if"
        " name.startswith('tmkit.formats')])"
    )
    done = run_process(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_text_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Of a module, a header and a file in RSG-DSL: attributes are maps, whose order does."""
    code = (
        "import sys; from tmkit.formats import *; scene ="
        " load_scene(sys.argv[1]).set_attribute('plate', 'm', {key: {letter: 1 for letter in"
        " 'xyzuvw'} for key in 'abcdefgh'})\nfor name in ('a.py', 'a.hpp'): compile_scene(scene,"
        " name, blocks=read_function_blocks(sys.argv[1]))\nconvert_scene(scene, 'a.rsg')"
    )
    made = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run_process(
            [sys.executable, "-c", code, str(TABLE)], cwd=folder, env=environment, check=True
        )
        made.append([(folder / f"a.{suffix}").read_bytes() for suffix in ("py", "hpp", "rsg")])
    assert made[0] == made[1]
