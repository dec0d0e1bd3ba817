"""Commands of tmkit in processes of their own, such as a server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.processes import Process, run_process


def free_address(protocol: str = "tcp") -> str:
    """Return an address of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"{protocol}/127.0.0.1:{probe.getsockname()[1]}"


def certificate_of_this_machine(folder: Path, authority: str = "ours") -> dict[str, Path]:
    """Create a local authority and a certificate by openssl, and return the files by their use."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    (folder / "more").write_text(
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n"
    )
    curve, name = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes", authority
    for line in (
        f"req -x509 {curve} -keyout {name}.ca.key -out {name}.ca.pem -days 2 -subj /CN={name}",
        f"req {curve} -keyout {name}.key -out {name}.csr -subj /CN=localhost",
        (
            f"x509 -req -in {name}.csr -CA {name}.ca.pem -CAkey {name}.ca.key -CAcreateserial -out"
            f" {name}.pem -days 2 -extfile more"
        ),
    ):
        run_process([openssl, *line.split()], cwd=folder, check=True, capture_output=True)
    ends = {"authority": "ca.pem", "certificate": "pem", "private_key": "key"}
    return {use: folder / f"{name}.{end}" for use, end in ends.items()}


@contextmanager
def command(*arguments: object, within: Sequence[str] = (), **options: Any) -> Iterator[Process]:
    """Run ``tmkit`` in another process, killed at the end, or through the command ``within``."""
    program = "import sys; from tmkit.cli import main; sys.argv[0] = 'tmkit'; main()"
    words = [*within, sys.executable, "-c", program, *map(str, arguments)]
    process = Process(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def serving(*arguments: object, within: Sequence[str] = ()) -> Iterator[tuple[Process, str]]:
    """Run ``tmkit serve`` in another process; yield it and the line that it prints."""
    with command("serve", *arguments, within=within) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
