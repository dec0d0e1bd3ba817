"""``tmkit serve``: a world for other processes, killed and begun again; what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import service_kills

from tmkit.cli import main
from tmkit.errors import ServiceError, TimeLimitError
from tmkit.formats import load_scene
from tmkit.spatial import Pose
from tmkit.world import connect

pytest.importorskip("zenoh")


def free_address() -> str:
    """Return an address of this machine that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{found.getsockname()[1]}"


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command in another process; yield it and the line that it prints."""
    program = "import sys; from tmkit.cli import main; sys.argv[0] = 'tmkit'; main()"
    command = [sys.executable, "-c", program, "serve", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_a_world_is_served_and_goes_on_from_its_log(tmp_path: Path) -> None:
    """Clients of other processes edit it; after a signal or a kill the next server has all that was acknowledged."""
    address, log = free_address(), tmp_path / "world.log"
    tokens = tmp_path / "tokens"
    tokens.write_text("write " + "w" * 16 + "\nread " + "r" * 16)
    arguments = ["--listen", address, "--log", log, "--tokens", tokens, "--world", "cell"]
    with serving("panda_table", "blocks3", *arguments) as (process, line):
        scene = load_scene("panda_table", "blocks3")
        assert line == f"serving 'cell' at {address}: {len(scene)} frames, version 0"
        with connect(address, token="w" * 16, world="cell") as world:
            assert world.scene() == scene
            for k in range(10):
                world.set_pose("a", Pose([k, 0, 0]))
            with connect(address, token="r" * 16, world="cell") as reader:
                with pytest.raises(ServiceError, match="this token may read"):
                    reader.set_pose("a", Pose())
                assert reader.scene().fingerprint == world.server_status().fingerprint
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
    with serving("panda_table", *arguments) as (process, line):
        assert line == f"serving 'cell' at {address}: {len(scene)} frames, version 10"
        with connect(address, token="w" * 16, world="cell") as world:
            assert world.scene() == scene.set_pose("a", Pose([9, 0, 0]))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr is not None
        assert "the world goes on from version 10 of the log; the scene files are not used" in process.stderr.read()


def test_what_does_not_speak_the_protocol_does_not_slow_others() -> None:
    """Garbage at the port of the server is dropped, and clients are answered meanwhile."""
    address = free_address()
    host, port = address.removeprefix("tcp/").split(":")
    with serving("--listen", address) as (_, line), connect(address) as world:
        assert line.endswith("1 frames, version 0")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(70_000), b"\xff\xff" + bytes(65_535)):
            with socket.create_connection((host, int(port))) as raw:
                raw.sendall(garbage)
                world.set_attribute("world", "k", len(garbage))
        assert world.server_status().version == 3
        flood = connect(address, timeout=1.0)
        for size, error, reason in [
            (20_000_000, ServiceError, "this server takes 16000000"),
            (40_000_000, TimeLimitError, "has not answered"),
        ]:
            with pytest.raises(error, match=reason):
                flood.set_attribute("world", "k", "x" * size)
        world.set_attribute("world", "k", 0)
        flood.close()
        assert world.server_status().counts == {"edits": 4, "messages": 6, "refused: size": 1}


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run the command, which ends with bad input; return what it says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tmkit", "serve", *map(str, arguments)])
        patch.setenv("COLUMNS", "300")
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_what_it_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other machines need tokens; a bad transport, setting, address, token file or log is named, without traceback."""
    for address in ("tcp/0.0.0.0:7447", "tcp/192.168.0.1:7447", "tcp/127.0.0.1.evil.example:1", "tls/[::]:7447"):
        assert "is open to other machines: --tokens FILE is needed" in refusal(capsys, "--listen", address)
    assert "unknown transport 'zeno'; did you mean 'zenoh'?" in refusal(capsys, "--transport", "zeno")
    assert "zenoh refuses the setting 'no/such'" in refusal(capsys, "--setting", "no/such=1")
    assert "'a b' is no name of a world" in refusal(capsys, "--world", "a b")
    assert "none: No such file" in refusal(capsys, "--tokens", tmp_path / "none")
    (tmp_path / "log").write_bytes(b"something else")
    assert "log: this is no log of a world; it is left as it is" in refusal(
        capsys, "--log", tmp_path / "log", "--listen", "tcp/127.0.0.1:1"
    )
    assert "Is a directory" in refusal(capsys, "--log", tmp_path)
    with serving("--listen", address := free_address()):
        assert f"cannot listen at {address}: " in refusal(capsys, "--listen", address)


def test_kills_under_load(tmp_path: Path) -> None:
    """Three kills of a server that three clients edit: nothing acknowledged is lost, no edit is made twice."""
    found = service_kills.run(3, 5, tmp_path)
    assert found["edits"] >= 3
