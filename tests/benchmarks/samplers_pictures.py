"""Pictures of samplers: grasps on meshes, and the stable faces of one.

Run by hand: ``python tests/benchmarks/samplers_pictures.py [--out docs/images]``. No screen is
needed.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import trimesh

import tmkit as tk
from tmkit.manipulation import Grasp, grasps_of, stable_faces
from tmkit.robots import load_manipulator
from tmkit.simulation import Camera, Simulation, render, write_picture

ORANGE, GREY, BLUE, GREEN = (
    (0.88, 0.45, 0.12, 1.0),
    (0.72, 0.74, 0.77, 1.0),
    (0.2, 0.42, 0.72, 1.0),
    (0.2, 0.6, 0.4, 1.0),
)
PANDA = load_manipulator("panda")


def mesh_of(mesh: trimesh.Trimesh) -> tk.Shape:
    """Return a mesh of trimesh's as ours."""
    return tk.Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def l_mesh() -> tk.Shape:
    """Return an L with arms of 0.12 m, 0.04 m thick, about its middle."""
    foot, arm = trimesh.creation.box([0.12, 0.04, 0.04]), trimesh.creation.box([0.04, 0.04, 0.08])
    foot.apply_translation([0.0, 0.0, -0.04])
    arm.apply_translation([-0.04, 0.0, 0.02])
    return mesh_of(trimesh.util.concatenate([foot, arm]))


def mug() -> tk.Shape:
    """Return a mug with a handle."""
    wall = trimesh.creation.annulus(0.033, 0.036, 0.1)
    floor = trimesh.creation.cylinder(0.033, 0.004)
    floor.apply_translation([0.0, 0.0, -0.048])
    handle = trimesh.creation.torus(0.022, 0.005)
    handle.apply_transform(trimesh.transformations.rotation_matrix(math.pi / 2, [1, 0, 0]))
    handle.apply_translation([0.045, 0.0, 0.0])
    return mesh_of(trimesh.util.concatenate([wall, floor, handle]))


def glyph(grasp: Grasp, color: tuple[float, ...]) -> list[tk.AttachedShape]:
    """Return the outline of a hand that holds like this, in the object's frame."""
    width, length, thin = grasp.width, PANDA.finger_depth, 0.003
    bars = [
        ([thin, thin, length + 0.008], [0.0, side * (width + thin) / 2, (0.008 - length) / 2])
        for side in (1, -1)
    ]
    bars.append(([thin, width + 2 * thin, thin], [0.0, 0.0, -length]))
    bars.append(([thin, thin, 0.03], [0.0, 0.0, -length - 0.015]))
    return [
        tk.AttachedShape(
            tk.Box(size), grasp.object_from_tool @ tk.Pose(centre), color=color, collision=False
        )
        for size, centre in bars
    ]


def apart(grasps: list[Grasp], count: int) -> list[Grasp]:
    """Return the first grasp and others that are as far from those before as can be."""
    chosen = grasps[:1]

    def newness(grasp: Grasp) -> float:
        distances = (grasp.object_from_tool.distance(other.object_from_tool) for other in chosen)
        return min(metres + 0.02 * radians for metres, radians in distances)

    while len(chosen) < min(count, len(grasps)):
        chosen.append(max(grasps, key=newness))
    return chosen


def grasps_picture() -> np.ndarray:
    """Draw six grasps on each of three meshes."""
    hand = tk.load_scene("panda_table")
    scene = tk.SceneGraph()
    bowl = mesh_of(trimesh.creation.cone(0.03, 0.1))
    for number, shape in enumerate((l_mesh(), mug(), bowl)):
        thing = tk.AttachedShape(shape, color=GREY, level="exact")
        alone = hand.add_frame("thing", "world", pose=tk.Pose([3.0, 0.0, 0.0]), shapes=[thing])
        grasps = [g for g in grasps_of(alone, "thing", robot=PANDA) if "over" not in g.name]
        shown = apart([g for g in grasps if g.object_from_tool.rotation[2, 2] < -0.3], 6)
        lift = -float(np.asarray(shape.bounds[0])[2])
        pose = tk.Pose.from_rpy([0.0, 0.22 * (number - 1), lift], [0.0, 0.0, 0.5])
        scene = scene.add_frame(f"thing{number}", "world", pose=pose, shapes=[thing])
        for k, grasp in enumerate(shown):
            parts = glyph(grasp, (ORANGE, BLUE, GREEN)[k % 3])
            scene = scene.add_frame(f"grasp{number}_{k}", f"thing{number}", shapes=parts)
    with Simulation.from_scene(scene) as simulation:
        camera = Camera(
            (0.62, -0.12, 0.42),
            (0.0, 0.0, 0.055),
            field_of_view=math.radians(23.0),
            width=1100,
            height=460,
        )
        return render(simulation, camera)


def faces_picture() -> np.ndarray:
    """Draw the L on each of its stable faces."""
    scene = tk.SceneGraph()
    thing = tk.AttachedShape(l_mesh(), color=ORANGE, level="exact")
    faces = stable_faces(scene.add_frame("thing", "world", shapes=[thing]), "thing")
    for number, face in enumerate(faces):
        turned = tk.Pose.from_rpy(
            [0.0, 0.19 * (number - (len(faces) - 1) / 2), face.height], [0.0, 0.0, 0.6]
        )
        low = np.column_stack(
            [face.outline.vertices * 1.0, np.full(len(face.outline.vertices), -face.height)]
        )
        slab = trimesh.convex.convex_hull(np.concatenate([low, low - [0.0, 0.0, 0.004]]))
        base = tk.AttachedShape(mesh_of(slab), face.rotation.inverse(), color=BLUE, collision=False)
        scene = scene.add_frame(
            f"face{number}", "world", pose=turned @ face.rotation, shapes=[thing, base]
        )
    with Simulation.from_scene(scene) as simulation:
        eye, target = (0.8, -0.1, 0.5), (0.0, 0.0, 0.03)
        return render(
            simulation,
            Camera(eye, target, field_of_view=math.radians(20.0), width=1100, height=330),
        )


def main() -> None:
    """Write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    folder = parser.parse_args().out
    for name, picture in (("grasps.png", grasps_picture()), ("stable_faces.png", faces_picture())):
        write_picture(folder / name, picture)
        print(folder / name, (folder / name).stat().st_size)


if __name__ == "__main__":
    main()
