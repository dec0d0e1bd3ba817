"""The chains of joints in a scene that may be arms.

What is written about a robot often ends at its joints: nothing says which of them make the arm, and which the hand. A
chain is a path from the root along which joints move; the longest is a good guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tmkit.errors import RobotError
from tmkit.graph import SceneGraph

ARM_JOINTS = 3
"""Joints that an arm has at least: what branches earlier is a body with several arms."""


@dataclass(frozen=True, slots=True)
class JointChain:
    """Joints that may be an arm: from the frame that carries the first to the frame that the last one moves."""

    base: str
    tip: str
    joints: tuple[str, ...]


def joint_chains(scene: SceneGraph) -> tuple[JointChain, ...]:
    """Return the chains of moving joints that no longer one contains, the longest first."""
    moved = {joint: scene.joint_frame(joint) for joint in scene.joint_names}
    inner = {above for frame in moved.values() for above in scene.ancestors(frame)}
    found = []
    for last in moved.values():
        if last not in inner:
            path = _moving(scene, (*reversed(scene.ancestors(last)), last))
            found.append(_chain(scene, path, last))
    return tuple(sorted(found, key=lambda chain: -len(chain.joints)))


def chain_between(scene: SceneGraph, base: str | None, tip: str) -> JointChain:
    """Return the joints that move between two frames.

    Args:
        base: the frame that the arm stands on; None for the one that carries the first joint.
        tip: the frame of its hand.

    Raises:
        RobotError: ``tip`` is not below ``base``, or no joint moves between them.
    """
    above = (*reversed(scene.ancestors(tip)), tip)
    if base is not None and base not in above:
        raise RobotError.at("robot", f"the tip '{tip}' is not below the base '{base}'")
    path = _moving(scene, above[above.index(base) + 1 :] if base is not None else above)
    if not path:
        raise RobotError.at("robot", f"no joint moves between '{base if base is not None else above[0]}' and '{tip}'")
    chain = _chain(scene, path, tip)
    return chain if base is None else JointChain(base, tip, chain.joints)


def rigid_frames(scene: SceneGraph, frame: str) -> tuple[str, ...]:
    """Return a frame and those below it that are connected to it by fixed joints, parents first."""
    found = [frame]
    for current in found:
        found += [child for child in scene.children(current) if scene.joint(child).type == "fixed"]
    return tuple(found)


def _moving(scene: SceneGraph, frames: Sequence[str]) -> list[str]:
    names = set(scene.joint_names)
    return [frame for frame in frames if scene.joint(frame).name in names and scene.joint(frame).is_actuated]


def _chain(scene: SceneGraph, path: Sequence[str], tip: str) -> JointChain:
    return JointChain(str(scene.parent(path[0])), tip, tuple(scene.joint(frame).name for frame in path))
