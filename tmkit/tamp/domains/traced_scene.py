"""Scenes that record what is read of them; values that depend on nothing else can be cached.

A :class:`TracedScene` stands for a version of a scene while the state of a domain is derived.
Functions marked with :func:`incremental` are called once for their arguments, and what they read is
noted beside their value. :mod:`tmkit.tamp.domains.state_derivation` tells the rules, and carries
values from version to version.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import TmkitError
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose

_P = ParamSpec("_P")
_T = TypeVar("_T")

Key = tuple[str, str]  # a frame and a field of it, or a class and "class"
WHOLE: Key = ("", "whole")  # read by what is not traced in detail: differs between any two versions
JOINTS: Key = ("", "joints")  # which joints there are, and so the entries of a configuration
Call = tuple[Callable[..., Any], tuple[Hashable, ...]]  # a function with its arguments


class Kept(NamedTuple):
    """A value that was kept, and what was read for it: of the scene, and of other kept values."""

    value: Any
    reads: frozenset[Key | Call]


Memo = dict[Call, Kept]
_NONE: set[Call] = set()


class Dependents:
    """What ever read what, in any version: it only grows, and threads may share it."""

    def __init__(self) -> None:
        self.of: dict[Key | Call, set[Call]] = {}
        self.reads: dict[Call, frozenset[Key | Call]] = {}  # the last that were added

    def add(self, call: Call, reads: frozenset[Key | Call]) -> None:
        """Note what a call reads."""
        for read in reads:
            self.of.setdefault(read, set()).add(call)
        self.reads[call] = reads


def forget(memo: Memo, changed: Iterable[Key], dependents: Dependents) -> Memo:
    """Return a memo without the values that depend on what has changed.

    Args:
        memo: the values.
        changed: what may differ from what they were derived from.
        dependents: by what was read, all that ever read it, in any version. Takes time linear in
            these.
    """
    left = dict(memo)
    waiting: list[Key | Call] = [*changed]
    while waiting:
        read = waiting.pop()
        for call in dependents.of.get(read, _NONE).copy():  # another thread may add to it
            if (kept := left.get(call)) is not None and read in kept.reads:
                del left[call]
                waiting.append(call)
    return left


def incremental(
    function: Callable[Concatenate[SceneGraph, _P], _T],
) -> Callable[Concatenate[SceneGraph, _P], _T]:
    """Mark a function of a scene and hashable arguments whose values :class:`StateDeriver` may keep.

    Args:
        function: depends on its arguments and the scene alone; what it returns is not modified.
    """

    @functools.wraps(function)
    def recall(scene: SceneGraph, /, *args: _P.args, **options: _P.kwargs) -> _T:
        if isinstance(scene, TracedScene) and not options:
            value: _T = scene._recall((function, args))
            return value
        return function(scene, *args, **options)

    return recall


def _query(name: str, field: str) -> Callable[[TracedScene, str], Any]:
    """Return the method that asks a scene a query of one name, which reads one field of it."""

    def ask(self: TracedScene, of: str) -> Any:
        self._reads.add((of, field))
        try:
            return getattr(self._scene, name)(of)
        except TmkitError:  # it may name what there is instead
            self._reads.add(WHOLE)
            raise

    return ask


class TracedScene:
    """A version of a scene that notes what kept functions read of it; ``memo`` has the values that hold in it.

    It has the queries of the scene. Those that are not defined here are the scene's own, and count
    as read of the whole scene. It is no :class:`tmkit.SceneGraph`: no function of the core reads it
    unnoticed.
    """

    def __init__(self, scene: SceneGraph, memo: Memo, dependents: Dependents | None = None) -> None:
        self._scene, self._memo = scene, memo
        self._dependents = dependents or Dependents()
        self._reads: set[Key | Call] = set()  # of the kept function that runs

    def _recall(self, call: Call) -> Any:
        """Return the value of a call, kept or computed, and note that it is read."""
        found = self._memo.get(call) or self._call(call)
        self._reads.add(call)
        return found.value

    def _call(self, call: Call) -> Kept:
        """Call a function, keep its value, and record what it reads."""
        function, args = call
        outer, self._reads = self._reads, set()
        try:
            value = function(self, *args)
            reads = frozenset(self._reads)
            found = self._memo[call] = Kept(value, reads)
            if self._dependents.reads.get(call) != reads:
                self._dependents.add(call, reads)
        except BaseException:  # then there is no value: whoever goes on has read the same
            outer |= self._reads
            raise
        finally:
            self._reads = outer
        return found

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
        """The names of the entries of a configuration."""
        self._reads.add(JOINTS)
        return self._scene.joint_names

    @property
    def joint_limits(self) -> NDArray[np.float64]:
        """Their limits, (n_joints, 2)."""
        self._reads.add(JOINTS)
        return self._scene.joint_limits

    def ancestors(self, frame: str) -> tuple[str, ...]:
        """Return the ancestors of a frame, nearest first."""
        try:
            found = self._scene.ancestors(frame)
        except TmkitError:
            self._reads.add(WHOLE)
            raise
        self._reads.update((name, "parent") for name in (frame, *found))
        return found

    def root(self, frame: str) -> str:
        """Return the root of the tree that a frame is in."""
        return (frame, *self.ancestors(frame))[-1]

    parent, children = _query("parent", "parent"), _query("children", "children")
    classes, frames_of_class = _query("classes", "classes"), _query("frames_of_class", "class")
    shapes, attributes = _query("shapes", "shapes"), _query("attributes", "attributes")
    joint, local_pose, frame_id = (
        _query("joint", "joint"),
        _query("local_pose", "pose"),
        _query("frame_id", "there"),
    )

    def pose(
        self, frame: str, *, relative_to: str | None = None, q: ArrayLike | None = None
    ) -> Pose:
        """Return the pose of a frame relative to another, by default the root; of joints at q (n_joints,)."""
        if q is not None:
            self._reads.add(JOINTS)
        try:
            found = self._scene.pose(frame, relative_to=relative_to, q=q)
        except TmkitError:
            self._reads.add(WHOLE)
            raise
        for name in self._scene.path(
            frame, self._scene.root(frame) if relative_to is None else relative_to
        ):
            self._reads.update(((name, "parent"), (name, "pose"), (name, "joint")))
        return found
