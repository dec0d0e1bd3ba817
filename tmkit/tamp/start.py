"""Where a plan starts: a configuration within limits, free of collisions, with the hand closed on what it holds.

A scene may begin with objects in the hands: movable frames that are children of the arms' tips. Then the fingers must
be at the object; where the caller gives no configuration, they are closed on it here.

Limits bind the joints of arms and hands. Where the other joints are, they stay; beyond their limits they get a warning.

Invariants: a configuration that :func:`check_start` returns would pass the plan checker's test of the start.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import degrees_hint
from tmkit.errors import CollisionError, ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.manipulation.grasps.sampling import grip_faults
from tmkit.motion import CollisionRules
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, home_configuration, pair_distance
from tmkit.robots.mechanisms import held_by
from tmkit.spatial.plain import plain_numbers

_log = logging.getLogger(__name__)
_LIMIT_TOLERANCE = 1e-9  # radians or metres
_BISECTIONS = 20  # halve the opening until the fingers are placed to less than a micrometre


def check_start(scene: SceneGraph, q: ArrayLike | None, *manipulators: Manipulator) -> Configuration:
    """Return the configuration (n_joints,) to start from, proved to be within limits and free of collisions.

    Args:
        scene: the scene at the start.
        q: (n_joints,) configuration; by default all arms ready with open hands, or closed on what they hold.
        manipulators: the arms.

    Raises:
        ConfigurationError: a wrong length, a number that is not finite or outside its joint's limits, or fingers that
            are not at the object held.
        CollisionError: something collides; the message names the pairs.
    """
    held = {arm.name: object for arm in manipulators if (object := held_by(scene, arm)) is not None}
    if q is None:
        start = np.array(home_configuration(manipulators, scene))
        for arm in manipulators:
            if arm.name in held:
                start = _closed_on(held[arm.name], scene, start, arm)
    else:
        start = np.array(plain_numbers(q, "q"))
    scene.at(start)  # refuses a wrong length or numbers that are not finite
    _refuse_beyond_limits(scene, start, manipulators)
    rules = CollisionRules.from_start(manipulators[0], scene, q=start, others=manipulators[1:])
    for exemption in rules.parked:
        _log.warning("the start is in collision: %s", exemption)
    _refuse_collisions(scene, start, rules)
    for arm in manipulators:
        object = held.get(arm.name)
        faults = grip_faults(scene, start, arm, object=object) if object is not None else ()
        if faults:
            raise ConfigurationError(
                f"'{object}' is a child of the hand, but {faults[0]}; start with fingers that close on it"
            )
    start.flags.writeable = False
    return start


def _refuse_beyond_limits(scene: SceneGraph, q: Configuration, manipulators: Sequence[Manipulator]) -> None:
    """Refuse what an arm or hand cannot begin with; a joint that no plan moves is where it is, and that is said."""
    moved = {joint for arm in manipulators for joint in (*arm.joints, *arm.gripper_joints)}
    names = " and ".join(f"'{arm.name}'" for arm in manipulators)
    none = f"the arm {names} does not" if len(manipulators) == 1 else f"the arms {names} do not"
    for joint, value, (lower, upper) in zip(scene.joint_names, q, scene.joint_limits, strict=True):
        if lower - _LIMIT_TOLERANCE <= value <= upper + _LIMIT_TOLERANCE:
            continue
        what = f"joint '{joint}' starts at {value:.6g}, outside its limits from {lower:.6g} to {upper:.6g}"
        if joint in moved:
            what += degrees_hint(value)
            raise ConfigurationError(what, joint=joint, value=float(value), lower=float(lower), upper=float(upper))
        _log.warning("%s; it stays there, since %s move it", what, none)


def _refuse_collisions(scene: SceneGraph, q: Configuration, rules: CollisionRules) -> None:
    world = rules.check_world(scene, rules.exemptions(scene, touched=rules.held(scene)))
    contacts = world.contacts(q)
    if contacts:
        named = [f"'{c.frame_a}' and '{c.frame_b}' by {max(0.0, -c.distance) * 1000:.1f} mm" for c in contacts[:6]]
        more = f" and {len(contacts) - 6} more" if len(contacts) > 6 else ""
        raise CollisionError(
            f"the start is in collision: {'; '.join(named)}{more}; move them apart, or allow the pair in the scene",
            pairs=tuple((c.frame_a, c.frame_b) for c in contacts),
        )


def _closed_on(object: str, scene: SceneGraph, q: Configuration, manipulator: Manipulator) -> Configuration:
    """Return ``q`` with the fingers closed until they touch an object, or open when they cannot."""
    if manipulator.gripper_kind != "parallel":
        return q

    def at(width: float) -> Configuration:
        return np.array(scene.configuration(manipulator.gripper_values(width), base=q))

    def gap(width: float) -> float:
        links = manipulator.contact_links
        return max((pair_distance(scene, at(width), frame_a=link, frame_b=object) for link in links), default=0.0)

    touching, apart = manipulator.width_closed, manipulator.width_open
    if gap(touching) > 0.0 or gap(apart) <= 0.0:
        return q
    for _ in range(_BISECTIONS):
        middle = (touching + apart) / 2
        touching, apart = (middle, apart) if gap(middle) <= 0.0 else (touching, middle)
    return at(touching)
