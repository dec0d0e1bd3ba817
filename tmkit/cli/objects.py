"""Commands about the objects of scenes (``tmkit object add``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit.cli.common import AsJson, require_writable
from tmkit.cli.reporting import print_json, progress, say
from tmkit.errors import SceneError

if TYPE_CHECKING:
    from tmkit.graph import AttachedShape, SceneGraph

app = typer.Typer(help="Prepare objects for scenes.", no_args_is_help=True)

_NAME = "the object"  # in the scene of the arm: a name that no scene has
_FACES, _SEEDS = 12, 3  # stable faces on which the hand is tried, and how often where it has room
_APPROACH = 0.08  # metres of the straight way to a grasp


@app.callback()
def _group() -> None:
    pass


@app.command()
def add(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A mesh (.obj, .stl, .dae, .ply, .glb) or a .urdf."),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.json", help="The scene file.")
    ] = None,
    scale: Annotated[float, typer.Option(help="Metres of the mesh's unit.")] = 1.0,
    mass: Annotated[
        float | None,
        typer.Option(help="Kilograms; by default those of the URDF, or volume times 500 kg/m^3."),
    ] = None,
    friction: Annotated[
        float | None, typer.Option(help="The friction coefficient of its surface.")
    ] = None,
    max_error: Annotated[
        float, typer.Option(help="Millimetres by which a convex piece may lie outside.")
    ] = 1.0,
    max_pieces: Annotated[int, typer.Option(help="Convex pieces at most.")] = 64,
    time_limit: Annotated[
        float, typer.Option(help="Seconds of processor time in which it is cut.")
    ] = 120.0,
    robot: Annotated[
        str, typer.Option(metavar="NAME", help="The arm that is to take it.")
    ] = "panda",
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the object in its pieces.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a scene file of a mesh or a URDF without joints: cut in convex pieces, with its mass, movable.

    It stands on its most stable face on which the hand has room for a grasp, upright where it can,
    its z axis up; what the hand cannot take is refused. Cutting takes seconds to a minute, once for
    each mesh.
    """
    from tmkit.formats import write_json_scene
    from tmkit.formats.convex_pieces import in_pieces

    name = re.sub(r"\W+", "_", re.sub(r"^(?=[\W\d_])", "o", file.stem))  # which PDDL takes, too
    target = output or Path(f"{name}.json")
    for written in (target, picture):
        if written is not None:
            require_writable(written)
    shapes, given = _read(file, scale, friction)
    object = _Object(name, robot, given if mass is None else mass)
    object.refuse(shapes)
    cut_one = partial(
        in_pieces, max_error=1e-3 * max_error, max_pieces=max_pieces, time_limit=time_limit
    )
    with progress("cutting the mesh into convex pieces"):
        cut = [
            cut_one(part) if part.collision and part.shape.kind == "mesh" else (part,)
            for part in shapes
        ]
    scene, report = object.described(
        [part for parts in cut for part in parts if part.visual or part.collision]
    )
    write_json_scene(scene, target)
    if picture is not None:
        from tmkit.simulation import fit_camera, render, write_picture
        from tmkit.simulation.rendering.studio import StillScene

        parts = [
            _coloured(part, number)
            for number, part in enumerate(scene.shapes(name))
            if part.collision
        ]
        coloured = scene.set_shapes(name, parts)
        write_picture(
            picture,
            render(coloured, fit_camera(StillScene(coloured), focus=[name], width=640, height=480)),
        )
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        say(f"  {key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    say(f"Written to {target}")


def _read(
    file: Path, scale: float, friction: float | None
) -> tuple[list[AttachedShape], float | None]:
    """Return the shapes of a file in one frame, and its mass where it gives one."""
    from tmkit.formats import load_scene
    from tmkit.formats.mesh.meshes import MESH_SUFFIXES, MeshLoader, MeshSpec
    from tmkit.graph import AttachedShape

    if file.suffix.lower() in MESH_SUFFIXES:
        return [
            AttachedShape(
                MeshLoader().load(MeshSpec(file, (scale, scale, scale))), friction=friction
            )
        ], None
    if scale != 1.0:
        raise typer.BadParameter(f"{file.name} gives its own units", param_hint="--scale")
    scene = load_scene(file)
    if moving := [frame for frame in scene.frame_names if scene.joint(frame).type != "fixed"]:
        raise SceneError(
            f"{file}: '{moving[0]}' has a joint, and an object is one rigid body", frame=moving[0]
        )
    shapes = [
        AttachedShape(
            part.shape,
            scene.pose(frame) @ part.pose,
            color=part.color,
            visual=part.visual,
            collision=part.collision,
            friction=part.friction if friction is None else friction,
        )
        for frame in scene.frame_names
        for part in scene.shapes(frame)
    ]
    inertias = [scene.inertia(frame) for frame in scene.frame_names]
    return shapes, sum(inertia.mass for inertia in inertias if inertia is not None) or None


class _Object:
    """An object that an arm is to take; ``mass`` is in kg, None for volume times density."""

    def __init__(self, name: str, robot: str, mass: float | None) -> None:
        from tmkit.formats import load_scene
        from tmkit.robots import load_manipulator

        self.name, self.mass, self.manipulator = name, mass, load_manipulator(robot)
        self._world = load_scene(f"{robot}_table")

    def refuse(self, shapes: Sequence[AttachedShape]) -> None:
        """Refuse what has no solid, is too heavy or too large, or has no two sides between which the fingers fit."""
        import numpy as np

        from tmkit.manipulation.grasps.meshes import antipodal_pairs
        from tmkit.manipulation.grasps.values import FINGER_CLEARANCE
        from tmkit.motion.masses import solid_centre
        from tmkit.motion.regions.solids import solids_of

        solids, arm = tuple(part for part in shapes if part.collision), self.manipulator
        if not solids:
            raise SceneError(f"'{self.name}' has no shape that collides", frame=self.name)
        mass = self._scene(shapes)[1]
        if mass > arm.payload:
            whence = (
                f"its volume times 500 kg/m^3 is {mass:.3g}"
                if self.mass is None
                else f"its mass is {mass:.3g}"
            )
            raise self._refused(solids, f"{whence} kg, and the arm carries {arm.payload:g} kg")
        table = self._size(solids_of(self._world, "table"))
        if any(
            side > most
            for side, most in zip(sorted(self._size(solids)), sorted(table[:2]), strict=False)
        ):
            raise self._refused(
                solids, f"on none of its sides it fits on a table of {table[0]:g} x {table[1]:g} mm"
            )
        widest = arm.width_open - 2.0 * FINGER_CLEARANCE
        if len(solids) > 1 or solids[0].shape.kind != "mesh" or arm.gripper_kind == "suction":
            return
        shape, rng = solids[0].shape, np.random.default_rng(0)
        centre = solids[0].pose.inverse().apply(solid_centre(solids[0]))
        if not antipodal_pairs(shape, centre=centre, widths=(1e-4, widest), rng=rng):
            raise self._refused(
                solids, f"no two opposite sides of it are at most {1e3 * widest:.0f} mm apart"
            )

    def described(self, shapes: Sequence[AttachedShape]) -> tuple[SceneGraph, dict[str, Any]]:
        """Return the scene of the object in pieces, and what is to be said about it."""
        import numpy as np

        from tmkit.graph import Free
        from tmkit.manipulation.grasps.sampling import grasps_of, held_upright
        from tmkit.manipulation.placements.stable_faces import stable_faces
        from tmkit.motion.regions.surfaces import support_surfaces
        from tmkit.spatial import Pose
        from tmkit.tamp.geometric_causes import no_room_for_hand

        arm, solids = self.manipulator, tuple(part for part in shapes if part.collision)
        faces = stable_faces(self._scene(shapes)[0], self.name)
        if not faces:
            raise self._refused(
                solids, "its centre of mass is above none of its hull's facets, so it rests on none"
            )
        (top, *_), reasons = support_surfaces(self._world, "table", q=None), list[str]()
        best: tuple[int, SceneGraph, dict[str, Any]] | None = None
        for face in sorted(faces, key=lambda face: not face.is_upright)[:_FACES]:
            turned = (
                shapes
                if face.is_upright
                else [part.replace(pose=face.rotation @ part.pose) for part in shapes]
            )
            pose = Pose([0.0, 0.0, face.height]) @ (face.rotation if face.is_upright else Pose())
            scene, mass = self._scene(turned)
            scene = scene.set_pose(self.name, pose)
            there, kinds = top.support_from_surface @ pose, ["movable"]
            world = self._world.add_frame(
                _NAME, "table", pose=there, joint=Free(), classes=kinds, shapes=turned
            )
            world = world.set_inertia(_NAME, scene.inertia(self.name))
            count, passed = 0, 0
            for passed in range(_SEEDS):  # by other seeds other grasps are sampled
                rng = np.random.default_rng(passed)
                grasps, q = (
                    grasps_of(world, _NAME, manipulator=arm, rng=rng),
                    arm.ready_configuration(world),
                )
                if not grasps and not reasons and not passed:
                    near = (
                        "at each pair of its opposite sides the hand meets it elsewhere, or its"
                        " fingers slide off"
                    )
                    raise self._refused(solids, near)
                held = held_upright(world, _NAME, grasps, arm)
                reason = no_room_for_hand(
                    world, q, _NAME, grasps=held, manipulator=arm, approach=_APPROACH
                )
                if not held:
                    reason = (
                        f"none of its {len(grasps)} grasps bears its weight of {mass:.3g} kg"
                        " upright"
                    )
                if reason is not None:
                    reasons.append(f"with {face.name}, {reason.replace(_NAME, self.name)}")
                    break
                count = len(held)
            else:
                passed = _SEEDS
            if best is None or passed > best[0]:
                report = {
                    "size in mm": self._size(solids),
                    "convex pieces": len(solids),
                    "mass in kg": round(mass, 4),
                    "stable poses": [face.name for face in faces],
                    "stands with": face.name,
                    f"grasps of {arm.name}": count,
                }
                best = passed, scene, report
            if passed == _SEEDS:
                break
        if best is None or not best[0]:
            raise self._refused(
                solids,
                f"in none of its {len(reasons)} stable poses it can be taken from a table:"
                f" {reasons[0]}",
            )
        return best[1], best[2]

    def _scene(self, shapes: Sequence[AttachedShape]) -> tuple[SceneGraph, float]:
        """Return the object alone, its mass spread evenly over its solids, and its mass in kg."""
        from tmkit.graph import Free, Inertia, SceneGraph
        from tmkit.motion.masses import DENSITY, lumped_inertia

        bare = SceneGraph().add_frame(
            self.name, "world", joint=Free(), classes=["movable"], shapes=shapes
        )
        inertia = lumped_inertia(bare, (self.name,), density=DENSITY)
        share = 1.0 if self.mass is None else self.mass / inertia.mass
        inertia = Inertia(share * inertia.mass, inertia.center, matrix=share * inertia.matrix)
        return bare.set_inertia(self.name, inertia), inertia.mass

    def _size(self, solids: tuple[AttachedShape, ...]) -> list[float]:
        from tmkit.motion.regions.solids import reach

        axes = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
        return [
            round(1e3 * (reach(solids, axis) + reach(solids, [-x for x in axis])), 1)
            for axis in axes
        ]

    def _refused(self, solids: tuple[AttachedShape, ...], reason: str) -> SceneError:
        size = " x ".join(f"{side:g}" for side in self._size(solids))
        return SceneError(
            f"'{self.name}', {size} mm, is no object for arm '{self.manipulator.name}': {reason}"
        )


def _coloured(part: AttachedShape, number: int) -> AttachedShape:
    from tmkit.graph import AttachedShape

    hue = (0.618 * number) % 1.0
    color = [0.35 + 0.6 * abs(((hue + k / 3.0) % 1.0) * 2.0 - 1.0) for k in range(3)]
    return AttachedShape(part.shape, part.pose, color=[*color, 1.0])
