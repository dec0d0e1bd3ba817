"""Domain semantics in scripts of the original TMKit, which run unchanged.

::

    tm-blocks.py --run_script--> Script --DomainSemantics--> planner, validator
      aminopy    transforms, scenes, shapes (:mod:`.aminopy`)
      tmsmtpy    bindings and operators     (:mod:`.tmsmtpy`)

A script binds functions that map a scene to a task state and refine actions to motions. The page
docs/howto/coming_from_tmkit_1.md describes the differences. A script is code: it runs only if the
user names it as the semantics of a domain.
"""

from __future__ import annotations


def is_script(source: bytes) -> bool:
    """Return whether Python code imports ``tmsmtpy``, as scripts of the original do."""
    return b"tmsmtpy" in source
