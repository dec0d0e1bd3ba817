"""Edit history of a scene, with undo and redo.

A scene stores no record of its edits: scenes with equal content are equal. A :class:`SceneHistory`
applies each edit by the scene's method and records its name and arguments; see
``docs/howto/looking_at_scenes.md``. A history is immutable: an edit returns another history.

It consists of two persistent lists. One has the entries from the present to the start, the other
the undone entries, the next first. An edit or an undo adds one link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyrsistent import PList, plist

from tmkit._core import SceneGraph, diff
from tmkit._support.initialization import initialize
from tmkit.errors import ConfigurationError, SceneError
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_number

_Arguments = ParamSpec("_Arguments")
_TEXT_LENGTH = 100
"""Largest number of characters in the text of one edit."""

_ITEMS_SHOWN = 8
"""Largest number of items of a sequence in the text of one edit."""

_MIN_SWEEP_FRAMES = 8
"""Number of frames whose poses one sweep computes in the time of one separate pose."""

_EDGE_FIELDS = {"parent", "pose", "joint"}
"""Fields of a frame specification whose change may move frames."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """Version in a history, with the edit that made it. Immutable; compares by value.

    Attributes:
        number: number of edits since the start of the history; 0 at the start.
        edit: name of the edit, which is the scene's method; ``start`` for the first version.
        arguments: positional arguments of the edit, with arrays and lists as tuples.
        keywords: keyword arguments as (name, value), in the order of the call.
        scene: the version.
    """

    number: int
    edit: str
    arguments: tuple[object, ...]
    keywords: tuple[tuple[str, object], ...]
    scene: SceneGraph

    @property
    def parent(self) -> int | None:
        """Number of the previous version; None for the start."""
        return self.number - 1 if self.number else None

    @property
    def text(self) -> str:
        """Call of the edit, truncated to 100 characters: ``reparent('cup', 'hand', q=[0.1])``."""
        words = [_argument_text(value) for value in self.arguments]
        words += [f"{name}={_argument_text(value)}" for name, value in self.keywords]
        text = f"{self.edit}({', '.join(words)})" if self.edit != "start" else "start"
        return text if len(text) <= _TEXT_LENGTH else f"{text[: _TEXT_LENGTH - 4]}...)"

    def __repr__(self) -> str:
        return f"<{self.number}: {self.text}>"


class _RecordedEdit(Generic[_Arguments]):
    """Descriptor: an edit of the scene as a method of the history, with the same arguments."""

    def __init__(self, edit: Callable[Concatenate[SceneGraph, _Arguments], SceneGraph]) -> None:
        self._edit = edit
        self.__doc__ = (
            f"Apply ``SceneGraph.{edit.__name__}``, and return the history with this edit."
        )

    # At run time, typing's registry of overloads would keep this module alive until exit.
    if TYPE_CHECKING:

        @overload
        def __get__(
            self, history: None, owner: type[SceneHistory]
        ) -> _RecordedEdit[_Arguments]: ...
        @overload
        def __get__(
            self, history: SceneHistory, owner: type[SceneHistory]
        ) -> Callable[_Arguments, SceneHistory]: ...

    def __get__(
        self, history: SceneHistory | None, owner: type[SceneHistory]
    ) -> _RecordedEdit[_Arguments] | Callable[_Arguments, SceneHistory]:
        if history is None:
            return self
        log, edit = history, self._edit

        def record_edit(*arguments: _Arguments.args, **keywords: _Arguments.kwargs) -> SceneHistory:
            scene = edit(log.scene, *arguments, **keywords)
            return log._append(edit.__name__, arguments, keywords.items(), scene)

        record_edit.__name__ = edit.__name__
        record_edit.__doc__ = self.__doc__
        return record_edit


class SceneHistory:
    """Version of a scene with its edit history. Immutable.

    A history stores every version from its start to the present one, and those that were undone. It
    has the edits of ``SceneGraph``, with the same arguments and errors. Each returns a new history,
    or the same history if nothing changed. An edit after ``undo`` discards the undone versions; the
    old history still has them.

    Args:
        scene: the first version.
    """

    __slots__ = ("_now", "_undone")

    def __init__(self, scene: SceneGraph) -> None:
        self._now = plist([HistoryEntry(0, "start", (), (), scene)])
        self._undone: PList[HistoryEntry] = plist()

    add_root = _RecordedEdit(SceneGraph.add_root)
    add_frame = _RecordedEdit(SceneGraph.add_frame)
    remove_frame = _RecordedEdit(SceneGraph.remove_frame)
    rename_frame = _RecordedEdit(SceneGraph.rename_frame)
    reparent = _RecordedEdit(SceneGraph.reparent)
    set_pose = _RecordedEdit(SceneGraph.set_pose)
    set_joint = _RecordedEdit(SceneGraph.set_joint)
    set_classes = _RecordedEdit(SceneGraph.set_classes)
    set_shapes = _RecordedEdit(SceneGraph.set_shapes)
    add_shape = _RecordedEdit(SceneGraph.add_shape)
    set_inertia = _RecordedEdit(SceneGraph.set_inertia)
    add_body = _RecordedEdit(SceneGraph.add_body)
    remove_body = _RecordedEdit(SceneGraph.remove_body)
    attach = _RecordedEdit(SceneGraph.attach)
    make_root = _RecordedEdit(SceneGraph.make_root)
    set_twist = _RecordedEdit(SceneGraph.set_twist)
    set_twist_noise = _RecordedEdit(SceneGraph.set_twist_noise)
    remove_twist = _RecordedEdit(SceneGraph.remove_twist)
    add_stamped_pose = _RecordedEdit(SceneGraph.add_stamped_pose)
    set_stamped_poses = _RecordedEdit(SceneGraph.set_stamped_poses)
    set_covariance = _RecordedEdit(SceneGraph.set_covariance)
    set_noise = _RecordedEdit(SceneGraph.set_noise)
    add_noise = _RecordedEdit(SceneGraph.add_noise)
    add_joint_noise = _RecordedEdit(SceneGraph.add_joint_noise)
    condition = _RecordedEdit(SceneGraph.condition)
    allow_collision = _RecordedEdit(SceneGraph.allow_collision)
    forbid_collision = _RecordedEdit(SceneGraph.forbid_collision)
    set_attributes = _RecordedEdit(SceneGraph.set_attributes)
    set_attribute = _RecordedEdit(SceneGraph.set_attribute)
    set_group = _RecordedEdit(SceneGraph.set_group)
    set_group_attribute = _RecordedEdit(SceneGraph.set_group_attribute)
    remove_group = _RecordedEdit(SceneGraph.remove_group)
    mount = _RecordedEdit(SceneGraph.mount)
    merge = _RecordedEdit(SceneGraph.merge)
    extract = _RecordedEdit(SceneGraph.extract)
    apply = _RecordedEdit(SceneGraph.apply)

    def record(self, edit: str, scene: SceneGraph) -> SceneHistory:
        """Return the history with a version that was made elsewhere, such as by several edits.

        Args:
            edit: name of the edit.
            scene: the new version. The present version is not recorded again.
        """
        return self._append(edit, (), (), scene)

    def undo(self) -> SceneHistory:
        """Return the history one version back. O(1).

        Raises:
            SceneError: if the history is at its start.
        """
        if not self._now.rest:
            raise SceneError("there is nothing to undo: the history is at its start")
        return self._from_entries(self._now.rest, self._undone.cons(self._now.first))

    def redo(self) -> SceneHistory:
        """Return the history with the last undone edit repeated. O(1).

        Raises:
            SceneError: if no edit was undone.
        """
        if not self._undone:
            raise SceneError("there is nothing to redo: no edit was undone from here")
        return self._from_entries(self._now.cons(self._undone.first), self._undone.rest)

    def branch(self) -> SceneHistory:
        """Return the history up to the present version, without undone edits. O(1)."""
        return self._from_entries(self._now, plist()) if self._undone else self

    def back_to(self, number: int) -> SceneHistory:
        """Return the history at an earlier or an undone version. O(number of steps).

        Raises:
            SceneError: if no version from the start to the last undone one has that number.
        """
        history = self
        while history.number > number >= 0:
            history = history.undo()
        while history.number < number and history._undone:
            history = history.redo()
        if history.number != number:
            raise SceneError(
                f"this history has no version {number}; versions are 0 to {history._last_number()}"
            )
        return history

    @property
    def scene(self) -> SceneGraph:
        """Present version."""
        return self._now.first.scene

    @property
    def number(self) -> int:
        """Number of edits from the start to the present version."""
        return self._now.first.number

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """Versions from the start to the present one. O(number)."""
        return tuple(self._now)[::-1]

    @property
    def undone(self) -> tuple[HistoryEntry, ...]:
        """Versions that ``redo`` restores, the next first. O(their number)."""
        return tuple(self._undone)

    def text(self, *, count: int = 20) -> str:
        """Return the versions as lines of text, with ``>`` at the present one.

        Args:
            count: largest number of versions up to the present one, and of undone versions.
        """
        past_entries = [entry for entry, _ in zip(self._now, range(max(1, count)), strict=False)][
            ::-1
        ]
        undone = [entry for entry, _ in zip(self._undone, range(count), strict=False)]
        last, present = self._last_number(), self.number
        lines = [f"  ... {past_entries[0].number} earlier"] if past_entries[0].number else []
        for entry in (*past_entries, *undone):
            mark = ">" if entry.number == present else " "
            suffix = "  (undone)" if entry.number > present else ""
            lines.append(f"{mark} {entry.number:{len(str(last))}} {entry.text}{suffix}")
        shown = undone[-1].number if undone else present
        lines += [f"  ... {last - shown} more undone"] if last > shown else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"SceneHistory(version {self.number} of {self._last_number()}, {self.scene!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SceneHistory):
            return NotImplemented
        return self._now == other._now and self._undone == other._undone

    def __hash__(self) -> int:
        return hash((self.number, self.scene))

    def __copy__(self, memo: object = None) -> SceneHistory:
        return self

    __deepcopy__ = __copy__

    @staticmethod
    def _from_entries(now: PList[HistoryEntry], undone: PList[HistoryEntry]) -> SceneHistory:
        history = SceneHistory.__new__(SceneHistory)
        initialize(history, _now=now, _undone=undone)
        return history

    def _append(
        self,
        edit: str,
        arguments: Iterable[object],
        keywords: Iterable[tuple[str, object]],
        scene: SceneGraph,
    ) -> SceneHistory:
        if scene is self.scene:
            return self
        positional = tuple(_freeze(value) for value in arguments)
        named_arguments = tuple((name, _freeze(value)) for name, value in keywords)
        entry = HistoryEntry(self.number + 1, edit, positional, named_arguments, scene)
        return self._from_entries(self._now.cons(entry), plist())

    def _last_number(self) -> int:
        return self.number + len(self._undone)


def _freeze(value: object) -> object:
    """Return an argument as an immutable value: arrays and lists as tuples, mappings as pairs."""
    if isinstance(value, np.ndarray):
        return _freeze(value.tolist())
    if isinstance(value, Mapping):
        return tuple((key, _freeze(item)) for key, item in value.items())
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value


def _argument_text(value: object) -> str:
    """Return the short text of an argument."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        items = [_argument_text(item) for item in value[:_ITEMS_SHOWN]]
        if len(value) > _ITEMS_SHOWN:
            items.append("...")
        return f"[{', '.join(items)}]"
    return repr(value)


