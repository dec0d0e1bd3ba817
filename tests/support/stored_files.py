"""Files that tmkit writes or that people keep, one of each format, and the values that they hold.

``python tests/support/stored_files.py FOLDER`` writes them with the present code to a new folder,
together with ``expected.json``, the values that reading each of them gives.
``tests/data/stored/README.md`` defines when to add one.
"""

from __future__ import annotations

import itertools
import json
import pickle
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tmkit as tk
from support.blocks import blocks_scene
from support.gantry import GANTRY
from support.panda_srdf import PANDA_SRDF
from tmkit._support.data import data_path
from tmkit.batch import Dataset, load_batch, open_results, run_batch
from tmkit.batch.dataset import write_dataset
from tmkit.batch.problems import Batch, BatchEntry, FixedProblem
from tmkit.formats import load_scene, scene_from_dict, write_json_scene
from tmkit.formats.conversion import convert_scene
from tmkit.formats.json.frames import attributes_to_dict, stamps_to_dict
from tmkit.formats.json.scene import scene_dump
from tmkit.formats.srdf.files import read_srdf
from tmkit.formats.tmp_file import read_tmp
from tmkit.graph import (
    AttachedShape,
    Box,
    Cone,
    Free,
    HeightField,
    Inertia,
    Mesh,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
)
from tmkit.plans.plan_file import plan_to_dict
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.store import Store
from tmkit.tamp.options import PlanningOptions
from tmkit.world import BagRecorder, Buffer, InProcessTransport, WorldServer, play_bag
from tmkit.world.messages import transform_message

__all__ = ["READERS", "STORED", "read_stored"]

STORED = Path(__file__).resolve().parents[1] / "data" / "stored"
"""The folder with a folder of files for each version of the formats."""

GOAL = "(on a b)"
_T0 = 1_700_000_000
"""Stamp of the first transform [s]."""

