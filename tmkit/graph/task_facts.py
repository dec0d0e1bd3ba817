"""Task facts of a scene, such as "the lamp is on", which do not follow from its geometry.

They are stored as attributes of one group without frames. Equality, digests, differences, files,
pickles and scene arrays therefore include them.
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
"""Name of the group whose attributes are the task facts."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*\Z")
"""Name of a predicate or object, as in PDDL."""


def task_facts(scene: SceneGraph | SceneArrays) -> PMap[TaskFact, bool]:
    """Return the task facts that hold: an immutable map from (predicate, arguments) to True.

    The order of the map depends on hashes: sort its keys for a fixed order. O(groups), cached.

    Raises:
        SceneError: if the scene has a malformed fact, as from a file.
    """
    names = scene.group(_GROUP).attributes if _GROUP in scene.group_names else ()
    return _parse_facts(frozenset(names))


def change_task_facts(
    scene: _Scene, add: Iterable[str | TaskFact] = (), remove: Iterable[str | TaskFact] = ()
) -> _Scene:
    """Return the version with facts added and removed; arrays are changed in place. O(facts).

    Args:
        scene: the scene, or arrays.
        add: facts to add, as ``"(lit lamp)"`` or ``("lit", ("lamp",))``, with names as in PDDL.
        remove: facts to remove, unless they are also added. Facts that do not hold are ignored.

    Raises:
        SceneError: if a fact is malformed; then the scene is unchanged.
    """
    additions, removals = set(map(_parse_fact, add)), set(map(_parse_fact, remove))
    old_facts = set(task_facts(scene))
    new_facts = (old_facts - removals) | additions
    if new_facts == old_facts:
        return scene
    texts = dict.fromkeys(map(_fact_text, sorted(new_facts)), True)
    if isinstance(scene, SceneArrays):
        scene.set_group(_GROUP, attributes=texts) if texts else scene.remove_group(_GROUP)
        return scene
    return scene.set_group(_GROUP, attributes=texts) if texts else scene.remove_group(_GROUP)


@lru_cache(maxsize=256)
def _parse_facts(texts: frozenset[str]) -> PMap[TaskFact, bool]:
    from pyrsistent import pmap

    return pmap(dict.fromkeys(map(_parse_fact, texts), True))


def _fact_text(fact: TaskFact) -> str:
    return f"({' '.join((fact[0], *fact[1]))})"


def _parse_fact(fact: str | TaskFact) -> TaskFact:
    text = fact if isinstance(fact, str) else _fact_text(fact)
    names = tuple(text[1:-1].split())
    if text[:1] != "(" or text[-1:] != ")" or not names or not all(map(_NAME.match, names)):
        raise SceneError(
            f"task fact {fact!r} must be a predicate and objects, in lower case as '(lit lamp)'"
        )
    return names[0], names[1:]
