"""Collision worlds moved between versions, which agree with new worlds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.edited_arm import SHAPES, THINGS, apply_edit, arm_with_things, edits, thing
from support.effort import scaled_examples

from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import Revolute, SceneGraph
from tmkit.motion import CollisionWorld, PathSettings, PathStatus, search_path
from tmkit.spatial import Pose

margins = st.dictionaries(
    st.tuples(st.sampled_from(["upper", "lower", *THINGS[:3]]), st.sampled_from(THINGS[3:])),
    st.sampled_from([0.0, 0.05, -0.02, -math.inf]),
    max_size=3,
)


def answers(world: CollisionWorld, q: np.ndarray) -> tuple[object, ...]:
    """Return all results of a world for a configuration."""
    nearest = world.nearest(q)
    rows = [*world.contacts(q), *([nearest] if nearest else [])]
    return (
        world.is_in_collision(q),
        world.find_collision(q) is None,
        [(c.frame_a, c.frame_b, c.distance, c.margin, *c.point, *c.normal) for c in rows],
        world.is_edge_free(q, q + 0.2, resolution=0.05),
    )


def kept_margins(
    margins: Mapping[tuple[str, str], float], scene: SceneGraph
) -> dict[tuple[str, str], float]:
    """Return the margins of frames that are in the scene."""
    return {
        pair: margin for pair, margin in margins.items() if pair[0] in scene and pair[1] in scene
    }


def check_like_new(
    world: CollisionWorld, margins: Mapping[tuple[str, str], float], seed: int
) -> None:
    """Compare a world with a new world of its version."""
    scene = world.scene
    new = CollisionWorld(
        scene,
        movable=world.movable,
        margin=world.margin,
        pair_margins=kept_margins(margins, scene),
        level=world.level,
    )
    for q in np.random.default_rng(seed).uniform(-2, 2, (3, len(scene.joint_names))):
        assert answers(world, q) == answers(new, q)
    assert world.pairs == new.pairs


@settings(max_examples=scaled_examples(2), deadline=None)
@given(st.data())
def test_moved_worlds_agree_with_new_worlds(data: st.DataObject) -> None:
    """After random edits, branches and changes of options, a world agrees with a new one."""
    scene = arm_with_things()
    first = {("upper", "cup"): 0.05, ("cup", "ball"): -math.inf, ("table", "post"): 0.01}
    world = CollisionWorld(
        scene,
        movable=["cup", "tray"],
        margin=data.draw(st.sampled_from([0.0, 0.03])),
        pair_margins=first,
    )
    worlds = [(world, first)]
    for step in range(data.draw(st.integers(1, 8))):
        for edit in data.draw(st.lists(edits, min_size=1, max_size=3)):
            scene = apply_edit(scene, edit)
        source, pair_margins = data.draw(st.sampled_from(worlds))
        given_margins = data.draw(st.one_of(st.none(), margins))
        movable = data.draw(st.one_of(st.none(), st.lists(thing, unique=True)))
        new_margins = kept_margins(pair_margins if given_margins is None else given_margins, scene)
        moved = source.moved_to(
            scene,
            movable=None if movable is None else [name for name in movable if name in scene],
            margin=data.draw(st.sampled_from([None, None, None, 0.02])),
            pair_margins=None if given_margins is None else new_margins,
        )
        check_like_new(moved, new_margins, step)
        worlds.append((moved, new_margins))
        scene = data.draw(st.sampled_from([scene, scene, source.scene]))
    for number, (moved, pair_margins) in enumerate(worlds):
        check_like_new(moved, pair_margins, number)


@settings(max_examples=scaled_examples(1), deadline=None)
@given(st.data())
def test_batches_agree_with_single_configurations(data: st.DataObject) -> None:
    """Pairs of shapes of all kinds agree, also half spaces and margins."""
    scene = arm_with_things()
    for edit in data.draw(st.lists(edits, min_size=1, max_size=6)):
        scene = apply_edit(scene, edit)
    for name in data.draw(st.lists(st.sampled_from(["base", "tip", "slide"]), unique=True)):
        scene = scene.set_shapes(name, [data.draw(st.sampled_from(list(SHAPES.values())))])
    world = CollisionWorld(scene, margin=data.draw(st.sampled_from([0.0, 0.03, -0.02])))
    qs = np.random.default_rng(data.draw(st.integers(0, 99))).uniform(
        -2, 2, (37, len(scene.joint_names))
    )
    singly = [world.is_in_collision(q) for q in qs]
    assert world.in_collision_batch(qs).tolist() == singly


def is_proved(world: CollisionWorld, path: np.ndarray) -> bool:
    """Return whether each motion of a path is proved free, in one of its directions."""

    def is_free(start: np.ndarray, goal: np.ndarray) -> bool:
        result = search_path(
            world,
            world.scene.joint_names,
            start=start,
            goals=goal,
            settings=PathSettings(max_iterations=0),
        )
        return result.status is PathStatus.SOLVED

    return all(is_free(a, b) or is_free(b, a) for a, b in pairwise(path))


@settings(max_examples=scaled_examples(2), deadline=None)
@given(st.data())
def test_still_free_paths_are_free(data: st.DataObject) -> None:
    """For two versions in either order, a still free path is proved free again."""
    scene, options = (
        arm_with_things(),
        {"movable": ["cup", "tray"], "margin": data.draw(st.sampled_from([0.0, 0.03]))},
    )
    first_margins = {("upper", "cup"): 0.05, ("cup", "ball"): -math.inf, ("table", "post"): 0.01}
    worlds = [(CollisionWorld(scene, pair_margins=first_margins, **options), first_margins)]
    for _ in range(data.draw(st.integers(1, 4))):
        scene = data.draw(st.sampled_from([world.scene for world, _ in worlds]))
        for edit in data.draw(st.lists(edits, min_size=1, max_size=2)):
            scene = apply_edit(scene, edit)
        changed = data.draw(st.one_of(st.none(), margins))
        pair_margins = kept_margins(first_margins if changed is None else changed, scene)
        worlds.append((worlds[0][0].moved_to(scene, pair_margins=pair_margins), pair_margins))
    ends = np.random.default_rng(data.draw(st.integers(0, 99))).uniform(-1, 1, (2, 4))
    ends[:, 3] = 0.05
    for before, _ in worlds:
        result = search_path(
            before,
            before.scene.joint_names,
            start=ends[0],
            goals=ends[1],
            settings=PathSettings(max_iterations=200),
        )
        for now, pair_margins in worlds:
            if result.status is PathStatus.SOLVED and now.is_still_free(
                result.path, proved_in=before
            ):
                movable = [name for name in options["movable"] if name in now.scene]
                new = CollisionWorld(
                    now.scene, pair_margins=pair_margins, movable=movable, margin=options["margin"]
                )
                assert is_proved(new, result.path)
            differing = now.changed_frames(before)
            if differing is not None:
                alike = [
                    [c for c in contacts if differing.isdisjoint((c.frame_a, c.frame_b))]
                    for contacts in (now.contacts(ends[0]), before.contacts(ends[0]))
                ]
                lists = [
                    [(c.frame_a, c.frame_b, c.distance, c.margin) for c in contacts]
                    for contacts in alike
                ]
                assert sorted(lists[0]) == sorted(lists[1])


def test_a_path_stays_free_until_it_is_blocked() -> None:
    """Changes elsewhere, in the way, of a link or a rule, and too many changes, are detected."""
    scene = arm_with_things().add_frame(
        "new", "world", pose=Pose([0, 0, 5]), shapes=[SHAPES["ball"]]
    )
    world = CollisionWorld(scene, movable=list(THINGS))
    path = np.array([[2.5, -1.0, -1.0, 0.0], [3.0, -1.0, -1.0, 0.0]])
    assert (
        search_path(world, scene.joint_names, start=path[0], goals=path[1]).path.tolist()
        == path.tolist()
    )
    middle = scene.pose("lower", relative_to="world", q=path.mean(axis=0)) @ Pose([0, 0, 0.3])
    elsewhere = world.moved_to(scene.set_pose("new", Pose([0, 0, 6])))
    across = world.moved_to(scene.set_pose("new", Pose(middle.translation)))
    assert elsewhere.is_still_free(path, proved_in=world)
    assert elsewhere.changed_frames(world) == world.changed_frames(elsewhere) == {"new"}
    assert not across.is_still_free(path, proved_in=world)
    assert not across.is_still_free(path, proved_in=elsewhere)
    # where it stood when the structures were made
    assert world.is_still_free(path, proved_in=across)
    assert elsewhere.is_still_free(path, proved_in=across)
    allowed = across
    for link in ("upper", "lower"):
        allowed = allowed.moved_to(allowed.scene.allow_collision(link, "new"))
    assert allowed.is_still_free(path, proved_in=world)
    assert not across.is_still_free(path, proved_in=allowed)
    removed = across.moved_to(scene.remove_frame("new"))
    assert removed.is_still_free(path, proved_in=across)
    assert removed.changed_frames(across) == {"new"}
    carried = world.moved_to(scene.reparent("new", "tip", pose=Pose([0, 0, 0.2])))
    assert not carried.is_still_free(path, proved_in=world)  # moving frames are not compared
    assert world.is_still_free(path, proved_in=carried)
    in_way = CollisionWorld(across.scene, movable=list(THINGS))
    cleared = in_way.moved_to(elsewhere.scene)
    assert not in_way.is_still_free(path, proved_in=cleared)  # it is back
    assert not cleared.moved_to(across.scene).is_still_free(path, proved_in=cleared)
    assert cleared.moved_to(removed.scene).is_still_free(path, proved_in=cleared)
    other = CollisionWorld(scene, movable=list(THINGS))
    assert other.changed_frames(world) is None
    assert not other.is_still_free(path, proved_in=world)
    buried = world.moved_to(scene.set_pose("new", scene.local_pose("table")))
    # two objects overlap for all configurations of the arm
    assert not buried.is_still_free(path, proved_in=world)
    with pytest.raises(ConfigurationError, match=r"path must have shape \(m, 4\)"):
        elsewhere.is_still_free(path[:, :3], proved_in=world)


def test_rules_apply_to_frames_that_gain_shapes() -> None:
    """Allowed pairs and margins apply to a frame that gets its first shape later."""
    scene = arm_with_things().set_shapes("tip", []).allow_collision("table", "tip")
    margins = {("tip", "post"): 0.05}
    world = CollisionWorld(scene, movable=["cup", "tray"], pair_margins=margins)
    moved = world.moved_to(
        scene.set_shapes("tip", [SHAPES["box"]]).add_frame("new", "tip", shapes=[SHAPES["ball"]])
    )
    check_like_new(moved, margins, 0)
    assert ("table", "tip") not in moved.pairs


def test_small_changes_share_the_structures() -> None:
    """Edits of few frames share the structures. Changes of joints or many frames do not."""
    scene = arm_with_things()
    world = CollisionWorld(scene)
    for other in (
        scene,
        scene.reparent("cup", "tip", q=np.zeros(4)),
        scene.set_pose("tray", Pose([0, 0, 1])),
        scene.remove_frame("tray", subtree=True),
        scene.add_frame("new", "tip", shapes=[SHAPES["box"]]),
        scene.set_shapes("ball", [SHAPES["ball"]]),
        scene.allow_collision("lower", "ball"),
    ):
        moved = world.moved_to(other)
        assert moved.shares_with(world)
        assert moved.scene == other
        assert moved.moved_to(scene).shares_with(world)
    assert not world.moved_to(scene.set_joint("base", Revolute([1, 0, 0]))).shares_with(world)
    assert not world.moved_to(scene.set_pose("lower", Pose([0, 0, 1]))).shares_with(world)
    assert not world.moved_to(arm_with_things()).shares_with(world)
    assert not world.moved_to(scene, margin=0.01).shares_with(world)
    assert world.moved_to(scene, pair_margins={("cup", "ball"): 0.01}).shares_with(world)


def test_options_are_kept_or_replaced() -> None:
    """Omitted options keep their values, without missing frames."""
    scene = arm_with_things()
    world = CollisionWorld(
        scene, movable=["cup", "lid"], margin=0.01, pair_margins={("cup", "table"): 0.5}
    )
    gone = world.moved_to(scene.remove_frame("cup"))
    assert gone.movable == ("lid",)
    assert gone.margin == 0.01
    assert ("cup", "table") not in {(a, b) for a, b, _ in gone.pairs}
    renamed = world.moved_to(scene.rename_frame("cup", "mug"))
    assert renamed.movable == ("lid",)
    added = world.moved_to(
        scene.add_frame("new", "world"),
        movable=["cup", "lid", "new"],
        pair_margins={("new", "lid"): 0.1},
    )
    without = added.moved_to(scene.set_pose("lid", Pose([0, 0, 1])))
    assert (without.movable, without.nearest(np.zeros(4)) is None) == (("cup", "lid"), False)
    changed = world.moved_to(
        scene, movable=["cup"], margin=0.02, pair_margins={("lid", "ball"): 0.1}
    )
    assert changed.movable == ("cup",)
    assert {margin for _, _, margin in changed.pairs} == {0.02, 0.1}
    with pytest.raises(UnknownNameError, match="did you mean 'cup'"):
        world.moved_to(scene, movable=["cub"])
    with pytest.raises(UnknownNameError, match="did you mean 'cup'"):
        world.moved_to(scene, pair_margins={("cub", "lid"): 0.0})
    with pytest.raises(ConfigurationError, match="a finite distance"):
        world.moved_to(scene, margin=math.nan)


def test_threads_may_move_and_query_one_world() -> None:
    """Threads that move and query one world have the results of one thread."""
    scene = arm_with_things()
    world = CollisionWorld(scene, movable=list(THINGS))
    qs = np.random.default_rng(1).uniform(-2, 2, (20, 4))
    versions = [
        scene.reparent(name, place, q=qs[0])
        for name in THINGS[2:]
        for place in ("tip", "world", "upper")
    ]
    expected = [[answers(CollisionWorld(s, movable=THINGS), q) for q in qs] for s in versions]
    shared = [world.moved_to(version) for version in versions]
    with ThreadPoolExecutor(8) as pool:
        own = pool.map(lambda s: [answers(world.moved_to(s), q) for q in qs], versions * 3)
        same = pool.map(lambda w: [answers(w, q) for q in qs], shared * 3)
        assert list(own) == expected * 3
        assert list(same) == expected * 3


def test_a_long_sequence_of_versions() -> None:
    """Worlds moved through many picks and places are correct, and share structures at times."""
    scene = arm_with_things()
    world = CollisionWorld(scene, movable=list(THINGS), margin=0.001)
    rng = np.random.default_rng(4)
    shared = 0
    for step in range(40):
        name = THINGS[2 + step % 4]
        scene = scene.reparent(name, "tip", q=rng.uniform(-1, 1, 4))
        scene = scene.reparent(
            name,
            ("world", "tray", "post")[step % 3] if name != "post" else "world",
            q=rng.uniform(-1, 1, 4),
        )
        moved = world.moved_to(scene)
        shared += moved.shares_with(world)
        check_like_new(moved, {}, step)
        world = moved
    assert shared > 20
