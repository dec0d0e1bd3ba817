"""Facts that no geometry shows, as "the lamp is on": kept in the scene, in each of its versions and in its arrays.

They are the attributes of one group without frames, so equality, digests, differences, files and
pickles include them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from tmkit._core import SceneArrays, SceneGraph
from tmkit.errors import SceneError

if TYPE_CHECKING:
    from pyrsistent import PMap

TaskFact = tuple[str, tuple[str, ...]]
_Scene = TypeVar("_Scene", SceneGraph, SceneArrays)
_GROUP = "task facts"
_NAME = re.compile(r"[a-z][a-z0-9_-]*\Z")


def task_facts(scene: SceneGraph | SceneArrays) -> PMap[TaskFact, bool]:
    """Return the task facts that hold: an immutable map from (predicate, arguments) to True. O(groups), cached.

    The order of the map depends on hashes: sort its keys for a fixed one.

    Raises:
        SceneError: a file states a fact that is none.
    """
    names = scene.group(_GROUP).attributes if _GROUP in scene.group_names else ()
    return _facts_of(frozenset(names))


def change_task_facts(
    scene: _Scene, add: Iterable[str | TaskFact] = (), remove: Iterable[str | TaskFact] = ()
) -> _Scene:
    """Return the version in which facts are added and removed; arrays are changed in place. O(facts).

    Args:
        scene: the scene, or arrays.
        add: facts that hold afterwards, as ``"(lit lamp)"`` or ``("lit", ("lamp",))``, of names as
            in PDDL.
        remove: facts that do not hold afterwards, unless they are added too; those that do not hold
            are ignored.

    Raises:
        SceneError: a fact that is none; nothing is changed.
    """
    added, removed = set(map(_fact, add)), set(map(_fact, remove))
    before = set(task_facts(scene))
    after = (before - removed) | added
    if after == before:
        return scene
    texts = dict.fromkeys(map(_text, sorted(after)), True)
    if isinstance(scene, SceneArrays):
        scene.set_group(_GROUP, attributes=texts) if texts else scene.remove_group(_GROUP)
        return scene
    return scene.set_group(_GROUP, attributes=texts) if texts else scene.remove_group(_GROUP)


@lru_cache(maxsize=256)
def _facts_of(texts: frozenset[str]) -> PMap[TaskFact, bool]:
    from pyrsistent import pmap

    return pmap(dict.fromkeys(map(_fact, texts), True))


def _text(fact: TaskFact) -> str:
    return f"({' '.join((fact[0], *fact[1]))})"


def _fact(given: str | TaskFact) -> TaskFact:
    text = given if isinstance(given, str) else _text(given)
    names = tuple(text[1:-1].split())
    if text[:1] != "(" or text[-1:] != ")" or not names or not all(map(_NAME.match, names)):
        raise SceneError(
            f"task fact {given!r} must be a predicate and objects, in lower case as '(lit lamp)'"
        )
    return names[0], names[1:]
