"""Start of plans with a script of the original TMKit, which describes no robot.

The arms are the chains to the frames that the script names, such as ``FRAME = "grasp"``. As in the
original, pairs that collide at the start may collide in the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.errors import RobotError
from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.chain_arms import chain_arms
from tmkit.tamp.domains.tmsmt_scripts import is_script
from tmkit.tamp.domains.tmsmt_scripts.script import run_script

_log = logging.getLogger(__name__)


def read_script(semantics: str | Path | None) -> bytes | None:
    """Return the text of semantics that are a script of the original; None for others.

    Args:
        semantics: name, folder or file of domain semantics.
    """
    path = Path(semantics or "")
    if path.suffix != ".py" or not path.is_file():
        return None
    source = read_bytes(path, limit=ReadingLimits().text_bytes)
    return source if is_script(source) else None


def script_arms(
    path: Path, source: bytes, scene: SceneGraph, *, q: ArrayLike | None = None
) -> tuple[Manipulator, ...]:
    """Return the arms of a script, one for each chain to a frame that it names.

    Args:
        path: file of the script, which is executed.
        source: text of the file.
        scene: scene with the robot.
        q: (n_joints,) ready configuration [rad or m]. Defaults to zero, or the nearest limit.

    Raises:
        FileFormatError: if the script cannot be executed.
        RobotError: if it names no frame that a joint moves.
    """
    texts = run_script(path, source).texts
    arms = chain_arms(scene, [name for name in scene.frame_names if name in texts], q=q)
    if not arms:
        reason = "the script names no frame that a joint moves; give the arm (--robot)"
        raise RobotError.at(path, reason)
    return arms


def allow_start_collisions(
    scene: SceneGraph, robots: Sequence[Manipulator], q: ArrayLike
) -> SceneGraph:
    """Return a scene in which all pairs that collide at the start may do so, as in the original.

    Pairs with a movable object are excepted. Each allowed pair is logged as a warning.

    Args:
        scene: scene at the start.
        robots: arms that act.
        q: (n_joints,) configuration at the start [rad or m].
    """
    first, *other_arms = robots
    rules = CollisionRules.from_start(first, scene, q=q, other_arms=other_arms)
    world = rules.check_world(scene, (*rules.start_overlaps, *rules.start_contacts))
    movable = {*movable_frames(scene)}
    for contact in world.contacts(q):
        pair = contact.frame_a, contact.frame_b
        if not any(movable.intersection((frame, *scene.ancestors(frame))) for frame in pair):
            _log.warning("'%s' and '%s' collide at the start, and may collide in the plan", *pair)
            scene = scene.allow_collision(*pair, reason="they collide at the start")
    return scene
