"""Pattern matching in scenes, such as a table as a plate with four legs below it.

A :class:`Pattern` consists of parts and relations between them. A :class:`Part` describes classes,
shapes, sizes and attributes of a frame. A relation, such as :class:`Above` or :class:`Touching`,
has tolerances. :func:`find_structure` returns all matches in a scene::

    table = Pattern(
        [
            Part("plate", shape="box", dimensions=[(0.4, 3.0), (0.4, 3.0), (0.01, 0.1)]),
            Part("leg", shape="box", dimensions=[(0.02, 0.15), (0.02, 0.15), (0.3, 1.2)], count=4),
        ],
        [Touching("plate", "leg"), Above("plate", "leg"), EqualDimensions("leg", "leg")],
    )
    find_structure(scene, table)     # ({'plate': 'top', 'leg_1': 'a', 'leg_2': 'b', ...},)

Patterns are immutable and hashable, and their ``repr`` is the expression that makes them. A custom
relation derives from :class:`Relation` and implements one method.
:mod:`~tmkit.graph.patterns.pattern` documents the search, which finds each match once.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
