"""Transports of the service, built in and installed, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmkit.plug_ins import MakerGroup, PlugIn
from tmkit.world.service.transports import Transport
from tmkit.world.service.zenoh.registration import ZENOH


def _built_in() -> tuple[PlugIn[Transport], ...]:
    return (ZENOH,)


TRANSPORTS: MakerGroup[Transport] = MakerGroup(
    "tmkit.transports", "transport", PlugIn, _built_in, methods=("serve", "request", "close")
)
"""The transports of the service."""


def load_transport(
    name: str,
    address: str,
    *,
    listen: bool,
    world: str = "world",
    settings: Mapping[str, Any] | None = None,
) -> Transport:
    """Return a transport by its name.

    Args:
        name: name, such as ``zenoh``, or that of a plug-in.
        address: address of the server, such as ``tcp/127.0.0.1:7447``.
        listen: whether the transport is for a server. If false, it is for a client.
        world: name of the world. One address may serve several.
        settings: settings of the transport.

    Raises:
        UnknownNameError: if there is no such transport.
        PlugInError: if the plug-in cannot be loaded or fails.
        MissingExtraError: if it needs an extra.
    """
    return TRANSPORTS.make(
        name, address, keywords={"listen": listen, "world": world, "settings": settings}
    )
