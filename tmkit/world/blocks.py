"""Function blocks: computations over versions of a live scene, with declared inputs and outputs.

A :class:`FunctionBlock` is a function of a version. It finds its input patterns below its input
hook. It returns an edit of its output, the frames of the group of its name below its output hook.
:func:`~tmkit.world.run_block` executes one block, :class:`~tmkit.world.BlockRunner` executes blocks
in chains and by triggers.

The edit is applied to the present version if the inputs are unchanged, else the block is executed
again. A block may change only its own output. Each execution therefore uses one whole version, and
a second execution with the same inputs changes nothing.

Source: Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a Scene Graph based
    Robotic World Model", 2014: input and output structures (here patterns) and hooks. Triggers are
    future work there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import AttachedShape, Fixed, Joint, SceneGraph, Shape, diff
from tmkit._support.initialization import initialize
from tmkit.errors import (
    ArgumentError,
    BlockError,
    DuplicateNameError,
    MissingExtraError,
    TmkitError,
    UnknownNameError,
)
from tmkit.graph.moments import joint_history
from tmkit.graph.nodes import SceneNode, walk_nodes
from tmkit.graph.patterns import Pattern, Structure
from tmkit.graph.patterns.pattern import find_structure
from tmkit.graph.patterns.structure import find_difference
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.plain import convert_fields
from tmkit.world.live_scene import LiveScene

Edit = Callable[[SceneGraph], SceneGraph]
"""Function that returns the edited scene."""

Matches = Mapping[str, tuple[Mapping[str, str], ...]]
"""Matches of each input by its name; each match has the frame of each part of the pattern."""

_MARK_KEY = "function_block"
"""Attribute of the group of a block that has the type of the block."""


@dataclass(frozen=True, eq=False)
class OutputFrame:
    """Frame that a function block creates.

    Args:
        name: name of the frame.
        parent: parent of the frame. Defaults to the frame of the output hook.
        pose: parent_from_frame.
        covariance: (6, 6) covariance of the pose, ordered [rho, theta], in the frame's axes. Exact
            by default.
        classes: classes of the frame.
        shapes: shapes attached to the frame.
        attributes: JSON values by key, as for ``SceneGraph.set_attributes``.
        joint: joint between the parent and the frame. Fixed by default.
    """

    name: str
    parent: str | None = None
    pose: Pose = field(default_factory=Pose)
    covariance: ArrayLike | None = None
    classes: Sequence[str] = ()
    shapes: Sequence[AttachedShape | Shape] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    joint: Joint = field(default_factory=Fixed)


@dataclass(frozen=True)
class FunctionBlock(ABC):
    """Computation from a version of a scene to an edit of the block's own output. Immutable.

    A concrete block is a frozen dataclass; its fields are the configuration.

    Args:
        name: name of the block and of the group of its output.
        input_hook: frame or group below which the inputs are.
        output_hook: frame or group below which the output is put. Defaults to the input hook.
    """

    name: str
    input_hook: str
    output_hook: str = ""

    def __post_init__(self) -> None:
        convert_fields(self)
        if not self.output_hook:
            initialize(self, output_hook=self.input_hook)

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, Pattern]:
        """Required structures by name. Without any, the block depends on the whole version."""

    @property
    @abstractmethod
    def outputs(self) -> Mapping[str, Pattern]:
        """Created structures by name: any number of each pattern, and one of each `Structure`."""

    @abstractmethod
    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return an edit, such as that of :meth:`output`. The same inputs give the same edit.

        Args:
            scene: version from which the edit is computed. The edit depends only on matched frames,
                their ancestors and the block's previous output.
            matches: matches of each input below the input hook, by the input's name. In a chain
                there may be none.
        """

    def before_execute(self, scene: SceneGraph, matches: Matches) -> None:
        """Hook before each execution. An exception is raised as an error of the block.

        Args:
            scene: as for :meth:`execute`.
            matches: as for :meth:`execute`.
        """
        del scene, matches

    def after_execute(self, before: SceneGraph, after: SceneGraph) -> None:
        """Hook before the result is published. An exception discards the result.

        The lock of the world is held. The method is not called if nothing changes.

        Args:
            before: version to which the edit was applied.
            after: version after the edit.
        """
        del before, after

    def is_editable(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether the block may change or remove a frame of others. False by default.

        Args:
            scene: version before the edit.
            frame: frame that another author created.
        """
        del scene, frame
        return False

    def output_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the frames of the block's output in a version.

        Raises:
            BlockError: if a group of the block's name is not the output of a function block.
        """
        if self.name not in scene.group_names:
            return ()
        group = scene.group(self.name)
        if _MARK_KEY not in group.attributes:
            raise BlockError.of(self.name, "has the name of a group that no block created")
        return group.frames

    def input_frames(self, scene: SceneGraph) -> set[str]:
        """Return the frames below the input hook, without the block's output.

        Raises:
            UnknownNameError: if the hook is unknown.
        """
        return set(frames_below(scene, find_node(scene, self.input_hook))).difference(
            self.output_frames(scene)
        )

    def output_parent(self, scene: SceneGraph) -> str:
        """Return the parent frame of the output: the output hook, or the parent frame of its group.

        Raises:
            UnknownNameError: if the hook is unknown.
            BlockError: if the hook is a group without a parent frame.
        """
        kind, hook = find_node(scene, self.output_hook)
        parents = [hook] if kind == "frame" else list(scene.group(hook).parents)
        if not parents:
            raise BlockError.of(
                self.name, f"has no parent for its output: the group '{hook}' has no parent frame"
            )
        return parents[0]

    def find(self, scene: SceneGraph) -> dict[str, tuple[Mapping[str, str], ...]]:
        """Return the matches of each input below the input hook, without the block's output.

        Raises:
            UnknownNameError: if the hook is unknown.
            ConfigurationError: if an input needs poses, and joints of the scene have no history.
        """
        allowed = self.input_frames(scene)
        return {
            name: find_matches(scene, pattern, allowed) for name, pattern in self.inputs.items()
        }

    def output(
        self, frames: Iterable[OutputFrame] = (), *, attributes: Mapping[str, object] | None = None
    ) -> Edit:
        """Return the edit that replaces the block's previous output by frames.

        Args:
            frames: frames, parents first. Frames of a known name are changed, others added or
                removed.
            attributes: attributes of the group of the block.
        """
        output = tuple(frames)
        return lambda scene: _replace_output(scene, self, output, attributes or {})


def _replace_output(
    scene: SceneGraph,
    block: FunctionBlock,
    frames: Sequence[OutputFrame],
    attributes: Mapping[str, object],
) -> SceneGraph:
    """Return the version with another output of a block; unchanged frames keep their ids."""
    kind, hook = find_node(scene, block.output_hook)
    output_parent = block.output_parent(scene)
    old_names, names = block.output_frames(scene), [frame.name for frame in frames]
    for name in old_names:
        if name not in names and name in scene:
            scene = scene.remove_frame(name, subtree=True)
    for frame in frames:
        name, parent = frame.name, frame.parent or output_parent
        if name not in scene:
            scene = scene.add_frame(
                name,
                parent,
                pose=GaussianPose(frame.pose, frame.covariance),
                joint=frame.joint,
                classes=frame.classes,
                shapes=frame.shapes,
            )
        elif name not in old_names:
            raise DuplicateNameError(
                f"frame '{name}' exists and is not its own", kind="frame", name=name
            )
        else:
            if scene.parent(name) != parent:
                scene = scene.reparent(name, parent, pose=frame.pose)
            scene = scene.set_pose(name, frame.pose).set_joint(name, frame.joint)
            scene = scene.set_classes(name, frame.classes).set_shapes(name, frame.shapes)
            covariance = np.zeros((6, 6))
            if frame.covariance is not None:
                covariance = np.asarray(frame.covariance, dtype=float)
            # An unchanged covariance keeps its noise source.
            if not np.array_equal(scene.edge_covariance(name), covariance):
                scene = scene.set_covariance(name, covariance)
        scene = scene.set_attributes(name, frame.attributes)
    # The group may contain outputs of other blocks.
    inner = scene.group(block.name).groups if block.name in scene.group_names else ()
    scene = scene.set_group(
        block.name,
        frames=names,
        groups=inner,
        parents=[output_parent] if kind == "frame" else [],
        attributes={**attributes, _MARK_KEY: type(block).__name__},
    )
    if kind == "group" and block.name not in (group := scene.group(hook)).groups:
        scene = scene.set_group(hook, frames=group.frames, groups=(*group.groups, block.name))
    return scene


def find_node(scene: SceneGraph, hook: str) -> SceneNode:
    """Return the node of a hook, which is a frame or else a group."""
    if hook in scene:
        return ("frame", hook)
    if hook in scene.group_names:
        return ("group", hook)
    raise UnknownNameError.of(
        "frame or group", hook, (*scene.frame_names, *scene.group_names), where="hook"
    )


def frames_below(scene: SceneGraph, node: SceneNode) -> tuple[str, ...]:
    """Return the frames of a hook's node and below it."""
    return tuple(name for kind, name in walk_nodes(scene, node) if kind == "frame")


def find_matches(
    scene: SceneGraph, pattern: Pattern, allowed: set[str]
) -> tuple[Mapping[str, str], ...]:
    """Return the matches of a pattern within a set of frames."""
    matches = find_structure(scene, pattern, q=newest_configuration(scene))
    return tuple(match for match in matches if allowed.issuperset(match.values()))


def newest_configuration(scene: SceneGraph) -> NDArray[np.float64] | None:
    """Return the configuration (n_joints,) of the newest joint values; None without histories."""
    newest = {name: joint_history(scene, name)[1][-1:] for name in scene.joint_names}
    if not newest or not all(map(len, newest.values())):
        return None
    return scene.configuration({name: float(values[0]) for name, values in newest.items()})


def run_block(world: LiveScene, block: FunctionBlock, *, attempts: int = 3) -> SceneGraph:
    """Execute a block once, and return the version after its edit.

    If the edit changes nothing, the present version is returned. Any number of threads may execute
    blocks of one world. The world's lock is held while the edit is applied, and while the inputs
    are matched again after edits of others.

    Args:
        world: live scene.
        block: block to execute.
        attempts: largest number of executions if others change the inputs.

    Raises:
        BlockError: if the block raises, edits frames that it does not own or declare, or its inputs
            change in each attempt.
    """
    return execute_block(world, block, attempts)[1]


def execute_block(
    world: LiveScene, block: FunctionBlock, attempts: int
) -> tuple[SceneGraph, SceneGraph]:
    """Execute a block; return the version of its inputs and the version after its edit."""
    with wrap_errors(block):
        for _ in range(attempts):
            base = world.scene
            matches = block.find(base)
            block.before_execute(base, matches)
            edit = block.execute(base, matches)
            if not callable(edit):
                raise ArgumentError(
                    "expected an edit, a function of a scene, from execute, got"
                    f" {type(edit).__name__}"
                )
            commit = _Commit(block, base, matches, edit)
            version = world.update(commit)
            if not commit.is_stale:
                return base, version
    raise BlockError.of(
        block.name, f"is rejected: its inputs changed during each of {attempts} executions"
    )


class _Commit:
    """Edit of a block for the present version, which it leaves unchanged if the inputs changed."""

    def __init__(
        self, block: FunctionBlock, base: SceneGraph, matches: Matches, edit: Edit
    ) -> None:
        self._block = block
        self._base = base
        self._matches = matches
        self._edit = edit
        self.is_stale = False

    def __call__(self, scene: SceneGraph) -> SceneGraph:
        block = self._block
        self.is_stale = has_changed(block, self._base, scene, self._matches, with_own=True)
        version = scene if self.is_stale else self._edit(scene)
        if not isinstance(version, SceneGraph):
            raise ArgumentError(
                f"expected a SceneGraph from its edit, got {type(version).__name__}"
            )
        if version == scene:
            return scene
        _check_ownership(block, scene, version)
        _check_output(block, version)
        block.after_execute(scene, version)
        return version


@contextmanager
def wrap_errors(block: FunctionBlock) -> Iterator[None]:
    """Raise any error of a block as BlockError."""
    try:
        yield
    except (BlockError, MissingExtraError):
        raise
    except Exception as error:
        text = str(error)
        if not isinstance(error, TmkitError):
            text = f"{type(error).__name__}: {text}"
        raise BlockError.of(block.name, f"failed: {text}") from error


def has_changed(
    block: FunctionBlock, a: SceneGraph, b: SceneGraph, matches: Matches, *, with_own: bool
) -> bool:
    """Return whether the dependencies of a block differ between two versions.

    Args:
        block: function block.
        a: first version.
        b: second version.
        matches: matches of the inputs in the first version.
        with_own: whether changes of the block's own output are included.
    """
    if a is b:
        return False
    foreign, own = find_changes(block, a, b)
    if with_own and own:
        return True
    if not block.inputs:
        return bool(foreign)
    if block.find(b) != matches:
        return True
    frames = {
        frame for matches in matches.values() for match in matches for frame in match.values()
    }
    return not foreign.isdisjoint(frames.union(*(b.ancestors(frame) for frame in frames)))


def find_changes(block: FunctionBlock, a: SceneGraph, b: SceneGraph) -> tuple[set[str], set[str]]:
    """Return the frames and groups that differ between two versions: foreign ones, own ones."""
    difference = diff(a, b)
    names = {
        side.name
        for frame in difference.frames
        for side in (frame.before, frame.after)
        if side is not None
    }
    names |= set(difference.groups)
    own = {block.name, *block.output_frames(a), *block.output_frames(b)}
    return names - own, names & own


def _check_ownership(block: FunctionBlock, scene: SceneGraph, version: SceneGraph) -> None:
    """Check that an edit changes only the output of a block."""
    before, difference = set(block.output_frames(scene)), diff(scene, version)
    after = set(block.output_frames(version))
    violations = [name for name in after - before if name in scene]
    for frame in difference.frames:
        name = (frame.before or frame.after).name  # type: ignore[union-attr]
        is_below = frame.after is None and not before.isdisjoint(scene.ancestors(name))
        if name not in before | after and not is_below and not block.is_editable(scene, name):
            violations.append(name)
    removed, hooks = set(difference.removed), (block.name, block.output_hook)
    violations += [
        name
        for name in difference.groups
        if name not in hooks and not _is_pruned(scene, version, name, removed)
    ]
    editable = before | after | removed
    violations += [a for a, b, *_ in difference.pairs if editable.isdisjoint((a, b))]
    if violations:
        raise BlockError.of(
            block.name, f"changes '{min(violations)}', which is not part of its output"
        )


def _is_pruned(scene: SceneGraph, version: SceneGraph, name: str, removed: set[str]) -> bool:
    """Return whether a group differs only by the loss of removed frames, or has gone with one."""
    if name not in scene.group_names:
        return False
    old = scene.group(name)
    if name not in version.group_names:
        return not removed.isdisjoint(old.frames)
    new = version.group(name)
    return (new.groups, new.attributes, {*new.frames}, {*new.parents}) == (
        old.groups,
        old.attributes,
        {*old.frames} - removed,
        {*old.parents} - removed,
    )


def _check_output(block: FunctionBlock, scene: SceneGraph) -> None:
    """Check that an output matches its declaration."""
    own = block.output_frames(scene)
    structures = [output for output in block.outputs.values() if isinstance(output, Structure)]
    valid = {
        frame
        for pattern in block.outputs.values()
        if not isinstance(pattern, Structure)
        for match in find_matches(scene, pattern, set(own))
        for frame in match.values()
    }
    rest = [frame for frame in own if frame not in valid]
    if structures and (difference := find_difference(scene, rest, structures)) is not None:
        raise BlockError.of(block.name, f"creates {difference}")
    if rest and not structures:
        outputs = ", ".join(f"'{name}'" for name in block.outputs) or "none"
        raise BlockError.of(
            block.name,
            f"creates frame '{min(rest)}', which matches none of its outputs ({outputs})",
        )
