"""Both renderers draw the scene: known colours and places, all kinds of shapes, moving films."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.gantry import stacking_plan
from support.processes import run_process

import tmkit as tk
from tmkit.errors import MissingExtraError, SimulationError
from tmkit.graph import SceneGraph
from tmkit.simulation import Camera, fit_camera, record_plan, render
from tmkit.simulation.camera import Posed
from tmkit.simulation.rendering.filament import is_available, smooth_normals
from tmkit.simulation.rendering.studio import StillScene, select_renderer
from tmkit.spatial import Pose

HAS_FILAMENT = is_available()
RENDERERS = [
    "tiny",
    pytest.param(
        "filament", marks=pytest.mark.skipif(not HAS_FILAMENT, reason="needs MuJoCo and Vulkan")
    ),
]
RED, GREEN, BLUE = (0.9, 0.1, 0.1, 1.0), (0.1, 0.7, 0.1, 1.0), (0.1, 0.2, 0.9, 1.0)
PIECE = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])
SHAPES = {
    "box": tk.Box([0.1, 0.1, 0.1]),
    "sphere": tk.Sphere(0.06),
    "cylinder": tk.Cylinder(0.06, 0.1),
    "capsule": tk.Capsule(0.05, 0.06),
    "cone": tk.Cone(0.08, 0.1),
    "mesh": tk.Mesh(PIECE - 0.03, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])),
    "height field": tk.HeightField(np.full((3, 3), 0.05), size=[0.12, 0.12]),
    "point cloud": tk.PointCloud(0.05 * PIECE.repeat(2, axis=0) / 0.1, radius=0.03),
}


def shown(scene: SceneGraph, point: list[float], *, renderer: str, q: object = None) -> np.ndarray:
    """Return the colour (3,) in the middle of a picture that is taken from above a point."""
    camera = Camera(
        (point[0], point[1], 1.5),
        (point[0], point[1], 0.0),
        up=(0.0, 1.0, 0.0),
        width=48,
        height=48,
    )
    return render(scene, camera, q=q, supersampling=1.0, renderer=renderer)[24, 24].astype(float)


def strongest(color: np.ndarray) -> int:
    """Return the channel that outweighs the others by far, -1 without one."""
    channel = int(np.argmax(color))
    return channel if color[channel] > 1.5 * np.delete(color, channel).max() else -1


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("kind", SHAPES)
def test_every_kind_of_shape_is_where_it_is(kind: str, renderer: str) -> None:
    """Each kind is seen from above in its colour, and the floor beside it."""
    part = tk.AttachedShape(SHAPES[kind], color=GREEN, collision=False)
    scene = SceneGraph().add_frame("x", "world", pose=Pose([0.3, -0.2, 0.0]), shapes=[part])
    assert strongest(shown(scene, [0.3, -0.2], renderer=renderer)) == 1
    assert strongest(shown(scene, [0.7, -0.2], renderer=renderer)) == -1


@pytest.mark.parametrize("renderer", RENDERERS)
def test_shapes_of_one_frame_keep_their_colours(renderer: str) -> None:
    """Twenty boxes on a frame, more than pybullet takes in a body, have the colour of each."""
    parts = [
        tk.AttachedShape(
            tk.Box([0.08, 0.08, 0.1]), Pose([0.1 * i, 0.0, 0.0]), color=color, collision=False
        )
        for i, color in zip(range(20), [RED, GREEN, BLUE] * 7, strict=False)
    ]
    scene = SceneGraph().add_frame("x", "world", shapes=parts)
    assert [strongest(shown(scene, [0.1 * i, 0.0], renderer=renderer)) for i in (0, 1, 2, 18)] == [
        0,
        1,
        2,
        0,
    ]


@pytest.mark.parametrize("renderer", RENDERERS)
def test_joints_and_planes_are_drawn_where_they_are(renderer: str) -> None:
    """A box on a slide is drawn where q has it, over the plane on the ground."""
    plane = tk.AttachedShape(tk.Plane(), color=BLUE)
    box = tk.AttachedShape(tk.Box([0.1, 0.1, 0.1]), color=RED)
    scene = SceneGraph().add_frame("ground", "world", shapes=[plane])
    slide = tk.Prismatic([1, 0, 0], lower=0.0, upper=1.0)
    scene = scene.add_frame("x", "world", pose=Pose([0, 0, 0.2]), joint=slide, shapes=[box])
    assert strongest(shown(scene, [0.6, 0.0], renderer=renderer, q=[0.6])) == 0
    assert strongest(shown(scene, [0.0, 0.0], renderer=renderer, q=[0.6])) == 2


@pytest.mark.skipif(not HAS_FILAMENT, reason="needs MuJoCo and Vulkan")
def test_same_scene_same_pixels() -> None:
    """Two Filament pictures have equal bytes, and the floor is darker beside a box."""
    box = tk.AttachedShape(tk.Box([0.2, 0.2, 0.6]), color=RED)
    scene = SceneGraph().add_frame("x", "world", pose=Pose([0, 0, 0.3]), shapes=[box])
    camera = fit_camera(StillScene(scene), width=160, height=120)
    first = render(scene, camera, renderer="filament")
    assert np.array_equal(first, render(scene, camera, renderer="filament"))
    floor = first[np.ptp(first.astype(int), axis=2) < 12]
    assert floor.mean(axis=1).min() < 0.85 * np.median(floor.mean(axis=1))


def red_centre(pixels: np.ndarray) -> np.ndarray:
    """Return the centre (2,) of the red part of a picture [px]."""
    return np.argwhere(pixels[..., 0] > 2.5 * pixels[..., 1:].max(axis=2)).mean(axis=0)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_film_of_a_plan_follows_its_objects(tmp_path: Path, renderer: str) -> None:
    """The film begins with the red block at its place and ends with it on the other."""
    plan = stacking_plan()
    camera = Camera((0.9, -0.9, 0.7), (0.0, 0.0, 0.1), width=120, height=90)
    path = record_plan(plan, tmp_path / "film.gif", camera=camera, speed=8.0, renderer=renderer)
    with Image.open(path) as film:
        frames = []
        for number in (0, film.n_frames - 1):
            film.seek(number)
            frames.append(np.asarray(film.convert("RGB"), dtype=float))
    ends = [
        render(scene, camera, q=q, supersampling=1.0, renderer=renderer).astype(float)
        for scene, q in ((plan.scene, plan.q), (plan.final_scene, plan.final_q))
    ]
    (start, end), (true_start, true_end) = (
        [red_centre(picture) for picture in pictures] for pictures in (frames, ends)
    )
    assert np.linalg.norm(start - true_start) < 2.0
    assert np.linalg.norm(end - true_end) < 2.0
    assert np.linalg.norm(true_end - true_start) > 5.0


def test_choosing_a_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The better renderer is the default where installed; other names are errors with advice."""
    assert select_renderer("tiny") == "tiny"
    assert select_renderer() == ("filament" if HAS_FILAMENT else "tiny")
    with pytest.raises(
        SimulationError, match="renderer must be one of auto, filament, tiny, got 'gl'"
    ):
        select_renderer("gl")
    with pytest.raises(SimulationError, match=r"supersampling must be between 1 and 8, got 0\.5"):
        render(SceneGraph(), supersampling=0.5)
    with pytest.raises(SimulationError, match="speed must be a positive number, got 0"):
        record_plan(stacking_plan(), "film.gif", speed=0.0)
    monkeypatch.setattr("tmkit.simulation.rendering.studio.is_available", lambda: False)
    assert select_renderer() == "tiny"
    with pytest.raises(MissingExtraError, match=r"the extra 'engines'.*mesa-vulkan-drivers"):
        select_renderer("filament")
    monkeypatch.setattr("tmkit.simulation.rendering.studio.is_installed", lambda _: False)
    with pytest.raises(MissingExtraError, match=r"^pictures need the extra 'engines'.*or pybullet"):
        select_renderer()
    with pytest.raises(MissingExtraError, match=r"the renderer 'tiny' needs pybullet: pip install"):
        select_renderer("tiny")


