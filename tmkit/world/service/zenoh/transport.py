"""The service over zenoh: a world is a queryable, a request is a query.

The server accepts connections of zenoh clients at one address; it looks for no other routers, by
neither multicast nor gossip. What clients may do is ask: they can neither answer queries of others
nor publish.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import Any

from tmkit._support.extras import importing
from tmkit.errors import ArgumentError, ServiceError
from tmkit.world.service.transports import DEFAULT_ADDRESS, Handler, Transport, require_port
from tmkit.world.service.zenoh.connection_gate import ConnectionGate

_logger = logging.getLogger(__name__)
_TLS = "transport/link/tls/"
_WORLD = re.compile(r"[A-Za-z0-9_.-]{1,100}")
# bytes that zenoh puts together; beyond, it drops the connection
_LARGEST_REQUEST, _LARGEST_ANSWER = 2**25, 2**30
_GATED = re.compile(r"(tls|tcp(?!/127\.|/localhost:|/\[::1\]))/(\[[^]]+\]|[^:\[\]]+):(\d+)")

_ACCEPT_MILLISECONDS = 2_000
"""Time for the handshake of zenoh [ms]; a connection that stays silent is closed after it."""

_PENDING = 10_000
"""Connections in this handshake: beyond, zenoh closes one after the other, and new ones wait for that."""

_SESSIONS = 10_000
"""Clients of a server."""


class ZenohTransport(Transport):
    """Carries messages by zenoh, for a server or for the client of one.

    Args:
        address: an endpoint of zenoh, such as ``tcp/127.0.0.1:7447`` or ``tls/cell.example:7447``.
        listen: for a server, which listens there; else for a client, which connects to it.
        world: name of the world.
        settings: of zenoh's configuration, by path, such as
            ``{"transport/link/tls/root_ca_certificate": "ca.pem"}``.

    Raises:
        ArgumentError: a world is named by other characters than letters, digits and ``_.-``; a
            refused setting.
        ServiceError: if the address has no port from 0 to 65535, or the server cannot listen at it.
        MissingExtraError: the extra ``world`` is not installed.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        listen: bool,
        world: str = "world",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        with importing("zenoh", "world", "the transport 'zenoh' needs"):
            import zenoh
        if not _WORLD.fullmatch(world):
            raise ArgumentError(
                f"{world!r} is no name of a world: 1 to 100 of letters, digits and _.-"
            )
        require_port(address)
        self._zenoh, self._key, self._address = zenoh, f"tmkit/{world}", address
        self._gate: ConnectionGate | None = None
        self._tls = {path.removeprefix(_TLS): value for path, value in (settings or {}).items()}
        values: dict[str, Any] = {
            "mode": "peer" if listen else "client",
            "listen/endpoints": [address] if listen else [],
            "transport/unicast/accept_timeout": _ACCEPT_MILLISECONDS,
            "transport/unicast/accept_pending": _PENDING,
            "transport/unicast/max_sessions": _SESSIONS,
            "connect/endpoints": [] if listen else [address],
            "connect/timeout_ms": 0,
            "connect/exit_on_failure": True,
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
            "transport/link/rx/max_message_size": _LARGEST_REQUEST if listen else _LARGEST_ANSWER,
        }
        if listen:
            values["access_control"] = self._access()
        self._config = zenoh.Config()
        for path, value in {**values, **(settings or {})}.items():
            try:
                self._config.insert_json5(path, json.dumps(value))
            except zenoh.ZError as error:
                raise ArgumentError(
                    f"zenoh refuses the setting '{path}': {_reason(error)}"
                ) from None
        self._is_listening = listen
        self._lock = threading.Lock()
        self._session: Any = None
        self._is_closed = False

    def _access(self) -> dict[str, Any]:
        def rule(name: str, messages: list[str], flow: str) -> dict[str, Any]:
            return {
                "id": name,
                "permission": "allow",
                "flows": [flow],
                "messages": messages,
                "key_exprs": [self._key],
            }

        return {
            "enabled": True,
            "default_permission": "deny",
            "rules": [
                rule("ask", ["query"], "ingress"),
                rule("answer", ["declare_queryable", "reply"], "egress"),
            ],
            "subjects": [{"id": "anyone"}],
            "policies": [{"rules": ["ask", "answer"], "subjects": ["anyone"]}],
        }

    def _opened(self) -> Any:
        with self._lock:
            if self._session is None and not self._is_closed:
                self._session = self._zenoh.open(self._config)
            return self._session

    def serve(self, handler: Handler) -> None:
        """Listen at the address, and hand requests to a server, as of :meth:`Transport.serve`.

        Raises:
            ServiceError: the address is in use or cannot be listened at.
        """

        def receive(query: Any) -> None:
            def reply(answer: bytes) -> None:
                try:
                    query.reply(self._key, answer)
                    query.drop()
                except self._zenoh.ZError as error:  # the client is gone
                    _logger.debug("an answer was not sent: %s", error)

            handler(b"" if query.payload is None else query.payload.to_bytes(), reply)

        try:
            self._open_gate()
            self._queryable = self._opened().declare_queryable(self._key, receive, complete=True)
        except (self._zenoh.ZError, OSError, OverflowError, ValueError) as error:
            self.close()
            raise ServiceError(
                f"cannot listen at {self._address}: {_reason(error)}", kind="transport"
            ) from None

    def _open_gate(self) -> None:
        """Put a gate in front of a port for TLS or other machines; zenoh listens at one of this machine behind it."""
        address = _GATED.fullmatch(self._address)
        if self._is_listening and address is not None and self._gate is None:
            protocol, host, port = address.groups()
            self._gate = ConnectionGate(host.strip("[]"), int(port), is_tls=protocol == "tls")
            endpoint = f"{protocol}/{self._gate.target[0]}:{self._gate.target[1]}"
            self._config.insert_json5("listen/endpoints", json.dumps([endpoint]))

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a query and return the answer, None when none came in time or no server listens.

        Raises:
            ServiceError: the server is there, and one of the two refuses the certificate of the
                other.
        """
        try:
            session = self._opened()
            for reply in (
                () if session is None else session.get(self._key, payload=message, timeout=timeout)
            ):
                if reply.ok is not None:
                    return bytes(reply.ok.payload.to_bytes())
        except self._zenoh.ZError as error:
            _logger.debug("a request was not sent: %s", error)
            if self._address.startswith("tls/"):
                self._check_certificates()
        return None

    def _check_certificates(self) -> None:
        """Raise what TLS says of a server, which zenoh writes into its own log only."""
        host, _, port = re.split("[?#]", self._address.removeprefix("tls/"))[0].rpartition(":")
        tls = self._tls
        try:
            context = ssl.create_default_context(cafile=tls.get("root_ca_certificate"))
            context.check_hostname = tls.get("verify_name_on_connect", True)
            if tls.get("enable_mtls") and "connect_certificate" in tls:
                context.load_cert_chain(tls["connect_certificate"], tls.get("connect_private_key"))
            with (
                socket.create_connection((host.strip("[]"), int(port)), timeout=1.0) as raw,
                context.wrap_socket(raw, server_hostname=host.strip("[]")) as link,
            ):
                link.recv(1)  # what the server says of our certificate
        except (ConnectionError, TimeoutError, ssl.SSLEOFError):
            return
        except (ssl.SSLError, FileNotFoundError, PermissionError) as error:
            raise ServiceError(
                f"no connection to {self._address}: {_tls_reason(error)}", kind="transport"
            ) from None

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            session, self._session, self._is_closed = self._session, None, True
        if self._gate is not None:
            self._gate.close()
            self._gate = None
        if session is not None:
            session.close()


def _tls_reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the server is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {(error.reason or str(error)).lower().replace('_', ' ')}"
    return f"a certificate or key cannot be read: {error.strerror}"


def _reason(error: Exception) -> str:
    """Return what an error of zenoh says, without places in zenoh's sources."""
    found = re.search(r'msg: "([^"]*)"', str(error))
    return re.sub(r" at /\S+", "", found[1] if found else str(error))
