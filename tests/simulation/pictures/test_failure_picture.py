"""Pictures of obstacles: culprits in red, the object in blue, equal bytes for equal results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY, stacking_plan, with_block

import tmkit as tk
from tmkit.errors import OutputError, SimulationError, UnknownNameError
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.manipulation import swept_volume
from tmkit.simulation import draw_failure
from tmkit.simulation.pictures.swept_volume import draw_swept_volume
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult

LID = "(pick-up a table__0__0)"


def scene() -> SceneGraph:
    """Return two blocks on a small table."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


@pytest.fixture(scope="module")
def lid() -> PlanResult:
    """Return the diagnosis for a block under a lid."""
    return tk.plan(
        with_box(scene(), "lid", (-0.05, -0.05, 0.08), (0.05, 0.05, 0.1)),
        goal="(on a b)",
        robot=GANTRY,
        options=tk.PlanningOptions(max_iterations=1),
    )


@pytest.fixture(scope="module")
def far_block() -> PlanResult:
    """Return the diagnosis for a block 2 m away."""
    shapes = [AttachedShape(Box([0.1, 0.1, 0.1]))]
    distant = scene().add_frame(
        "shelf", "world", pose=Pose([2.0, 0.0, -0.05]), classes=["surface"], shapes=shapes
    )
    distant = with_block(distant, "far", [2.0, 0.0, BLOCK / 2], parent="shelf")
    return tk.plan(
        distant,
        goal="(on far b)",
        robot=GANTRY,
        options=tk.PlanningOptions(suggest=False, max_iterations=1),
    )


def pixels(path: Path) -> np.ndarray:
    """Return the picture (height, width, 3)."""
    return np.asarray(Image.open(path).convert("RGB")).astype(float)


def share(values: np.ndarray, channel: int) -> float:
    """Return the share of the pixels in which one channel outweighs the others by far."""
    background = np.delete(values, channel, axis=2).max(axis=2)
    return float(np.mean(values[..., channel] > 2.0 * background))


def test_the_culprit_is_red_and_the_object_blue(lid: PlanResult, tmp_path: Path) -> None:
    """The lid stands out in red, the block in blue; below there is a caption."""
    image = pixels(draw_failure(lid, tmp_path / "lid.png", width=320, height=240))
    assert image.shape[1] == 320
    assert image.shape[0] > 260
    assert share(image[:240], 0) > 0.005
    assert share(image[:240], 2) > 0.005
    assert 0.001 < np.mean(image[240:] < 100.0) < 0.5


def test_what_is_out_of_reach_has_a_line_to_it(far_block: PlanResult, tmp_path: Path) -> None:
    """A red line leads from the tool to the blue block; no body is red."""
    image = pixels(draw_failure(far_block, tmp_path / "far.png", width=320, height=240))
    assert 0.0005 < share(image[:240], 0) < 0.03
    assert share(image[:240], 2) > 0.0002


def test_the_same_answer_gives_the_same_bytes(lid: PlanResult, tmp_path: Path) -> None:
    """A picture is a function of the result, whichever way its action is chosen."""
    first = draw_failure(lid, tmp_path / "one.png", width=160, height=120).read_bytes()
    assert (
        draw_failure(lid, tmp_path / "two.png", action=LID, width=160, height=120).read_bytes()
        == first
    )


def test_what_cannot_be_drawn_is_said(lid: PlanResult, tmp_path: Path) -> None:
    """No failure, no such action, no example, no such folder: each is an error with its reason."""
    with pytest.raises(
        SimulationError, match=r"no motion failed, so there is nothing to draw: Found 2 actions"
    ):
        draw_failure(tk.plan(scene(), goal="(on a b)", robot=GANTRY), tmp_path / "x.png")
    with pytest.raises(UnknownNameError, match=r"action that failed.*table__0__1.*table__0__0"):
        draw_failure(lid, tmp_path / "x.png", action="(pick-up a table__0__1)")
    bare = replace(lid, diagnosis=lid.diagnosis.without_examples())
    assert bare.diagnosis == lid.diagnosis
    with pytest.raises(SimulationError, match="no example to draw"):
        draw_failure(bare, tmp_path / "x.png")
    with pytest.raises(OutputError, match="does not exist"):
        draw_failure(lid, tmp_path / "nowhere" / "x.png")
    assert not list(tmp_path.iterdir())


def test_what_a_plan_sweeps_is_seen_over_the_scene(tmp_path: Path) -> None:
    """The cells are blue and translucent; without steps the picture shows the scene alone."""
    plan = stacking_plan()
    volume = swept_volume(plan, cell=0.03)
    first = draw_swept_volume(plan, volume, tmp_path / "swept.png", width=160, height=120)
    empty = swept_volume(replace(plan, steps=()))
    bare = pixels(draw_swept_volume(plan, empty, tmp_path / "bare.png", width=160, height=120))
    image = pixels(first)
    assert image.shape == bare.shape == (120, 160, 3)
    bluer = (image[..., 2] - image[..., 0]) - (bare[..., 2] - bare[..., 0]) > 20.0
    assert 0.03 < np.mean(bluer) < 0.6
    again = draw_swept_volume(plan, volume, tmp_path / "again.png", width=160, height=120)
    assert again.read_bytes() == first.read_bytes()
