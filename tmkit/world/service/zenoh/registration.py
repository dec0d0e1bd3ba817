"""Registration of the transport over zenoh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmkit.plug_ins import PlugIn

if TYPE_CHECKING:
    from tmkit.world.service.transports import Transport


def _make(address: str, **arguments: Any) -> Transport:
    from tmkit.world.service.zenoh.transport import ZenohTransport

    return ZenohTransport(address, **arguments)


ZENOH: PlugIn[Transport] = PlugIn(
    "zenoh",
    _make,
    "Queries of Eclipse Zenoh over TCP, TLS and others.",
    extra="world",
    module="zenoh",
)
"""The transport over zenoh."""
