"""Transport over zenoh: a world is a queryable, and a request is a query.

The server accepts connections of zenoh clients at one address. It searches no other routers, by
neither multicast nor gossip. Clients may only send queries. They can neither reply to queries of
others nor publish.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from tmkit._support.extras import importing
from tmkit.errors import ArgumentError, ServiceError
from tmkit.world.service.transports import DEFAULT_ADDRESS, Handler, Transport, require_port
from tmkit.world.service.zenoh.connection_gate import ConnectionGate

_logger = logging.getLogger(__name__)
_TLS_PREFIX = "transport/link/tls/"
"""Prefix of the settings of TLS."""

_WORLD_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Valid name of a world."""

_MAX_REQUEST_SIZE = 2**25
"""Size of a request beyond which zenoh drops the connection [bytes]."""

_MAX_ANSWER_SIZE = 2**30
"""Size of a reply beyond which zenoh drops the connection [bytes]."""

_GATED_ADDRESS = re.compile(r"(tls|tcp(?!/127\.|/localhost:|/\[::1\]))/(\[[^]]+\]|[^:\[\]]+):(\d+)")

"""Address of a port behind a gate, with protocol, host and port as groups."""

_ACCEPT_MILLISECONDS = 2_000
"""Time limit of the handshake of zenoh [ms], after which a silent connection is closed."""

_MAX_PENDING = 10_000
"""Number of connections in the handshake. Beyond it, new ones wait until zenoh closes others."""

_MAX_SESSIONS = 10_000
"""Number of clients of a server."""


class ZenohTransport(Transport):
    """Transport by zenoh, for a server or for a client.

    Args:
        address: endpoint of zenoh, such as ``tcp/127.0.0.1:7447`` or ``tls/cell.example:7447``.
        listen: whether the transport is for a server, which listens there. If false, it is for a
            client, which connects to it.
        world: name of the world.
        settings: settings of zenoh's configuration by path, such as
            ``{"transport/link/tls/root_ca_certificate": "ca.pem"}``.

    Raises:
        ArgumentError: if the name of the world has characters other than letters, digits and
            ``_.-``, or a setting is rejected.
        ServiceError: if the address has no port from 0 to 65535, or the server cannot listen at it.
        MissingExtraError: if the extra ``world`` is not installed.
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
        if not _WORLD_NAME.fullmatch(world):
            raise ArgumentError(
                f"{world!r} is not a name of a world: 1 to 100 of letters, digits and _.-"
            )
        require_port(address)
        self._zenoh, self._key, self._address = zenoh, f"tmkit/{world}", address
        self._gate: ConnectionGate | None = None
        self._tls = {
            path.removeprefix(_TLS_PREFIX): value for path, value in (settings or {}).items()
        }
        values: dict[str, Any] = {
            "mode": "peer" if listen else "client",
            "listen/endpoints": [address] if listen else [],
            "transport/unicast/accept_timeout": _ACCEPT_MILLISECONDS,
            "transport/unicast/accept_pending": _MAX_PENDING,
            "transport/unicast/max_sessions": _MAX_SESSIONS,
            "connect/endpoints": [] if listen else [address],
            "connect/timeout_ms": 0,
            "connect/exit_on_failure": True,
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
            "transport/link/rx/max_message_size": _MAX_REQUEST_SIZE if listen else _MAX_ANSWER_SIZE,
        }
        if listen:
            values["access_control"] = self._access_rules()
        self._config = zenoh.Config()
        for path, value in {**values, **(settings or {})}.items():
            try:
                self._config.insert_json5(path, json.dumps(value))
            except zenoh.ZError as error:
                raise ArgumentError(
                    f"zenoh rejects the setting '{path}': {_reason(error)}"
                ) from None
        self._is_listening = listen
        self._lock = threading.Lock()
        self._session: Any = None
        self._is_closed = False

    def _access_rules(self) -> dict[str, Any]:
        """Return the access control of a server: clients may only send queries of the world."""

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

    def _open_session(self) -> Any:
        """Open the session of zenoh at the first call, and return it; None after closing."""
        with self._lock:
            if self._session is None and not self._is_closed:
                self._session = self._zenoh.open(self._config)
            return self._session

    def serve(self, handler: Handler) -> None:
        """Listen at the address, and pass requests to a server, as :meth:`Transport.serve`.

        Raises:
            ServiceError: if the address is in use or cannot be listened at.
        """
        try:
            self._open_gate()
            self._queryable = self._open_session().declare_queryable(
                self._key, partial(self._receive, handler), complete=True
            )
        except (self._zenoh.ZError, OSError, OverflowError, ValueError) as error:
            self.close()
            raise ServiceError(
                f"cannot listen at {self._address}: {_reason(error)}", kind="transport"
            ) from None

    def _receive(self, handler: Handler, query: Any) -> None:
        """Pass a query to a server."""
        message = b"" if query.payload is None else query.payload.to_bytes()
        handler(message, partial(self._reply, query))

    def _reply(self, query: Any, answer: bytes) -> None:
        """Send the reply to a query."""
        try:
            query.reply(self._key, answer)
            query.drop()
        except self._zenoh.ZError as error:  # the client has disconnected
            _logger.debug("an answer was not sent: %s", error)

    def _open_gate(self) -> None:
        """Put a gate in front of a port for TLS or other machines, and move zenoh behind it."""
        address = _GATED_ADDRESS.fullmatch(self._address)
        if self._is_listening and address is not None and self._gate is None:
            protocol, host, port = address.groups()
            self._gate = ConnectionGate(host.strip("[]"), int(port), is_tls=protocol == "tls")
            endpoint = f"{protocol}/{self._gate.target[0]}:{self._gate.target[1]}"
            self._config.insert_json5("listen/endpoints", json.dumps([endpoint]))

    def request(self, message: bytes, *, timeout: float) -> bytes | None:
        """Send a query and return the reply; None after the timeout or without a server.

        Raises:
            ServiceError: if the server or the client rejects the certificate of the other.
        """
        try:
            session = self._open_session()
            if session is None:
                return None
            for reply in session.get(self._key, payload=message, timeout=timeout):
                if reply.ok is not None:
                    return bytes(reply.ok.payload.to_bytes())
        except self._zenoh.ZError as error:
            _logger.debug("a request was not sent: %s", error)
            if self._address.startswith("tls/"):
                self._check_certificates()
        return None

    def _check_certificates(self) -> None:
        """Connect by TLS, since zenoh writes the reason of a failure only into its own log.

        Raises:
            ServiceError: if the server or the client rejects the certificate of the other.
        """
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
                link.recv(1)  # an alert if the server rejects the client's certificate
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
        return f"the certificate of the server is rejected: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {(error.reason or str(error)).lower().replace('_', ' ')}"
    return f"a certificate or key cannot be read: {error.strerror}"


def _reason(error: Exception) -> str:
    """Return the message of an error of zenoh, without locations in zenoh's sources."""
    match = re.search(r'msg: "([^"]*)"', str(error))
    return re.sub(r" at /\S+", "", match[1] if match else str(error))
