"""Function blocks: computations over versions of a live scene, with declared inputs and outputs.

A :class:`FunctionBlock` is a function of a version. It finds its input patterns below its input
hook and returns an edit of what it owns, the frames of the group of its name below its output hook.
:func:`~tmkit.world.run_block` executes a block, :class:`~tmkit.world.BlockRunner` blocks in chains
and by triggers. The edit is applied to the version of now if the inputs are still the same, else
the block is executed again; it may change what the block owns alone. So a block sees one version,
whole, and a second execution with the same inputs changes nothing.

Source: Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a Scene Graph based
    Robotic World Model",
2014: input and output structures (here patterns) and hooks. Triggers are future work there.
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
from tmkit.graph import joint_history
from tmkit.graph.nodes import SceneNode, walk_nodes
from tmkit.graph.patterns import Pattern
from tmkit.graph.patterns.pattern import find_structure
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.plain import convert_fields
from tmkit.world.live_scene import LiveScene

Edit = Callable[[SceneGraph], SceneGraph]
Found = Mapping[str, tuple[Mapping[str, str], ...]]
_MARK = "function_block"  # attribute of the group of a block


@dataclass(frozen=True, eq=False)
class OutputFrame:
    """A frame that a function block makes.

    Args:
        name: of the frame.
        parent: its parent; the frame of the output hook if omitted.
        pose: parent_from_frame.
        covariance: (6, 6) of the error of the pose, [rho, theta] in the frame's axes; exact if
            omitted.
        classes, shapes, attributes, joint: as for ``SceneGraph.add_frame`` and ``set_attributes``.
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
    """A computation from a version of a scene to an edit of the block's own output. Immutable.

    Derive a frozen dataclass; its fields are the configuration.

    Args:
        name: of the block, and of the group of what it makes.
        input_hook: the frame or group below which its inputs are.
        output_hook: the frame or group below which its output is put; the input hook if omitted.
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
        """The structures that it needs, by name. A block without any depends on the whole version."""

    @property
    @abstractmethod
    def outputs(self) -> Mapping[str, Pattern]:
        """The structures that it makes, by name, any number of each."""

    @abstractmethod
    def execute(self, scene: SceneGraph, found: Found) -> Edit:
        """Return an edit, such as :meth:`output` gives. The same inputs give the same edit.

        Args:
            scene: the version; the edit depends on frames found, those above them, and the block's
                output before.
            found: by name of an input its matches below the input hook, which may be none in a
                chain.
        """

    def before_execute(self, scene: SceneGraph, found: Found) -> None:
        """Do something before each execution; an exception is the block's.

        Args:
            scene, found: as for :meth:`execute`.
        """
        del scene, found

    def after_execute(self, before: SceneGraph, after: SceneGraph) -> None:
        """Do something with the result before it becomes the present version; an exception discards it.

        No other edit is made meanwhile. It is not called where nothing changes.

        Args:
            before: the version that the edit was applied to.
            after: the version that it made.
        """
        del before, after

    def is_editable(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether the block may change or remove a frame that it has not made; none by default.

        Args:
            scene: the version before the edit.
            frame: the frame.
        """
        del scene, frame
        return False

    def made(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the frames of a version that the block has made.

        Raises:
            BlockError: a group of the block's name is no output of a function block.
        """
        if self.name not in scene.group_names:
            return ()
        group = scene.group(self.name)
        if _MARK not in group.attributes:
            raise BlockError.of(self.name, "has the name of a group that no block has made")
        return group.frames

    def input_frames(self, scene: SceneGraph) -> set[str]:
        """Return the frames below the input hook, without those that the block itself has made.

        Raises:
            UnknownNameError: there is no such hook.
        """
        return set(frames_below(scene, node_of(scene, self.input_hook))).difference(
            self.made(scene)
        )

    def place(self, scene: SceneGraph) -> str:
        """Return the frame under which the output is put: the output hook, or the frame that this group is below.

        Raises:
            UnknownNameError: there is no such hook.
            BlockError: the hook is a group below no frame.
        """
        kind, hook = node_of(scene, self.output_hook)
        above = [hook] if kind == "frame" else list(scene.group(hook).parents)
        if not above:
            raise BlockError.of(
                self.name, f"has no place for its output: the group '{hook}' is below no frame"
            )
        return above[0]

    def find(self, scene: SceneGraph) -> dict[str, tuple[Mapping[str, str], ...]]:
        """Return the matches of each input below the input hook, of frames that the block itself has not made.

        Raises:
            UnknownNameError: there is no such hook.
            ConfigurationError: an input needs poses, and joints of the scene have no history.
        """
        allowed = self.input_frames(scene)
        return {name: matches_of(scene, pattern, allowed) for name, pattern in self.inputs.items()}

    def output(
        self, frames: Iterable[OutputFrame] = (), *, attributes: Mapping[str, object] | None = None
    ) -> Edit:
        """Return the edit that puts frames in the place of all that the block has made before.

        Args:
            frames: parents first. Those of a known name are changed, and others added or removed.
            attributes: of the group of the block.
        """
        made = tuple(frames)
        return lambda scene: _with_output(scene, self, made, attributes or {})


def _with_output(
    scene: SceneGraph,
    block: FunctionBlock,
    frames: Sequence[OutputFrame],
    attributes: Mapping[str, object],
) -> SceneGraph:
    """Return the version with another output of a block; what stays as it was keeps its place and its id."""
    (kind, hook), at = node_of(scene, block.output_hook), block.place(scene)
    known, names = block.made(scene), [frame.name for frame in frames]
    for name in known:
        if name not in names and name in scene:
            scene = scene.remove_frame(name, subtree=True)
    for frame in frames:
        name, parent = frame.name, frame.parent or at
        if name not in scene:
            scene = scene.add_frame(
                name,
                parent,
                pose=GaussianPose(frame.pose, frame.covariance),
                joint=frame.joint,
                classes=frame.classes,
                shapes=frame.shapes,
            )
        elif name not in known:
            raise DuplicateNameError(
                f"frame '{name}' is there, and is not its own", kind="frame", name=name
            )
        else:
            if scene.parent(name) != parent:
                scene = scene.reparent(name, parent, pose=frame.pose)
            scene = (
                scene.set_pose(name, frame.pose)
                .set_joint(name, frame.joint)
                .set_classes(name, frame.classes)
            )
            scene = scene.set_shapes(name, frame.shapes)
            covariance = (
                np.zeros((6, 6))
                if frame.covariance is None
                else np.asarray(frame.covariance, dtype=float)
            )
            # one that stays keeps its noise source
            if not np.array_equal(scene.edge_covariance(name), covariance):
                scene = scene.set_covariance(name, covariance)
        scene = scene.set_attributes(name, frame.attributes)
    marked = {**attributes, _MARK: type(block).__name__}
    # outputs of others
    inner = scene.group(block.name).groups if block.name in scene.group_names else ()
    above = [at] if kind == "frame" else []
    scene = scene.set_group(
        block.name, frames=names, groups=inner, parents=above, attributes=marked
    )
    if kind == "group" and block.name not in (group := scene.group(hook)).groups:
        scene = scene.set_group(hook, frames=group.frames, groups=(*group.groups, block.name))
    return scene


def node_of(scene: SceneGraph, hook: str) -> SceneNode:
    """Return the node of a hook, a frame or else a group."""
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


def matches_of(
    scene: SceneGraph, pattern: Pattern, allowed: set[str]
) -> tuple[Mapping[str, str], ...]:
    """Return the matches of a pattern among some frames."""
    found = find_structure(scene, pattern, q=newest_configuration(scene))
    return tuple(match for match in found if allowed.issuperset(match.values()))


def newest_configuration(scene: SceneGraph) -> NDArray[np.float64] | None:
    """Return the configuration (n_joints,) of the newest value of each joint; None where one has no history."""
    newest = {name: joint_history(scene, name)[1][-1:] for name in scene.joint_names}
    if not newest or not all(map(len, newest.values())):
        return None
    return scene.configuration({name: float(values[0]) for name, values in newest.items()})


def run_block(world: LiveScene, block: FunctionBlock, *, attempts: int = 3) -> SceneGraph:
    """Execute a block once, and return the version that its edit made; the present one where it changes nothing.

    Any number of threads may execute blocks of one world. The world's lock is held while the edit
    is applied, and while the inputs are found again where others have edited meanwhile.

    Args:
        world: the world.
        block: the block.
        attempts: executions at most, where others change the inputs meanwhile.

    Raises:
        BlockError: its exception; an edit of what it does not own or declare; inputs that changed
            in each attempt.
    """
    return executed(world, block, attempts)[1]


def executed(
    world: LiveScene, block: FunctionBlock, attempts: int
) -> tuple[SceneGraph, SceneGraph]:
    """Execute a block; return the version that it has seen, and that which its edit made."""
    with blamed(block):
        for _ in range(attempts):
            base = world.scene
            found = block.find(base)
            block.before_execute(base, found)
            edit = block.execute(base, found)
            if not callable(edit):
                raise ArgumentError(
                    f"execute returns an edit, a function of a scene, not {type(edit).__name__}"
                )
            commit = _Commit(block, base, found, edit)
            made = world.update(commit)
            if not commit.is_stale:
                return base, made
    raise BlockError.of(
        block.name, f"is refused: its inputs changed during each of {attempts} executions"
    )


class _Commit:
    """The edit of a block as one of the version of now, which stays if the inputs are not the same any more."""

    def __init__(self, block: FunctionBlock, base: SceneGraph, found: Found, edit: Edit) -> None:
        self._block, self._base, self._found, self._edit = block, base, found, edit
        self.is_stale = False

    def __call__(self, now: SceneGraph) -> SceneGraph:
        block = self._block
        self.is_stale = has_changed(block, self._base, now, self._found, with_own=True)
        made = now if self.is_stale else self._edit(now)
        if not isinstance(made, SceneGraph):
            raise ArgumentError(f"its edit returns a SceneGraph, not {type(made).__name__}")
        if made == now:
            return now
        _check_owned(block, now, made)
        _check_output(block, made)
        block.after_execute(now, made)
        return made


@contextmanager
def blamed(block: FunctionBlock) -> Iterator[None]:
    """Make errors of a block BlockErrors."""
    try:
        yield
    except (BlockError, MissingExtraError):
        raise
    except Exception as error:
        what = str(error) if isinstance(error, TmkitError) else f"{type(error).__name__}: {error}"
        raise BlockError.of(block.name, f"failed: {what}") from error


def has_changed(
    block: FunctionBlock, a: SceneGraph, b: SceneGraph, found: Found, *, with_own: bool
) -> bool:
    """Return whether what a block depends on differs between two versions; ``found`` is that of the first."""
    if a is b:
        return False
    others, own = touched(block, a, b)
    if with_own and own:
        return True
    if not block.inputs:
        return bool(others)
    if block.find(b) != found:
        return True
    frames = {frame for matches in found.values() for match in matches for frame in match.values()}
    return not others.isdisjoint(frames.union(*(b.ancestors(frame) for frame in frames)))


def touched(block: FunctionBlock, a: SceneGraph, b: SceneGraph) -> tuple[set[str], set[str]]:
    """Return the frames and groups that differ between two versions: those of others, and those of a block."""
    difference = diff(a, b)
    names = {
        side.name
        for frame in difference.frames
        for side in (frame.before, frame.after)
        if side is not None
    }
    names |= set(difference.groups)
    own = {block.name, *block.made(a), *block.made(b)}
    return names - own, names & own


def _check_owned(block: FunctionBlock, now: SceneGraph, made: SceneGraph) -> None:
    """Refuse an edit of what a block does not own."""
    before, difference = set(block.made(now)), diff(now, made)
    after = set(block.made(made))
    taken = [name for name in after - before if name in now]
    for frame in difference.frames:
        name = (frame.before or frame.after).name  # type: ignore[union-attr]
        is_below = frame.after is None and not before.isdisjoint(now.ancestors(name))
        if name not in before | after and not is_below and not block.is_editable(now, name):
            taken.append(name)
    removed, hooks = set(difference.removed), (block.name, block.output_hook)
    taken += [
        name
        for name in difference.groups
        if name not in hooks and not _loses(now, made, name, removed)
    ]
    taken += [a for a, b, *_ in difference.pairs if (before | after | removed).isdisjoint((a, b))]
    if taken:
        raise BlockError.of(block.name, f"changes '{min(taken)}', which it has not made")


def _loses(now: SceneGraph, made: SceneGraph, name: str, removed: set[str]) -> bool:
    """Return whether a group has lost removed frames, or has gone with one, and nothing else."""
    if name not in now.group_names:
        return False
    old = now.group(name)
    if name not in made.group_names:
        return not removed.isdisjoint(old.frames)
    new = made.group(name)
    return (new.groups, new.attributes, {*new.frames}, {*new.parents}) == (
        old.groups,
        old.attributes,
        {*old.frames} - removed,
        {*old.parents} - removed,
    )


def _check_output(block: FunctionBlock, made: SceneGraph) -> None:
    """Refuse an output that is not as declared."""
    own = set(block.made(made))
    matches = (
        match for pattern in block.outputs.values() for match in matches_of(made, pattern, own)
    )
    fitting = {frame for match in matches for frame in match.values()}
    if odd := sorted(own - fitting):
        declared = ", ".join(f"'{name}'" for name in block.outputs) or "none"
        raise BlockError.of(
            block.name, f"makes frame '{odd[0]}', which fits none of its outputs ({declared})"
        )
