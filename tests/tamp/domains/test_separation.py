"""Proofs that no hand gets to an object: given for closed cages, and never where a way is left."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.effort import scaled_examples
from support.tamp_problems import CUBE, PROBLEMS, add_block, add_box, table_scene

import tmkit as tk
from tmkit.graph import AttachedShape, Mesh, Prismatic, SceneGraph
from tmkit.pddl import Fact
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp import Infeasibility, ObjectToMove, PlanStatus
from tmkit.tamp.domains.separation import prove_separated

PANDA = load_manipulator("panda")
X = 0.5  # where the block is


def block() -> SceneGraph:
    """Return a table with a block and a mat."""
    scene = add_box(table_scene(), "mat", (0.12, 0.12, 0.002), (X, 0.4, 0.001), ("region",))
    return add_block(scene, "a", X, 0.0)


def walls(
    half: float, high: float, *, thick: float = 0.01
) -> dict[str, tuple[list[float], list[float]]]:
    """Return sizes and centres of four walls and a lid, relative to a point of the table."""
    boxes = {"lid": ([2 * (half + thick)] * 2 + [thick], [0.0, 0.0, high + thick / 2])}
    for name, x, y in (("east", 1, 0), ("west", -1, 0), ("north", 0, 1), ("south", 0, -1)):
        size = [thick if x else 2 * (half + thick), thick if y else 2 * half, high]
        boxes[name] = size, [x * (half + thick / 2), y * (half + thick / 2), high / 2]
    return boxes


def cage_scene(
    scene: SceneGraph,
    parts: dict[str, tuple[list[float], list[float]]],
    *,
    x: float = X,
    y: float = 0.0,
) -> SceneGraph:
    """Add bodies that stand still around a point of the table."""
    for name, (size, centre) in parts.items():
        scene = add_box(scene, name, size, [x + centre[0], y + centre[1], centre[2]])
    return scene


def proof(
    scene: SceneGraph, *, regions: tuple[str, ...] = ("mat",), q: NDArray[np.float64] | None = None
) -> str | None:
    """Return the proof that the block cannot be handled."""
    handled = ObjectToMove("a", Fact.of("on", "a", "mat"), regions)
    q = PANDA.ready_configuration(scene) if q is None else q
    infeasibility: Infeasibility | None = prove_separated(scene, handled, q=q, robot=PANDA)
    return None if infeasibility is None else infeasibility.cause


@pytest.mark.parametrize("half", [0.04, 0.06, 0.1, 0.14])
def test_a_closed_cage_is_proved_and_its_walls_are_named(half: float) -> None:
    """Tight or wide; any wall that is missing, movable or on a joint leaves a way."""
    parts = walls(half, 0.12)
    scene = cage_scene(block(), parts)
    cause = proof(scene)
    assert cause is not None
    assert "'a' has to be touched, and static bodies enclose it" in cause
    assert "'lid'" in cause or "'east'" in cause
    for name in parts:
        assert proof(scene.set_shapes(name, ())) is None
    assert proof(scene.set_classes("lid", ["movable"])) is None
    slides = scene.remove_frame("lid").add_frame(
        "lid",
        "world",
        pose=Pose([X, 0.0, 0.125]),
        shapes=scene.shapes("lid"),
        joint=Prismatic([1, 0, 0], name="lid"),
    )
    assert proof(slides, q=PANDA.ready_configuration(slides)) is None


def test_a_place_behind_walls_is_proved() -> None:
    """An object is free, and no hand gets to the region where it is wanted."""
    scene = cage_scene(block(), walls(0.15, 0.2), y=0.4)
    cause = proof(scene)
    assert cause is not None
    assert cause.startswith("'a' on 'mat' has to be touched")
    assert proof(scene.set_shapes("lid", ())) is None
    other = add_box(scene, "other", (0.12, 0.12, 0.002), (X, -0.4, 0.001), ("region",))
    assert proof(other, regions=("mat", "other")) is None
    assert proof(other, regions=()) is None


def test_a_bin_of_one_mesh_counts_by_its_triangles() -> None:
    """A mesh without a lid is open, although its hull is closed; with a lid it is closed."""
    for names, is_proved in (
        (("east", "west", "north", "south"), False),
        (tuple(walls(0.1, 0.15)), True),
    ):
        boxes = [
            trimesh.creation.box(size, trimesh.transformations.translation_matrix(centre))
            for size, centre in (walls(0.1, 0.15)[name] for name in names)
        ]
        mesh = trimesh.util.concatenate(boxes)
        shape = AttachedShape(Mesh(mesh.vertices, mesh.faces))
        scene = block().add_frame("bin", "world", pose=Pose([X, 0.0, 0.0]), shapes=[shape])
        assert (proof(scene) is not None) == is_proved


def test_a_hand_that_starts_inside_gets_there() -> None:
    """A cage around arm and object separates nothing."""
    scene = cage_scene(block(), walls(0.12, 0.16))
    assert proof(scene) is not None
    pose = scene.pose(
        "panda_hand", relative_to="world", q=PANDA.ready_configuration(scene)
    ).translation
    around = cage_scene(block(), walls(0.05, 0.1))
    for name in ("east", "west", "north", "south", "lid"):
        around = around.remove_frame(name)
    x, y, z = pose.tolist()
    closer = around.set_pose(
        "a", scene.pose("table", relative_to="world").inverse() @ Pose([x, y, CUBE / 2])
    )
    room = cage_scene(closer, walls(0.25, z + 0.15), x=x, y=y)
    assert proof(room) is None


def distance_to(
    parts: dict[str, tuple[list[float], list[float]]], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distances (n,) of points (n, 3) from boxes and from the table's top."""
    apart = [
        np.linalg.norm(np.maximum(np.abs(points - centre) - np.array(size) / 2, 0.0), axis=1)
        for size, centre in parts.values()
    ]
    return np.min([*apart, np.maximum(points[:, 2], 0.0)], axis=0)


