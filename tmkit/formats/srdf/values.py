"""The content of an SRDF file as values, and its names looked up in a scene.

A :class:`RobotSemantics` is the file and nothing but the file. Names are kept as written, whether
or not some robot has them; each part keeps its
:class:`~tmkit._support.source_location.SourceLocation`. Looked up in a scene, a link that the scene
lacks is an error. An unknown joint is returned as such, and the caller decides: scenes keep no
names of fixed joints, while groups often name them.

To a scene an SRDF adds pairs of links that may touch: docs/reference/scenes.md. A pair that is
allowed already, since a joint joins the two, keeps its first reason. Public SRDF files name links
that their robot lacks: such pairs are omitted, with one note for each kind of name.

Invariants: all values are immutable, hashable and picklable; two are equal when they say the same,
wherever it was written. Groups have unique names, and so have end effectors, and the states of one
group.
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
    """The links and joints between two links; the joint above ``base`` is no part of it."""

    base: str
    tip: str


@dataclass(frozen=True, slots=True)
class SrdfGroup:
    """A set of joints and links with a name: an arm, a hand.

    Attributes:
        name: of the group.
        joints: joints that belong to it, fixed ones and virtual ones too.
        links: links that belong to it, each with the joint above it.
        chains: chains that belong to it whole.
        subgroups: names of groups that belong to it whole.
        place: where it is declared.
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
        name: of the state.
        group: the group, "" when the file does not say.
        values: joints and their values, radians or metres; several numbers for joints of several
            degrees of freedom.
        place: where it is declared.
    """

    name: str
    group: str
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()
    place: SourceLocation | None = field(default=None, compare=False, repr=False)

    @property
    def joint_values(self) -> dict[str, float]:
        """The values of the joints that have one."""
        return {joint: numbers[0] for joint, numbers in self.values if len(numbers) == 1}


@dataclass(frozen=True, slots=True)
class EndEffector:
    """A hand.

    Attributes:
        name: of the end effector.
        parent_link: the link it is mounted on.
        group: the group that it is made of; some files name the arm here.
        parent_group: the arm that carries it, "" when the file does not say.
        place: where it is declared.
    """

    name: str
    parent_link: str
    group: str
    parent_group: str = ""
    place: SourceLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VirtualJoint:
    """How the robot stands in the world: ``fixed``, ``planar`` or ``floating``."""

    name: str
    type: str
    parent_frame: str
    child_link: str
    place: SourceLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LinkPair:
    """Two links, and what the file says of why; ``reason`` is "" when it says nothing."""

    link1: str
    link2: str
    reason: str = ""
    place: SourceLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RobotSemantics:
    """What an SRDF file says of a robot.

    Attributes:
        name: of the robot.
        groups: in order, and so all that follows.
        states: named configurations.
        end_effectors: hands.
        virtual_joints: how the robot stands in the world.
        passive_joints: joints that no motor drives.
        disabled: pairs of links that need not be checked against each other.
        unchecked_links: links that are checked against no other, but for the pairs in ``enabled``.
        enabled: pairs that are checked although one of the two is in ``unchecked_links``.
        source: the file, or what else to call the origin in errors.
        notes: what the reader omitted, each with its place.

    Raises:
        SceneError: two groups, two end effectors or two states of a group have one name.
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
        _unique("group", [(group.name, group.place) for group in self.groups])
        _unique(
            "end effector", [(effector.name, effector.place) for effector in self.end_effectors]
        )
        _unique("state", [(f"{state.group}/{state.name}", state.place) for state in self.states])

    def __repr__(self) -> str:
        return (
            f"RobotSemantics('{self.name}', {len(self.groups)} groups, {len(self.states)} states, "
            f"{len(self.end_effectors)} end effectors, {len(self.disabled)} disabled pairs)"
        )

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the groups in order."""
        return tuple(group.name for group in self.groups)

    def group(self, name: str) -> SrdfGroup:
        """Return a group.

        Raises:
            UnknownNameError: there is none of that name; the error lists those that there are.
        """
        return _found("group", name, self.groups, self.source)

    def end_effector(self, name: str) -> EndEffector:
        """Return an end effector.

        Raises:
            UnknownNameError: there is none of that name; the error lists those that there are.
        """
        return _found("end effector", name, self.end_effectors, self.source)

    def states_of(self, group: str) -> tuple[GroupState, ...]:
        """Return the states that a group may take on.

        Those are its own, those that name no group, and those of groups that contain it.
        """
        around = {
            "",
            *(other.name for other in self.groups if group in self._contained(other.name)),
        }
        own = [state for state in self.states if state.group == group]
        return (
            *own,
            *(state for state in self.states if state.group != group and state.group in around),
        )

    def _contained(self, name: str) -> set[str]:
        """Return the names of a group and of all groups in it, as far as they exist."""
        by_name = {group.name: group for group in self.groups}
        found: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current not in found and current in by_name:
                found.add(current)
                waiting.extend(by_name[current].subgroups)
        return found

    def strangers(self, scene: SceneGraph) -> tuple[ImportNote, ...]:
        """Return a note for each kind of name that the file has and a scene with the robot does not.

        Fixed joints have no name in a scene, so joints count only where they have a value in a
        state.

        Returns:
            None when every name is known; O(names).
        """
        frames = set(scene.frame_names)
        joints = {scene.joint(frame).name for frame in frames} | {
            joint.name for joint in self.virtual_joints
        }
        links = [
            link for pair in (*self.disabled, *self.enabled) for link in (pair.link1, pair.link2)
        ]
        in_groups = [link for group in self.groups for link in group.links]
        chains = [chain for group in self.groups for chain in group.chains]
        uses: dict[str, tuple[str, Iterable[str], set[str]]] = {
            "collision pairs": ("link", [*links, *self.unchecked_links], frames),
            "groups": (
                "link",
                [*in_groups, *(end for chain in chains for end in (chain.base, chain.tip))],
                frames,
            ),
            "end effectors": (
                "link",
                [effector.parent_link for effector in self.end_effectors],
                frames,
            ),
            "states": (
                "joint",
                [joint for state in self.states for joint, _ in state.values],
                joints,
            ),
        }
        found = []
        for where, (kind, names, known) in uses.items():
            unknown = [name for name in dict.fromkeys(names) if name not in known]
            if unknown:
                shown = ", ".join(f"'{name}'" for name in unknown[:4]) + (
                    ", ..." if len(unknown) > 4 else ""
                )
                number = f"{len(unknown)} {kind}s" if len(unknown) > 1 else f"a {kind}"
                hint = did_you_mean(unknown[0], known) if len(unknown) == 1 else ""
                text = f"{where} name {number} that the scene does not have: {shown}{hint}"
                found.append(ImportNote(self.source, None, text))
        return tuple(found)


_Named = TypeVar("_Named", SrdfGroup, EndEffector)


def _unique(kind: str, items: Iterable[tuple[str, SourceLocation | None]]) -> None:
    seen: dict[str, SourceLocation | None] = {}
    for name, place in items:
        if name in seen:
            reason = f"the {kind} '{name.removeprefix('/')}' is declared twice"
            if place is None:
                raise SceneError(reason, kind=kind, name=name)
            raise place.error(f"{reason}, first at {seen[name]}")
        seen[name] = place


def _found(kind: str, name: str, items: Iterable[_Named], source: str) -> _Named:
    by_name = {item.name: item for item in items}
    if name not in by_name:
        raise UnknownNameError.of(kind, name, by_name, where=source)
    return by_name[name]


UNSAID = "srdf"  # the reason of a pair of which the file says no more


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """What a group comes to in a scene.

    Attributes:
        joints: joints of the configuration, in the scene's order; joints that mimic others are
            none.
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
        RobotError: the group names a link that the scene lacks or a group that the file lacks, or
            contains itself.
    """
    frame_of = {
        scene.joint(frame).name: frame
        for frame in scene.frame_names
        if scene.joint(frame).is_actuated
    }
    virtual = {joint.name for joint in semantics.virtual_joints}
    frames: set[str] = set()
    moving: set[str] = set()
    unnamed: list[str] = []
    for part in _flattened(semantics, semantics.group(group)):
        below = [frame_of[joint] for joint in part.joints if joint in frame_of]
        unnamed += [
            joint for joint in part.joints if joint not in frame_of and joint not in virtual
        ]
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


def _flattened(
    semantics: RobotSemantics,
    group: SrdfGroup,
    inside: tuple[str, ...] = (),
    done: set[str] | None = None,
) -> Iterable[SrdfGroup]:
    """Yield a group and those that it contains, each once however often it is named."""
    done = set() if done is None else done
    done.add(group.name)
    yield group
    by_name = {other.name: other for other in semantics.groups}
    for name in group.subgroups:
        if name not in by_name:
            hint = did_you_mean(name, by_name)
            raise refused(
                group.place,
                semantics.source,
                f"the group '{group.name}' contains no group '{name}'{hint}",
            )
        if name in (*inside, group.name):
            raise refused(group.place, semantics.source, f"the group '{name}' contains itself")
        if name not in done:
            yield from _flattened(semantics, by_name[name], (*inside, group.name), done)


def _known(link: str, scene: SceneGraph, group: SrdfGroup) -> str:
    if link not in scene:
        hint = did_you_mean(link, scene.frame_names)
        reason = (
            f"the group '{group.name}' names the link '{link}', which the scene does not have{hint}"
        )
        raise refused(group.place, "srdf", reason)
    return link


def _between(chain: Chain, scene: SceneGraph, group: SrdfGroup) -> list[str]:
    """Return the frames of a chain without its base; a chain may go up to a common ancestor and down again."""
    above_base = [_known(chain.base, scene, group), *scene.ancestors(chain.base)]
    above_tip = [_known(chain.tip, scene, group), *scene.ancestors(chain.tip)]
    common = set(above_base) & set(above_tip)
    if not common:
        reason = (
            f"the chain of the group '{group.name}' joins '{chain.base}' and '{chain.tip}', which"
            " are not connected"
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
    solid = [
        frame
        for frame in scene.frame_names
        if any(shape.collision for shape in scene.shapes(frame))
    ]
    for link in semantics.unchecked_links:
        for other in solid if link in scene else ():
            if other != link and frozenset((link, other)) not in enabled:
                yield LinkPair(link, other, "unchecked")
