"""Content of SRDF files, and the resolution of its names in a scene.

A :class:`RobotSemantics` stores the names of a file, whether or not a robot has them. Each part
keeps its :class:`~tmkit._support.source_location.SourceLocation`. The members of a group are
resolved in a scene, where an unknown link is an error. Unknown joints are returned for the caller
to decide, because scenes do not store names of fixed joints, which groups often contain.

In a scene, an SRDF allows contacts between pairs of links: docs/reference/scenes.md. A pair that is
already allowed, for example because the links are adjacent, keeps its reason. Public SRDF files
name links that their robot lacks. Such pairs are omitted, with one note for each kind of name.

Invariants: all values are immutable, hashable and picklable. Locations do not affect equality.
Groups have unique names, and so do end effectors, and the states of one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tmkit._support.source_location import ImportNote, Note, SourceLocation, did_you_mean
from tmkit.errors import FileFormatError, RobotError, SceneError, UnknownNameError
from tmkit.graph import SceneGraph


@dataclass(frozen=True, slots=True)
class Chain:
    """The links and joints between two links, without the joint above ``base``."""

    base: str
    tip: str


@dataclass(frozen=True, slots=True)
class SrdfGroup:
    """A named set of joints and links, such as an arm or a hand.

    Attributes:
        name: name of the group.
        joints: joints of the group, including fixed and virtual joints.
        links: links of the group, each with the joint above it.
        chains: chains of the group.
        subgroups: names of groups in the group.
        place: location of the declaration.
    """

    name: str
    joints: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    chains: tuple[Chain, ...] = ()
    subgroups: tuple[str, ...] = ()
    place: SourceLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GroupState:
    """A named configuration of a group.

    Attributes:
        name: name of the state.
        group: name of the group, or "" if the file has none.
        values: joints and their values [rad or m], with several numbers for a joint with several
            degrees of freedom.
        place: location of the declaration.
    """

    name: str
    group: str
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()
    place: SourceLocation | None = field(default=None, compare=False, repr=False)

    @property
    def joint_values(self) -> dict[str, float]:
        """Value by joint with one degree of freedom [rad or m]."""
        return {joint: numbers[0] for joint, numbers in self.values if len(numbers) == 1}


@dataclass(frozen=True, slots=True)
class EndEffector:
    """A hand.

    Attributes:
        name: name of the end effector.
        parent_link: link to which it is attached.
        group: group of its links and joints. Some files have the arm here.
        parent_group: group of the arm, or "" if the file has none.
        place: location of the declaration.
    """

    name: str
    parent_link: str
    group: str
    parent_group: str = ""
    place: SourceLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VirtualJoint:
    """Joint between the world and the robot, of the type ``fixed``, ``planar`` or ``floating``."""

    name: str
    type: str
    parent_frame: str
    child_link: str
    place: SourceLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LinkPair:
    """Two links with the reason of the file, or "" if the file has none."""

    link1: str
    link2: str
    reason: str = ""
    place: SourceLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RobotSemantics:
    """Content of an SRDF file, in its order.

    Attributes:
        name: name of the robot.
        groups: groups of joints and links.
        states: named configurations.
        end_effectors: hands.
        virtual_joints: joints between the world and the robot.
        passive_joints: joints without a motor.
        disabled: pairs of links that are not checked for collision.
        unchecked_links: links that are only checked in the pairs of ``enabled``.
        enabled: pairs that are checked although one of the links is in ``unchecked_links``.
        source: path of the file, or another name of the origin for messages.
        notes: elements that the reader omitted, with their locations.

    Raises:
        SceneError: if two groups, two end effectors or two states of a group have the same name.
    """

    name: str
    groups: tuple[SrdfGroup, ...] = ()
    states: tuple[GroupState, ...] = ()
    end_effectors: tuple[EndEffector, ...] = ()
    virtual_joints: tuple[VirtualJoint, ...] = ()
    passive_joints: tuple[str, ...] = ()
    disabled: tuple[LinkPair, ...] = ()
    unchecked_links: tuple[str, ...] = ()
    enabled: tuple[LinkPair, ...] = ()
    source: str = field(default="srdf", compare=False)
    notes: tuple[ImportNote, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        effectors = [(effector.name, effector.place) for effector in self.end_effectors]
        states = [(f"{state.group}/{state.name}", state.place) for state in self.states]
        _require_unique("group", [(group.name, group.place) for group in self.groups])
        _require_unique("end effector", effectors)
        _require_unique("state", states)

    def __repr__(self) -> str:
        return (
            f"RobotSemantics('{self.name}', {len(self.groups)} groups, {len(self.states)} states, "
            f"{len(self.end_effectors)} end effectors, {len(self.disabled)} disabled pairs)"
        )

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups, in order."""
        return tuple(group.name for group in self.groups)

    def group(self, name: str) -> SrdfGroup:
        """Return a group.

        Raises:
            UnknownNameError: if there is no such group. The message lists the known groups.
        """
        return _item_by_name("group", name, self.groups, self.source)

    def end_effector(self, name: str) -> EndEffector:
        """Return an end effector.

        Raises:
            UnknownNameError: if there is no such end effector. The message lists the known ones.
        """
        return _item_by_name("end effector", name, self.end_effectors, self.source)

    def states_of(self, group: str) -> tuple[GroupState, ...]:
        """Return the states that apply to a group.

        These are the states of the group, followed by states without a group and states of groups
        that contain it.
        """
        containing_groups = {
            item.name for item in self.groups if group in self._subgroup_names(item.name)
        }
        containing_groups.add("")
        return (
            *(state for state in self.states if state.group == group),
            *(
                state
                for state in self.states
                if state.group != group and state.group in containing_groups
            ),
        )

    def _subgroup_names(self, name: str) -> set[str]:
        """Return the names of a group and of all groups in it that exist."""
        groups = {group.name: group for group in self.groups}
        names: set[str] = set()
        stack = [name]
        while stack:
            nested = stack.pop()
            if nested not in names and nested in groups:
                names.add(nested)
                stack.extend(groups[nested].subgroups)
        return names

    def unknown_name_notes(self, scene: SceneGraph) -> tuple[ImportNote, ...]:
        """Return a note for each kind of name in the file that a scene with the robot lacks.

        Joints only count where they have a value in a state, because scenes do not store names of
        fixed joints. Takes O(names) time.
        """
        frames = set(scene.frame_names)
        joints = {scene.joint(frame).name for frame in frames}
        joints.update(joint.name for joint in self.virtual_joints)
        pairs = (*self.disabled, *self.enabled)
        pair_links = [link for pair in pairs for link in (pair.link1, pair.link2)]
        pair_links += self.unchecked_links
        group_links = [link for group in self.groups for link in group.links]
        chains = [chain for group in self.groups for chain in group.chains]
        group_links += [link for chain in chains for link in (chain.base, chain.tip)]
        effector_links = [effector.parent_link for effector in self.end_effectors]
        state_joints = [joint for state in self.states for joint, _ in state.values]
        notes = (
            self._unknown_name_note("collision pairs", pair_links, frames),
            self._unknown_name_note("groups", group_links, frames),
            self._unknown_name_note("end effectors", effector_links, frames),
            self._unknown_name_note("states", state_joints, joints, kind="joint"),
        )
        return tuple(note for note in notes if note is not None)

    def _unknown_name_note(
        self, elements: str, names: Iterable[str], known_names: set[str], *, kind: str = "link"
    ) -> ImportNote | None:
        """Return a note on the unknown names of some elements, or None if all are known."""
        unknown = [name for name in dict.fromkeys(names) if name not in known_names]
        if not unknown:
            return None
        examples = ", ".join(f"'{name}'" for name in unknown[:4])
        if len(unknown) == 1:
            count, end = f"a {kind}", did_you_mean(unknown[0], known_names)
        else:
            count, end = f"{len(unknown)} {kind}s", ", ..." if len(unknown) > 4 else ""
        text = f"{elements} name {count} that the scene does not have: {examples}{end}"
        return ImportNote(self.source, None, text)


