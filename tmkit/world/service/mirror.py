"""The world as a client knows it, brought up to date by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tmkit.errors import ServiceError, TmkitError
from tmkit.graph import FrameSpecification, SceneGraph, Shape
from tmkit.store.blobs import shape_of_blob
from tmkit.store.encoding import decode_difference
from tmkit.world.service import messages as m


class Mirror:
    """What a client knows of the world: the last version that it has seen, noise sources and shapes."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self.world, self.version, self.scene = b"", -1, m.EMPTY
        self.keys = m.SourceKeys()

    def refreshed(self, *, wait: float = 0.0, delay: float = 0.0) -> SceneGraph:
        """Return the version of now, or, after waiting for another one than the last, the last."""
        body = m.Follow(self.world, self.version, wait, delay)
        answer = self._ask(body, m.Whole | m.Changes, wait=wait + delay)
        if isinstance(answer, m.Whole):
            self.scene = self.applied(answer.record, m.EMPTY)
            self.world, self.version = answer.world, answer.version
        elif answer.record:
            self.scene = self.applied(answer.record, self.scene)
            self.version = answer.version
        elif answer.fingerprint and answer.fingerprint != self.scene.fingerprint:
            self.version = -1  # begin anew
            return self.refreshed()
        self.keys.forget(self.scene)
        return self.scene

    def applied(self, record: bytes, base: SceneGraph) -> SceneGraph:
        """Return a scene after a difference from the server."""
        return base.apply(self._read(record, base))

    def frames(self, record: bytes) -> list[FrameSpecification]:
        """Return frames that are sent by themselves."""
        return [frame.after for frame in self._read(record, m.EMPTY).frames if frame.after is not None]

    def _read(self, record: bytes, base: SceneGraph) -> Any:
        try:
            return decode_difference(record, base, shape=self._shape, source=self.keys.source)
        except ServiceError:
            raise
        except (TmkitError, ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            raise ServiceError(f"what the server sent is no scene: {error}", kind="format") from error

    def _shape(self, digest: str, source: str) -> Shape:
        known = m.shape_named(self.scene, digest)
        if known is None:
            known = shape_of_blob(self._ask(m.GetBlob(digest), m.Blob).data, source)
            if known.digest != digest:
                raise ServiceError(f"the shape of digest {digest} has another one", kind="format")
        return known
