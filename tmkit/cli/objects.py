"""Commands about the objects of scenes (``tmkit object add``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from tmkit.cli.common import AsJson, require_writable
from tmkit.cli.reporting import print_json, progress, say

app = typer.Typer(help="Prepare objects for scenes.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def add(
    mesh: Annotated[Path, typer.Argument(metavar="MESH", help="The object: .obj, .stl, .dae, .ply, .glb.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE.json", help="The scene file.")] = None,
    scale: Annotated[float, typer.Option(help="Metres of the file's unit.")] = 1.0,
    mass: Annotated[float | None, typer.Option(help="Kilograms; by default volume times 500 kg/m^3.")] = None,
    friction: Annotated[float | None, typer.Option(help="The friction coefficient of its surface.")] = None,
    max_error: Annotated[float, typer.Option(help="Millimetres by which a convex piece may lie outside.")] = 1.0,
    max_pieces: Annotated[int, typer.Option(help="Convex pieces at most.")] = 64,
    time_limit: Annotated[float, typer.Option(help="Seconds of processor time in which it is cut.")] = 120.0,
    robot: Annotated[str, typer.Option(metavar="NAME", help="The arm whose grasps are counted.")] = "panda",
    picture: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the object in its pieces.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a scene file of a mesh: cut in convex pieces, with its mass, movable, standing on its most stable face.

    Cutting takes seconds to a minute, once for each mesh.
    """
    from tmkit.formats import write_json_scene
    from tmkit.formats.convex_pieces import in_pieces
    from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
    from tmkit.graph import AttachedShape

    name = re.sub(r"\W+", "_", re.sub(r"^(?=[\W\d_])", "o", mesh.stem))  # which PDDL takes, too
    target = output or Path(f"{name}.json")
    for file in (target, picture):
        if file is not None:
            require_writable(file)
    with progress("cutting the mesh into convex pieces"):
        shape = MeshLoader().load(MeshSpec(mesh, (scale, scale, scale)))
        limits = {"max_error": 1e-3 * max_error, "max_pieces": max_pieces, "time_limit": time_limit}
        shapes = in_pieces(AttachedShape(shape, friction=friction), **limits)
    scene, report = _described(name, shapes, mass, robot)
    write_json_scene(scene, target)
    if picture is not None:
        from tmkit.simulation import StillScene, fit_camera, render, write_picture

        coloured = scene.set_shapes(name, [_coloured(part, number) for number, part in enumerate(shapes) if number])
        write_picture(picture, render(coloured, fit_camera(StillScene(coloured), focus=[name], width=640, height=480)))
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        say(f"  {key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    say(f"Written to {target}")


def _described(name: str, shapes: Any, mass: float | None, robot: str) -> tuple[Any, dict[str, Any]]:
    """Return the scene of an object, and what is to be said about it."""
    from tmkit.errors import SceneError
    from tmkit.formats import load_scene
    from tmkit.graph import Free, Inertia, SceneGraph
    from tmkit.manipulation.grasps.sampling import grasps_of
    from tmkit.manipulation.placements.stable_faces import stable_faces
    from tmkit.motion.masses import lumped_inertia
    from tmkit.robots import load_manipulator
    from tmkit.spatial import Pose

    bare = SceneGraph().add_frame(name, "world", joint=Free(), classes=["movable"], shapes=shapes)
    inertia = lumped_inertia(bare, (name,), density=500.0)
    share = 1.0 if mass is None else mass / inertia.mass
    inertia = Inertia(share * inertia.mass, inertia.center, matrix=share * inertia.matrix)
    faces = stable_faces(bare.set_inertia(name, inertia), name)
    if not faces:
        raise SceneError(
            f"'{name}' has no face on which it rests: its centre of mass is above none of its hull's facets"
        )
    upright = next((face for face in faces if face.is_upright), faces[0])
    pose = Pose([0.0, 0.0, upright.height]) @ upright.rotation
    scene = bare.set_inertia(name, inertia).set_pose(name, pose)
    alone = scene.rename_frame("world", "world of the object").rename_frame(name, "the object")  # which no scene has
    hand = load_scene(f"{robot}_table").merge(alone)
    lower, upper = shapes[0].shape.bounds
    return scene, {
        "size in mm": [round(1e3 * float(side), 1) for side in upper - lower],
        "convex pieces": len(shapes) - 1,
        "mass in kg": round(inertia.mass, 4),
        "stable poses": [face.name for face in faces],
        f"grasps of {robot}": len(grasps_of(hand, "the object", manipulator=load_manipulator(robot))),
    }


def _coloured(part: Any, number: int) -> Any:
    from tmkit.graph import AttachedShape

    hue = (0.618 * number) % 1.0
    color = [0.35 + 0.6 * abs(((hue + k / 3.0) % 1.0) * 2.0 - 1.0) for k in range(3)]
    return AttachedShape(part.shape, part.pose, color=[*color, 1.0])
