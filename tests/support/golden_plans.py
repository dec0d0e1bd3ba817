"""Plans that are equal to the byte on every CPU, and their digests.

``python tests/support/golden_plans.py`` prints the digests of the plan files as JSON; ``--renew``
writes them to ``tests/data/golden_plans.json``, which belongs to every change that makes the
planner find other plans; ``--out DIR`` keeps the plan files for comparison.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tmkit as tk
from support.classic import plan_problem, problem_file
from support.kitchen import ROBOT, kitchen, stove_goal
from support.meshes import l_mesh
from support.unsure_blocks import ON_B, unsure_blocks
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult

__all__ = ["GOLDEN", "PLANS", "digests", "versions"]

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden_plans.json"
_LIBRARIES = ("numpy", "scipy", "trimesh", "libcoal", "pybullet", "example-robot-data")
_TOWER = "(and (on a b) (on b c))"
_LIMIT_SECONDS = 600.0
"""Time limit of each plan, which a busy machine does not reach [s]."""

_OPTIONS = tk.PlanningOptions(time_limit=_LIMIT_SECONDS)


def _with_l() -> tk.SceneGraph:
    """Return the Panda with a mesh that lies turned on the table, and a tray."""
    scene = tk.load_scene("panda_table")
    tray = tk.AttachedShape(tk.Box([0.25, 0.25, 0.01]))
    scene = scene.add_frame(
        "tray", "table", pose=Pose([-0.1, 0.3, 0.03]), classes=["region"], shapes=[tray]
    )
    thing = tk.AttachedShape(l_mesh())
    pose = Pose.from_rpy([-0.1, -0.2, 0.0251], [0.0, 0.0, 0.4])
    return scene.add_frame(
        "thing", "table", pose=pose, joint=tk.Free(), classes=["movable"], shapes=[thing]
    )


def _blocks(robot: str) -> PlanResult:
    return tk.plan(
        tk.load_scene(f"{robot}_table", "blocks3"),
        domain="blocks",
        goal=_TOWER,
        robot=robot,
        seed=3,
        options=_OPTIONS,
    )


PLANS: dict[str, Callable[[], PlanResult]] = {
    "blocks-panda": lambda: _blocks("panda"),
    "blocks-iiwa": lambda: _blocks("iiwa"),
    "blocks-xarm": lambda: _blocks("xarm"),
    "blocks-ur5": lambda: _blocks("ur5"),
    "blocks-uncertain": lambda: tk.plan(
        unsure_blocks(), domain="blocks_uncertain", goal=ON_B, options=_OPTIONS
    ),
    "drawer": lambda: tk.plan(
        tk.load_scene("panda_drawer"),
        domain="drawer",
        goal=problem_file("drawer", "empty"),
        robot="panda",
        options=_OPTIONS,
    ),
    "handover": lambda: tk.plan(
        tk.load_scene("baxter_trays"),
        domain="handover",
        goal=problem_file("handover", "across"),
        robot=("baxter", "baxter_left"),
        options=_OPTIONS,
    ),
    "hanoi": lambda: tk.plan(
        tk.load_scene("panda_table", "hanoi3"),
        domain="hanoi",
        goal="(on d1 right)",
        options=_OPTIONS,
    ),
    "kitchen": lambda: tk.plan(
        kitchen(2), domain="kitchen", goal=stove_goal(2), robot=ROBOT, options=_OPTIONS
    ),
    "mesh": lambda: tk.plan(_with_l(), domain="kitchen", goal="(on thing tray)", options=_OPTIONS),
    "pour": lambda: plan_problem("pour", "tea", scene="tea", time_limit=_LIMIT_SECONDS),
    "rearrangement": lambda: plan_problem(
        "rearrangement", "swap", scene="rearrange_swap", time_limit=_LIMIT_SECONDS
    ),
    "sorting": lambda: plan_problem("sorting", "sort8", scene="sort8", time_limit=_LIMIT_SECONDS),
}


def digests(names: list[str] | None = None, *, folder: Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of plan files by plan name, for all plans by default.

    The digest of the domain's own files is left out of each, so that a comment in a domain changes
    none.
    """
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or PLANS:
            result = PLANS[name]()
            assert result.plan is not None, f"{name}: {result.explanation}"
            path = (folder or Path(scratch)) / f"{name}.json"
            tk.save_plan(result.plan, path)
            content = path.read_bytes().replace(result.plan.domain_digest.encode(), b"")
            results[name] = hashlib.sha256(content).hexdigest()
    return results


def versions() -> dict[str, str]:
    """Return the versions of the libraries on which plans depend."""
    return {name: importlib.metadata.version(name) for name in _LIBRARIES}


def main() -> None:
    """Print, or renew, the digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*PLANS, []])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--renew", action="store_true")
    options = parser.parse_args()
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    results = digests(options.names, folder=options.out)
    if options.renew:
        text = json.dumps({"plans": results, "versions": versions()}, indent=1, sort_keys=True)
        GOLDEN.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
