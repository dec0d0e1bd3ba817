"""A chain of function blocks: depth image, point cloud, planes, segments, table with objects.

The world is simulated; a depth camera with noise observes it. The live scene contains the camera
alone, and gets its point cloud. Written to ``--out``: the camera image, and the outputs of the
blocks.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import tmkit as tk
from tmkit.graph import AttachedShape, tree_text
from tmkit.simulation import Camera, Simulation, depth_points, render
from tmkit.world import After, BlockRunner, LiveScene, OnChange, PlaneSegmentation, TableRecognition

VIEW = Camera((1.9, -1.0, 1.75), (0.0, 0.0, 0.6), width=480, height=360)
COLORS = [(214, 69, 65), (45, 125, 210), (244, 185, 66), (94, 167, 88), (150, 90, 170)]


def simulated_world() -> tk.SceneGraph:
    """Return a table with four objects on it, a box beside it, and the floor."""
    scene = tk.SceneGraph()
    fixed: dict[str, tuple[tk.Shape, list[float]]] = {
        "floor": (tk.Box([6.0, 6.0, 0.1]), [0.0, 0.0, -0.05]),
        "plate": (tk.Box([0.8, 1.2, 0.04]), [0.0, 0.0, 0.7]),
        "crate": (tk.Box([0.4, 0.4, 0.3]), [0.75, 0.75, 0.15]),
        "can": (tk.Cylinder(0.035, 0.12), [0.1, 0.25, 0.78]),
        "ball": (tk.Sphere(0.06), [0.2, -0.05, 0.78]),
        "carton": (tk.Box([0.09, 0.06, 0.2]), [-0.1, -0.3, 0.82]),
        "brick": (tk.Box([0.15, 0.07, 0.06]), [0.15, -0.4, 0.75]),
    }
    for k, (x, y) in enumerate([(-0.35, -0.55), (-0.35, 0.55), (0.35, -0.55), (0.35, 0.55)]):
        fixed[f"leg {k}"] = (tk.Box([0.05, 0.05, 0.68]), [x, y, 0.34])
    for name, (shape, place) in fixed.items():
        color = [0.75, 0.6, 0.45, 1.0] if name == "plate" or name.startswith("leg") else None
        scene = scene.add_frame(
            name, "world", pose=tk.Pose(place), shapes=[AttachedShape(shape, color=color)]
        )
    return scene


def picture(scene: tk.SceneGraph, camera: Camera) -> Image.Image:
    """Return the points of the parts by colour, and the outline of the tables, in camera axes."""
    image = Image.new("RGB", (camera.width, camera.height), (250, 250, 248))
    draw, focal = ImageDraw.Draw(image), camera.height / 2.0 / math.tan(camera.field_of_view / 2.0)

    def pixels(frame: str, points: np.ndarray) -> np.ndarray:
        x, y, back = scene.transform_points(points, source=frame, target="camera").T
        return np.column_stack(
            [camera.width / 2 - focal * x / back, camera.height / 2 + focal * y / back]
        )

    on_tables = {
        name
        for table in scene.frames_of_class("table")
        for name in scene.attributes(table)["objects"]
    }
    plates = {scene.parent(table) for table in scene.frames_of_class("table")}
    for frame in (*scene.frames_of_class("plane"), *scene.frames_of_class("segment")):
        number = int(frame.rsplit(" ", 1)[1])
        grey = 215 - 17 * (number % 6)
        color = COLORS[number % len(COLORS)] if frame in on_tables else (grey, grey, grey)
        color = (222, 196, 160) if frame in plates else color
        for x, y in pixels(frame, scene.shapes(frame)[0].shape.points):
            draw.point((round(x), round(y) - 1), fill=color)
    for table in scene.frames_of_class("table"):
        attached = scene.shapes(table)[0]
        x, y, z = np.array(attached.shape.dimensions) / 2.0
        top = pixels(table, attached.pose.apply([[x, y, z], [-x, y, z], [-x, -y, z], [x, -y, z]]))
        draw.line([*map(tuple, top), tuple(top[0])], fill=(30, 30, 30), width=2)
    return image


def main() -> None:
    """Look once, run the chain, and print the detected and the actual objects."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    truth = simulated_world()
    with Simulation.from_scene(truth) as simulation:
        points = depth_points(simulation, VIEW, noise=0.002, seed=0)
        seen = render(simulation, VIEW, renderer="tiny")

    matrix = np.eye(4)
    matrix[:3] = np.column_stack([VIEW.axes(), VIEW.position])
    world = LiveScene(
        tk.SceneGraph().add_frame("camera", "world", pose=tk.Pose.from_matrix(matrix))
    )
    blocks = [PlaneSegmentation("parts", "camera"), TableRecognition("tables", "camera")]
    runner = BlockRunner(world, blocks, triggers={"parts": OnChange(), "tables": After("parts")})
    world.update(
        lambda scene: scene.add_frame(
            "cloud", "camera", classes=["cloud"], shapes=[tk.PointCloud(points, radius=0.004)]
        )
    )
    scene = runner.poll()
    for error in runner.errors:
        raise error

    print(tree_text(scene))
    for table in scene.frames_of_class("table"):
        box, attributes = scene.shapes(table)[0].shape, scene.attributes(table)
        size = " x ".join(f"{side:.2f}" for side in sorted(box.dimensions[:2]))
        print(
            f"{table}: {size} m, {attributes['height']:.3f} m high,"
            f" with {len(attributes['objects'])} objects"
        )
        for name in attributes["objects"]:
            x, y, _ = scene.pose(name).translation
            print(f"    {name} at {x:.2f}, {y:.2f}")
    assert runner.poll() is scene, "the blocks run again only when their inputs change"
    both = Image.new("RGB", (2 * VIEW.width, VIEW.height))
    both.paste(Image.fromarray(np.asarray(seen)), (0, 0))
    both.paste(picture(scene, VIEW), (VIEW.width, 0))
    both.save(folder / "segment_table.png")
    print("see", folder / "segment_table.png")


if __name__ == "__main__":
    main()