def test_without_a_vulkan_driver_the_process_goes_on() -> None:
    """Filament, which would abort without a driver, is skipped, and a picture is rendered."""
    code = (
        "import tmkit as tk; from tmkit.simulation import Camera, render\nfrom"
        " tmkit.simulation.rendering.studio import select_renderer\nprint(select_renderer(),"
        " render(tk.SceneGraph(), Camera((1,0,1), (0,0,0), width=8, height=8)).shape)"
    )
    done = run_process(
        [sys.executable, "-c", code],
        env={"VK_ICD_FILENAMES": "/nowhere", "VK_DRIVER_FILES": "/nowhere"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "tiny (8, 8, 3)"


def behind(side: float) -> Posed:
    """Return a table with a block, hidden from one side by a tall pillar."""
    pillar = tk.AttachedShape(tk.Box([0.5, 0.1, 1.5]))
    block = tk.AttachedShape(tk.Box([0.05, 0.05, 0.05]))
    scene = SceneGraph().add_frame(
        "pillar", "world", pose=Pose([0.0, 0.2 * side, 0.75]), shapes=[pillar]
    )
    scene = scene.add_frame(
        "other", "world", pose=Pose([0.4, 0.0, 0.0]), classes=["movable"], shapes=[block]
    )
    return StillScene(scene.add_frame("block", "world", classes=["movable"], shapes=[block]))


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_camera_sees_what_it_is_about(side: float) -> None:
    """Wherever a pillar is, the camera is on the other side."""
    assert fit_camera(behind(side), focus=["block"]).position[1] * side < 0.0


def test_normals_are_smooth_over_gentle_edges_only() -> None:
    """On a sphere they point outwards all over, on a cube along the axes."""
    from trimesh import creation

    ball = creation.icosphere(subdivisions=2)
    normals = smooth_normals(ball.vertices, ball.faces)
    assert np.einsum("ij,ij->i", normals, ball.vertices[ball.faces.ravel()]).min() > 0.99
    cube = creation.box()
    normals = smooth_normals(cube.vertices, cube.faces)
    assert np.allclose(np.sort(np.abs(normals), axis=1), [0.0, 0.0, 1.0])
