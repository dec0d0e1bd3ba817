"""Server and client in two network namespaces with a link (Linux, as root)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import Process, run_process
from support.served_worlds import serving

pytest.importorskip("zenoh")

ADDRESS, ELSEWHERE = "tcp/10.73.0.1:7447", 30.0
READ, WRITE = "r" * 16, "w" * 16
CLIENT = """
import sys
from tmkit.errors import ServiceError, TimeLimitError
from tmkit.spatial import Pose
from tmkit.world import connect

address, token, timeout, edits = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
try:
    with connect(address, token=token, timeout=timeout) as world:
        print("frames", *world.look("frames"), flush=True)
        for k in range(edits):
            world.update(
                lambda scene: scene.set_attribute(
                    "cup", "done", [*scene.attributes("cup")["done"], k]
                )
            )
            print(k, flush=True)
        print("done", len(world.look("attributes", "cup")["done"]), world.server_status().version)
except (ServiceError, TimeLimitError) as error:
    print(type(error).__name__, error)
"""


def run(*words: str) -> None:
    """Run a command of the system; what it prints is in the error."""
    done = run_process(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


@pytest.fixture
def machines() -> Iterator[tuple[str, str]]:
    """Yield the names of two network namespaces, 10.73.0.1 and 10.73.0.2, with a link."""
    if shutil.which("ip") is None:
        pytest.skip("no program 'ip' here")
    names = [f"tmkit{os.getpid()}{end}" for end in "ab"]
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run(
            "ip",
            "-n",
            names[0],
            "link",
            "add",
            "cable",
            "type",
            "veth",
            "peer",
            "cable",
            "netns",
            names[1],
        )
        for number, name in enumerate(names, 1):
            run("ip", "-n", name, "address", "add", f"10.73.0.{number}/24", "dev", "cable")
            for link in ("lo", "cable"):
                run("ip", "-n", name, "link", "set", link, "up")
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    else:
        yield names[0], names[1]
    finally:
        for name in names:
            run_process(["ip", "netns", "delete", name], capture_output=True, check=False)


def within(machine: str) -> tuple[str, ...]:
    """Return the command that runs others on a machine."""
    return "ip", "netns", "exec", machine


def client(
    machine: str, token: str, *, address: str = ADDRESS, timeout: float = ELSEWHERE, edits: int = 0
) -> str:
    """Return what a client on a machine prints."""
    words = [
        *within(machine),
        sys.executable,
        "-c",
        CLIENT,
        address,
        token,
        str(timeout),
        str(edits),
    ]
    return run_process(words, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """Return a file of tokens."""
    path = tmp_path / "tokens"
    path.write_text(f"read {READ}\nwrite {WRITE}\n")
    return path


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """Return a file of a scene with a cup."""
    from tmkit.formats import write_json_scene
    from tmkit.graph import SceneGraph

    path = tmp_path / "cup.json"
    write_json_scene(SceneGraph().add_frame("cup", "world").set_attribute("cup", "done", []), path)
    return path


def test_another_machine_needs_a_token(
    machines: tuple[str, str], tokens: Path, scene: Path
) -> None:
    """Roles hold over a cable as they do within one machine."""
    here, there = machines
    with serving(scene, "--listen", ADDRESS, "--tokens", tokens, within=within(here)) as (_, line):
        assert ADDRESS in line
        assert client(there, READ).split("\n")[0] == "frames world cup"
        assert client(there, WRITE, edits=3).endswith("done 3 3\n")
        assert "this token has the role read" in client(there, READ, edits=1)
        assert "this token is unknown" in client(there, "x" * 16)
        assert "a token is required" in client(there, "")


def test_a_server_on_loopback_is_not_reached_from_elsewhere(
    machines: tuple[str, str], scene: Path
) -> None:
    """By default, a server listens on its own machine."""
    here, there = machines
    with serving(scene, within=within(here)) as (_, line):
        assert "127.0.0.1:7447" in line
        assert client(here, "", address="tcp/127.0.0.1:7447").startswith("frames")
        assert client(there, "", timeout=2.0).startswith("TimeLimitError")


def test_a_cable_that_is_pulled_loses_and_repeats_nothing(
    machines: tuple[str, str], tokens: Path, scene: Path, tmp_path: Path
) -> None:
    """Edits go on once it is back, each made once; the log has them all."""
    here, there = machines
    log, edits = tmp_path / "log", 60
    arguments = (scene, "--listen", ADDRESS, "--tokens", tokens, "--log", log)
    with serving(*arguments, within=within(here)):
        words = [*within(there), sys.executable, "-c", CLIENT, ADDRESS, WRITE, "60", str(edits)]
        with Process(words, stdout=subprocess.PIPE, text=True) as working:
            assert working.stdout is not None
            for line in working.stdout:
                if line.strip() in ("10", "30"):
                    run("ip", "-n", here, "link", "set", "cable", "down")
                    with pytest.raises(subprocess.TimeoutExpired):
                        working.wait(1.0)
                    run("ip", "-n", here, "link", "set", "cable", "up")
                last = line
        assert last == f"done {edits} {edits}\n"
    with serving(*arguments, within=within(here)):  # the one before was killed
        assert client(there, WRITE, edits=1).endswith(f"done {edits + 1} {edits + 1}\n")
