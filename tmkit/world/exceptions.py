"""The errors of tf2, by its names: what a lookup that fails raises."""

from __future__ import annotations

from tmkit.errors import TmkitError


class TransformException(TmkitError, RuntimeError):  # noqa: N818 - tf2's name
    """Base of all errors of a :class:`~tmkit.world.Buffer`. Attributes: ``target_frame``, ``source_frame``."""


class LookupException(TransformException):
    """A frame that is not in the buffer."""


class ConnectivityException(TransformException):
    """Two frames in different trees."""


class ExtrapolationException(TransformException):
    """A time outside of what is known of a frame on the way."""


class InvalidArgumentException(TransformException):
    """A name of a frame that is empty or begins with a slash, a message without what it needs, no time."""


class TimeoutException(TransformException):
    """A transform that did not become available in time."""