_CORNER = Mesh(
    [[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0, 1 / 3]],
    [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
)
_URDF = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision></link>
  <link name="hand">
    <visual><geometry><mesh filename="package://pybullet_data/franka_panda/meshes/visual/finger.glb"/></geometry></visual>
    <collision><geometry>
      <mesh filename="package://pybullet_data/franka_panda/meshes/collision/finger.obj"
        scale="1 1 2"/>
    </geometry></collision>
  </link>
  <joint name="turn" type="revolute">
    <parent link="base"/><child link="hand"/><axis xyz="0 0 1"/>
    <origin xyz="0 0 0.3" rpy="0 0 0.5"/>
    <limit lower="-1" upper="1" velocity="2" effort="5"/>
  </joint>
</robot>
"""
_SDF = """<sdf version="1.9"><model name="cart"><link name="frame">
  <collision name="c"><geometry><box><size>0.4 0.3 0.2</size></box></geometry></collision>
</link></model></sdf>
"""
_PROBLEM = """scene = ["panda_table", "blocks2"]
goal = "(on a b)"

[q]
panda_joint1 = 0.2

[options]
seed = 1
max_iterations = 4
"""
_BATCH = """seconds = 60
check = true

[[problems]]
name = "towers"
problem = "problem.toml"
seeds = 2

[problems.grid]
goal = ["(on a b)", "(on b a)"]
"""


def _arm(folder: Path) -> SceneGraph:
    """Return the scene of the URDF, which has meshes of a package."""
    (folder / "arm.urdf").write_text(_URDF, encoding="utf-8")
    return load_scene(folder / "arm.urdf")


def _rich(folder: Path) -> SceneGraph:
    """Return a scene with a shape of each kind, joints, groups, attributes and uncertainty."""
    field = HeightField([[0.0, 0.1, 0.2], [0.1, 0.3, 0.1]], size=[1.0, 0.5], floor=-0.2)
    shapes = {
        "box": Box([0.1, 0.2, 0.3]),
        "sphere": Sphere(0.1),
        "cone": Cone(0.1, 0.2),
        "corner": _CORNER,
        "cloud": PointCloud([[0, 0, 0.1], [0.2, 0, 0]], radius=0.01),
        "field": field,
    }
    scene = _arm(folder).set_shapes("world", [AttachedShape(Plane())])
    for number, (name, shape) in enumerate(shapes.items()):
        attached = AttachedShape(
            shape, Pose([0, 0, 0.01 * number]), color=(1, 0, 0, 1), friction=0.5
        )
        scene = scene.add_frame(name, "world", pose=Pose([number, 0, 0]), shapes=[attached])
    scene = scene.add_frame(
        "slide", "box", joint=Prismatic([1, 0, 0], lower=0.0, upper=0.5, name="slide")
    )
    scene = scene.add_frame(
        "wheel", "slide", joint=Revolute([0, 1, 0], name="wheel"), classes=["movable"]
    )
    scene = scene.add_frame("cup", "box", joint=Free()).set_inertia(
        "cup", Inertia(0.2, [0, 0, 0.1], matrix=np.eye(3))
    )
    for stamp, own in ((1.0, None), (2.0, 4e-4 * np.eye(6)), (3.0, 1e-4 * np.eye(6))):
        scene = scene.add_stamped_pose("cup", Pose([0, 0, stamp]), stamp=stamp, covariance=own)
    scene = scene.set_pose("cup", Pose()).allow_collision("box", "cone")
    scene = scene.set_attributes("cup", {"colour": "white", "sizes": [1, 2.5, None]})
    edit = scene.edit()
    edit.set_group("dishes", frames=["cup"], attributes={"clean": True})
    edit.set_group("all", groups=["dishes"], frames=["box"])
    return edit.finish()


def scene_values(scene: SceneGraph) -> dict[str, Any]:
    """Return the values of a scene that do not depend on the reader of meshes."""
    drawn = [
        [name, part.shape.source, part.shape.kind, part.visual, part.collision]
        for name in scene.frame_names
        for part in scene.shapes(name)
    ]
    histories = {
        name: stamps_to_dict(history)
        for name in scene.frame_names
        if (history := scene.stamped_poses(name)) is not None
        and any(covariance is not None for covariance in history.covariances)
    }
    return {
        **scene_dump(scene),
        **({"histories": histories} if histories else {}),  # earlier files have none
        "shapes": drawn,
        "groups": {
            name: [*scene.group(name).frames, *scene.group(name).groups]
            for name in scene.group_names
        },
        "attributes": {
            name: attributes_to_dict(scene.specification(name)) for name in scene.frame_names
        },
        "allowed": [list(pair) for pair in scene.allowed_pairs],
    }


def plan_values(plan: tk.Plan) -> dict[str, Any]:
    """Return the values of a plan and of its last scene."""
    segments = [segment for step in plan.steps for segment in step.segments]
    return {
        "actions": [str(action) for action in plan.actions],
        "arms": [robot.name for robot in plan.robots],
        "domain": plan.domain,
        "end": [[name, plan.final_scene.parent(name)] for name in plan.final_scene.frame_names],
        "final_q": [float(value) for value in plan.final_q],
        "goal": plan.goal,
        "seed": plan.seed,
        "segments": [
            [part.kind.value, part.arm, part.held, len(part.path), part.path[-1].tolist()]
            for part in segments
        ],
    }


def _table(path: Path) -> Any:
    """Return the values of a results folder, without its times."""
    rows = [*open_results(path)]
    return [
        [row["status"], plan_values(row.plan) if row.plan else None, [*row.scene.frame_names]]
        for row in rows
    ]


def _dataset(path: Path) -> dict[str, Any]:
    data = Dataset(path)
    data.check()
    scenes = [scene_values(scene_from_dict(json.loads(row["json"]))) for row in data.rows("scenes")]
    return {"actions": [row["action"] for row in data.rows("actions")], "scenes": scenes}


def _recording(path: Path) -> dict[str, Any]:
    with WorldServer(InProcessTransport(), log=path) as server:
        return scene_values(server.live.scene)


def _bag(path: Path) -> dict[str, Any]:
    buffer = Buffer(100.0)
    report = play_bag(path, buffer)
    poses = [buffer.scene.pose("cup", stamp=_T0 + step).as_array().tolist() for step in range(3)]
    return {"counts": dict(report.counts), "skipped": [*report.skipped], "poses": poses}


def _store(path: Path) -> dict[str, Any]:
    with Store(path) as store:
        log = {
            branch: [version.message for version in store.log(tip)]
            for branch, tip in store.branches.items()
        }
        return {
            "log": log,
            "scenes": {
                branch: scene_values(store.get(tip)) for branch, tip in store.branches.items()
            },
        }


def _tmp(path: Path) -> dict[str, Any]:
    actions = tk.tamp.load_tmp_plan(path, load_scene("panda_table", "blocks2"), goal=GOAL).actions
    return {"actions": [str(action) for action in actions], "entries": len(read_tmp(path).entries)}


def _problem(path: Path) -> dict[str, Any]:
    problem, options = tk.load_planning_problem(path)
    return {
        "goals": [str(goal) for goal in problem.goals],
        "seed": options.seed,
        "q": [float(x) for x in problem.q],
    }


def _scene(path: Path) -> dict[str, Any]:
    return scene_values(load_scene(path))


READERS: Mapping[str, Callable[[Path], Any]] = {
    "scene.json": _scene,
    "scene_beside.json": _scene,
    "scene.rsg": _scene,
    "scene.glb": _scene,
    "scene.gltf": _scene,
    "scene.usda": _scene,
    "scene.robray": _scene,
    "scene.urdf": _scene,
    "arm.urdf": _scene,
    "cart.sdf": _scene,
    "scene.pickle": lambda path: scene_values(pickle.loads(path.read_bytes())),  # our own
    "panda.srdf": lambda path: [group.name for group in read_srdf(path).groups],
    "panda.toml": lambda path: json.loads(json.dumps(load_manipulator(path).to_dict())),
    "plan.json": lambda path: plan_values(tk.load_plan(path)),
    "plan_untimed.json": lambda path: plan_values(tk.load_plan(path)),
    "plan.tmp": _tmp,
    "problem.toml": _problem,
    "batch.toml": lambda path: [
        [entry.name, len(entry.seeds)] for entry in load_batch(path).entries
    ],
    "results": _table,
    "dataset": _dataset,
    "store": _store,
    "world.log": _recording,
    "bag_mcap": _bag,
    "bag_sqlite3": _bag,
}
"""The readers of the stored files, by the names of files or folders."""


def read_stored(folder: Path) -> dict[str, Any]:
    """Return the values of each file in a folder that may be written to, by name."""
    return {name: json.loads(json.dumps(read(folder / name))) for name, read in READERS.items()}


def _write_plans(folder: Path) -> None:
    plan = tk.plan(load_scene("panda_table", "blocks2"), goal=GOAL, seed=3).plan
    assert plan is not None
    for name in ("plan.json", "plan.tmp"):
        tk.save_plan(plan, folder / name)
    untimed = json.dumps(
        plan_to_dict(plan, with_timing=False), sort_keys=True, indent=1, ensure_ascii=False
    )
    (folder / "plan_untimed.json").write_text(untimed + "\n", encoding="utf-8")
    problem = tk.PlanningProblem(
        blocks_scene({"a": (1, 1), "b": (-1, 1)}), goal=GOAL, robots=GANTRY
    )
    entry = BatchEntry("tower", FixedProblem(problem, PlanningOptions(max_iterations=4)), [0])
    run_batch(Batch((entry,)), folder / "results", workers=1)
    write_dataset(folder / "results", folder / "dataset")


def _write_worlds(folder: Path, scene: SceneGraph) -> None:
    with Store(folder / "store") as store:
        store.put(scene, "main", message="first")
        store.put(scene.add_frame("lid", "cup"), "main", message="second")
        store.put(scene.reparent("cup", "cone"), "other", message="third")
    with WorldServer(InProcessTransport(), scene, log=folder / "world.log") as server:
        server.live.update(lambda now: now.add_frame("lid", "cup"))
    buffer = Buffer(100.0)
    for step, frame in itertools.product(range(3), ("cup", "spoon")):
        message = transform_message(Pose([0.1 * step, 0, 0.5]), "world", frame, (_T0 + step, 0))
        buffer.set_transform(message)
    for storage in ("mcap", "sqlite3"):
        with BagRecorder(folder / f"bag_{storage}", storage=storage) as recorder:  # type: ignore[arg-type]
            recorder.record(buffer.scene)


def write_stored(folder: Path) -> None:
    """Write a file of each format to a new folder, and the values that reading them gives."""
    folder.mkdir(parents=True)
    scene = _rich(folder)
    write_json_scene(scene, folder / "scene.json")
    write_json_scene(scene, folder / "scene_beside.json", arrays_beside=True)
    for name in ("scene.rsg", "scene.glb", "scene.gltf"):
        convert_scene(scene, folder / name)
    for name in ("scene.robray", "scene.urdf", "scene.usda"):
        convert_scene(
            SceneGraph().add_frame("block", "world", shapes=[AttachedShape(Box([1, 2, 3]))]),
            folder / name,
        )
    (folder / "scene.pickle").write_bytes(pickle.dumps(scene))
    (folder / "cart.sdf").write_text(_SDF, encoding="utf-8")
    (folder / "panda.srdf").write_text(PANDA_SRDF, encoding="utf-8")
    shutil.copy(data_path("scenes/robots/panda.toml"), folder)
    (folder / "problem.toml").write_text(_PROBLEM, encoding="utf-8")
    (folder / "batch.toml").write_text(_BATCH, encoding="utf-8")
    _write_plans(folder)
    _write_worlds(folder, scene)
    with TemporaryDirectory() as scratch:
        expected = read_stored(Path(shutil.copytree(folder, Path(scratch) / "copy")))
    (folder / "expected.json").write_text(
        json.dumps(expected, sort_keys=True) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    write_stored(Path(sys.argv[1]))
