"""Scenes that record the queries of functions, so that results can be cached.

A :class:`TracedScene` stands for a version of a scene while the state of a domain is derived. A
function marked with :func:`incremental` is called once for its arguments, and its queries are
recorded beside its value. :mod:`tmkit.tamp.domains.state_derivation` documents the rules, and
transfers values from version to version.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import TmkitError
from tmkit.graph import AttachedShape, Joint, SceneGraph
from tmkit.spatial import Pose

_P = ParamSpec("_P")
_T = TypeVar("_T")

Key = tuple[str, str]
"""A frame and one of its fields, or a class and ``"class"``."""

WHOLE: Key = ("", "whole")
"""Key of queries that are not traced in detail. Its value differs between any two versions."""

JOINTS: Key = ("", "joints")
"""Key of the joint names, which define the entries of a configuration."""

Call = tuple[Callable[..., Any], tuple[Hashable, ...]]
"""A function with its arguments."""

SceneFunction = Callable[Concatenate[SceneGraph, _P], _T]
"""A function of a scene and further arguments."""


class CachedValue(NamedTuple):
    """The value of a call.

    Attributes:
        value: result of the function.
        reads: keys of the scene and other calls that the function read.
    """

    value: Any
    reads: frozenset[Key | Call]


Memo = dict[Call, CachedValue]
"""Cached values by call."""

_NO_CALLS: set[Call] = set()


class Dependents:
    """Calls by the keys and calls that they read, in any version.

    Entries are only added, so threads may share one table.

    Attributes:
        of: readers by key or call.
        reads: last added reads by call.
    """

    def __init__(self) -> None:
        self.of: dict[Key | Call, set[Call]] = {}
        self.reads: dict[Call, frozenset[Key | Call]] = {}

    def add(self, call: Call, reads: frozenset[Key | Call]) -> None:
        """Record the reads of a call."""
        for read in reads:
            self.of.setdefault(read, set()).add(call)
        self.reads[call] = reads


def drop_changed(memo: Memo, changed: Iterable[Key], dependents: Dependents) -> Memo:
    """Return a memo without the values that depend on changed keys.

    Takes time linear in the number of dependents.

    Args:
        memo: cached values.
        changed: keys whose values may have changed.
        dependents: readers of all keys and calls, in any version.
    """
    result = dict(memo)
    queue: list[Key | Call] = [*changed]
    while queue:
        read = queue.pop()
        for call in dependents.of.get(read, _NO_CALLS).copy():  # another thread may add to it
            value = result.get(call)
            if value is not None and read in value.reads:
                del result[call]
                queue.append(call)
    return result


def incremental(function: SceneFunction[_P, _T]) -> SceneFunction[_P, _T]:
    """Mark a function of a scene and hashable arguments whose values are cached.

    :class:`StateDeriver` caches them.

    Args:
        function: depends on its arguments and the scene alone; its result must not be modified.
    """

    @functools.wraps(function)
    def call_cached(scene: SceneGraph, /, *args: _P.args, **options: _P.kwargs) -> _T:
        if isinstance(scene, TracedScene) and not options:
            value: _T = scene._recall((function, args))
            return value
        return function(scene, *args, **options)

    return call_cached


class TracedScene:
    """A version of a scene that records the queries of the functions whose values are cached.

    It has the queries of the scene. Queries that are not defined here are passed to the scene and
    count as reads of the whole scene. It is no :class:`tmkit.SceneGraph`, so no function of the
    core reads it untraced.

    Args:
        scene: scene version.
        memo: values that hold in the version; new values are added.
        dependents: table of the reads of all versions. Defaults to a new one.
    """

    def __init__(self, scene: SceneGraph, memo: Memo, dependents: Dependents | None = None) -> None:
        self._scene, self._memo = scene, memo
        self._dependents = dependents or Dependents()
        self._reads: set[Key | Call] = set()  # of the function that is being called

    def _recall(self, call: Call) -> Any:
        """Return the value of a call, cached or computed, and record that it is read."""
        result = self._memo.get(call) or self._call(call)
        self._reads.add(call)
        return result.value

    def _call(self, call: Call) -> CachedValue:
        """Call a function, cache its value, and record its reads."""
        function, args = call
        outer, self._reads = self._reads, set()
        try:
            value = function(self, *args)
            reads = frozenset(self._reads)
            result = self._memo[call] = CachedValue(value, reads)
            if self._dependents.reads.get(call) != reads:
                self._dependents.add(call, reads)
        except BaseException:  # there is no value, so a caller that continues has the same reads
            outer |= self._reads
            raise
        finally:
            self._reads = outer
        return result

    def __getattr__(self, name: str) -> Any:
        self._reads.add(WHOLE)
        return getattr(self._scene, name)

    def __len__(self) -> int:
        self._reads.add(WHOLE)
        return len(self._scene)

    def __contains__(self, frame: object) -> bool:
        self._reads.add((str(frame), "there"))
        return frame in self._scene

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the entries of a configuration."""
        self._reads.add(JOINTS)
        return self._scene.joint_names

    @property
    def joint_limits(self) -> NDArray[np.float64]:
        """(n_joints, 2) limits of the entries of a configuration."""
        self._reads.add(JOINTS)
        return self._scene.joint_limits

    def ancestors(self, frame: str) -> tuple[str, ...]:
        """Return the ancestors of a frame, nearest first."""
        try:
            ancestors = self._scene.ancestors(frame)
        except TmkitError:
            self._reads.add(WHOLE)
            raise
        self._reads.update((name, "parent") for name in (frame, *ancestors))
        return ancestors

    def root(self, frame: str) -> str:
        """Return the root of the tree that a frame is in."""
        return (frame, *self.ancestors(frame))[-1]

    def parent(self, frame: str) -> str | None:
        """Return the parent of a frame, None for a root."""
        return self._read(self._scene.parent, frame, "parent")

    def children(self, frame: str) -> tuple[str, ...]:
        """Return the children of a frame in insertion order."""
        return self._read(self._scene.children, frame, "children")

    def classes(self, frame: str) -> tuple[str, ...]:
        """Return the classes of a frame."""
        return self._read(self._scene.classes, frame, "classes")

    def frames_of_class(self, name: str) -> tuple[str, ...]:
        """Return the frames of a class."""
        return self._read(self._scene.frames_of_class, name, "class")

    def shapes(self, frame: str) -> tuple[AttachedShape, ...]:
        """Return the shapes of a frame."""
        return self._read(self._scene.shapes, frame, "shapes")

    def attributes(self, frame: str) -> Mapping[str, Any]:
        """Return the attributes of a frame."""
        return self._read(self._scene.attributes, frame, "attributes")

    def joint(self, frame: str) -> Joint:
        """Return the joint between a frame and its parent."""
        return self._read(self._scene.joint, frame, "joint")

    def local_pose(self, frame: str) -> Pose:
        """Return parent_from_frame at joint value 0."""
        return self._read(self._scene.local_pose, frame, "pose")

    def frame_id(self, frame: str) -> int:
        """Return the id of a frame."""
        return self._read(self._scene.frame_id, frame, "there")

    def _read(self, query: Callable[[str], _T], name: str, field: str) -> _T:
        """Return the result of a query of the scene that reads one field."""
        self._reads.add((name, field))
        try:
            return query(name)
        except TmkitError:  # the message may list other names
            self._reads.add(WHOLE)
            raise

    def poses(
        self, frames: Sequence[str], *, relative_to: str | None = None, q: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the poses (k, 7) of frames relative to one, by default their roots, at q."""
        for frame in frames:
            self.pose(frame, relative_to=relative_to, q=q)
        return self._scene.poses(frames, relative_to=relative_to, q=q)

    def pose(
        self, frame: str, *, relative_to: str | None = None, q: ArrayLike | None = None
    ) -> Pose:
        """Return the pose of a frame relative to another, by default the root, at q (n_joints,)."""
        if q is not None:
            self._reads.add(JOINTS)
        try:
            pose = self._scene.pose(frame, relative_to=relative_to, q=q)
        except TmkitError:
            self._reads.add(WHOLE)
            raise
        for name in self._scene.path(
            frame, self._scene.root(frame) if relative_to is None else relative_to
        ):
            self._reads.update(((name, "parent"), (name, "pose"), (name, "joint")))
        return pose
