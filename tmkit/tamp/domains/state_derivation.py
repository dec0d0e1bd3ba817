"""Deriving PDDL states of scene versions from one another: what a version did not change is not derived again.

A planner looks at thousands of versions that differ in one frame or two. :class:`StateDeriver` derives the state of one
from that of another: it keeps the values of the functions that a semantics marks with :func:`kept`, with what each of
them read of the scene, and calls such a function again only when something that it read has changed::

    @kept
    def _standing(scene: SceneGraph, item: str) -> Fact:        # reads this item and its parent
        require_standing(scene, item)
        return Fact.of("on", pddl_name(item), pddl_name(str(scene.parent(item))))

    class Semantics:
        traceable = True
        def state(self, scene, objects):
            return State(_standing(scene, item) for item in scene.frames_of_class("movable"))

Nothing is declared: what is read is recorded. ``state`` itself runs for each version, so what is not marked is always
derived anew, and both ways run the same code. A semantics without ``traceable = True`` is derived in full.

Rules: a kept function depends on its arguments and the scene alone (a configuration, which is no argument, may be read
outside), and what it returns is not changed by anybody. ``state`` and what it calls use methods of the scene, and pass
it to functions of Python only: it may be a :class:`TracedScene`.

Costs: the difference of the versions, O(changes log n); a look at each kept value; and the functions called again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, cast

from numpy.typing import ArrayLike

from tmkit.errors import TmkitError
from tmkit.graph import AttachedShape, Joint, SceneGraph, diff
from tmkit.pddl import State
from tmkit.plans.values import Configuration
from tmkit.spatial import Pose

if TYPE_CHECKING:
    from tmkit.tamp.domains.loading import PlanningDomain

__all__ = ["DerivedState", "StateDeriver", "TracedScene", "kept"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_Key = tuple[str, str]  # a frame and a field of it, or a class and "class"
_WHOLE: _Key = ("", "whole")  # read by what is not traced in detail: differs between any two versions
_JOINTS: _Key = ("", "joints")  # which joints there are, and so the entries of a configuration
_FIELDS = ("there", "parent", "pose", "joint", "classes", "shapes", "attributes", "children")


class _Kept(NamedTuple):
    value: Any
    reads: frozenset[_Key]


_Memo = dict[tuple[Callable[..., Any], tuple[Hashable, ...]], _Kept]


def kept(function: Callable[Concatenate[SceneGraph, _P], _T]) -> Callable[Concatenate[SceneGraph, _P], _T]:
    """Mark a function of a scene and hashable arguments whose values :class:`StateDeriver` may keep.

    Args:
        function: depends on its arguments and the scene alone; what it returns is not changed by anybody.
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
    scene. It is no :class:`tmkit.SceneGraph`, so that no function of the core reads it unnoticed.

    Args:
        scene: the version.
        memo: values that hold in this version.
    """

    def __init__(self, scene: SceneGraph, memo: _Memo) -> None:
        self._scene, self._memo = scene, memo
        self._reads: set[_Key] = set()  # of the kept function that runs

    def recall(self, function: Callable[..., Any], args: tuple[Hashable, ...]) -> Any:
        """Return the value of a kept function, from the memo or by a call that notes what it reads."""
        key = function, args
        found = self._memo.get(key)
        if found is None:
            outer, self._reads = self._reads, set()
            try:
                value = function(self, *args)
                found = self._memo[key] = _Kept(value, frozenset(self._reads))
            finally:
                outer |= self._reads
                self._reads = outer
        else:
            self._reads |= found.reads
        return found.value

    def __getattr__(self, name: str) -> Any:
        self._reads.add(_WHOLE)
        return getattr(self._scene, name)

    def __len__(self) -> int:
        self._reads.add(_WHOLE)
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
            self._reads.add(_WHOLE)
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

    def attributes(self, frame: str) -> dict[str, Any]:
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

    def pose(self, target: str, reference: str, *, q: ArrayLike | None = None) -> Pose:
        """Return reference_from_target."""
        if q is not None:
            self._reads.add(_JOINTS)
        try:
            found = self._scene.pose(target, reference, q=q)
        except TmkitError:
            self._reads.add(_WHOLE)
            raise
        for frame in self._scene.path(target, reference):
            self._reads.update(((frame, "parent"), (frame, "pose"), (frame, "joint")))
        return found


class _Traceable(Protocol):
    traceable: bool


def is_traceable(semantics: object) -> bool:
    """Tell whether the state of a semantics may be derived from a :class:`TracedScene`."""
    return bool(getattr(cast(_Traceable, semantics), "traceable", False))


@dataclass(frozen=True, eq=False)
class DerivedState:
    """The PDDL state of a scene version, and what was kept while it was derived.

    Attributes:
        state: the basic facts that hold.
        scene: the version.
    """

    state: State
    scene: SceneGraph
    _memo: _Memo = field(repr=False)


class StateDeriver:
    """Derives the PDDL states of versions of a scene, one from another.

    Has no state of its own: any number of searches may use one, and derive from any version that they have.

    Args:
        domain: the domain.
        objects: the PDDL objects with their types.
    """

    def __init__(self, domain: PlanningDomain, objects: Mapping[str, str]) -> None:
        self.domain, self.objects = domain, dict(objects)

    def derive(self, scene: SceneGraph, q: Configuration, previous: DerivedState | None = None) -> DerivedState:
        """Return the state of a version at a configuration (n_joints,): that of ``domain.state``, fact by fact.

        Args:
            scene: the version.
            q: the configuration.
            previous: the state of another version, by this deriver; the fewer changes lie between, the less is derived
                again. If omitted, all is derived.

        Raises:
            SceneError: the scene cannot be described in the domain's predicates.
        """
        memo = _still_valid(previous, scene) if previous is not None else {}
        state = self.domain.state(scene, self.objects, q, view=TracedScene(scene, memo))
        return DerivedState(state, scene, memo)


def _still_valid(previous: DerivedState, scene: SceneGraph) -> _Memo:
    """Return the kept values of a version that hold in another."""
    if previous.scene is scene:
        return dict(previous._memo)
    changed = _changed(previous.scene, scene)
    return {} if changed is None else {key: k for key, k in previous._memo.items() if changed.isdisjoint(k.reads)}


def _changed(a: SceneGraph, b: SceneGraph) -> set[_Key] | None:
    """Return what differs between two versions; None where a name stands for another frame."""
    changed = {_WHOLE}
    for frame in diff(a, b).frames:
        before, after = frame.before, frame.after
        fields: Sequence[str] = frame.fields if before and after else _FIELDS
        if "name" in fields:
            return None
        sides = [side for side in (before, after) if side is not None]
        changed.update((sides[0].name, name) for name in fields)
        if "parent" in fields:
            changed.update((side.parent, "children") for side in sides if side.parent is not None)
        if "joint" in fields and any(side.joint.is_actuated for side in sides):
            changed.add(_JOINTS)
        if "classes" in fields:
            changed.update((name, "class") for side in sides for name in side.classes)
    return changed
