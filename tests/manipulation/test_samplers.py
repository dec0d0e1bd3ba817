"""Selection of samplers, the cache of grasps, and errors of invalid samplers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.gantry import GANTRY, gantry_scene, with_block

from tmkit.errors import ConfigurationError, SamplerError, SceneError
from tmkit.graph import Box, Cylinder, SceneGraph
from tmkit.manipulation import (
    ActionContext,
    Grasp,
    GraspRequest,
    Placement,
    PlacementRequest,
    Samplers,
    SeededSamplers,
    sample_grasps,
    sample_placements,
)
from tmkit.spatial import Pose

Q = GANTRY.ready_configuration(gantry_scene())


def one_grasp(request: GraspRequest) -> Iterator[Grasp]:
    """Give a single grasp named after the object."""
    yield Grasp(Pose(), 0.05, f"mine of {request.object}")


def one_place(request: PlacementRequest) -> list[Placement]:
    """Give a single place."""
    return [Placement(request.support, Pose([0.0, 0.0, 0.5]), "mine")]


def scene_with_object(**options: Any) -> SceneGraph:
    """Return the gantry with an object on its table."""
    return with_block(gantry_scene(), "block", [0.0, 0.0, 0.025], **options)


def context(samplers: Samplers, scene: SceneGraph | None = None, seed: int = 0) -> ActionContext:
    """Return where an action is to be carried out."""
    sampling = SeededSamplers(samplers, GANTRY, seed)
    return ActionContext(scene or scene_with_object(), Q, np.random.default_rng(seed), sampling)


def test_without_others_ours_are_asked() -> None:
    """The default registry gives the grasps and placements of this package."""
    request = context(Samplers())
    assert len(request.grasps("block")) >= 24
    assert next(request.placements("block", "table")).support == "table"
    assert request.samplers == Samplers()


def test_the_place_at_the_start_comes_after_the_nearest() -> None:
    """The start pose of an object is a placement, even if it is far from the nearest ones."""
    start = scene_with_object()
    moved = start.set_pose("block", start.local_pose("block") @ Pose([0.2, 0.1, 0.0]))
    sampling = SeededSamplers(Samplers(), GANTRY, start=start)
    places = list(
        ActionContext(moved, Q, np.random.default_rng(0), sampling).placements("block", "table")
    )
    without = list(context(Samplers(), moved).placements("block", "table"))
    names = [place.name for place in places]
    assert names.index("where it was at the start") == 4
    assert names[:4] + names[5:] == [place.name for place in without]
    assert places[4].support_from_object == start.local_pose("block")


def test_an_arranged_place_is_the_only_one() -> None:
    """A place that was chosen together with others replaces those of the sampler."""
    place = Placement("table", Pose([0.1, 0.1, 0.5]), "arranged")
    sampling = SeededSamplers(
        Samplers().with_placements(one_place), GANTRY, arranged={("block", "table"): place}
    )
    request = ActionContext(scene_with_object(), Q, np.random.default_rng(0), sampling)
    assert list(request.placements("block", "table")) == [place]


def test_the_last_that_fits_is_asked() -> None:
    """Class and kind decide; of several that fit, the one registered last."""
    samplers = (
        Samplers()
        .with_grasps(one_grasp)
        .with_grasps(sample_grasps, of_class="movable")
        .with_grasps(one_grasp, of_kind="cylinder")
        .with_placements(one_place, of_class="mug")
        .with_placements(one_place, on_class="shelf")
    )
    block, can = scene_with_object(), scene_with_object(shape=Cylinder(0.02, 0.1))
    assert samplers.grasp_sampler(block, "block") is sample_grasps
    assert samplers.grasp_sampler(can, "block") is one_grasp
    assert samplers.grasp_sampler(block.set_classes("block", []), "block") is one_grasp
    assert samplers.placement_sampler(block, "block", "table") is sample_placements
    assert (
        samplers.placement_sampler(block.set_classes("block", ["mug"]), "block", "table")
        is one_place
    )
    assert (
        samplers.placement_sampler(block.set_classes("table", ["shelf"]), "block", "table")
        is one_place
    )


def test_a_registry_is_a_value() -> None:
    """Adding a sampler leaves the old registry as it was."""
    first = Samplers()
    second = first.with_grasps(one_grasp)
    assert first == Samplers()
    assert second == Samplers().with_grasps(one_grasp) != first
    assert [grasp.name for grasp in context(second).grasps("block")] == ["mine of block"]


def test_the_same_object_is_asked_about_once() -> None:
    """Grasps are computed once for an object at any pose, and again if the object changes."""
    objects: list[str] = []

    def counting(request: GraspRequest) -> Iterator[Grasp]:
        objects.append(request.object)
        return one_grasp(request)

    sampling = SeededSamplers(Samplers().with_grasps(counting), GANTRY)
    scene = scene_with_object()
    first = sampling.grasps(scene, "block")
    assert sampling.grasps(scene.set_pose("block", Pose([0.1, 0.0, 0.1])), "block") is first
    assert len(objects) == 1
    sampling.grasps(scene.set_attribute("block", "handle", "left"), "block")
    assert len(objects) == 2


def test_ours_compute_a_shape_once() -> None:
    """Two objects of one shape share their grasps."""
    scene = with_block(scene_with_object(), "other", [0.2, 0.0, 0.025])
    sampling = SeededSamplers(Samplers(), GANTRY)
    assert sampling.grasps(scene, "block") is sampling.grasps(scene, "other")
    third = with_block(scene, "third", [0.3, 0.0, 0.025], shape=Box([0.04] * 3))
    assert sampling.grasps(third, "third") is not sampling.grasps(scene, "block")


def test_chance_depends_on_seed_and_shape_alone() -> None:
    """The generator of a grasp sampler depends on the seed, not on the order of calls."""

    def random_grasp(request: GraspRequest) -> list[Grasp]:
        return [Grasp(Pose(0.1 * request.rng.normal(size=3)), 0.05, "random")]

    samplers = Samplers().with_grasps(random_grasp)
    scene = with_block(scene_with_object(), "other", [0.2, 0.0, 0.025], shape=Box([0.04] * 3))
    forth, back, other = (SeededSamplers(samplers, GANTRY, seed) for seed in (3, 3, 4))
    expected = [forth.grasps(scene, "block"), forth.grasps(scene, "other")]
    assert [back.grasps(scene, "other"), back.grasps(scene, "block")] == expected[::-1]
    assert other.grasps(scene, "block") != expected[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            [None],
            (
                "sampler 'test_nonsense_grasps_name_the_sampler.<locals>.bad' returns None for"
                " 'block', which is not a Grasp"
            ),
        ),
        (
            [Grasp(Pose(), math.nan, "")],
            "returns a grasp of 'block' with numbers that are not finite",
        ),
        (
            [Grasp(Pose(), 0.2, "")],
            "is 0.2 m wide, but the hand of 'gantry' opens from 0 to 0.08 m",
        ),
        (7, "fails for 'block': TypeError: 'int' object is not iterable"),
    ],
)
def test_nonsense_grasps_name_the_sampler(value: Any, message: str) -> None:
    """An invalid grasp is an error with the name of the sampler."""

    def bad(request: GraspRequest) -> Any:
        return value

    with pytest.raises(SamplerError, match=message.replace("(", r"\(").replace("<", "<")) as caught:
        context(Samplers().with_grasps(bad)).grasps("block")
    assert caught.value.sampler.endswith("bad")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nothing", "which is not a Placement"),
        ([Placement("tabel", Pose(), "")], "on an unknown frame 'tabel'; did you mean 'table'"),
    ],
)
def test_nonsense_placements_name_the_sampler(value: Any, message: str) -> None:
    """An invalid placement is an error with the name of the sampler."""

    class Bad:
        def __call__(self, request: PlacementRequest) -> Any:
            del request
            return value

    with pytest.raises(SamplerError, match=message) as caught:
        list(context(Samplers().with_placements(Bad())).placements("block", "table"))
    assert caught.value.sampler.endswith("Bad")


def test_a_sampler_that_raises_is_named() -> None:
    """An exception of a sampler causes an error with the names of sampler and object."""

    def half_way(request: PlacementRequest) -> Iterator[Placement]:
        yield Placement(request.support, Pose(), "good")
        raise ZeroDivisionError("oh")

    candidates = context(Samplers().with_placements(half_way)).placements("block", "table")
    assert next(candidates).name == "good"
    with pytest.raises(
        SamplerError, match=r"half_way' fails for 'block' on 'table': ZeroDivisionError: oh"
    ) as caught:
        next(candidates)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_errors_of_ours_stay_what_they_are() -> None:
    """A scene that the built-in samplers reject is an error of the scene."""
    with pytest.raises(SceneError, match="has no collision shape"):
        context(Samplers(), scene_with_object().set_shapes("block", [])).grasps("block")


def test_what_cannot_be_called_is_no_sampler() -> None:
    """Registering another type is rejected at once."""
    for register in (Samplers().with_grasps, Samplers().with_placements):
        with pytest.raises(ConfigurationError, match="expected a callable as sampler, got 7"):
            register(7)  # type: ignore[arg-type]
