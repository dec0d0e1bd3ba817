"""Repeated kills of a server while clients edit.

Usage: ``python tests/support/service_kills.py [--kills N] [--seed S]``.

A server with a log runs in a separate process and is killed (SIGKILL) at random moments. Three
clients in threads each count up an attribute of a frame of their own, add or remove a mesh, and
record the acknowledgements; two replicas follow all the time. The log begins anew every few
edits. After each kill a new server goes on from it. In the end each attribute is what was
acknowledged, or one more: the edit under way may be in or not; and the replicas have the server's
fingerprint. Since each client adds one to the number that it last wrote, an edit that was lost or
made twice would show.

In a separate network, which is cut off for moments (as root):

    unshare -n bash -c 'ip link set lo up; (for k in {1..200}; do sleep 0.3; ip link set lo down;
    sleep 0.2; ip link set lo up; done) & python tests/support/service_kills.py --kills 10; kill %1'
"""

from __future__ import annotations

import argparse
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from support.processes import Process
from tmkit.errors import TmkitError
from tmkit.graph import Mesh, SceneGraph
from tmkit.spatial import Pose
from tmkit.world import connect

SERVER = """
import sys, time
from tmkit.world import ServiceLimits, WorldServer
from tmkit.world.service.zenoh.transport import ZenohTransport
limits = ServiceLimits(log_bytes=int(sys.argv[3]))
transport = ZenohTransport(sys.argv[1], listen=True)
with WorldServer(transport, log=sys.argv[2], limits=limits) as server:
    print(server.version, flush=True)
    while server.failure is None:
        time.sleep(1)
"""
CLIENTS = 3


def tetrahedron(size: int) -> Mesh:
    """Return a mesh, another one for each size."""
    corners = [[0, 0, 0], [size, 0, 0], [0, 1, 0], [0, 0, 1]]
    return Mesh(corners, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


def run(kills: int, seed: int, folder: Path, log_bytes: int = 3_000) -> dict[str, int]:
    """Kill a server ``kills`` times, and return the counts.

    The log begins anew after ``log_bytes`` or more.

    Raises:
        AssertionError: if an acknowledged edit is lost or was made twice, or a replica
            differs.
    """
    chance, log = random.Random(seed), folder / "world.log"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp/127.0.0.1:{probe.getsockname()[1]}"

    def started() -> tuple[Process, int]:
        words = [sys.executable, "-c", SERVER, address, str(log), str(log_bytes)]
        process = Process(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    process, _ = started()
    world = connect(address, timeout=60.0)
    for k in range(CLIENTS):
        world.add_frame(f"c{k}", "world")
    acknowledged, errors, is_over = [0] * CLIENTS, list[str](), threading.Event()

    def count(number: int) -> None:
        own = connect(address, timeout=60.0)
        own._retry = 0.2
        while not is_over.is_set():
            with own.edit() as edit:  # written whole: half an edit would show
                edit.set_attribute(f"c{number}", "n", acknowledged[number] + 1)
                edit.set_pose(f"c{number}", Pose([acknowledged[number] + 1, 0, 0]))
                edit.reparent(f"c{number}", "world")
                if acknowledged[number] % 2:
                    edit.remove_frame(f"m{number}")
                else:
                    edit.add_frame(
                        f"m{number}", "world", shapes=[tetrahedron(acknowledged[number] + 1)]
                    )
            acknowledged[number] += 1
        own.close()

    def guarded(number: int) -> None:
        try:
            count(number)
        except TmkitError as error:
            errors.append(str(error))

    replicas = [connect(address, timeout=60.0).replica() for _ in range(2)]
    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    versions = []
    for _ in range(kills):
        target = sum(acknowledged) + chance.randint(1, 60)
        while sum(acknowledged) < target and not errors:
            time.sleep(0.001)
        before = sum(acknowledged)
        process.kill()
        process.communicate()
        process, version = started()
        versions.append(version)
        assert version >= before + CLIENTS, (
            f"version {version} of the log after {before} acknowledged edits"
        )
    is_over.set()
    for thread in threads:
        thread.join()
    assert errors == []
    scene, status = world.scene(), world.server_status()
    for k in range(CLIENTS):
        number = scene.attributes(f"c{k}")["n"]
        assert number == acknowledged[k], (
            f"client {k}: {number} in the world, {acknowledged[k]} acknowledged"
        )
        assert scene.local_pose(f"c{k}").translation[0] == number
    assert status.version == sum(acknowledged) + CLIENTS, "an edit was made twice, or was lost"
    for replica in replicas:
        assert (
            replica.wait_for(status.version, 60.0).fingerprint
            == status.fingerprint
            == scene.fingerprint
        )
        replica.close()
        replica._client.close()
    assert isinstance(scene, SceneGraph)
    process.kill()
    process.communicate()
    world.close()
    blobs = len([*Path(f"{log}.blobs").iterdir()])
    return {
        "kills": kills,
        "edits": sum(acknowledged),
        "log bytes": log.stat().st_size,
        "blobs": blobs,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        print(run(arguments.kills, arguments.seed, Path(temporary)))  # noqa: T201
