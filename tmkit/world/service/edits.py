"""Edits of a served world by the names of scene edits, and the scene of a client."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tmkit.errors import ArgumentError, ServiceError, TmkitError
from tmkit.graph import AttachedShape, Fixed, FrameSpecification, Joint, SceneGraph, Shape
from tmkit.graph.attributes import value_and_stamp
from tmkit.spatial import GaussianPose, Pose
from tmkit.store.blobs import shape_of_blob
from tmkit.store.encoding import DifferenceWriter, decode_difference
from tmkit.world.service import messages as m


class WorldEdits:
    """Edits of a served world, each as the method of :class:`~tmkit.graph.SceneGraph` of its name.

    A :class:`Client` sends each at once. The object of ``client.edit()`` collects them.

    Raises:
        ServiceError: if the server rejects the edit. ``kind`` and the message have the reason.
    """

    def _operate(self, *operations: m.Operation, shapes: Sequence[Shape] = ()) -> None:
        raise NotImplementedError

    def add_frame(
        self,
        name: str,
        parent: str | None,
        *,
        pose: Pose | GaussianPose | None = None,
        joint: Joint | None = None,
        body: str | None = None,
        classes: Sequence[str] = (),
        shapes: Sequence[AttachedShape | Shape] = (),
    ) -> None:
        """Add a frame.

        Args:
            name: unique name.
            parent: parent frame; None for a root.
            pose: parent_from_frame at joint value 0. Its covariance is that of a ``GaussianPose``,
                ordered [rho, theta] [m, rad], in the frame's axes. Defaults to the exact identity.
            joint: joint between the parent and the frame. Fixed by default.
            body: body of the frame. Defaults to a new body of the frame's name.
            classes: classes of the frame, such as ``movable``.
            shapes: shapes attached to the frame.
        """
        mean = pose.mean if isinstance(pose, GaussianPose) else pose or Pose()
        frame = FrameSpecification(
            name,
            parent,
            pose=mean,
            joint=joint or Fixed(),
            body=body,
            classes=classes,
            shapes=shapes,
        )
        writer = DifferenceWriter(lambda *_: os.urandom(16))
        record = m.encode_frames([frame], m.EMPTY, writer)
        operations: list[m.Operation] = [m.Change(-1, record)]
        if isinstance(pose, GaussianPose):
            covariance = covariance_bytes(pose.covariance)
            operations.append(m.SetPose(name, pose_values(mean), covariance))
        self._operate(*operations, shapes=writer.blobs())

    def set_pose(self, frame: str, pose: Pose, *, covariance: npt.ArrayLike | None = None) -> None:
        """Set the pose of a frame in its parent.

        Args:
            frame: frame.
            pose: parent_from_frame at joint value 0.
            covariance: (6, 6) covariance, ordered [rho, theta] [m, rad], in the frame's axes. If
                omitted, the present one stays.
        """
        self._operate(m.SetPose(frame, pose_values(pose), covariance_bytes(covariance)))

    def add_stamped_pose(
        self, frame: str, pose: Pose, *, stamp: float, covariance: npt.ArrayLike | None = None
    ) -> None:
        """Add a pose at a time to the history of a frame's edge.

        Args:
            frame: frame.
            pose: parent_from_frame at joint value 0.
            stamp: time on any clock [s].
            covariance: (6, 6) covariance of this pose, as for :meth:`set_pose`. If omitted, the
                error is that of the edge.
        """
        self._operate(
            m.AddStampedPose(frame, pose_values(pose), stamp, covariance_bytes(covariance))
        )

    def reparent(
        self, frame: str, parent: str, *, pose: Pose | None = None, q: npt.ArrayLike | None = None
    ) -> None:
        """Move a frame with its subtree under another parent.

        Args:
            frame: frame.
            parent: new parent.
            pose: parent_from_frame. If omitted, the frame stays in place.
            q: configuration at which it stays in place, needed with joints on the path.
        """
        self._operate(
            m.Reparent(
                frame, parent, None if pose is None else pose_values(pose), configuration_values(q)
            )
        )

    def remove_frame(self, frame: str, *, subtree: bool = False) -> None:
        """Remove a frame.

        Args:
            frame: frame.
            subtree: whether to remove its subtree too. If false, a frame with children is rejected.
        """
        self._operate(m.RemoveFrame(frame, subtree))

    def set_attribute(self, frame: str, key: str, value: object) -> None:
        """Set an attribute of a frame.

        Args:
            frame: frame.
            key: key of the attribute.
            value: JSON value, which may be None (``null``), or a ``graph.Stamped``.

        Raises:
            SceneError: if the value is not JSON.
        """
        plain, stamp = value_and_stamp(key, value)
        self._operate(m.SetAttribute(frame, key, m.encode_attribute(plain), stamp))


class EditCollector(WorldEdits):
    """Collector of the operations and the shapes of edits."""

    def __init__(self) -> None:
        self.operations: list[m.Operation] = []
        self.shapes: list[Shape] = []

    def _operate(self, *operations: m.Operation, shapes: Sequence[Shape] = ()) -> None:
        self.operations += operations
        self.shapes += shapes


def pose_values(pose: Pose) -> m.PoseValues:
    """Return a pose as the numbers of a message."""
    if not isinstance(pose, Pose):
        raise ArgumentError(f"expected a Pose, not {type(pose).__name__}")
    return cast("m.PoseValues", pose.as_array().tolist())


def covariance_bytes(values: npt.ArrayLike | None) -> bytes | None:
    """Return a covariance as the bytes of a message.

    Raises:
        ArgumentError: if it is not (6, 6).
    """
    if values is None:
        return None
    matrix = np.asarray(values, dtype="<f8")
    if matrix.shape != (6, 6):
        raise ArgumentError(f"covariance must have shape (6, 6), not {matrix.shape}")
    return matrix.tobytes()


def configuration_values(values: npt.ArrayLike | None) -> list[float] | None:
    """Return a configuration as the numbers of a message."""
    if values is None:
        return None
    return cast("list[float]", np.asarray(values, dtype=float).tolist())


class Mirror:
    """Copy of a served world: its last received version, with noise sources and shapes.

    Args:
        request: function that sends a request and returns the reply, as ``Client._request``.
    """

    def __init__(self, request: Callable[..., Any]) -> None:
        self._request = request
        self.world, self.version, self.scene = b"", -1, m.EMPTY
        self.keys = m.SourceKeys()

    def refresh(self, *, wait: float = 0.0) -> SceneGraph:
        """Update the scene to the present version, and return it.

        Args:
            wait: longest time to wait for another version than the last [s].
        """
        body = m.Follow(self.world, self.version, wait)
        answer = self._request(body, m.Whole | m.Changes, wait=wait)
        if isinstance(answer, m.Whole):
            self.scene = self.apply_record(answer.record, m.EMPTY)
            self.world, self.version = answer.world, answer.version
        elif answer.record:
            self.scene = self.apply_record(answer.record, self.scene)
            self.version = answer.version
        elif answer.fingerprint and answer.fingerprint != self.scene.fingerprint:
            self.version = -1  # request the whole scene
            return self.refresh()
        self.keys.prune(self.scene)
        return self.scene

    def apply_record(self, record: bytes, base: SceneGraph) -> SceneGraph:
        """Return a scene after a difference from the server."""
        return base.apply(self._read(record, base))

    def frames(self, record: bytes) -> list[FrameSpecification]:
        """Return the frames of a record without a scene."""
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
                f"the record of the server is invalid: {error}", kind="format"
            ) from error

    def _shape(self, digest: str, source: str) -> Shape:
        shape = m.find_shape(self.scene, digest)
        if shape is None:
            shape = shape_of_blob(self._request(m.GetBlob(digest), m.Blob).data, source)
            if shape.digest != digest:
                raise ServiceError(f"the shape of digest {digest} has another one", kind="format")
        return shape
