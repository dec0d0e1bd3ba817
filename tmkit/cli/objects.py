"""Commands for objects of scenes: ``tmkit object add`` and ``grasps``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit.cli.common import AsJson, require_writable
from tmkit.cli.grasps import grasps
from tmkit.cli.option_groups import add_command
from tmkit.cli.reporting import print_json, progress, say
from tmkit.errors import SceneError

if TYPE_CHECKING:
    from tmkit.graph import AttachedShape, SceneGraph
    from tmkit.manipulation.placements.stable_faces import StableFace

app = typer.Typer(help="Prepare objects for scenes.", no_args_is_help=True)

_OBJECT_FRAME = "the object"
"""Frame of the object in the scene of the arm; no scene file has a frame of this name."""

_MAX_FACES = 12
"""Number of stable faces on which the hand is tested."""

_GRASP_SEEDS = 3
"""Number of seeds of the grasp sampler for which the hand must have room."""

_APPROACH_DISTANCE = 0.08
"""Length of the straight approach to a grasp [m]."""


@dataclass(frozen=True)
class BodyOptions:
    """Unit, mass and friction of an object."""

    scale: Annotated[float, typer.Option(help="Metres of the mesh's unit.")] = 1.0
    mass: Annotated[
        float | None,
        typer.Option(help="Kilograms; by default those of the URDF, or volume times 500 kg/m^3."),
    ] = None
    friction: Annotated[
        float | None, typer.Option(help="The friction coefficient of its surface.")
    ] = None


@dataclass(frozen=True)
class DecompositionOptions:
    """Accuracy and limits of the convex decomposition of a mesh."""

    max_error: Annotated[
        float, typer.Option(help="Millimetres by which a convex piece may lie outside.")
    ] = 1.0
    max_pieces: Annotated[int, typer.Option(help="Convex pieces at most.")] = 64
    time_limit: Annotated[
        float, typer.Option(help="Seconds of processor time in which it is cut.")
    ] = 120.0


@app.callback()
def _group() -> None:
    pass


def add(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A mesh (.obj, .stl, .dae, .ply, .glb) or a .urdf."),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.json", help="The scene file.")
    ] = None,
    body: BodyOptions,
    decomposition: DecompositionOptions,
    robot: Annotated[
        str, typer.Option(metavar="NAME", help="The arm that is to take it.")
    ] = "panda",
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the object in its pieces.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a scene file with a movable object, from a mesh or a URDF without joints.

    The object is cut into convex pieces, and has its mass. It stands on its most stable face on
    which the hand has room for a grasp, with z up if possible. An object that the hand cannot
    grasp is rejected. Cutting takes seconds to a minute, once for each mesh.
    """
    from tmkit.formats import write_json_scene
    from tmkit.formats.convex_pieces import in_pieces

    # A frame name that is valid in PDDL, too.
    name = re.sub(r"\W+", "_", re.sub(r"^(?=[\W\d_])", "o", file.stem))
    target = output or Path(f"{name}.json")
    for path in (target, picture):
        if path is not None:
            require_writable(path)
    shapes, file_mass = _read_shapes(file, body.scale, body.friction)
    object = _Object(name, robot, file_mass if body.mass is None else body.mass)
    object.require_graspable(shapes)
    cut_pieces = partial(
        in_pieces,
        max_error=1e-3 * decomposition.max_error,
        max_pieces=decomposition.max_pieces,
        time_limit=decomposition.time_limit,
    )
    with progress("cutting the mesh into convex pieces"):
        pieces: list[AttachedShape] = []
        for part in shapes:
            is_mesh = part.collision and part.shape.kind == "mesh"
            pieces.extend(cut_pieces(part) if is_mesh else (part,))
    scene, report = object.find_stable_pose(
        [piece for piece in pieces if piece.visual or piece.collision]
    )
    write_json_scene(scene, target)
    if picture is not None:
        _draw_pieces(scene, name, picture)
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        say(f"  {key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    say(f"Written to {target}")


def _draw_pieces(scene: SceneGraph, name: str, path: Path) -> None:
    """Draw the convex pieces of an object in different colours."""
    from tmkit.simulation import fit_camera, render, write_picture
    from tmkit.simulation.rendering.studio import StillScene

    pieces = [
        _set_piece_color(part, index)
        for index, part in enumerate(scene.shapes(name))
        if part.collision
    ]
    colored = scene.set_shapes(name, pieces)
    camera = fit_camera(StillScene(colored), focus=[name], width=640, height=480)
    write_picture(path, render(colored, camera))


def _read_shapes(
    file: Path, scale: float, friction: float | None
) -> tuple[list[AttachedShape], float | None]:
    """Return the shapes of a file in one frame, and the mass [kg] if the file defines one.

    Args:
        scale: length of the unit of a mesh [m].
        friction: friction coefficient that replaces those of the file.

    Raises:
        SceneError: if a frame of a URDF file has a joint.
    """
    from tmkit.formats import load_scene
    from tmkit.formats.mesh.meshes import MESH_SUFFIXES, MeshLoader, MeshSpec
    from tmkit.graph import AttachedShape

    if file.suffix.lower() in MESH_SUFFIXES:
        mesh = MeshLoader().load(MeshSpec(file, (scale, scale, scale)))
        return [AttachedShape(mesh, friction=friction)], None
    if scale != 1.0:
        raise typer.BadParameter(f"{file.name} gives its own units", param_hint="--scale")
    scene = load_scene(file)
    for frame in scene.frame_names:
        if scene.joint(frame).type != "fixed":
            raise SceneError(
                f"{file}: '{frame}' has a joint, and an object is one rigid body", frame=frame
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
    """An object, and the arm that picks it from a table.

    Args:
        name: frame of the object.
        robot: name of the arm, whose scene has the frame ``table``.
        mass: mass [kg]. Defaults to the volume times 500 kg/m^3.
    """

    def __init__(self, name: str, robot: str, mass: float | None) -> None:
        from tmkit.formats import load_scene
        from tmkit.robots import load_manipulator

        self.name, self.mass, self.robot = name, mass, load_manipulator(robot)
        self._table_scene = load_scene(f"{robot}_table")

    def require_graspable(self, shapes: Sequence[AttachedShape]) -> None:
        """Check that an object is solid, light and small enough, and that the fingers fit it.

        Raises:
            SceneError: if the arm cannot pick the object in any pose.
        """
        import numpy as np

        from tmkit.manipulation.grasps.meshes import antipodal_pairs
        from tmkit.manipulation.grasps.values import FINGER_CLEARANCE
        from tmkit.motion.masses import solid_centre
        from tmkit.motion.regions.solids import solids_of

        solids, arm = tuple(part for part in shapes if part.collision), self.robot
        if not solids:
            raise SceneError(f"'{self.name}' has no shape that collides", frame=self.name)
        mass = self._make_scene(shapes)[1]
        if mass > arm.payload:
            source = "its mass" if self.mass is not None else "its volume times 500 kg/m^3"
            raise self._error(
                solids, f"{source} is {mass:.3g} kg, and the arm carries {arm.payload:g} kg"
            )
        length, width, _ = self._measure(solids_of(self._table_scene, "table"))
        shortest_sides = sorted(self._measure(solids))[:2]
        if any(
            side > limit
            for side, limit in zip(shortest_sides, sorted((length, width)), strict=True)
        ):
            raise self._error(
                solids, f"on none of its sides it fits on a table of {length:g} x {width:g} mm"
            )
        max_width = arm.width_open - 2.0 * FINGER_CLEARANCE
        if len(solids) > 1 or solids[0].shape.kind != "mesh" or arm.gripper_kind == "suction":
            return
        shape, rng = solids[0].shape, np.random.default_rng(0)
        centre = solids[0].pose.inverse().apply(solid_centre(solids[0]))
        if not antipodal_pairs(shape, centre=centre, widths=(1e-4, max_width), rng=rng):
            raise self._error(
                solids, f"no two opposite sides of it are at most {1e3 * max_width:.0f} mm apart"
            )

    def find_stable_pose(
        self, shapes: Sequence[AttachedShape]
    ) -> tuple[SceneGraph, dict[str, Any]]:
        """Return the scene of the object on its best stable face, and a report.

        The best face is the most stable one on which the hand has room for a grasp with every seed
        of the sampler. Upright faces are tried first.

        Raises:
            SceneError: if the object has no stable face, or none with room for the hand.
        """
        from tmkit.manipulation.placements.stable_faces import stable_faces

        arm, solids = self.robot, tuple(part for part in shapes if part.collision)
        faces = stable_faces(self._make_scene(shapes)[0], self.name)
        if not faces:
            raise self._error(
                solids, "its centre of mass is above none of its hull's facets, so it rests on none"
            )
        reasons: list[str] = []
        best: _FaceTrial | None = None
        best_face = faces[0]
        for face in sorted(faces, key=lambda face: not face.is_upright)[:_MAX_FACES]:
            trial = self._try_face(shapes, face, reasons)
            if best is None or trial.successes > best.successes:
                best, best_face = trial, face
            if trial.successes == _GRASP_SEEDS:
                break
        if best is None or best.successes == 0:
            raise self._error(
                solids,
                f"in none of its {len(reasons)} stable poses it can be taken from a table:"
                f" {reasons[0]}",
            )
        report = {
            "size in mm": self._measure(solids),
            "convex pieces": len(solids),
            "mass in kg": round(best.mass, 4),
            "stable poses": [face.name for face in faces],
            "stands with": best_face.name,
            f"grasps of {arm.name}": best.grasps,
        }
        return best.scene, report

    def _try_face(
        self, shapes: Sequence[AttachedShape], face: StableFace, reasons: list[str]
    ) -> _FaceTrial:
        """Count the seeds with which the hand can grasp the object on a face, up to a failure.

        Args:
            reasons: the reason of a failure is appended.

        Raises:
            SceneError: if no grasp is found for the first face and seed.
        """
        import numpy as np

        from tmkit.graph import Free
        from tmkit.manipulation.grasps.sampling import grasps_of, upright_grasps
        from tmkit.motion.regions.surfaces import support_surfaces
        from tmkit.spatial import Pose
        from tmkit.tamp.geometric_causes import explain_blocked_grasps

        # Put the object on the table, with the face down.
        arm = self.robot
        placed_shapes, orientation = shapes, face.rotation
        if not face.is_upright:
            placed_shapes = [part.replace(pose=face.rotation @ part.pose) for part in shapes]
            orientation = Pose()
        pose = Pose([0.0, 0.0, face.height]) @ orientation
        scene, mass = self._make_scene(placed_shapes)
        scene = scene.set_pose(self.name, pose)
        surface, *_ = support_surfaces(self._table_scene, "table", q=None)
        world = self._table_scene.add_frame(
            _OBJECT_FRAME,
            "table",
            pose=surface.support_from_surface @ pose,
            joint=Free(),
            classes=["movable"],
            shapes=placed_shapes,
        )
        world = world.set_inertia(_OBJECT_FRAME, scene.inertia(self.name))

        # Sample grasps with several seeds, until one has no grasp with room for the hand.
        count = 0
        for seed in range(_GRASP_SEEDS):
            rng = np.random.default_rng(seed)
            grasps = grasps_of(world, _OBJECT_FRAME, robot=arm, rng=rng)
            q = arm.ready_configuration(world)
            if not grasps and not reasons and seed == 0:
                raise self._error(
                    tuple(part for part in shapes if part.collision),
                    "at each pair of its opposite sides the hand meets it elsewhere, or its"
                    " fingers slide off",
                )
            bearing_grasps = upright_grasps(world, _OBJECT_FRAME, grasps, arm)
            reason = explain_blocked_grasps(
                world,
                q,
                _OBJECT_FRAME,
                grasps=bearing_grasps,
                robot=arm,
                approach=_APPROACH_DISTANCE,
            )
            if not bearing_grasps:
                reason = (
                    f"none of its {len(grasps)} grasps bears its weight of {mass:.3g} kg upright"
                )
            if reason is not None:
                reasons.append(f"with {face.name}, {reason.replace(_OBJECT_FRAME, self.name)}")
                return _FaceTrial(seed, scene, mass, count)
            count = len(bearing_grasps)
        return _FaceTrial(_GRASP_SEEDS, scene, mass, count)

    def _make_scene(self, shapes: Sequence[AttachedShape]) -> tuple[SceneGraph, float]:
        """Return the scene of the object alone, and its mass [kg].

        The density is uniform.
        """
        from tmkit.graph import Free, Inertia, SceneGraph
        from tmkit.motion.masses import DENSITY, lumped_inertia

        scene = SceneGraph().add_frame(
            self.name, "world", joint=Free(), classes=["movable"], shapes=shapes
        )
        inertia = lumped_inertia(scene, (self.name,), density=DENSITY)
        factor = 1.0 if self.mass is None else self.mass / inertia.mass
        inertia = Inertia(factor * inertia.mass, inertia.center, matrix=factor * inertia.matrix)
        return scene.set_inertia(self.name, inertia), inertia.mass

    def _measure(self, solids: tuple[AttachedShape, ...]) -> list[float]:
        """Return the side lengths of the axis-aligned bounding box of some solids [mm]."""
        from tmkit.motion.regions.solids import reach

        axes = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
        return [
            round(1e3 * (reach(solids, axis) + reach(solids, [-x for x in axis])), 1)
            for axis in axes
        ]

    def _error(self, solids: tuple[AttachedShape, ...], reason: str) -> SceneError:
        """Return the error of an object that the arm cannot pick, with its size."""
        size = " x ".join(f"{side:g}" for side in self._measure(solids))
        return SceneError(
            f"'{self.name}', {size} mm, is not an object for arm '{self.robot.name}': {reason}"
        )


@dataclass(frozen=True, eq=False)
class _FaceTrial:
    """Grasps of an object on one stable face.

    Attributes:
        successes: number of seeds with a grasp, before the first without.
        scene: scene of the object alone, on the face.
        mass: mass of the object [kg].
        grasps: number of grasps with the last successful seed.
    """

    successes: int
    scene: SceneGraph
    mass: float
    grasps: int


def _set_piece_color(part: AttachedShape, index: int) -> AttachedShape:
    """Return a piece in a colour that differs from those of the previous indices."""
    from tmkit.graph import AttachedShape

    hue = (0.618 * index) % 1.0
    color = [0.35 + 0.6 * abs(((hue + k / 3.0) % 1.0) * 2.0 - 1.0) for k in range(3)]
    return AttachedShape(part.shape, part.pose, color=[*color, 1.0])


add_command(app, add)
add_command(app, grasps)
