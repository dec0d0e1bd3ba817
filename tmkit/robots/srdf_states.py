"""What the states of an SRDF's groups say of joints: by name, complete, and within limits.

A state gives values to some joints of a group. It says where an arm is ready, or how far a hand is open, only if it
gives a value to every joint concerned, and none beyond its limits. States are written with few digits, and a value at a
limit may lie beyond it by the last of them: such a value is accepted as the limit.

Invariants: a value that is returned lies within its joint's limits.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmkit._support.source_location import did_you_mean
from tmkit.errors import RobotError, nearest_name
from tmkit.formats.srdf import GroupState, RobotSemantics
from tmkit.formats.srdf.groups import refused
from tmkit.graph import SceneGraph

_TOLERANCE = 1e-6  # radians or metres: states are written with six digits


def state_named(semantics: RobotSemantics, group: str, *, wanted: str) -> GroupState:
    """Return a state of a group by name.

    Args:
        semantics: the SRDF.
        group: name of the group.
        wanted: name of the state.

    Raises:
        RobotError: the group has no such state; the message lists those that it has.
    """
    states = semantics.states_of(group)
    for state in states:
        if state.name == wanted:
            return state
    names = [state.name for state in states]
    known = f" (known: {', '.join(names)})" if names else "; it has none"
    raise RobotError.at(
        semantics.source, f"the group '{group}' has no state '{wanted}'{did_you_mean(wanted, names)}{known}"
    )


def state_values(
    semantics: RobotSemantics, scene: SceneGraph, *, state: GroupState, joints: Sequence[str]
) -> dict[str, float]:
    """Return the values of joints in a state, clamped to their limits, radians or metres.

    Args:
        semantics: the SRDF.
        scene: the scene.
        state: the state.
        joints: the joints, all of which the state must contain.

    Raises:
        RobotError: the state does not fit; said in its line.
    """
    reason = state_misfit(scene, state, joints=joints)
    if reason is not None:
        raise refused(state.place, semantics.source, reason)
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    return {joint: min(max(values[joint], float(limits[joint][0])), float(limits[joint][1])) for joint in joints}


def state_misfit(scene: SceneGraph, state: GroupState, *, joints: Sequence[str]) -> str | None:
    """Return why a state does not fit some joints; ``None`` if it does.

    Args:
        scene: the scene.
        state: the state.
        joints: the joints.
    """
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    for joint in joints:
        if joint not in values:
            near = nearest_name(joint, values)
            hint = f"; it names '{near}'" if near else ""
            return f"the state '{state.name}' has no value for joint '{joint}'{hint}"
        lower, upper = limits[joint]
        if not lower - _TOLERANCE <= values[joint] <= upper + _TOLERANCE:
            outside = f"outside its limits from {lower:.6g} to {upper:.6g}"
            return f"the state '{state.name}' puts joint '{joint}' at {values[joint]:.6g}, {outside}"
    return None
