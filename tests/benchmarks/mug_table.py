"""The mug of pybullet_data by wall and handle, in both engines: ``python tests/benchmarks/mug_table.py [SEEDS]``.

The visual mesh, which is not watertight, is cut into convex pieces; a Panda lifts the mug and puts it on a tray,
upright or upside down. Per row: plans that are valid, simulations that succeed, and the largest errors at the end and
turns in the hand.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pybullet_data

import tmkit as tk
from tmkit.formats import in_pieces
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
from tmkit.manipulation import Grasp, GraspRequest, Samplers, sample_grasps
from tmkit.plans import ObjectAt
from tmkit.spatial import Pose

_ENGINES: tuple[Literal["pybullet", "mujoco"], ...] = ("pybullet", "mujoco")
_HANDLE = 0.047  # metres along y beyond which the mug is its handle


def scene() -> tk.SceneGraph:
    """Return a Panda at a table with the mug and a tray."""
    mesh = MeshLoader().load(MeshSpec(Path(pybullet_data.getDataPath()) / "objects" / "mug.obj"))
    tray = tk.AttachedShape(tk.Box([0.3, 0.3, 0.01]), color=[0.6, 0.6, 0.65, 1.0])
    world = tk.load_scene("panda_table")
    world = world.add_frame("tray", "table", pose=Pose([-0.1, 0.3, 0.03]), classes=["region"], shapes=[tray])
    mug = in_pieces(tk.AttachedShape(mesh, color=[0.8, 0.25, 0.2, 1.0]))
    return world.add_frame(
        "mug", "table", pose=Pose([-0.1, -0.2, 0.0255]), joint=tk.Free(), classes=["movable"], shapes=mug
    )


def by(part: str) -> Samplers:
    """Return samplers whose grasps are those of the wall or of the handle."""

    def some(request: GraspRequest) -> Iterator[Grasp]:
        for grasp in sample_grasps(request):
            if (grasp.object_from_tool.translation[1] > _HANDLE) == (part == "handle"):
                yield grasp

    return Samplers().with_grasps(some)


def main(seeds: int) -> None:
    """Print the table."""
    start = scene()
    print("| held by | put down | valid plans | engine | succeeded | ends within | in the hand |")
    print("|---|---|---|---|---|---|---|")
    for part, flipped in (("wall", False), ("handle", False), ("handle", True)):
        pose = Pose.from_rpy([0.0, 0.0, 0.106 if flipped else 0.006], [math.pi if flipped else 0.0, 0.0, 0.4])
        goal = ObjectAt("mug", pose, relative_to="tray", metres=0.02, radians=0.5 if flipped else math.pi)
        found = [
            tk.plan(start, domain="kitchen", goal=["(handempty)", goal], robot="panda", seed=seed, samplers=by(part))
            for seed in range(seeds)
        ]
        plans = [result.plan for result in found if result.plan is not None]
        valid = sum(tk.validate_plan(plan).is_valid for plan in plans)
        for engine in _ENGINES:
            reports = [tk.simulate(plan, engine=engine) for plan in plans]
            good = sum(report.is_successful for report in reports)
            metres = 1e3 * max((report.worst_position for report in reports), default=math.nan)
            turned = math.degrees(max((report.worst_rotation for report in reports), default=math.nan))
            slips = [slip for report in reports for slip in report.slips]
            slip = 1e3 * max((one.position for one in slips), default=math.nan)
            twist = math.degrees(max((one.rotation for one in slips), default=math.nan))
            where = "upside down" if flipped else "upright"
            print(
                f"| {part} | {where} | {valid} of {seeds} | {engine} | {good} of {len(plans)} "
                f"| {metres:.1f} mm, {turned:.1f} deg | {slip:.1f} mm, {twist:.1f} deg |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5)
