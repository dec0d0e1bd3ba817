"""A scene with the edits that made it: what was done, in words and with its arguments, and the way back.

A scene has no record of its edits: equal scenes are equal however they were made. A
:class:`SceneHistory` applies each edit by the scene's own method and records its name; see
``docs/howto/looking_at_scenes.md``. It is a value like a scene: an edit of it gives another
history, and the old one stays.

Inside are two persistent lists: the entries from the start to now, the newest first, and those that
were undone, the nearest first. An edit or an undo makes one link.
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
_TEXT_LENGTH = 100  # of one edit in words
_ITEMS_SHOWN = 8  # of a sequence in an edit's words


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version in a history, and the edit that made it of the version before. Immutable; compares by value.

    Attributes:
        number: how many edits lead here from the start of the history; 0 is the start.
        edit: name of the edit, as the scene's method is called; ``start`` for the first version.
        arguments: its positional arguments; arrays and lists are kept as tuples.
        keywords: its keyword arguments as (name, value), in the order they were given in.
        scene: the version.
    """

    number: int
    edit: str
    arguments: tuple[object, ...]
    keywords: tuple[tuple[str, object], ...]
    scene: SceneGraph

    @property
    def parent(self) -> int | None:
        """Number of the version that was edited; None for the start."""
        return self.number - 1 if self.number else None

    @property
    def text(self) -> str:
        """The edit as it would be written, cut when it is long: ``reparent('cup', 'hand', q=[0.1])``."""
        words = [_words(value) for value in self.arguments]
        words += [f"{name}={_words(value)}" for name, value in self.keywords]
        text = f"{self.edit}({', '.join(words)})" if self.edit != "start" else "start"
        return text if len(text) <= _TEXT_LENGTH else f"{text[: _TEXT_LENGTH - 4]}...)"

    def __repr__(self) -> str:
        return f"<{self.number}: {self.text}>"


class _Recorded(Generic[_Arguments]):
    """An edit of the scene as a method of the history, with the same arguments."""

    def __init__(self, edit: Callable[Concatenate[SceneGraph, _Arguments], SceneGraph]) -> None:
        self._edit = edit
        self.__doc__ = (
            f"Do ``SceneGraph.{edit.__name__}`` with the same arguments, and return the history"
            " with it."
        )

    # typing keeps what is overloaded, and with it this module, beyond the interpreter's end
    if TYPE_CHECKING:

        @overload
        def __get__(self, history: None, owner: type[SceneHistory]) -> _Recorded[_Arguments]: ...
        @overload
        def __get__(
            self, history: SceneHistory, owner: type[SceneHistory]
        ) -> Callable[_Arguments, SceneHistory]: ...

    def __get__(
        self, history: SceneHistory | None, owner: type[SceneHistory]
    ) -> _Recorded[_Arguments] | Callable[_Arguments, SceneHistory]:
        if history is None:
            return self
        log, edit = history, self._edit

        def recorded(*arguments: _Arguments.args, **keywords: _Arguments.kwargs) -> SceneHistory:
            scene = edit(log.scene, *arguments, **keywords)
            return log._extended(edit.__name__, arguments, keywords.items(), scene)

        recorded.__name__ = edit.__name__
        recorded.__doc__ = self.__doc__
        return recorded


