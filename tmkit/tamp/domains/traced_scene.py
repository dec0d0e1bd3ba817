"""Scenes that record what is read of them; values that depend on nothing else can be cached.

A :class:`TracedScene` stands for a version of a scene while the state of a domain is derived: functions marked with
:func:`incremental` are called once for their arguments, and what they read is noted beside their value.
:mod:`tmkit.tamp.domains.state_derivation` tells the rules, and carries values from version to version.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from numpy.typing import ArrayLike

from tmkit.errors import TmkitError
from tmkit.graph import AttachedShape, Joint, SceneGraph
from tmkit.spatial import Pose

if TYPE_CHECKING:
    from pyrsistent import PMap

_P = ParamSpec("_P")
_T = TypeVar("_T")

Key = tuple[str, str]  # a frame and a field of it, or a class and "class"
WHOLE: Key = ("", "whole")  # read by what is not traced in detail: differs between any two versions
JOINTS: Key = ("", "joints")  # which joints there are, and so the entries of a configuration


class Kept(NamedTuple):
    """A value that was kept, and what was read for it."""

    value: Any
    reads: frozenset[Key]


Memo = dict[tuple[Callable[..., Any], tuple[Hashable, ...]], Kept]


def incremental(function: Callable[Concatenate[SceneGraph, _P], _T]) -> Callable[Concatenate[SceneGraph, _P], _T]:
    """Mark a function of a scene and hashable arguments whose values :class:`StateDeriver` may keep.

    Args:
        function: depends on its arguments and the scene alone; what it returns is not modified.
    """

    @functools.wraps(function)
    def recall(scene: SceneGraph, /, *args: _P.args, **options: _P.kwargs) -> _T:
        if isinstance(scene, TracedScene) and not options:
            return cast(_T, scene.recall(function, args))
        return function(scene, *args, **options)

    return recall


class TracedScene:
    """A version of a scene that notes what kept functions read of it.

    It has the queries of the scene. Those that are not defined here are the scene's own, and count as read of the whole
    scene. It is no :class:`tmkit.SceneGraph`: no function of the core reads it unnoticed.

    Args:
        scene: the version.
        memo: values that hold in this version.
    """

    def __init__(self, scene: SceneGraph, memo: Memo) -> None:
        self._scene, self._memo = scene, memo
        self._reads: set[Key] = set()  # of the kept function that runs

    def recall(self, function: Callable[..., Any], args: tuple[Hashable, ...]) -> Any:
        """Return the cached value of a function, or call it and record what it reads.

        Args:
            function: the function.
            args: its arguments.
        """
        key = function, args
        found = self._memo.get(key)
        if found is None:
            outer, self._reads = self._reads, set()
            try:
                value = function(self, *args)
                found = self._memo[key] = Kept(value, frozenset(self._reads))
            finally:
                outer |= self._reads
                self._reads = outer
        else:
            self._reads |= found.reads
        return found.value

    def __getattr__(self, name: str) -> Any:
        self._reads.add(WHOLE)
        return getattr(self._scene, name)

    def __len__(self) -> int:
        self._reads.add(WHOLE)
        return len(self._scene)

    def __contains__(self, frame: object) -> bool:
        self._reads.add((str(frame), "there"))
        return frame in self._scene

    def _read(self, query: Callable[[str], _T], name: str, field: str) -> _T:
        """Return the answer of a query; a refusal is read of the whole scene, as it may name what there is instead."""
        self._reads.add((name, field))
        try:
            return query(name)
        except TmkitError:
            self._reads.add(WHOLE)
            raise

    def parent(self, frame: str) -> str | None:
        """Return the name of a frame's parent."""
        return self._read(self._scene.parent, frame, "parent")

    def children(self, frame: str) -> tuple[str, ...]:
        """Return the names of a frame's children."""
        return self._read(self._scene.children, frame, "children")

    def ancestors(self, frame: str) -> tuple[str, ...]:
        """Return the ancestors of a frame, nearest first."""
        found = self._read(self._scene.ancestors, frame, "parent")
        self._reads.update((name, "parent") for name in found)
        return found

    def root(self, frame: str) -> str:
        """Return the root of the tree that a frame is in."""
        return (frame, *self.ancestors(frame))[-1]

    def classes(self, frame: str) -> tuple[str, ...]:
        """Return the classes of a frame."""
        return self._read(self._scene.classes, frame, "classes")

    def shapes(self, frame: str) -> tuple[AttachedShape, ...]:
        """Return the shapes on a frame."""
        return self._read(self._scene.shapes, frame, "shapes")

    def attributes(self, frame: str) -> PMap[str, Any]:
        """Return the attributes of a frame."""
        return self._read(self._scene.attributes, frame, "attributes")

    def joint(self, frame: str) -> Joint:
        """Return the joint of a frame's edge."""
        return self._read(self._scene.joint, frame, "joint")

    def local_pose(self, frame: str) -> Pose:
        """Return parent_from_frame at joint value 0."""
        return self._read(self._scene.local_pose, frame, "pose")

    def frame_id(self, frame: str) -> int:
        """Return the id of a frame."""
        return self._read(self._scene.frame_id, frame, "there")

    def frames_of_class(self, name: str) -> tuple[str, ...]:
        """Return the frames of a class in insertion order."""
        return self._read(self._scene.frames_of_class, name, "class")

    def pose(self, frame: str, *, relative_to: str | None = None, q: ArrayLike | None = None) -> Pose:
        """Return the pose of a frame relative to another.

        Args:
            frame: a frame.
            relative_to: a frame; the root of its tree if omitted.
            q: (n_joints,) configuration; needed if the scene has joints.
        """
        if q is not None:
            self._reads.add(JOINTS)
        try:
            found = self._scene.pose(frame, relative_to=relative_to, q=q)
        except TmkitError:
            self._reads.add(WHOLE)
            raise
        for name in self._scene.path(frame, self._scene.root(frame) if relative_to is None else relative_to):
            self._reads.update(((name, "parent"), (name, "pose"), (name, "joint")))
        return found
