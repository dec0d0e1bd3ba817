"""Pictures show the scene, and are written whole or not at all."""

from __future__ import annotations

import importlib.util
import math
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.gantry import GANTRY, PlanWriter, gantry_scene, stacking_plan, two_blocks

import tmkit as tk
from tmkit.errors import MissingExtraError, OutputError, SimulationError
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.simulation import Camera, Film, Simulation, fit_camera, render, simulate, write_picture
from tmkit.simulation.camera import surroundings
from tmkit.simulation.options import Recording
from tmkit.simulation.rendering.studio import StillScene
from tmkit.spatial import Pose


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    """Return the gantry over two blocks, ready."""
    scene = two_blocks()
    with Simulation.from_scene(scene, GANTRY.ready_configuration(scene), robot=GANTRY) as instance:
        yield instance


def share_of(pixels: np.ndarray, channel: int) -> float:
    """Return the share of the pixels in which one channel outweighs the others by far."""
    values = pixels.astype(float)
    background = np.delete(values, channel, axis=2).max(axis=2)
    return float(np.mean(values[..., channel] > 1.8 * background))


def test_picture_shows_the_objects_in_their_colours(simulation: Simulation) -> None:
    """Red and green blocks are red and green in the picture, with light, shade and a backdrop."""
    pixels = render(simulation, fit_camera(simulation, width=320, height=240))
    assert pixels.shape == (240, 320, 3)
    assert pixels.dtype == np.uint8
    assert 0.001 < share_of(pixels, 0) < 0.2
    assert 0.001 < share_of(pixels, 1) < 0.2
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 200
    assert np.mean(pixels[:5]) > 180.0


def test_same_world_same_picture(simulation: Simulation) -> None:
    """Drawing changes nothing: the next picture is the same, and so is the world."""
    camera = fit_camera(simulation, width=160, height=120)
    before = [simulation.pose(name).as_array() for name in simulation.objects]
    assert np.array_equal(render(simulation, camera), render(simulation, camera))
    assert np.array_equal(before, [simulation.pose(name).as_array() for name in simulation.objects])


def test_camera_looks_where_it_is_told(simulation: Simulation) -> None:
    """A camera above a block has the block's colour in the middle of its picture."""
    camera = Camera((0.1, 0.1, 0.6), (0.1, 0.1, 0.0), up=(0.0, 1.0, 0.0), width=64, height=48)
    middle = render(simulation, camera)[24, 32].astype(float)
    assert middle[0] > 1.8 * middle[1:].max()


def test_good_camera_sees_what_matters(simulation: Simulation) -> None:
    """Blocks, hand and the near table edges project into the picture, and fill much of it."""
    camera = fit_camera(simulation, width=640, height=480)
    points = [simulation.pose(frame).translation for frame in ("red", "green", "hand", "tool")]
    eye, axes = np.array(camera.position), camera.axes()
    seen = (np.array(points) - eye) @ axes
    half = math.tan(camera.field_of_view / 2.0)
    assert np.all(seen[:, 2] < 0.0)
    assert np.all(np.abs(seen[:, 1] / seen[:, 2]) < half)
    assert np.all(np.abs(seen[:, 0] / seen[:, 2]) < half * 640 / 480)
    assert 0.5 < np.linalg.norm(eye) < 4.0


def scene_without_block(side: float) -> SceneGraph:
    """Return the gantry with a wall on one side."""
    wall = AttachedShape(Box([9.0, 0.01, 2.0]))
    return two_blocks().add_frame("wall", "world", pose=Pose([0.0, side, 0.5]), shapes=[wall])


@pytest.mark.parametrize("side", [-0.6, 0.6])
def test_good_camera_does_not_look_through_walls(side: float) -> None:
    """Wherever a wall stands, the view is from the other side of it."""
    with Simulation.from_scene(scene_without_block(side)) as walled:
        assert fit_camera(walled).position[1] * side < 0.6 * abs(side)


def test_the_floor_is_below_the_legs_of_a_table_and_the_camera_near_the_work() -> None:
    """Built-in tables stand on legs that only the floor of a picture depends on."""
    scene = tk.load_scene("panda_table", "blocks3")
    bare = scene.set_shapes("table", scene.shapes("table")[:1])
    legs = scene.shapes("table")[1:]
    assert legs
    assert not any(leg.collision for leg in legs)
    for version, height in ((bare, -0.05), (scene, -0.7)):
        assert surroundings(StillScene(version))[1] == pytest.approx(height, abs=0.002)
    with_legs, without = (
        np.linalg.norm(np.subtract(camera.position, camera.target))
        for camera in (fit_camera(StillScene(scene)), fit_camera(StillScene(bare)))
    )
    assert with_legs < 1.1 * without


