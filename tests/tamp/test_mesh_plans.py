"""Meshes from grasp to simulation, and user samplers in a plan."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh
from support.meshes import l_mesh

import tmkit as tk
from tmkit.errors import SamplerError
from tmkit.graph import Shape
from tmkit.manipulation import Grasp, GraspRequest, stable_faces
from tmkit.motion.masses import centre_of_mass
from tmkit.simulation import simulate
from tmkit.spatial import Pose

TOP = 0.025  # of the table over its middle


def mug() -> Shape:
    """Return a closed beaker with a handle as a single mesh, 0.06 m wide and 0.09 m high."""
    body = trimesh.creation.cylinder(0.03, 0.09, sections=48)
    handle = trimesh.creation.torus(0.02, 0.005, major_sections=24, minor_sections=12)
    handle.apply_transform(trimesh.transformations.rotation_matrix(math.pi / 2, [1, 0, 0]))
    handle.apply_translation([0.04, 0.0, 0.0])
    joined = trimesh.util.concatenate([body, handle])
    return tk.Mesh(np.asarray(joined.vertices), np.asarray(joined.faces))


def scene_with(
    shape: Shape, *, level: str | None = None, face: int = 0, turn: float = 0.4
) -> tk.SceneGraph:
    """Return the Panda with an object on one of its stable faces, and a tray."""
    scene = tk.load_scene("panda_table")
    tray = tk.AttachedShape(tk.Box([0.25, 0.25, 0.01]), color=(0.4, 0.5, 0.6, 1.0))
    scene = scene.add_frame(
        "tray", "table", pose=Pose([-0.1, 0.3, TOP + 0.005]), classes=["region"], shapes=[tray]
    )
    thing = tk.AttachedShape(shape, color=(0.8, 0.3, 0.1, 1.0), level=level)
    scene = scene.add_frame("thing", "table", joint=tk.Free(), classes=["movable"], shapes=[thing])
    rest = stable_faces(scene, "thing")[face]
    on_table = (
        Pose.from_rpy([-0.1, -0.2, TOP + rest.height + 1e-4], [0.0, 0.0, turn]) @ rest.rotation
    )
    centre = centre_of_mass(scene, "thing")
    scene = scene.set_inertia("thing", tk.Inertia(0.2, centre, matrix=2e-4 * np.eye(3)))
    return scene.set_pose("thing", on_table)


def upright_face(shape: Shape) -> int:
    """Return the index of the stable face on which an object is upright."""
    scene = tk.SceneGraph().add_frame("thing", "world", shapes=[tk.AttachedShape(shape)])
    return next(
        number for number, face in enumerate(stable_faces(scene, "thing")) if face.is_upright
    )


@pytest.mark.parametrize("shape", [l_mesh(), mug()], ids=["l", "mug"])
def test_a_mesh_is_picked_and_placed(shape: Shape) -> None:
    """The plan is valid, and in simulation the object ends at its planned pose."""
    result = tk.plan(
        scene_with(shape, face=upright_face(shape)), domain="kitchen", goal="(on thing tray)"
    )
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    played = simulate(result.plan)
    assert played.is_successful, played
    assert result.plan.steps[-1].scene.parent("thing") == "tray"


def test_a_mesh_at_exact_level_is_picked_and_placed() -> None:
    """At triangle level the L is grasped where its hull would collide; the plan is valid."""
    scene = scene_with(l_mesh(), level="exact", face=upright_face(l_mesh()))
    result = tk.plan(scene, domain="kitchen", goal="(on thing tray)")
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems


def test_equal_seeds_give_equal_plans_of_meshes(tmp_path: Path) -> None:
    """Plans with sampled grasps are equal byte for byte."""
    texts = []
    for number in range(2):
        result = tk.plan(
            scene_with(l_mesh(), face=upright_face(l_mesh())),
            domain="kitchen",
            goal="(on thing tray)",
            seed=3,
        )
        assert result.plan is not None
        tk.save_plan(result.plan, tmp_path / f"{number}.json")
        texts.append((tmp_path / f"{number}.json").read_bytes())
    assert texts[0] == texts[1]


def test_a_failing_sampler_ends_planning_with_its_name() -> None:
    """An error in a user sampler propagates, with the name of the sampler."""

    def failing_sampler(request: GraspRequest) -> list[Grasp]:
        raise KeyError(request.object)

    samplers = tk.Samplers().with_grasps(failing_sampler, of_class="movable")
    with pytest.raises(
        SamplerError, match=r"failing_sampler' fails for 'thing': KeyError: 'thing'"
    ):
        tk.plan(
            scene_with(l_mesh(), face=upright_face(l_mesh())),
            domain="blocks",
            goal="(ontable thing table__-2__2)",
            options=tk.PlanningOptions(samplers=samplers),
        )


def test_the_example_of_own_samplers_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example plans with two user samplers, and its plan is valid."""
    path = Path(__file__).parents[2] / "examples" / "own_sampler.py"
    specification = importlib.util.spec_from_file_location("own_sampler", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["own_sampler"])
    module.main()
    output = capsys.readouterr().out
    assert "grasp by the neck at" in output
    assert "ValidationReport(valid" in output


def test_a_cup_carries_a_mesh_by_a_flat_face() -> None:
    """The UR5 grasps a lying L from above at its flat side, also in simulation."""
    standing = l_mesh(0.16, 0.06)
    lying = tk.Mesh(
        np.asarray(standing.vertices)[:, [0, 2, 1]], np.asarray(standing.faces)[:, ::-1]
    )
    tray = tk.AttachedShape(tk.Box([0.25, 0.25, 0.01]))
    scene = tk.load_scene("ur5_table")
    scene = scene.add_frame(
        "tray", "table", pose=Pose([-0.15, 0.3, TOP + 0.005]), classes=["region"], shapes=[tray]
    )
    on_table = Pose.from_rpy([-0.15, -0.25, TOP + 1e-4], [0.0, 0.0, 0.3])
    scene = scene.add_frame(
        "thing",
        "table",
        pose=on_table,
        joint=tk.Free(),
        classes=["movable"],
        shapes=[tk.AttachedShape(lying)],
    )
    centre = centre_of_mass(scene, "thing")
    scene = scene.set_inertia("thing", tk.Inertia(0.1, centre, matrix=1e-4 * np.eye(3)))
    result = tk.plan(scene, domain="kitchen", goal="(on thing tray)", robot="ur5")
    assert result.plan is not None, result.explanation
    assert "on flat place" in result.plan.steps[0].choice
    assert tk.validate_plan(result.plan).is_valid
    assert simulate(result.plan).is_successful


def test_a_user_sampler_invalidates_the_proof() -> None:
    """A box too wide for the hand is proved ungraspable only without a user sampler."""
    scene = scene_with(tk.Box([0.09] * 3), face=upright_face(tk.Box([0.09] * 3)))
    assert (
        tk.plan(scene, domain="kitchen", goal="(on thing tray)").status
        is tk.PlanStatus.PROVED_UNSOLVABLE
    )

    def at_a_corner(request: GraspRequest) -> list[Grasp]:
        return [Grasp(Pose.from_rpy([0.0, 0.0, 0.0], [math.pi, 0.0, 0.0]), 0.078, "too wide")]

    samplers = tk.Samplers().with_grasps(at_a_corner, of_class="movable")
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(on thing tray)",
        options=tk.PlanningOptions(samplers=samplers, max_iterations=1),
    )
    assert result.status is tk.PlanStatus.NO_PLAN_WITHIN_LIMITS
