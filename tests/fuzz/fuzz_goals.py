"""Fuzz the readers of goals and shown versions: ``fuzz_goals.py --seconds 600 --seed 1``."""

from __future__ import annotations

import json
from pathlib import Path

from engine import Target, main

from tmkit.cli.inputs import GoalOptions, read_goals, start_configuration
from tmkit.formats import load_goal_scene, load_scene

GOALS = [
    "(on a b)",
    {"object": "a", "at": "table", "pose": [0.1, 0.2, 0.03, 0, 0, 0, 1], "m": 0.01, "rad": None},
    {"object": "b", "at": "table", "pose": [0, 0, 0.5, 0, 0, 0, 1]},
    {"object": "b", "in": "table"},
    {"joints": {"panda_joint1": 0.5}, "tolerance": 0.01},
]
TOKENS = b"""
{ } [ ] , : null true false NaN Infinity "" "a" "world" "table" "object" "at" "in" "pose" "m" "rad"
"joints" "tolerance" "panda_joint1" -1 1e999 0
"""
SHOWN = b"""\
frame a { parent table; translation [0.1, 0.2, 0.025]; }
frame b { parent a; translation [0, 0, 0.05]; }
"""


def targets() -> list[Target]:
    """Return the readers of ``--goal-file``, ``--goal-scene`` and ``--start``."""
    scene = load_scene("panda_table", "blocks3")

    def start(path: Path) -> object:
        return start_configuration(scene, ["panda"], str(path))

    nestings = [(b"[", b"]"), (b'{"a":', b"}")]
    return [
        Target(
            "goals",
            "goal.json",
            _goals,
            [json.dumps(GOALS).encode()],
            tokens=TOKENS.split(),
            nestings=nestings,
        ),
        Target(
            "start",
            "start.json",
            start,
            [b'{"panda_joint1": 0.5}'],
            tokens=TOKENS.split(),
            nestings=nestings,
        ),
        Target(
            "shown",
            "goal.robray",
            lambda path: load_goal_scene(scene, path),
            [SHOWN],
            tokens=(
                b"frame a b table world panda_hand parent translation quaternion geometry { } ["
                b" ] , ;".split()
            ),
        ),
        Target(
            "start-tmp",
            "start.tmp",
            start,
            [b"m panda_joint1 panda_joint2\np 0.1 -0.2\n"],
            tokens=b"m p a r # panda_joint1 panda_joint2 panda_finger_joint1 0 nan 1e999".split(),
        ),
    ]


def _goals(path: Path) -> object:
    return read_goals(GoalOptions(goal_file=path))


if __name__ == "__main__":
    main(targets(), description=__doc__ or "")