def test_a_gif_keeps_the_colours_of_small_objects(tmp_path: Path) -> None:
    """A red block of a tenth of a percent of a picture with a gradient of greys stays red."""
    grey = np.linspace(0.0, 255.0, 240 * 320).reshape(240, 320, 1)
    pixels = (grey + np.random.default_rng(0).uniform(-3, 3, (240, 320, 3))).clip(0, 255)
    pixels[100:108, 100:110] = (215, 30, 30)
    film = Film(tmp_path / "a.gif")
    film.add(pixels.astype(np.uint8))
    with Image.open(film.write()) as drawn:
        red, *others = np.asarray(drawn.convert("RGB"))[104, 105].astype(int)
    assert red > 150
    assert max(others) < 60


def test_camera_refuses_what_it_cannot_show() -> None:
    """Invalid cameras are errors with the valid ones."""
    with pytest.raises(SimulationError, match="must not be zero or parallel"):
        Camera((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    with pytest.raises(SimulationError, match="three finite numbers"):
        Camera((0.0, 0.0, math.nan), (0.0, 1.0, 0.0))
    with pytest.raises(SimulationError, match="1 to 4096 pixels"):
        Camera((0.0, 1.0, 1.0), (0.0, 0.0, 0.0), width=0)
    with pytest.raises(SimulationError, match="field_of_view must be between"):
        Camera((0.0, 1.0, 1.0), (0.0, 0.0, 0.0), field_of_view=4.0)


def test_film_and_picture_of_a_plan(tmp_path: Path) -> None:
    """A plan is rendered as a film and a picture, without other files or changes of the report."""
    film, picture = tmp_path / "film.gif", tmp_path / "end.png"
    camera = Camera((0.9, -0.9, 0.7), (0.0, 0.0, 0.1), width=120, height=90)
    report = simulate(
        stacking_plan(), record=film, picture=picture, recording=Recording(camera=camera)
    )
    assert report == simulate(stacking_plan())
    with Image.open(film) as frames:
        seconds = 0.0
        for number in range(frames.n_frames):
            frames.seek(number)
            seconds += frames.info["duration"] / 1000.0
        count = frames.n_frames
        frames.seek(0)
        first = np.asarray(frames.convert("RGB"), dtype=float)
        frames.seek(count // 2)
        middle = np.asarray(frames.convert("RGB"), dtype=float)
    assert seconds == pytest.approx(report.duration / 2.0 + 2.0, abs=0.3)
    assert np.abs(first - middle).max() > 50.0
    assert film.stat().st_size < 500_000
    with Image.open(picture) as image:
        assert image.size == (120, 90)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["end.png", "film.gif"]


def test_outputs_are_checked_before_the_simulation_starts(tmp_path: Path) -> None:
    """An unwritable file is rejected at once, with the reason."""
    plan = PlanWriter(gantry_scene()).plan()
    with pytest.raises(OutputError, match=r"a film must end in \.gif or \.webp or \.mp4"):
        simulate(plan, record=tmp_path / "film.avi")
    with pytest.raises(OutputError, match=r"a picture must end in \.png or \.jpg or \.jpeg"):
        simulate(plan, picture=tmp_path / "end")
    with pytest.raises(OutputError, match=r"the folder '.*nowhere' does not exist"):
        simulate(plan, record=tmp_path / "nowhere" / "film.gif")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        simulate(plan, picture=tmp_path / "folder.png")


def test_folder_without_the_right_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be written to is an output error, also for one who may do everything."""
    monkeypatch.setattr("tmkit._support.output.os.access", lambda *_, **__: False)
    with pytest.raises(OutputError, match="cannot be written: permission denied") as caught:
        write_picture(tmp_path / "end.png", np.zeros((2, 2, 3), dtype=np.uint8))
    assert caught.value.path == str(tmp_path / "end.png")


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up leaves the file that was there before, and no crumbs."""
    target = tmp_path / "end.png"
    write_picture(target, np.zeros((2, 2, 3), dtype=np.uint8))
    old = target.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tmkit._support.output.os.fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        write_picture(target, np.ones((2, 2, 3), dtype=np.uint8))
    assert target.read_bytes() == old
    assert list(tmp_path.iterdir()) == [target]


def test_mp4_without_its_extra_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An MP4 without its library is an error with the install command."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[pictures\]'") as caught:
        Film(tmp_path / "film.mp4")
    assert caught.value.extra == "pictures"


def test_film_without_frames_is_no_film(tmp_path: Path) -> None:
    """An empty film is rejected, and not written."""
    with pytest.raises(OutputError, match="there are no frames"):
        Film(tmp_path / "film.gif").write()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(
    importlib.util.find_spec("imageio_ffmpeg") is None, reason="needs the extra 'pictures'"
)
def test_film_as_mp4(tmp_path: Path) -> None:
    """With the extra a film may be an MP4, of odd size too."""
    film = Film(tmp_path / "film.mp4")
    for shade in range(0, 250, 10):
        film.add(np.full((61, 83, 3), shade, dtype=np.uint8))
    assert film.write().stat().st_size > 500
    assert os.listdir(tmp_path) == ["film.mp4"]
