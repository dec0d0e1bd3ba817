"""Number of prims that USD would compose, counted before it does.

A prim may reference another many times, and that one a third: twelve small layers can describe a
million million prims. USD composes a stage as a whole, so the number is computed first, each prim
specification once:

::

    count(prim) = 1 + sum of count(child) + sum of count(target) over references, payloads, inherits, specializes

Of variants the largest counts. Prims that several specifications describe count more than once, so
the limit is higher than that of frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tmkit._support.source_location import SourceLocation

if TYPE_CHECKING:
    from pxr import Sdf

_DESCRIPTIONS = 2
"""Number of specifications of each prim that are allowed for."""


@dataclass(slots=True)
class PrimCounter:
    """Counts the prims of a stage by its layers.

    Attributes:
        limit: largest number of prims.
        place: place of the file, for messages.
    """

    limit: int
    place: SourceLocation
    _counts: dict[tuple[str, Any], int] = field(default_factory=dict)
    _sublayers: dict[str, list[Any]] = field(default_factory=dict)

    def require_few(self, layer: Sdf.Layer) -> None:
        """Count the prims of a stage.

        Args:
            layer: the root layer of the stage (``Sdf.Layer``).

        Raises:
            FileFormatError: if it has too many.
        """
        if self._in_stack(layer, layer.pseudoRoot.path) > _DESCRIPTIONS * self.limit:
            raise self.place.error(
                f"the scene has more than {self.limit} frames, which is the limit of a scene"
            )

    def _in_stack(self, layer: Sdf.Layer, path: Any) -> int:
        """Return the number of prims at a path in a layer and its sublayers."""
        return sum(self._at(one, layer, path) for one in self._stack(layer))

    def _stack(self, layer: Sdf.Layer) -> list[Any]:
        """Return a layer with its sublayers, each once."""
        from pxr import Sdf

        if layer.identifier not in self._sublayers:
            found = {layer.identifier: layer}
            waiting = [layer]
            while waiting:
                above = waiting.pop()
                for name in above.subLayerPaths:
                    other = Sdf.Layer.FindRelativeToLayer(above, name)
                    if other is not None and other.identifier not in found:
                        found[other.identifier] = other
                        waiting.append(other)
            self._sublayers[layer.identifier] = [*found.values()]
        return self._sublayers[layer.identifier]

    def _at(self, layer: Sdf.Layer, root: Any, path: Any) -> int:
        """Return the number of prims that the specification at a path of a layer gives in the stack of ``root``."""
        spec = layer.GetPrimAtPath(path) if path != layer.pseudoRoot.path else layer.pseudoRoot
        if spec is None:
            return 0
        key = layer.identifier, path
        if key not in self._counts:
            self._counts[key] = 0  # while it is counted: USD refuses cycles itself
            self._counts[key] = min(self._of(spec, layer, root), _DESCRIPTIONS * self.limit + 1)
        return self._counts[key]

    def _of(self, spec: Any, layer: Sdf.Layer, root: Any) -> int:
        """Return the number of prims that a specification gives, with its children, arcs and variants."""
        count = 1 + sum(self._at(layer, root, child.path) for child in spec.nameChildren)
        if spec == layer.pseudoRoot:
            return count
        for arcs in (spec.referenceList, spec.payloadList):
            for arc in arcs.GetAddedOrExplicitItems():
                count += self._referenced(arc, layer, root)
        for arcs in (spec.inheritPathList, spec.specializesList):
            count += sum(self._in_stack(root, path) for path in arcs.GetAddedOrExplicitItems())
        for variants in spec.variantSets:
            sizes = [self._of(variant.primSpec, layer, root) for variant in variants.variants]
            count += max(sizes, default=0)
        return count

    def _referenced(self, arc: Any, layer: Sdf.Layer, root: Any) -> int:
        """Return the number of prims that a reference or payload adds."""
        from pxr import Sdf

        other = Sdf.Layer.FindRelativeToLayer(layer, arc.assetPath) if arc.assetPath else root
        if other is None:
            return 0
        path = arc.primPath or (
            Sdf.Path.absoluteRootPath.AppendChild(other.defaultPrim) if other.defaultPrim else None
        )
        return self._in_stack(other, path) if path is not None else 0
