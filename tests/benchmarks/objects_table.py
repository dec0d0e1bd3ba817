"""Objects placed in every way, in both engines.

Run by hand: ``python tests/benchmarks/objects_table.py [SEED:SEED] [OBJECT...] [--out
docs/results/tables/objects.md]``.

The mug of pybullet_data (its visual mesh, cut into convex pieces) and ours are held by their wall
or handle, and put upright on a tray, upside down on it or on two bars, and hung on a peg; the other
dishes of the scene are put on the tray, the lid also beside its box and back on it, and the pan is
moved on the table. A row has the plans that are valid, the simulations that end within 1 cm and 5
degrees (15 by the wall), and the largest errors at the end and in the hand. The seeds are those
from the first to the last.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pybullet_data
from benchmarks.tables import LiveTable, markdown_head, table_parser

import tmkit as tk
from tmkit.formats import in_pieces
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
from tmkit.manipulation import Grasp, GraspRequest, Samplers, sample_grasps
from tmkit.plans import ObjectAt
from tmkit.spatial import Pose

HEAD = """# Objects put down in every way

A Panda takes an object of the scene `dishes` and puts it down. Each plan is validated and executed
in both simulators, where it succeeds within 1 cm and 5 degrees, 15 degrees where the mug is held by
its wall. *Ends within* and *in the hand*: the largest errors at the end and while carried. Planning
time is the mean in processor seconds. Written by `python tests/benchmarks/objects_table.py {seeds}
--out docs/results/tables/objects.md`: first and last seed.
"""
"""First lines of the table."""

_ENGINES: tuple[Literal["pybullet", "mujoco"], ...] = ("pybullet", "mujoco")
# height, and where the handle begins along y
_MUGS = {"mug": (0.095, 0.041), "pybullet_data's mug": (0.1, 0.047)}
_DISHES = ("bowl", "bottle", "box", "lid", "pan")
_WAYS = (
    ("wall", "upright"),
    ("handle", "upright"),
    ("wall", "upside down on bars"),
    ("handle", "upside down"),
    ("wall", "hung on a peg"),
    ("handle", "hung on a peg"),
)
_WAYS_OF = {
    "lid": (
        ("any part", "upright"),
        ("any part", "beside the box"),
        ("any part", "back on the box"),
    ),
    "pan": (("any part", "elsewhere on the table"),),
}
_POSITION, _ROTATION = 0.01, {"wall": 15.0}  # tolerance [m], and [deg], 5 if not by the wall


def scene(name: str) -> tk.SceneGraph:
    """Return a Panda at a table with racks, a tray and one object."""
    world = tk.load_scene("panda_table", "dishes")
    base_name = "mug" if name in _MUGS else "box" if name == "lid" else name
    for other in ("mug", *(dish for dish in _DISHES if dish != "lid")):
        if other != base_name:
            world = world.remove_frame(other, subtree=True)
    if name == "box":
        # no surface: it is carried
        return world.remove_frame("lid", subtree=True).set_classes("box", ["movable"])
    if name == "lid":
        return world.set_classes("box", ["surface"])
    if name != "pybullet_data's mug":
        return world
    mesh = MeshLoader().load(MeshSpec(Path(pybullet_data.getDataPath()) / "objects" / "mug.obj"))
    pieces = in_pieces(tk.AttachedShape(mesh, color=[0.8, 0.25, 0.2, 1.0]))
    return world.set_shapes("mug", pieces).set_inertia("mug", None)


def by(part: str, begins: float) -> Samplers:
    """Return samplers whose grasps are those of the wall or of the handle."""

    def some(request: GraspRequest) -> Iterator[Grasp]:
        for grasp in sample_grasps(request):
            if (grasp.object_from_tool.translation[1] > begins) == (part == "handle"):
                yield grasp

    return Samplers().with_grasps(some)


def goal_of(height: float, where: str) -> list[Any]:
    """Return a goal of a mug."""
    if where == "upright":
        return ["(and (on mug tray) (handempty))"]
    if where == "hung on a peg":
        return ["(and (on mug peg) (handempty))"]
    if where == "upside down":
        pose = Pose.from_rpy([0.0, 0.0, 0.006 + height], [math.pi, 0.0, 0.4])
        return ["(handempty)", ObjectAt("mug", pose, relative_to="tray", metres=0.02, radians=0.5)]
    pose = Pose.from_rpy([0.08, 0.0, 0.0054 + height], [math.pi, 0.0, 0.0])
    return ["(handempty)", ObjectAt("mug", pose, relative_to="bars", metres=0.01, radians=math.pi)]


def rows(name: str, seeds: range) -> Iterator[str]:
    """Yield the rows of an object."""
    for part, where in _WAYS if name in _MUGS else _WAYS_OF.get(name, (("any part", "upright"),)):
        world, samplers = scene(name), Samplers()
        top = world.pose("tray", relative_to="table").translation[2] - 0.005
        goal: list[Any] = [
            f"(and (on {name} {'table' if where == 'beside the box' else 'tray'}) (handempty))"
        ]
        if name in _MUGS:
            height, begins = _MUGS[name]
            goal, samplers = goal_of(height, where), by(part, begins)
        elif where == "back on the box":  # from the table to where it lay on the rim
            on_box = world.pose("lid", relative_to="box")
            goal = [
                "(handempty)",
                ObjectAt("lid", on_box, relative_to="box", metres=0.003, radians=0.1),
            ]
            world = world.reparent("lid", "table", pose=Pose([-0.15, -0.15, top + 0.002]))
        elif name == "pan":
            world = world.set_pose("pan", Pose([-0.12, -0.25, top]))
            pose = Pose([0.08, 0.0, top])
            goal = [
                "(handempty)",
                ObjectAt("pan", pose, relative_to="table", metres=0.03, radians=0.5),
            ]
        begin = time.process_time()
        results = [
            tk.plan(
                world,
                domain="kitchen",
                goal=goal,
                robot="panda",
                seed=seed,
                options=tk.PlanningOptions(samplers=samplers, time_limit=120),
            )
            for seed in seeds
        ]
        seconds = (time.process_time() - begin) / len(seeds)
        plans = [result.plan for result in results if result.plan is not None]
        valid = sum(tk.validate_plan(plan).is_valid for plan in plans)
        radians = math.radians(_ROTATION.get(part, 5.0))
        for engine in _ENGINES:
            reports = [
                tk.simulate(
                    plan,
                    options=tk.SimulationOptions(
                        engine=engine, position_tolerance=_POSITION, rotation_tolerance=radians
                    ),
                )
                for plan in plans
            ]
            good = sum(report.is_successful for report in reports)
            metres = 1e3 * max((report.worst_position for report in reports), default=math.nan)
            turned = math.degrees(
                max((report.worst_rotation for report in reports), default=math.nan)
            )
            slips = [slip for report in reports for slip in report.slips]
            slip = 1e3 * max((slip_error.position for slip_error in slips), default=math.nan)
            twist = math.degrees(
                max((slip_error.rotation for slip_error in slips), default=math.nan)
            )
            yield (
                f"| {name} | {part} | {where} | {valid} of {len(seeds)} | {seconds:.1f} s |"
                f" {engine} | {good} of {len(plans)} | {metres:.1f} mm, {turned:.1f} deg |"
                f" {slip:.1f} mm, {twist:.1f} deg |"
            )


def main() -> None:
    """Print the table, and write it if selected."""
    parser = table_parser(__doc__)
    parser.add_argument("seeds", nargs="?", default="0:4", metavar="SEED:SEED", help="first:last")
    parser.add_argument("names", nargs="*", metavar="OBJECT", help="objects; by default all")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    titles = (
        "object | held by | put down | valid plans | planned in | engine | succeeded | ends within"
        " | in the hand"
    )
    table = LiveTable([HEAD.format(seeds=options.seeds), *markdown_head(titles)])
    for name in options.names or [*_MUGS, *_DISHES]:
        for row in rows(name, range(first, last + 1)):
            table.add(row)
    table.write(options.out)


if __name__ == "__main__":
    main()