@settings(max_examples=scaled_examples(0.08), deadline=None)
@given(
    half=st.floats(0.06, 0.12),
    high=st.floats(0.08, 0.15),
    side=st.sampled_from(["east", "west", "north", "south"]),
    gap=st.floats(0.004, 0.08),
    low=st.booleans(),
)
def test_gaps_through_which_a_ball_fits_are_never_closed(
    half: float, high: float, side: str, gap: float, low: bool
) -> None:
    """A gap above the table or below the lid leaves a straight line open if the ball fits.

    The ball has a diameter of 20.5 mm; gaps narrower than that by a cell are proved to be closed if
    the walls are farther from the block than the hand touches from the ball.
    """
    parts = walls(half, high)
    size, centre = parts[side]
    parts[side] = [*size[:2], high - gap], [*centre[:2], (high + (gap if low else -gap)) / 2]
    cause = proof(cage_scene(block(), parts))
    radius = 0.0105
    outward = np.array(centre[:2]) / np.linalg.norm(centre[:2])
    heights = np.linspace(0.0, high, 200)
    gaps = []
    for height in heights[np.abs(heights - CUBE / 2) < CUBE / 2 + 0.02]:
        start = np.array([*(outward * (CUBE / 2 + 0.012)), height])
        line = start + np.linspace(0.0, 0.3, 300)[:, None] * np.array([*outward, 0.0])
        gaps.append(float(np.min(distance_to(parts, line))) >= radius)
    if any(gaps):
        assert cause is None
    if gap < 0.011 and half > 0.1 and high > 0.11:
        assert cause is not None


def test_what_is_planned_is_not_refuted() -> None:
    """Shelves, cubbies, wells and neighbours that are solved are no cages."""
    for name in ("regrasp", "shelf1", "cubby", "blocked"):
        scene = PROBLEMS[name](0).scene
        for frame in tuple(scene.frames_of_class("movable"))[:1]:
            regions = tuple(scene.frames_of_class("region"))[:1]
            handled = ObjectToMove(frame, Fact.of("on", frame, "table"), regions)
            assert (
                prove_separated(scene, handled, q=PANDA.ready_configuration(scene), robot=PANDA)
                is None
            )


def test_plan_proves_it_after_its_first_iteration() -> None:
    """The status is a proof; under a lid that can be taken away there is none."""
    scene = cage_scene(block(), walls(0.08, 0.12))
    result = tk.plan(
        scene,
        domain="kitchen",
        goal="(on a mat)",
        options=tk.PlanningOptions(max_iterations=8, suggest=False),
    )
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert result.diagnosis.iterations == 1
    assert "static bodies enclose it" in result.explanation
    assert len(result.diagnosis.proofs) == 1
    assert tk.plan(scene, domain="kitchen", goal="(on a table)").is_solved