class SceneHistory:
    """A version of a scene, with the edits that made it and the way back. Immutable.

    Holding one means holding every version on the way from its start to now, and those undone from
    here. It has the edits of ``SceneGraph``, with the same arguments and refusals; each returns a
    new history, or the same when nothing changed. An edit after ``undo`` begins another line: what
    was undone is then part of the old history only.

    Args:
        scene: the version that it starts with.
    """

    __slots__ = ("_now", "_undone")

    def __init__(self, scene: SceneGraph) -> None:
        self._now = plist([HistoryEntry(0, "start", (), (), scene)])
        self._undone: PList[HistoryEntry] = plist()

    add_root = _Recorded(SceneGraph.add_root)
    add_frame = _Recorded(SceneGraph.add_frame)
    remove_frame = _Recorded(SceneGraph.remove_frame)
    rename_frame = _Recorded(SceneGraph.rename_frame)
    reparent = _Recorded(SceneGraph.reparent)
    set_pose = _Recorded(SceneGraph.set_pose)
    set_joint = _Recorded(SceneGraph.set_joint)
    set_classes = _Recorded(SceneGraph.set_classes)
    set_shapes = _Recorded(SceneGraph.set_shapes)
    add_shape = _Recorded(SceneGraph.add_shape)
    set_inertia = _Recorded(SceneGraph.set_inertia)
    add_body = _Recorded(SceneGraph.add_body)
    remove_body = _Recorded(SceneGraph.remove_body)
    attach = _Recorded(SceneGraph.attach)
    make_root = _Recorded(SceneGraph.make_root)
    set_twist = _Recorded(SceneGraph.set_twist)
    set_twist_noise = _Recorded(SceneGraph.set_twist_noise)
    remove_twist = _Recorded(SceneGraph.remove_twist)
    add_stamped_pose = _Recorded(SceneGraph.add_stamped_pose)
    set_stamped_poses = _Recorded(SceneGraph.set_stamped_poses)
    set_covariance = _Recorded(SceneGraph.set_covariance)
    set_noise = _Recorded(SceneGraph.set_noise)
    add_noise = _Recorded(SceneGraph.add_noise)
    add_joint_noise = _Recorded(SceneGraph.add_joint_noise)
    condition = _Recorded(SceneGraph.condition)
    allow_collision = _Recorded(SceneGraph.allow_collision)
    forbid_collision = _Recorded(SceneGraph.forbid_collision)
    set_attributes = _Recorded(SceneGraph.set_attributes)
    set_attribute = _Recorded(SceneGraph.set_attribute)
    set_group = _Recorded(SceneGraph.set_group)
    set_group_attribute = _Recorded(SceneGraph.set_group_attribute)
    remove_group = _Recorded(SceneGraph.remove_group)
    mount = _Recorded(SceneGraph.mount)
    merge = _Recorded(SceneGraph.merge)
    extract = _Recorded(SceneGraph.extract)
    apply = _Recorded(SceneGraph.apply)

    def record(self, edit: str, scene: SceneGraph) -> SceneHistory:
        """Return the history with a version that was made in any other way, such as many edits at once.

        Args:
            edit: what it is to be called.
            scene: the new version; when it is the present one, nothing is recorded.
        """
        return self._extended(edit, (), (), scene)

    def undo(self) -> SceneHistory:
        """Return the history one version back. O(1).

        Raises:
            SceneError: this is the start.
        """
        if not self._now.rest:
            raise SceneError("there is nothing to undo: the history is at its start")
        return self._made(self._now.rest, self._undone.cons(self._now.first))

    def redo(self) -> SceneHistory:
        """Return the history with the edit that was undone last done again. O(1).

        Raises:
            SceneError: nothing was undone from here.
        """
        if not self._undone:
            raise SceneError("there is nothing to redo: no edit was undone from here")
        return self._made(self._now.cons(self._undone.first), self._undone.rest)

    def branch(self) -> SceneHistory:
        """Return the history up to here as a line of its own, with nothing to redo. O(1)."""
        return self._made(self._now, plist()) if self._undone else self

    def back_to(self, number: int) -> SceneHistory:
        """Return the history at a version of this line, before or after the present one. O(number of steps).

        Raises:
            SceneError: no version of this line, from the start to the last one undone, has that
                number.
        """
        history = self
        while history.number > number >= 0:
            history = history.undo()
        while history.number < number and history._undone:
            history = history.redo()
        if history.number != number:
            raise SceneError(
                f"this history has no version {number}: they are 0 to {history._last_number()}"
            )
        return history

    @property
    def scene(self) -> SceneGraph:
        """The present version."""
        return self._now.first.scene

    @property
    def number(self) -> int:
        """How many edits lead from the start to the present version."""
        return self._now.first.number

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """The versions from the start to the present one. O(number)."""
        return tuple(self._now)[::-1]

    @property
    def undone(self) -> tuple[HistoryEntry, ...]:
        """The versions that ``redo`` leads to, the next first. O(their number)."""
        return tuple(self._undone)

    def text(self, *, count: int = 20) -> str:
        """Return the versions as lines of text, at most ``count`` up to now (``>``) and as many that were undone."""
        before = [entry for entry, _ in zip(self._now, range(max(1, count)), strict=False)][::-1]
        after = [entry for entry, _ in zip(self._undone, range(count), strict=False)]
        last, now = self._last_number(), self.number
        lines = [f"  ... {before[0].number} earlier"] if before[0].number else []
        for entry in (*before, *after):
            lines.append(
                f"{'>' if entry.number == now else ' '} {entry.number:{len(str(last))}}"
                f" {entry.text}"
            )
            lines[-1] += "  (undone)" if entry.number > now else ""
        shown = after[-1].number if after else now
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
    def _made(now: PList[HistoryEntry], undone: PList[HistoryEntry]) -> SceneHistory:
        history = SceneHistory.__new__(SceneHistory)
        initialize(history, _now=now, _undone=undone)
        return history

    def _extended(
        self,
        edit: str,
        arguments: Iterable[object],
        keywords: Iterable[tuple[str, object]],
        scene: SceneGraph,
    ) -> SceneHistory:
        if scene is self.scene:
            return self
        kept = tuple(_kept(value) for value in arguments)
        named = tuple((name, _kept(value)) for name, value in keywords)
        return self._made(
            self._now.cons(HistoryEntry(self.number + 1, edit, kept, named, scene)), plist()
        )

    def _last_number(self) -> int:
        return self.number + len(self._undone)


