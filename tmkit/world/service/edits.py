"""Edits of a served world, by the names of those of a scene, and the world as a client knows it, by differences."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tmkit.errors import ArgumentError, ServiceError, TmkitError
from tmkit.graph import AttachedShape, Fixed, FrameSpecification, Joint, SceneGraph, Shape
from tmkit.graph.attributes import value_and_stamp
from tmkit.spatial import Pose
from tmkit.store.blobs import shape_of_blob
from tmkit.store.encoding import DifferenceWriter, decode_difference
from tmkit.world.service import messages as m


class WorldEdits:
    """Edits of a served world, each as the method of :class:`~tmkit.graph.SceneGraph` of the same name.

    A :class:`Client` sends each at once. An object that ``client.edit()`` returns collects them.

    Raises:
        ServiceError: the server refuses the edit; ``kind`` and the message say why.
    """

    def _operate(self, *operations: m.Operation, shapes: Sequence[Shape] = ()) -> None:
        raise NotImplementedError

    def add_frame(
        self,
        name: str,
        parent: str | None,
        *,
        pose: Pose | None = None,
        joint: Joint | None = None,
        body: str | None = None,
        classes: Sequence[str] = (),
        shapes: Sequence[AttachedShape | Shape] = (),
        covariance: npt.ArrayLike | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a frame.

        Args:
            name: unique among frames.
            parent: its parent; None for a root.
            pose: parent_from_frame at joint value 0; the identity if omitted.
            joint: how it moves relative to its parent; fixed if omitted.
            body: the body it is on; one of its own name if omitted.
            classes: what it is, e.g. ``movable``.
            shapes: those on it.
            covariance: (6, 6) of [rho, theta], m and rad, in the frame's axes; exact if omitted.
            attributes: JSON values by key.
        """
        frame = FrameSpecification(
            name,
            parent,
            pose=pose or Pose(),
            joint=joint or Fixed(),
            body=body,
            classes=classes,
            shapes=shapes,
        ).replace(attributes=attributes or {})
        writer = DifferenceWriter(lambda *_: os.urandom(16))
        record = m.record_of_frames([frame], m.EMPTY, writer)
        operations: list[m.Operation] = [m.Change(-1, record)]
        if covariance is not None:
            operations.append(m.SetPose(name, seven(frame.pose), covariance_bytes(covariance)))
        self._operate(*operations, shapes=writer.blobs())

    def set_pose(self, frame: str, pose: Pose, *, covariance: npt.ArrayLike | None = None) -> None:
        """Set the pose of a frame in its parent.

        Args:
            frame: the frame.
            pose: parent_from_frame, at joint value 0.
            covariance: (6, 6) of [rho, theta], m and rad, in the frame's axes; stays if omitted.
        """
        self._operate(m.SetPose(frame, seven(pose), covariance_bytes(covariance)))

    def add_stamped_pose(
        self, frame: str, pose: Pose, *, stamp: float, covariance: npt.ArrayLike | None = None
    ) -> None:
        """Add a pose at a time to the history of a frame's edge.

        Args:
            frame: the frame.
            pose: parent_from_frame, at joint value 0.
            stamp: seconds, on any clock.
            covariance: as of :meth:`set_pose`.
        """
        self._operate(m.AddStampedPose(frame, seven(pose), stamp, covariance_bytes(covariance)))

    def reparent(
        self, frame: str, parent: str, *, pose: Pose | None = None, q: npt.ArrayLike | None = None
    ) -> None:
        """Move a frame, with all below it, under another parent.

        Args:
            frame: the frame.
            parent: its new parent.
            pose: parent_from_frame; if omitted, the frame stays where it is.
            q: the configuration at which it stays; needed with joints on the path.
        """
        self._operate(m.Reparent(frame, parent, None if pose is None else seven(pose), numbers(q)))

    def remove_frame(self, frame: str, *, subtree: bool = False) -> None:
        """Remove a frame.

        Args:
            frame: the frame.
            subtree: with all below it; else a frame with children is refused.
        """
        self._operate(m.RemoveFrame(frame, subtree))

    def set_attribute(self, frame: str, key: str, value: object) -> None:
        """Set an attribute of a frame.

        Args:
            frame: the frame.
            key: of the attribute.
            value: a JSON value; None is one, and stays (``null``). It may be a ``graph.Stamped``.

        Raises:
            SceneError: if the value is not JSON, as of the scene's own method.
        """
        plain, stamp = value_and_stamp(key, value)
        self._operate(m.SetAttribute(frame, key, m.sent(plain), stamp))


class CollectedEdits(WorldEdits):
    """Keeps the operations and the shapes of edits."""

    def __init__(self) -> None:
        self.operations: list[m.Operation] = []
        self.shapes: list[Shape] = []

    def _operate(self, *operations: m.Operation, shapes: Sequence[Shape] = ()) -> None:
        self.operations += operations
        self.shapes += shapes


def seven(pose: Pose) -> Any:
    """Return a pose as it is sent."""
    if not isinstance(pose, Pose):
        raise ArgumentError(f"expected a Pose, not {type(pose).__name__}")
    return pose.as_array().tolist()


def covariance_bytes(values: npt.ArrayLike | None) -> bytes | None:
    """Return a covariance as it is sent."""
    return None if values is None else np.asarray(values, dtype="<f8").tobytes()


def numbers(values: npt.ArrayLike | None) -> Any:
    """Return a configuration as it is sent."""
    return None if values is None else np.asarray(values, dtype=float).tolist()


class Mirror:
    """What a client knows of the world: the last version that it has seen, noise sources and shapes."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self.world, self.version, self.scene = b"", -1, m.EMPTY
        self.keys = m.SourceKeys()

    def refreshed(self, *, wait: float = 0.0) -> SceneGraph:
        """Return the version of now, or, after waiting for another one than the last, the last."""
        body = m.Follow(self.world, self.version, wait)
        answer = self._ask(body, m.Whole | m.Changes, wait=wait)
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
        return [
            frame.after for frame in self._read(record, m.EMPTY).frames if frame.after is not None
        ]

    def _read(self, record: bytes, base: SceneGraph) -> Any:
        try:
            return decode_difference(record, base, shape=self._shape, source=self.keys.source)
        except ServiceError:
            raise
        except (
            TmkitError,
            ValueError,
            TypeError,
            LookupError,
            OverflowError,
            RecursionError,
        ) as error:
            raise ServiceError(
                f"what the server sent is no scene: {error}", kind="format"
            ) from error

    def _shape(self, digest: str, source: str) -> Shape:
        known = m.shape_named(self.scene, digest)
        if known is None:
            known = shape_of_blob(self._ask(m.GetBlob(digest), m.Blob).data, source)
            if known.digest != digest:
                raise ServiceError(f"the shape of digest {digest} has another one", kind="format")
        return known
