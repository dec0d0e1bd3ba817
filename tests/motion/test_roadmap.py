"""Roadmaps: their paths are free in the version of the query."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.blocks import blocks_scene, with_box
from support.edited_arm import apply_edit, arm_with_things, edits
from support.effort import scaled_examples
from support.gantry import JOINTS

import tmkit as tk
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import Box, Continuous, Revolute, SceneGraph, Sphere
from tmkit.motion import (
    CollisionWorld,
    PathResult,
    PathSettings,
    PathStatus,
    Roadmap,
    recheck_path,
    search_path,
)

ARM = ("base", "upper", "lower")
HALF = np.pi / 2
CORNERS = [
    (0, 0, 0, 0),
    (HALF, 0.6, 0.9, 0),
    (-HALF, 0.8, -0.4, 0),
    (2.5, -0.7, 1.2, 0.05),
    (0, 1.0, 0.4, 0.05),
]


def check(world: CollisionWorld, joints: tuple[str, ...], path: NDArray[np.float64]) -> None:
    """Each motion of a path is proved free by the search, and passes a sampled check."""
    for a, b in pairwise(path):
        tries = [
            search_path(world, joints, start=p, goals=q, settings=PathSettings(max_iterations=0))
            for p, q in ((a, b), (b, a))
        ]
        assert PathStatus.SOLVED in [result.status for result in tries]
    assert recheck_path(world, path, resolution=0.003).is_ok


@settings(max_examples=scaled_examples(1), deadline=None)
@given(st.data())
def test_paths_are_free_in_the_version_of_the_query(data: st.DataObject) -> None:
    """This holds after random edits, in all versions, for any ends and other joints."""
    margin, pair_margins = (
        data.draw(st.sampled_from([0.0, 0.02])),
        {("lower", "cup"): 0.05, ("tip", "new"): 0.01},
    )
    options = {"movable": ["cup", "tray"], "margin": margin}
    roadmap = Roadmap(ARM, pair_margins=pair_margins, **options)
    scenes = [arm_with_things()]
    for _ in range(data.draw(st.integers(2, 8))):
        scene = data.draw(st.sampled_from(scenes[-3:]))
        for edit in data.draw(st.lists(edits, max_size=2)):
            scene = apply_edit(scene, edit)
        scenes.append(scene)
        start, goal = data.draw(
            st.lists(st.sampled_from(CORNERS), min_size=2, max_size=2, unique=True)
        )
        result = roadmap.search(scene, start=start, goals=goal, max_iterations=100)
        world = CollisionWorld(
            scene,
            margin=margin,
            movable=[name for name in ("cup", "tray") if name in scene],
            pair_margins={
                p: value for p, value in pair_margins.items() if p[0] in scene and p[1] in scene
            },
        )
        if result.status is not PathStatus.SOLVED:
            new = search_path(
                world, ARM, start=start, goals=goal, settings=PathSettings(max_iterations=100)
            )
            assert result.status is new.status
            continue
        assert result.path[0].tolist() == list(start)
        assert result.path[-1, :3].tolist() == list(goal)[:3]
        assert np.ptp(result.path[:, 3]) == 0.0
        check(world, ARM, result.path)


def halfway(path: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the middle of the motion in the middle of a path."""
    middle: NDArray[np.float64] = path[(len(path) - 2) // 2 :][:2].mean(axis=0)
    return middle


class Table:
    """Gantry with the query around a wall across the table, and further obstacles."""

    def __init__(self) -> None:
        self.scene = with_box(blocks_scene({}), "wall", (-0.5, -0.02, 0.0), (0.3, 0.02, 0.4))
        self.start = self.scene.configuration({"x": 0.0, "y": -0.3, "z": 0.6, "finger": 0.03})
        self.goal = self.scene.configuration({"x": 0.0, "y": 0.3, "z": 0.6})
        self.margins = {(name, "table"): -1.0 for name in ("wall", "block")}

    def search(self, roadmap: Roadmap, scene: SceneGraph) -> PathResult:
        """Search for a path, and check it."""
        result = roadmap.search(scene, start=self.start, goals=self.goal, seed=7)
        assert result.status is PathStatus.SOLVED
        margins = {
            (a, b): margin for (a, b), margin in self.margins.items() if a in scene and b in scene
        }
        check(CollisionWorld(scene, pair_margins=margins), JOINTS, result.path)
        return result

    def across(self, path: NDArray[np.float64]) -> SceneGraph:
        """Return the scene with a ball at the position of the tool halfway along a path."""
        place = self.scene.pose("tool", q=halfway(path)).translation
        return self.scene.add_frame("block", "world", pose=tk.Pose(place), shapes=[Sphere(0.03)])


def test_a_path_is_reused_until_it_is_blocked() -> None:
    """A change elsewhere keeps the path, an obstacle leads to another, its removal restores it."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    first = table.search(roadmap, table.scene)
    assert first.iterations > 0
    moved_scene = table.scene.add_frame(
        "block", "world", pose=tk.Pose([0.4, -0.4, 0.0]), shapes=[Box([0.02] * 3)]
    )
    again = table.search(roadmap, moved_scene)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.path, first.path)
    blocked = table.across(first.path)
    around = table.search(roadmap, blocked)
    assert not recheck_path(CollisionWorld(blocked, pair_margins=table.margins), first.path).is_ok
    assert around.path.tobytes() != first.path.tobytes()
    assert table.search(roadmap, blocked).iterations == 0
    back = table.search(roadmap, table.scene)
    assert back.iterations == 0
    assert back.length <= first.length


def test_a_straight_line_is_used_after_an_obstacle_is_removed() -> None:
    """The path around a wall is reused until the wall moves, also with changes elsewhere."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    first = table.search(roadmap, table.scene)
    assert first.straight_pair is not None
    assert "wall" in first.straight_pair
    moved_scene = table.scene.add_frame(
        "block", "world", pose=tk.Pose([0.4, -0.4, 0.0]), shapes=[Box([0.02] * 3)]
    )
    assert table.search(roadmap, moved_scene).straight_pair == first.straight_pair
    lower = table.search(roadmap, moved_scene.set_pose("wall", tk.Pose([0.0, 0.0, -0.5])))
    assert (lower.iterations, len(lower.path), lower.straight_pair) == (0, 2, None)
    again = table.search(roadmap, moved_scene)
    assert (again.iterations, again.goal_index, again.path.tolist()) == (0, 0, first.path.tolist())


def test_a_blocked_motion_stays_blocked_after_a_change_elsewhere() -> None:
    """A motion that was not free is checked again with all frames, not only with changed ones."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    blocked = table.across(table.search(roadmap, table.scene).path)
    table.search(roadmap, blocked)
    # whose shortest way is the first path
    table.start = table.scene.configuration({"x": -0.01}, base=table.start)
    table.search(
        roadmap,
        blocked.add_frame("far", "world", pose=tk.Pose([0.4, -0.4, 0.0]), shapes=[Sphere(0.01)]),
    )


@pytest.mark.parametrize("change", ["on a tray", "allowed", "with a margin"])
def test_all_kinds_of_changes_count(change: str) -> None:
    """Moved descendants, forbidden contacts and larger margins are changes."""
    table = Table()
    table.margins[("hand", "block")] = 0.15 if change == "with a margin" else 0.0
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    path = table.search(roadmap, table.scene).path
    place = table.scene.pose("tool", q=halfway(path))
    match change:
        case "on a tray":
            before = table.scene.add_frame("tray", "world", pose=tk.Pose([9.0, 0.0, 0.0]))
            before = before.add_frame("block", "tray", shapes=[Sphere(0.03)])
            after = before.set_pose("tray", tk.Pose(place.translation))
        case "allowed":
            after = before = table.across(path)
            for frame in ("hand", "left_finger", "right_finger"):
                before = before.allow_collision(frame, "block")
        case _:
            before = table.scene
            position = tk.Pose(np.add(place.translation, [0.0, 0.0, 0.3]))
            after = before.add_frame("block", "world", pose=position, shapes=[Sphere(0.03)])
    assert table.search(roadmap, before).iterations == 0
    table.search(roadmap, after)


def test_another_value_of_a_fixed_joint_is_a_change() -> None:
    """Fingers that are wider open than before do not fit through a slot."""
    slot = with_box(blocks_scene({}), "left", (-0.6, -0.02, 0.0), (-0.03, 0.02, 0.14))
    slot = with_box(slot, "right", (0.03, -0.02, 0.0), (0.6, 0.02, 0.14))
    slot = with_box(slot, "above", (-0.6, -0.02, 0.25), (0.6, 0.02, 0.9))
    roadmap = Roadmap(JOINTS, pair_margins={(name, "table"): -1.0 for name in ("left", "right")})
    start = slot.configuration({"x": 0.0, "y": -0.3, "z": 0.6, "turn": HALF, "finger": 0.01})
    behind = slot.configuration({"x": 0.1, "y": 0.3}, base=start)
    first = roadmap.search(slot, start=start, goals=behind)
    assert first.status is PathStatus.SOLVED
    assert len(first.path) > 2
    wide = slot.configuration({"finger": 0.04}, base=start)
    assert (
        roadmap.search(slot, start=wide, goals=behind, max_iterations=0).status
        is PathStatus.NO_PATH
    )
    assert (
        roadmap.search(slot, start=start, goals=behind, max_iterations=0).status
        is PathStatus.SOLVED
    )


def test_other_ends_are_connected_to_the_roadmap() -> None:
    """A path from near the start to near the goal uses the stored path and ends at the goal."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    table.search(roadmap, table.scene)
    table.start = table.scene.configuration({"x": 0.02, "y": -0.32}, base=table.start)
    table.goal = table.scene.configuration({"x": -0.03, "y": 0.31}, base=table.goal)
    result = table.search(roadmap, table.scene)
    assert result.iterations == 0
    assert result.path[-1, :4].tolist() == table.goal[:4].tolist()


def test_stored_paths_are_tried_in_order_before_a_search() -> None:
    """The first free path is returned, or connected to other ends and shortened."""
    table = Table()
    world = CollisionWorld(table.scene, pair_margins={("wall", "table"): -1.0})
    path = search_path(
        world, JOINTS, start=table.start, goals=table.goal, settings=PathSettings(seed=7)
    ).path
    blocked = np.array([table.start, (table.start + table.goal) / 2, table.goal])
    # whose ends are joined through the wall, nothing, the start alone
    turned = [path[::-1], path[:0], path[:1]]
    result = search_path(
        world, JOINTS, start=table.start, goals=[table.goal], known=[blocked, *turned[1:], path]
    )
    assert (result.iterations, result.goal_index) == (0, 0)
    np.testing.assert_array_equal(result.path, path)
    start = table.scene.configuration({"x": 0.01, "y": -0.31}, base=table.start)
    joined = search_path(world, JOINTS, start=start, goals=table.goal, known=[path])
    assert joined.iterations == 0
    check(world, JOINTS, joined.path)
    assert joined.path[0].tolist() == start.tolist()
    searched = search_path(
        world,
        JOINTS,
        start=table.start,
        goals=table.goal,
        known=[blocked, *turned],
        settings=PathSettings(seed=7),
    )
    assert searched.iterations > 0
    np.testing.assert_array_equal(searched.path, path)
    with pytest.raises(ConfigurationError, match=r"known must have shape \(m, 5\), not \(\d+, 3\)"):
        search_path(world, JOINTS, start=table.start, goals=table.goal, known=[path[:, :3]])


def test_equal_queries_have_equal_paths() -> None:
    """Two roadmaps have the same paths, bit for bit."""
    table = Table()
    moved = table.across(
        table.search(Roadmap(JOINTS, pair_margins=table.margins), table.scene).path
    )

    def paths() -> list[bytes]:
        roadmap = Roadmap(JOINTS, pair_margins=table.margins)
        return [
            table.search(roadmap, scene).path.tobytes()
            for scene in (table.scene, moved, table.scene, moved)
        ]

    assert paths() == paths()


def test_unused_paths_are_dropped() -> None:
    """A roadmap does not exceed its size, and its paths stay valid."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins, max_nodes=16)
    rng = np.random.default_rng(0)
    for _ in range(40):
        (x, x_start), (y, beyond) = rng.uniform([-0.4, 0.2], [0.2, 0.4], (2, 2))
        table.start = table.scene.configuration({"x": x, "y": -x_start}, base=table.start)
        table.goal = table.scene.configuration({"x": y, "y": beyond}, base=table.goal)
        table.search(roadmap, table.scene)
        assert len(roadmap) <= 16


def test_a_free_goal_is_reached() -> None:
    """Goals in collision are ignored, and the nearest of the others is reached."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    goals = [table.scene.configuration({"y": 0.0, "z": 0.6}), table.goal]
    for expected in (True, False):
        result = roadmap.search(table.scene, start=table.start, goals=goals)
        assert (result.iterations > 0) == expected
        np.testing.assert_array_equal(result.path[-1, :4], table.goal[:4])


def test_continuous_joints_are_equal_after_whole_turns() -> None:
    """A path is reused from a start that is whole turns away, by the shorter rotation."""
    scene = SceneGraph().add_frame(
        "post", "world", pose=tk.Pose([0.5, 0.0, 0.3]), shapes=[Box([0.1, 0.1, 0.6])]
    )
    scene = scene.add_frame("turn", "world", joint=Continuous([0, 0, 1]))
    scene = scene.add_frame("tilt", "turn", joint=Revolute([0, -1, 0], lower=-0.1, upper=1.3))
    scene = scene.add_frame(
        "rod", "tilt", pose=tk.Pose([0.3, 0.0, 0.1]), shapes=[Box([0.5, 0.04, 0.04])]
    )
    roadmap, world = Roadmap(("turn", "tilt")), CollisionWorld(scene)
    goal = [1.2, 0.0]
    first = roadmap.search(scene, start=[-1.3, 0.0], goals=goal)
    assert first.iterations > 0
    for turns in (-2, 0, 3):
        start = [-1.3 + turns * 2 * np.pi, 0.0]
        result = roadmap.search(scene, start=start, goals=goal)
        check(world, ("turn", "tilt"), result.path)
        assert result.path[0].tolist() == start
        assert result.iterations == 0
        assert result.length <= first.length + 1e-9
        assert abs((result.path[-1, 0] - 1.2) / (2 * np.pi) - turns) < 1e-9


def test_invalid_ends_have_the_status_of_a_search() -> None:
    """Collisions and limits have their status, and the roadmap does not change."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    inside = table.scene.configuration({"y": 0.0, "z": 0.6})
    assert (
        roadmap.search(table.scene, start=inside, goals=table.goal).status
        is PathStatus.START_IN_COLLISION
    )
    assert (
        roadmap.search(table.scene, start=table.start, goals=inside).status
        is PathStatus.GOAL_IN_COLLISION
    )
    outside = table.scene.configuration({"x": 9.0})
    assert (
        roadmap.search(table.scene, start=table.start, goals=outside).status
        is PathStatus.GOAL_OUT_OF_LIMITS
    )
    assert len(roadmap) == 0


def test_invalid_arguments_are_rejected() -> None:
    """Scenes of other robots and configurations of wrong length or with NaN raise errors."""
    table = Table()
    roadmap = Roadmap(JOINTS, pair_margins=table.margins)
    table.search(roadmap, table.scene)
    with pytest.raises(UnknownNameError, match="'x'"):
        roadmap.search(arm_with_things(), start=[0.0] * 4, goals=[0.1] * 4)
    with pytest.raises(ConfigurationError, match="start must hold 5 numbers"):
        roadmap.search(table.scene, start=[0.0] * 3, goals=table.goal)
    with pytest.raises(ConfigurationError, match="max_nodes must be at least 16, got 3"):
        Roadmap(JOINTS, max_nodes=3)
    table.search(roadmap, table.scene)


def test_a_stored_path_of_many_joints_is_tried() -> None:
    """A path of 90 joints, more than constraints allow, is valid: a ball moves around a post."""
    scene = SceneGraph().add_frame("post", "world", shapes=[Box([0.1, 0.1, 0.1])])
    scene = scene.add_frame("along", "world", joint=tk.Prismatic([1, 0, 0], lower=-1, upper=1))
    scene = scene.add_frame("beside", "along", joint=tk.Prismatic([0, 1, 0], lower=-1, upper=1))
    scene = scene.set_shapes("beside", [Sphere(0.05)])
    for number in range(88):
        scene = scene.add_frame(
            f"idle{number}", "world", joint=Revolute([0, 0, 1], lower=-1, upper=1)
        )
    ends = [
        scene.configuration({"along": x, "beside": y})
        for x, y in ((-0.5, 0.0), (0.0, 0.5), (0.5, 0.0))
    ]
    result = search_path(
        CollisionWorld(scene),
        scene.joint_names,
        start=ends[0],
        goals=ends[2],
        known=[np.array(ends)],
    )
    assert (result.status, result.iterations) == (PathStatus.SOLVED, 0)
    np.testing.assert_array_equal(result.path, ends)