def _kept(value: object) -> object:
    """Return an argument as a value that is immutable: arrays and lists as tuples, mappings as tuples of pairs."""
    if isinstance(value, np.ndarray):
        return _kept(value.tolist())
    if isinstance(value, Mapping):
        return tuple((key, _kept(item)) for key, item in value.items())
    return tuple(map(_kept, value)) if isinstance(value, list | tuple) else value


def _words(value: object) -> str:
    """Return an argument in words, short."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        shown = [_words(item) for item in value[:_ITEMS_SHOWN]] + (
            ["..."] if len(value) > _ITEMS_SHOWN else []
        )
        return f"[{', '.join(shown)}]"
    return repr(value)


_EDGE_FIELDS = {"parent", "pose", "joint"}
# frames whose poses a sweep gives in the time of one pose that is computed alone
_WORTH_A_SWEEP = 8


def moved_frames(
    a: SceneGraph,
    b: SceneGraph,
    *,
    q: ArrayLike | None = None,
    metres: float = 0.0,
    radians: float = 0.0,
) -> tuple[str, ...]:
    """Return the frames of both versions that stand elsewhere relative to their root in ``b`` than in ``a``.

    Frames are matched by id, so one that was renamed is still the same; names are those in ``b``,
    in insertion order. A frame that came to stand in another tree has moved. O(depth log n) for
    each frame below a change; O(n) at most.

    Args:
        a: the one version.
        b: the other, made from ``a`` or from the same scene as ``a``.
        q: configuration (n_joints,) of both; may be omitted if they have no joints.
        metres: a frame whose origin is no farther off has not moved, ...
        radians: ... when it is not turned by more than this, either.

    Raises:
        SceneError: the versions have different joints: one configuration does not fit both.
        ConfigurationError: if q is missing or has the wrong length.
    """
    if a.joint_names != b.joint_names:
        raise SceneError(
            "the two versions have different joints, so one configuration does not speak of both"
        )
    if q is None and b.joint_names:
        raise ConfigurationError(
            "the scenes have joints, so moved_frames() needs a configuration q"
        )
    values = b.configuration({}, base=q)  # refuses another length
    metres, radians = plain_number(metres, "metres"), plain_number(radians, "radians")
    candidates: dict[str, int] = {}  # frames below changed edges, with their ids
    for frame in diff(a, b).frames:
        if frame.before is None or frame.after is None or _EDGE_FIELDS.isdisjoint(frame.fields):
            continue
        if frame.after.name not in candidates:
            candidates |= {name: b.frame_id(name) for name in b.subtree(frame.after.name)}
    before, after = (_poses(scene, values, len(candidates)) for scene in (a, b))
    moved: list[tuple[int, str]] = []
    for name, number in candidates.items():
        old_name = a.frame_of_id(number)
        if old_name is None:
            continue
        is_apart = a.frame_id(a.root(old_name)) != b.frame_id(b.root(name))
        distance, angle = (0.0, 0.0) if is_apart else before(old_name).distance(after(name))
        if is_apart or distance > metres or angle > radians:
            moved.append((number, name))
    return tuple(name for _, name in sorted(moved))


def _poses(scene: SceneGraph, q: NDArray[np.float64], count: int) -> Callable[[str], Pose]:
    """Return root_from_frame by name: one sweep over all frames where ``count`` of them are wanted and that is less."""
    if count * _WORTH_A_SWEEP > len(scene):
        return scene.at(q).pose
    return lambda name: scene.pose(name, relative_to=scene.root(name), q=q)
