"""Names exported by `tmkit.graph.patterns`."""

from tmkit.graph.patterns.pattern import Part as Part, Pattern as Pattern
from tmkit.graph.patterns.relations import (
    Above as Above,
    AncestorOf as AncestorOf,
    At as At,
    ChildOf as ChildOf,
    Distance as Distance,
    EqualDimensions as EqualDimensions,
    Parallel as Parallel,
    Perpendicular as Perpendicular,
    RestsOn as RestsOn,
    Touching as Touching,
)
from tmkit.graph.patterns.structure import Structure as Structure