def moved_frames(
    a: SceneGraph,
    b: SceneGraph,
    *,
    q: ArrayLike | None = None,
    translation_tolerance: float = 0.0,
    rotation_tolerance: float = 0.0,
) -> tuple[str, ...]:
    """Return the frames whose pose relative to their root differs between two versions.

    Frames are matched by id, so a renamed frame matches. Names are those in ``b``, in insertion
    order. A frame of another tree than before has moved. O(depth log n) for each frame below a
    change; O(n) at most.

    Args:
        a: one version.
        b: the other version, made from ``a`` or from the same scene as ``a``.
        q: (n_joints,) configuration of both; optional if they have no joints.
        translation_tolerance: largest translation of a frame that counts as unmoved [m].
        rotation_tolerance: largest rotation of a frame that counts as unmoved [rad].

    Raises:
        SceneError: if the versions have different joints.
        ConfigurationError: if q is missing or has the wrong length.
    """
    if a.joint_names != b.joint_names:
        raise SceneError(
            "the two versions have different joints, so one configuration does not fit both"
        )
    if q is None and b.joint_names:
        raise ConfigurationError(
            "the scenes have joints, so moved_frames() needs a configuration q"
        )
    values = b.configuration({}, base=q)  # raises for a wrong length
    max_distance = plain_number(translation_tolerance, "translation_tolerance", "m")
    max_angle = plain_number(rotation_tolerance, "rotation_tolerance", "rad")

    # Collect the frames below changed edges, with their ids.
    candidates: dict[str, int] = {}
    for frame in diff(a, b).frames:
        if frame.before is None or frame.after is None or _EDGE_FIELDS.isdisjoint(frame.fields):
            continue
        if frame.after.name not in candidates:
            candidates |= {name: b.frame_id(name) for name in b.subtree(frame.after.name)}

    # Compare the poses of each candidate in both versions.
    old_poses, new_poses = (_RootPoses(scene, values, len(candidates)) for scene in (a, b))
    moved_names: list[tuple[int, str]] = []
    for name, number in candidates.items():
        old_name = a.frame_of_id(number)
        if old_name is None:
            continue
        if a.frame_id(a.root(old_name)) != b.frame_id(b.root(name)):
            moved_names.append((number, name))
            continue
        distance, angle = old_poses.pose(old_name).distance(new_poses.pose(name))
        if distance > max_distance or angle > max_angle:
            moved_names.append((number, name))
    return tuple(name for _, name in sorted(moved_names))


class _RootPoses:
    """Poses root_from_frame at one configuration, by one sweep over all frames if that is faster.

    Args:
        scene: the scene.
        q: (n_joints,) configuration.
        count: expected number of queries.
    """

    def __init__(self, scene: SceneGraph, q: NDArray[np.float64], count: int) -> None:
        self._scene, self._q = scene, q
        self._kinematics = scene.at(q) if count * _MIN_SWEEP_FRAMES > len(scene) else None

    def pose(self, frame: str) -> Pose:
        if self._kinematics is not None:
            return self._kinematics.pose(frame)
        return self._scene.pose(frame, relative_to=self._scene.root(frame), q=self._q)