_Item = TypeVar("_Item", SrdfGroup, EndEffector)


def _require_unique(kind: str, items: Iterable[tuple[str, SourceLocation | None]]) -> None:
    """Check that the names of items with their locations are unique.

    Raises:
        SceneError: if two items without locations have the same name.
        FileFormatError: if two items with locations have the same name.
    """
    places: dict[str, SourceLocation | None] = {}
    for name, place in items:
        if name in places:
            reason = f"the {kind} '{name.removeprefix('/')}' is declared twice"
            if place is None:
                raise SceneError(reason, kind=kind, name=name)
            raise place.error(f"{reason}, first at {places[name]}")
        places[name] = place


def _item_by_name(kind: str, name: str, items: Iterable[_Item], source: str) -> _Item:
    """Return the item of a name.

    Raises:
        UnknownNameError: if there is no such item.
    """
    items_by_name = {item.name: item for item in items}
    if name not in items_by_name:
        raise UnknownNameError.of(kind, name, items_by_name, where=source)
    return items_by_name[name]


DEFAULT_REASON = "srdf"
"""Reason of an allowed pair for which the file has no reason."""


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Joints and frames of a group in a scene.

    Attributes:
        joints: joints of the configuration in the scene's order, without mimic joints.
        frames: frames in the scene's order.
        unnamed: joints whose name the scene lacks, which are fixed or misspelt.
    """

    joints: tuple[str, ...]
    frames: tuple[str, ...]
    unnamed: tuple[str, ...]


def group_members(semantics: RobotSemantics, scene: SceneGraph, *, group: str) -> GroupMembers:
    """Return the joints and frames of a group in a scene.

    Args:
        semantics: content of the SRDF file.
        scene: a scene with the robot.
        group: name of the group.

    Raises:
        UnknownNameError: if there is no such group.
        RobotError: if the group has an unknown link or group, or contains itself.
    """
    frame_of_joint = {
        scene.joint(frame).name: frame
        for frame in scene.frame_names
        if scene.joint(frame).is_actuated
    }
    known_joints = {*frame_of_joint, *(joint.name for joint in semantics.virtual_joints)}
    frames: set[str] = set()
    joints: set[str] = set()
    unnamed: list[str] = []
    for part in _subgroups(semantics, semantics.group(group)):
        moved_frames = [frame_of_joint[joint] for joint in part.joints if joint in frame_of_joint]
        unnamed += [joint for joint in part.joints if joint not in known_joints]
        moved_frames += [_require_link(link, scene, part) for link in part.links]
        for chain in part.chains:
            moved_frames += _chain_frames(chain, scene, part)
            frames.add(chain.base)
        frames.update(moved_frames)
        joints.update(scene.joint(frame).name for frame in moved_frames)
    return GroupMembers(
        tuple(joint for joint in scene.joint_names if joint in joints),
        tuple(frame for frame in scene.frame_names if frame in frames),
        tuple(dict.fromkeys(unnamed)),
    )


def _subgroups(
    semantics: RobotSemantics,
    group: SrdfGroup,
    ancestors: tuple[str, ...] = (),
    visited: set[str] | None = None,
) -> Iterable[SrdfGroup]:
    """Yield a group and all groups in it, each once.

    Args:
        semantics: content of the SRDF file.
        group: the group.
        ancestors: names of the groups that contain it.
        visited: names of the groups that were yielded. The function adds to them.

    Raises:
        RobotError: if a group is unknown or contains itself.
    """
    visited = set() if visited is None else visited
    visited.add(group.name)
    yield group
    groups = {item.name: item for item in semantics.groups}
    for name in group.subgroups:
        if name not in groups:
            reason = f"the group '{group.name}' contains no group '{name}'"
            hint = did_you_mean(name, groups)
            raise srdf_error(group.place, semantics.source, f"{reason}{hint}")
        if name in (*ancestors, group.name):
            raise srdf_error(group.place, semantics.source, f"the group '{name}' contains itself")
        if name not in visited:
            yield from _subgroups(semantics, groups[name], (*ancestors, group.name), visited)


def _require_link(link: str, scene: SceneGraph, group: SrdfGroup) -> str:
    """Return a link of a group.

    Raises:
        RobotError: if the scene lacks the link.
    """
    if link not in scene:
        reason = f"the group '{group.name}' names the link '{link}', which the scene does not have"
        hint = did_you_mean(link, scene.frame_names)
        raise srdf_error(group.place, "srdf", f"{reason}{hint}")
    return link


def _chain_frames(chain: Chain, scene: SceneGraph, group: SrdfGroup) -> list[str]:
    """Return the frames of a chain without its base.

    The common ancestors of base and tip are not part of the chain.

    Raises:
        RobotError: if the scene lacks a link, or the two links are not connected.
    """
    above_base = [_require_link(chain.base, scene, group), *scene.ancestors(chain.base)]
    above_tip = [_require_link(chain.tip, scene, group), *scene.ancestors(chain.tip)]
    common = set(above_base) & set(above_tip)
    if not common:
        ends = f"'{chain.base}' and '{chain.tip}', which are not connected"
        reason = f"the chain of the group '{group.name}' joins {ends}"
        raise srdf_error(group.place, "srdf", reason)
    return [frame for frame in (*above_tip, *above_base) if frame not in common]


def srdf_error(place: SourceLocation | None, source: str, reason: str) -> FileFormatError:
    """Return the error of an SRDF element that does not fit the scene.

    Args:
        place: location of the element, or None if it is unknown.
        source: name of the file, used without a location.
        reason: the reason.
    """
    if place is None:
        return RobotError.at(source, reason)
    return RobotError.at(place.path, reason, line=place.line, source_line=place.text)


def allow_disabled_pairs(
    scene: SceneGraph, files: Sequence[RobotSemantics], *, note: Note
) -> SceneGraph:
    """Return the scene with contacts allowed between the pairs of links that SRDF files disable.

    Args:
        scene: the scene.
        files: content of the SRDF files.
        note: receiver of notes on names that the scene lacks.
    """
    with scene.edit() as edit:
        for semantics in files:
            for import_note in semantics.unknown_name_notes(scene):
                note(SourceLocation(import_note.path), import_note.text)
            for pair in _pairs_to_allow(semantics, scene):
                if not edit.scene.is_allowed(pair.link1, pair.link2):
                    reason = pair.reason or DEFAULT_REASON
                    edit.allow_collision(pair.link1, pair.link2, reason=reason)
    return edit.finish()


def _pairs_to_allow(semantics: RobotSemantics, scene: SceneGraph) -> Iterable[LinkPair]:
    """Yield the disabled pairs of a file whose links are in the scene."""
    for pair in semantics.disabled:
        if pair.link1 in scene and pair.link2 in scene:
            yield pair
    enabled = {frozenset((pair.link1, pair.link2)) for pair in semantics.enabled}
    solid = [
        frame
        for frame in scene.frame_names
        if any(shape.collision for shape in scene.shapes(frame))
    ]
    for link in semantics.unchecked_links:
        for other in solid if link in scene else ():
            if other != link and frozenset((link, other)) not in enabled:
                yield LinkPair(link, other, "unchecked")
