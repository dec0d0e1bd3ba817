"""Ports outside 0 to 65535 are rejected by viewer, server, client and commands."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
from support.processes import run_process

from tmkit.errors import ConfigurationError, ServiceError
from tmkit.world import connect
from tmkit.world.service.transports import require_port

ADDRESSES = [
    "tcp/127.0.0.1:70000",
    "tcp/127.0.0.1:65536",
    "tcp/127.0.0.1:-1",
    "tcp/127.0.0.1:x",
    "tcp/127.0.0.1",
    "tls/cell:99999?x=1",
    "tcp/[::1]:70000",
    "tcp/127.0.0.1:",
]


@pytest.mark.parametrize("port", [70000, 65536, -1, 8080.0, "8080", True, None, 10**30])
def test_a_viewer_at_a_port_that_there_is_not(port: Any) -> None:
    """The message has what was received and the range, and no thread was started."""
    pytest.importorskip("viser")
    from tmkit.visualization import Viewer

    before = threading.active_count()
    with pytest.raises(
        ConfigurationError, match=r"^port=.*: expected an integer from 0 \(any free port\) to 65535"
    ):
        Viewer(port=port)
    assert threading.active_count() == before


def test_a_viewer_at_a_host_that_is_no_name() -> None:
    """An invalid address raises an error of tmkit."""
    pytest.importorskip("viser")
    from tmkit.visualization import Viewer

    with pytest.raises(ConfigurationError, match=r"^host='a\\x00b': expected a name or address"):
        Viewer(host="a\0b", port=0)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_without_a_port(address: str) -> None:
    """A client and a server reject it at once, with the expected format."""
    with pytest.raises(
        ServiceError, match=r"expected PROTOCOL/HOST:PORT, such as .*, with a port from 0 to 65535"
    ):
        require_port(address)
    pytest.importorskip("zenoh")
    with pytest.raises(ServiceError, match="with a port from 0 to 65535"):
        connect(address)


@pytest.mark.parametrize(
    "address",
    [
        "tcp/127.0.0.1:0",
        "tcp/127.0.0.1:65535",
        "tls/cell.example:7447#a=b",
        "tcp/[::1]:1",
        "unixsock-stream//a",
    ],
)
def test_addresses_that_are_accepted(address: str) -> None:
    """Any port in the range, with options behind it; protocols without ports are left to zenoh."""
    require_port(address)


@pytest.mark.parametrize(
    "arguments",
    [["serve", "--listen", "tcp/127.0.0.1:70000"], ["view", "panda_table", "--port", "70000"]],
)
def test_commands(arguments: list[str]) -> None:
    """Exit code 2 and the range, without a traceback."""
    pytest.importorskip("zenoh" if arguments[0] == "serve" else "viser")
    ended = run_process(
        [sys.executable, "-m", "tmkit", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2
    assert "65535" in ended.stderr
    assert "Traceback" not in ended.stderr
