"""Finding structures in a scene: a plate with four legs below it is a table.

A :class:`Pattern` says of what parts a structure is made (:class:`Part`: classes, shapes, sizes,
attributes) and how they stand to each other (relations such as :class:`Above` or :class:`Touching`,
each with its tolerances). :func:`find_structure` returns every place in a scene where it is met::

    table = Pattern(
        [
            Part("plate", shape="box", dimensions=[(0.4, 3.0), (0.4, 3.0), (0.01, 0.1)]),
            Part("leg", shape="box", dimensions=[(0.02, 0.15), (0.02, 0.15), (0.3, 1.2)], count=4),
        ],
        [Touching("plate", "leg"), Above("plate", "leg"), EqualDimensions("leg", "leg")],
    )
    find_structure(scene, table)     # ({'plate': 'top', 'leg_1': 'a', 'leg_2': 'b', ...},)

Patterns are values: immutable, hashable, with text that makes them again. A relation of one's own
derives from :class:`Relation` and answers one question. :mod:`~tmkit.graph.patterns.pattern` says
how matches are found, each once.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
