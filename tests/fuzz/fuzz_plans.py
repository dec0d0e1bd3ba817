"""Fuzz the readers of plan files and the checker: ``fuzz_plans.py --seconds 600 --seed 1``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from engine import Target, main

from tmkit.errors import PlanFileError, TmkitError
from tmkit.plans import load_plan, save_plan
from tmkit.tamp import load_tmp_plan, validate_plan

PLAN = Path(__file__).parents[1] / "data" / "plans" / "version2.json"
KEYS = b"""
{ } [ ] , : null true false NaN Infinity -Infinity "" "a" "world" "table" "hand" "blocks"
"../../outside" "outside.py" "/etc/passwd" "." "semantics" "name" "transit" "grasp" "release"
"operate" "exemptions" "reparent" "slip" "looks" "goals" "metric" "values" "of" "is" "classes"
"added" "removed" "cost" "q" "in" "at" "pose" "joints" "(and)" "(holding a)"
"""
STATEMENTS = (
    b"a m p r # pick-up put-down a table__0__0 table hand x y z turn finger 0.5 -1 1e9 nan _ A"
    b" Table"
)
SEMANTICS = b"open('/etc/hostname').read()\nclass Semantics:\n    pass\n"


def targets() -> list[Target]:
    """Return the readers of JSON and ``.tmp`` plans, and the checker of plans from the first."""
    plan = load_plan(PLAN)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("now.json", "now.tmp"):
            save_plan(plan, Path(folder) / name)
        written, lines = (Path(folder, name).read_bytes() for name in ("now.json", "now.tmp"))
    # short inputs are followed line by line
    text = json.dumps(json.loads(written), separators=(",", ":")).encode()

    def read_tmp(path: Path) -> object:
        return load_tmp_plan(path, plan.scene, q=plan.q, robot=plan.robots, goal=plan.goal)

    outside = {"outside.py": SEMANTICS, "semantics.py": SEMANTICS}
    nestings = [(b"[", b"]"), (b'{"a":', b"}")]
    pool = [PLAN.read_bytes(), text]
    return [
        Target(
            "plan",
            "main.json",
            load_plan,
            pool,
            tokens=KEYS.split(),
            nestings=nestings,
            outside=outside,
            weight=3,
        ),
        Target(
            "check",
            "main.json",
            _check,
            pool[1:],
            tokens=KEYS.split(),
            nestings=nestings,
            outside=outside,
        ),
        Target("tmp", "main.tmp", read_tmp, [lines], tokens=STATEMENTS.split(), weight=2),
    ]


def _check(path: Path) -> object:
    plan = load_plan(path)
    try:
        return validate_plan(plan)
    except TmkitError as error:  # a plan does not contain its file
        raise PlanFileError.at(path, str(error)) from error


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
