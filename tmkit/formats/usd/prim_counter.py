"""Number of prims in a stage, counted before USD composes it.

A prim may reference another many times, and that prim a third. So twelve small layers can describe
10^12 prims. USD composes a stage completely, so the number of prims is computed before, with one
visit to each prim specification::

    count(prim) = 1 + sum of count(child) + sum of count(target)
                  over references, payloads, inherits and specializes

Only the largest variant counts. Prims with several specifications count more than once, so the
limit is higher than that of frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tmkit._support.source_location import SourceLocation

if TYPE_CHECKING:
    from pxr import Sdf

_SPECS_PER_PRIM = 2
"""Factor of the limit, for prims with several specifications."""


@dataclass(slots=True)
class PrimCounter:
    """Counter of the prims of a stage by its layers.

    Attributes:
        limit: largest number of prims.
        place: place of the file, for messages.
    """

    limit: int
    place: SourceLocation
    _counts: dict[tuple[str, Any], int] = field(default_factory=dict)
    _sublayers: dict[str, list[Any]] = field(default_factory=dict)

    def check(self, layer: Sdf.Layer) -> None:
        """Check the number of prims of a stage.

        Args:
            layer: root layer of the stage.

        Raises:
            FileFormatError: if there are too many prims.
        """
        if self._count_in_stack(layer, layer.pseudoRoot.path) > _SPECS_PER_PRIM * self.limit:
            raise self.place.error(
                f"the scene has more than {self.limit} frames, which is the limit of a scene"
            )

    def _count_in_stack(self, root: Sdf.Layer, path: Any) -> int:
        """Return the number of prims at a path in a layer and its sublayers."""
        return sum(self._count_at(layer, root, path) for layer in self._stack(root))

    def _stack(self, root: Sdf.Layer) -> list[Any]:
        """Return a layer and its sublayers, each once."""
        from pxr import Sdf

        if root.identifier not in self._sublayers:
            layers = {root.identifier: root}
            pending = [root]
            while pending:
                layer = pending.pop()
                for name in layer.subLayerPaths:
                    sublayer = Sdf.Layer.FindRelativeToLayer(layer, name)
                    if sublayer is not None and sublayer.identifier not in layers:
                        layers[sublayer.identifier] = sublayer
                        pending.append(sublayer)
            self._sublayers[root.identifier] = [*layers.values()]
        return self._sublayers[root.identifier]

    def _count_at(self, layer: Sdf.Layer, root: Any, path: Any) -> int:
        """Return the number of prims of the specification at a path of a layer.

        Args:
            layer: the layer.
            root: layer in whose stack the specification is.
            path: path of the specification.
        """
        spec = layer.GetPrimAtPath(path) if path != layer.pseudoRoot.path else layer.pseudoRoot
        if spec is None:
            return 0
        key = layer.identifier, path
        if key not in self._counts:
            self._counts[key] = 0  # ends the recursion in cycles, which USD rejects
            limit = _SPECS_PER_PRIM * self.limit + 1
            self._counts[key] = min(self._count_spec(spec, layer, root), limit)
        return self._counts[key]

    def _count_spec(self, spec: Any, layer: Sdf.Layer, root: Any) -> int:
        """Return the number of prims of a specification with children, arcs and variants.

        Args:
            spec: the specification.
            layer: layer of the specification.
            root: layer in whose stack the specification is.
        """
        count = 1 + sum(self._count_at(layer, root, child.path) for child in spec.nameChildren)
        if spec == layer.pseudoRoot:
            return count
        for arcs in (spec.referenceList, spec.payloadList):
            for arc in arcs.GetAddedOrExplicitItems():
                count += self._count_arc(arc, layer, root)
        for paths in (spec.inheritPathList, spec.specializesList):
            for path in paths.GetAddedOrExplicitItems():
                count += self._count_in_stack(root, path)
        for variants in spec.variantSets:
            specs = [variant.primSpec for variant in variants.variants]
            count += max((self._count_spec(item, layer, root) for item in specs), default=0)
        return count

    def _count_arc(self, arc: Any, layer: Sdf.Layer, root: Any) -> int:
        """Return the number of prims that a reference or payload adds."""
        from pxr import Sdf

        target = Sdf.Layer.FindRelativeToLayer(layer, arc.assetPath) if arc.assetPath else root
        if target is None:
            return 0
        path = arc.primPath
        if not path and target.defaultPrim:
            path = Sdf.Path.absoluteRootPath.AppendChild(target.defaultPrim)
        return self._count_in_stack(target, path) if path else 0
