"""What an SRDF says, looked up in a scene: its groups, and which links need not be checked against each other.

A name that the scene lacks is an error, since here it is used; joints are the exception. Scenes keep no names of fixed
joints, while groups often name them, so an unknown joint is given back as such, and the caller decides.

To a scene an SRDF adds pairs of links that may touch: docs/reference/scenes.md. A pair that is allowed already, since a
joint joins the two, keeps its first reason. Public SRDF files name links that their robot lacks: such pairs are
omitted, with one note for each kind of name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tmkit._support import Note, SourceLocation, did_you_mean
from tmkit.errors import FileFormatError, RobotError
from tmkit.formats.srdf.values import Chain, LinkPair, RobotSemantics, SrdfGroup
from tmkit.graph import SceneGraph

UNSAID = "srdf"
"""The reason of a pair of which the file says no more."""


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """What a group comes to in a scene.

    Attributes:
        joints: joints of the configuration, in the scene's order; joints that mimic others are none.
        frames: frames, in the scene's order.
        unnamed: joints that the scene does not name: fixed ones, or misspelt.
    """

    joints: tuple[str, ...]
    frames: tuple[str, ...]
    unnamed: tuple[str, ...]


def group_members(semantics: RobotSemantics, scene: SceneGraph, *, group: str) -> GroupMembers:
    """Return what a group comes to in a scene.

    Args:
        semantics: what the SRDF file says.
        scene: a scene with the robot.
        group: the name of the group.

    Raises:
        UnknownNameError: there is no such group.
        RobotError: the group names a link that the scene lacks or a group that the file lacks, or contains itself.
    """
    frame_of = {scene.joint(frame).name: frame for frame in scene.frame_names if scene.joint(frame).is_actuated}
    virtual = {joint.name for joint in semantics.virtual_joints}
    frames: set[str] = set()
    moving: set[str] = set()
    unnamed: list[str] = []
    for part in _flattened(semantics, semantics.group(group)):
        below = [frame_of[joint] for joint in part.joints if joint in frame_of]
        unnamed += [joint for joint in part.joints if joint not in frame_of and joint not in virtual]
        below += [_known(link, scene, part) for link in part.links]
        for chain in part.chains:
            inner = _between(chain, scene, part)
            below += inner
            frames.add(chain.base)
        frames.update(below)
        moving.update(scene.joint(frame).name for frame in below)
    return GroupMembers(
        tuple(joint for joint in scene.joint_names if joint in moving),
        tuple(frame for frame in scene.frame_names if frame in frames),
        tuple(dict.fromkeys(unnamed)),
    )


def _flattened(semantics: RobotSemantics, group: SrdfGroup, inside: tuple[str, ...] = ()) -> Iterable[SrdfGroup]:
    """Yield a group and all groups in it."""
    yield group
    by_name = {other.name: other for other in semantics.groups}
    for name in group.subgroups:
        if name not in by_name:
            hint = did_you_mean(name, by_name)
            raise refused(group.place, semantics.source, f"the group '{group.name}' contains no group '{name}'{hint}")
        if name in (*inside, group.name):
            raise refused(group.place, semantics.source, f"the group '{name}' contains itself")
        yield from _flattened(semantics, by_name[name], (*inside, group.name))


def _known(link: str, scene: SceneGraph, group: SrdfGroup) -> str:
    """Return a link that the scene has."""
    if link not in scene:
        hint = did_you_mean(link, scene.frame_names)
        reason = f"the group '{group.name}' names the link '{link}', which the scene does not have{hint}"
        raise refused(group.place, "srdf", reason)
    return link


def _between(chain: Chain, scene: SceneGraph, group: SrdfGroup) -> list[str]:
    """Return the frames of a chain without its base; a chain may go up to a common ancestor and down again."""
    above_base = [_known(chain.base, scene, group), *scene.ancestors(chain.base)]
    above_tip = [_known(chain.tip, scene, group), *scene.ancestors(chain.tip)]
    common = set(above_base) & set(above_tip)
    if not common:
        reason = (
            f"the chain of the group '{group.name}' joins '{chain.base}' and '{chain.tip}', which are not connected"
        )
        raise refused(group.place, "srdf", reason)
    return [frame for frame in (*above_tip, *above_base) if frame not in common]


def refused(place: SourceLocation | None, source: str, reason: str) -> FileFormatError:
    """Return the error of an SRDF element that does not fit the scene, at its place or, without one, the file."""
    if place is None:
        return RobotError.at(source, reason)
    return RobotError.at(place.path, reason, line=place.line, source_line=place.text)


def with_semantics(scene: SceneGraph, files: Sequence[RobotSemantics], *, note: Note) -> SceneGraph:
    """Return a scene in which the pairs of links may touch that SRDF files disable."""
    with scene.edit() as edit:
        for semantics in files:
            for stranger in semantics.strangers(scene):
                note(SourceLocation(stranger.path), stranger.text)
            for pair in _disabled(semantics, scene):
                if not edit.scene.is_allowed(pair.link1, pair.link2):
                    edit.allow_collision(pair.link1, pair.link2, reason=pair.reason or UNSAID)
    return edit.finish()


def _disabled(semantics: RobotSemantics, scene: SceneGraph) -> Iterable[LinkPair]:
    """Yield the pairs that a file disables, those of links that the scene has."""
    for pair in semantics.disabled:
        if pair.link1 in scene and pair.link2 in scene:
            yield pair
    enabled = {frozenset((pair.link1, pair.link2)) for pair in semantics.enabled}
    solid = [frame for frame in scene.frame_names if any(shape.collision for shape in scene.shapes(frame))]
    for link in semantics.unchecked_links:
        for other in solid if link in scene else ():
            if other != link and frozenset((link, other)) not in enabled:
                yield LinkPair(link, other, "unchecked")
