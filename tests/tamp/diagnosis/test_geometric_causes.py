"""The one reason behind many failures: it is given where it holds, and nowhere else."""

from __future__ import annotations

import math
import re

import numpy as np
import trimesh
from hypothesis import assume, given, settings, strategies as st
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY
from support.tamp_problems import CUBE, add_block, blocked_problem, clutter_problem, table_scene

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Mesh, Prismatic, SceneGraph
from tmkit.manipulation import Samplers, SeededSamplers, grasps_of
from tmkit.motion import CollisionRules, RrtConnect
from tmkit.motion.regions.solids import solid_points
from tmkit.plans import ObjectAt
from tmkit.robots import Manipulator, load_manipulator
from tmkit.tamp import PlanStatus
from tmkit.tamp.geometric_causes import (
    explain_blocked_grasps,
    explain_enclosed_arm,
    explain_narrow_gap,
)

LID = ((-0.05, -0.05, 0.08), (0.05, 0.05, 0.1))


def two() -> SceneGraph:
    """Return two blocks on a table."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.2)


def no_room(scene: SceneGraph, object: str = "a") -> str | None:
    """Return the proof that the hand has no room at an object."""
    q = GANTRY.ready_configuration(scene)
    grasps = grasps_of(scene, object, robot=GANTRY)
    return explain_blocked_grasps(scene, q, object, grasps=grasps, robot=GANTRY, approach=0.08)


def enclose(scene: SceneGraph) -> str | None:
    """Return that the arm does not get away from its start."""
    q = GANTRY.ready_configuration(scene)
    rules = CollisionRules.from_start(GANTRY, scene, q=q)
    return explain_enclosed_arm(
        scene, q, rules=rules, motion_planner=RrtConnect(), max_iterations=1000, seed=3
    )


def test_a_hand_without_room_is_told_what_stands_there() -> None:
    """Under a lid there is none, beside it there is; the lid is named, and the table is not."""
    covered = with_box(two(), "lid", *LID)
    reason = no_room(covered)
    assert reason is not None
    assert " grasps of 'a' collide with 'lid', which never moves" in reason
    assert "in every configuration of 'gantry'" in reason
    assert no_room(covered, "b") is None
    assert no_room(two()) is None


def test_what_can_be_moved_is_no_proof() -> None:
    """A movable thing over the object may be taken away, and a drawer over it may be opened."""
    lower, upper = np.array(LID)
    shapes = [AttachedShape(Box((upper - lower).tolist()))]
    pose = tk.Pose(((lower + upper) / 2).tolist())
    fixed = two().add_frame("thing", "world", pose=pose, shapes=shapes)
    assert no_room(fixed) is not None
    assert (
        no_room(two().add_frame("thing", "world", pose=pose, classes=["movable"], shapes=shapes))
        is None
    )
    drawer = Prismatic([1, 0, 0], lower=0.0, upper=0.4, name="drawer")
    assert (
        no_room(two().add_frame("thing", "world", pose=pose, shapes=shapes, joint=drawer)) is None
    )


def test_what_holds_of_a_hull_alone_is_no_proof() -> None:
    """In a wide bin without a lid there is room; the cause names its convex hull."""
    walls = [
        trimesh.creation.box(bounds=bounds)
        for bounds in (
            ((-0.3, -0.3, 0.0), (-0.28, 0.3, 0.25)),
            ((0.28, -0.3, 0.0), (0.3, 0.3, 0.25)),
            ((-0.28, -0.3, 0.0), (0.28, -0.28, 0.25)),
            ((-0.28, 0.28, 0.0), (0.28, 0.3, 0.25)),
        )
    ]
    bin_of_walls = trimesh.util.concatenate(walls)
    shape = AttachedShape(Mesh(bin_of_walls.vertices, bin_of_walls.faces))
    reason = no_room(two().add_frame("bin", "world", shapes=[shape]))
    assert reason is not None
    assert "collide with 'bin', which never moves" in reason
    assert re.search(
        r"; \d+ would have room if meshes were not checked as their convex hulls$", reason
    )
    assert "configuration of" not in reason
    assert "in every configuration of 'gantry'" in str(
        no_room(with_box(two().add_frame("bin", "world", shapes=[shape]), "lid", *LID))
    )


def test_neighbours_that_do_not_move_leave_no_room_for_fingers() -> None:
    """Walls close to all sides of a block are all in the way, each of some grasps."""
    scene, half = two(), BLOCK / 2
    for name, x, y in (("east", 1, 0), ("west", -1, 0), ("north", 0, 1), ("south", 0, -1)):
        middle, thick = np.array([x, y]) * (half + 0.02), np.array([abs(x), abs(y)]) * -0.045 + 0.05
        lower, upper = (*(middle - thick), 0.001), (*(middle + thick), 0.1)
        scene = with_box(scene, name, lower, upper)  # type: ignore[arg-type]  # three numbers each
    reason = no_room(scene)
    assert reason is not None
    assert all(f"'{name}'" in reason for name in ("east", "north", "south", "west"))


def test_an_arm_that_gets_about_is_not_enclosed() -> None:
    """In an open scene most configurations are reached; the result is repeatable."""
    assert enclose(two()) is None


def test_an_arm_between_walls_is_enclosed() -> None:
    """If walls enclose the hand, few configurations are reached, and the walls are named."""
    scene = two()
    x, y, z = scene.pose(
        "hand", relative_to="world", q=GANTRY.ready_configuration(scene)
    ).translation
    scene = with_box(scene, "floor", (x - 0.2, y - 0.2, z - 0.3), (x + 0.2, y + 0.2, z - 0.29))
    for name, dx, dy in (
        ("north", 0.0, 0.16),
        ("south", 0.0, -0.16),
        ("east", 0.16, 0.0),
        ("west", -0.16, 0.0),
    ):
        half = (0.01, 0.17) if dx else (0.17, 0.01)
        lower, upper = (
            (x + dx - half[0], y + dy - half[1], z - 0.28),
            (x + dx + half[0], y + dy + half[1], z + 0.6),
        )
        scene = with_box(scene, name, lower, upper)
    reason = enclose(scene)
    assert reason is not None
    assert "the start configuration is enclosed: of 16 free configurations" in reason
    assert "obstacles on the straight paths" in reason
    assert reason == enclose(scene)


def test_causes_are_in_the_diagnosis() -> None:
    """The cause is in the data and in the text."""
    result = tk.plan(
        with_box(two(), "lid", *LID),
        goal="(on a b)",
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=1, suggest=False),
    )
    (cause,) = result.diagnosis.causes
    assert cause in result.explanation
    assert result.to_dict()["diagnosis"]["causes"] == [cause]


# --- gaps narrower than a finger


def gap_cause(scene: SceneGraph, object: str = "target", robot: str = "panda") -> str | None:
    """Return that the gaps beside an object are narrower than a finger."""
    arm = load_manipulator(robot)
    sampling = SeededSamplers(Samplers(), arm)
    return explain_narrow_gap(
        scene, arm.ready_configuration(scene), object, robot=arm, sampling=sampling
    )


def thickness_beside(scene: SceneGraph, arm: Manipulator, *, width: float, depth: float) -> float:
    """Return the thickness of the thinnest finger along y of the tool, above a height.

    Every two vertices of a link make a segment, which lies in its hull: where segments cross the
    level are the corners of the section.
    """
    q, bounds = scene.configuration(arm.finger_values(width)), []
    for link in arm.contact_links:
        pose = scene.pose(link, relative_to=arm.tool, q=q)
        clouds = [
            pose.apply(solid_points(attached))
            for attached in scene.shapes(link)
            if attached.collision
        ]
        values: list[float] = []
        for points in clouds:
            low, high = points[points[:, 2] >= -depth], points[points[:, 2] < -depth]
            values += low[:, 1].tolist()
            if len(low) and len(high):
                share = (-depth - high[:, None, 2]) / (low[None, :, 2] - high[:, None, 2])
                values += (
                    (high[:, None, 1] + share * (low[None, :, 1] - high[:, None, 1]))
                    .ravel()
                    .tolist()
                )
        bounds.append(max(values) - min(values))
    return min(bounds)


def test_clutter_closer_than_a_finger_is_told_so_by_the_thickness_of_the_finger() -> None:
    """Blocks of 5 cm with gaps of 1 cm have no grasp; the fingers overlap them by 4 mm."""
    scene, panda = clutter_problem(3, gap=0.01).scene, load_manipulator("panda")
    cause = gap_cause(scene)
    thick = thickness_beside(scene, panda, width=CUBE, depth=0.004)
    assert cause is not None
    assert (
        f"need a gap of at least {math.floor(1e4 * thick) / 10:.1f} mm beside it, the thickness of"
        " a finger" in cause
    )
    assert "the gaps to 'c01', 'c10', 'c12' and 'c21' are 10.0 mm" in cause
    assert "none of these 9 objects has a free grasp before another" in cause
    corner = gap_cause(scene, "c00")
    assert corner is not None
    assert "the gaps to 'c01' and 'c10' are 10.0 mm" in corner


@settings(max_examples=12, deadline=None)
@given(st.floats(0.002, 0.03))
def test_gaps_decide_as_the_thickness_says(gap: float) -> None:
    """Just when a finger and its clearance do not fit, there is a cause."""
    scene = clutter_problem(3, gap=gap).scene
    needed = thickness_beside(scene, load_manipulator("panda"), width=CUBE, depth=0.004) + 0.002
    assume(abs(gap - needed) > 2e-4)
    assert (gap_cause(scene) is not None) == (gap < needed)


def test_what_can_be_moved_first_is_no_cause() -> None:
    """Round, crossed and aligned neighbours leave different grasps free."""
    assert gap_cause(blocked_problem().scene) is None
    row = table_scene()
    for k, name in enumerate(("c0", "target", "c1")):
        row = add_block(row, name, 0.5 + 0.055 * k, 0.0)
    assert gap_cause(row) is None
    large = add_block(table_scene(), "target", 0.5, 0.0)
    for k, (dx, dy) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        large = add_block(large, f"w{k}", 0.5 + dx * 0.085, dy * 0.085, size=(0.1, 0.1, 0.05))
    cause = gap_cause(large)  # neighbours that no hand takes
    assert cause is not None
    assert "none of these 5 objects" in cause


def test_other_hands_have_other_fingers() -> None:
    """The fingers of an xArm are thin at their ends and as thick as a Panda's where they hold."""
    scene = tk.load_scene("xarm_table").set_classes("table", ("surface",))
    for k, name in enumerate(("c0", "c1", "c2", "c3", "target", "c5", "c6", "c7", "c8")):
        scene = add_block(scene, name, 0.34 + 0.06 * (k // 3), -0.06 + 0.06 * (k % 3))
    cause = gap_cause(scene, robot="xarm")
    assert cause is not None
    thick = re.search(r"at least ([\d.]+) mm beside it", cause)
    assert thick is not None
    assert (
        abs(
            float(thick[1])
            - 1000 * thickness_beside(scene, load_manipulator("xarm"), width=CUBE, depth=0.004)
        )
        < 0.2
    )


def test_a_clutter_with_narrow_gaps_is_refuted() -> None:
    """Too narrow gaps for every grasp are a proof that names the object and its neighbours."""
    problem = clutter_problem(3, gap=0.01)
    result = tk.plan(
        problem.scene,
        domain="kitchen",
        goal=problem.goal,
        options=tk.PlanningOptions(max_iterations=1, suggest=False),
    )
    assert result.status is PlanStatus.PROVED_UNSOLVABLE
    assert "'target' has to be picked, and no grasp of the list of" in result.explanation
    assert "of which none can be picked first" in result.explanation


def test_a_hand_that_would_be_in_the_support_is_told() -> None:
    """A bowl held by its rim cannot be placed upside down: the hand would be below it."""
    scene = tk.load_scene("panda_table", "dishes")
    for other in ("mug", "bottle", "box", "pan"):
        scene = scene.remove_frame(other, subtree=True)
    pose = tk.Pose.from_rpy([0.0, 0.0, 0.061], [math.pi, 0.0, 0.4])
    goal = ["(handempty)", ObjectAt("bowl", pose, relative_to="tray", metres=0.02, radians=0.5)]
    result = tk.plan(
        scene,
        domain="kitchen",
        goal=goal,
        robot="panda",
        seed=0,
        options=tk.PlanningOptions(max_iterations=2),
    )
    assert result.plan is None
    assert (
        "poses for 'bowl', the hand that places it collides with 'table' and 'tray'"
        in result.explanation
    )
    assert "use another grasp" in result.explanation
