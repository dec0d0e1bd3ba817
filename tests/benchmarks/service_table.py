"""Costs of the world service: updates and queries a second, replica lag, recovery of a log.

Run: ``python tests/benchmarks/service_table.py [--seconds S] [--updates N] [--out
docs/results/tables/service.json]``. A server in a separate process, with a log, and four clients in
four more, on loopback by zenoh; a world of 1,000 frames. Clients work one kind at a time, each with
one batch of 32 under way. Times are of the clock, as a client sees them, so they mean little under
other load; beside them are the processor seconds of server and clients.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import socket
import statistics
import tempfile
import time
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.spatial import Pose
from tmkit.world import Client, InProcessTransport, ServiceLimits, WorldServer, connect
from tmkit.world.service import messages as m
from tmkit.world.service.recording import RecordingTransport
from tmkit.world.service.zenoh.transport import ZenohTransport

BATCH, CLIENTS, FRAMES = 32, 4, 1000
COVARIANCE = 1e-6 * np.eye(6)


def thousand_frames() -> SceneGraph:
    """Return a world of 1,000 frames in a tree, with joints nowhere."""
    with SceneGraph().edit() as edit:
        for k in range(FRAMES - 1):
            edit.add_frame(f"f{k}", "world" if k < 10 else f"f{k // 3}", pose=Pose([0.1 * k, 0, 0]))
    return edit.finish()


def server(address: str, log: str | None, ready: Event, done: Event, times: Any) -> None:
    """Serve until the end event, and return the processor time [s]."""
    import sys

    sys.setswitchinterval(0.0005)
    limits = ServiceLimits(requests_per_second=1e6, bytes_per_second=1e12)
    with WorldServer(
        ZenohTransport(address, listen=True), thousand_frames(), log=log, limits=limits
    ):
        ready.set()
        while not done.wait(0.05):
            times[0] = time.process_time()
        times[0] = time.process_time()


def client(
    address: str, number: int, kind: str, seconds: float, barrier: Barrier, results: Any
) -> None:
    """Send batches for some seconds."""
    world, k, latencies = connect(address), 0, list[float]()
    world.server_status()
    barrier.wait()
    begun, processor = time.perf_counter(), time.process_time()
    while time.perf_counter() - begun < seconds:
        before = time.perf_counter()
        if kind == "updates":
            with world.edit() as edit:
                for j in range(BATCH):
                    edit.set_pose(
                        f"f{(4 * (k + j) + number) % 999}", Pose([k, j, 0]), covariance=COVARIANCE
                    )
        else:
            world.gaussian_poses(
                [(f"f{(k + j) % 999}", f"f{(7 * (k + j)) % 999}") for j in range(BATCH)]
            )
        latencies.append(time.perf_counter() - before)
        k += BATCH
    results.put((k, time.perf_counter() - begun, time.process_time() - processor, latencies))
    world.close()


def throughput(kind: str, seconds: float, log: str | None) -> dict[str, float]:
    """Return operations a second and latencies of batches in milliseconds."""
    address, context = free_address(), mp.get_context("spawn")
    ready, done, times = context.Event(), context.Event(), context.Array("d", 1)
    serving = context.Process(target=server, args=(address, log, ready, done, times))
    serving.start()
    ready.wait()
    barrier, results = context.Barrier(CLIENTS + 1), context.Queue()
    jobs = [
        context.Process(target=client, args=(address, k, kind, seconds, barrier, results))
        for k in range(CLIENTS)
    ]
    for job in jobs:
        job.start()
    barrier.wait()
    time.sleep(0.1)
    begun = times[0]
    outputs = [results.get() for _ in jobs]
    time.sleep(0.1)
    taken = times[0] - begun
    done.set()
    for job in [*jobs, serving]:
        job.join()
    count, latencies = (
        sum(output[0] for output in outputs),
        sorted(t for output in outputs for t in output[3]),
    )
    return {
        "a second": round(count / max(output[1] for output in outputs)),
        "median ms": round(1e3 * statistics.median(latencies), 2),
        "p99 ms": round(1e3 * latencies[int(0.99 * len(latencies))], 2),
        "processor us of the server": round(1e6 * taken / count, 1),
        "processor us of a client": round(1e6 * sum(output[2] for output in outputs) / count, 1),
    }


def lag(seconds: float, rate: float = 1000.0) -> dict[str, float]:
    """Return the delay of an update until a replica in a third process has it [ms]."""
    address, context = free_address(), mp.get_context("spawn")
    ready, done, times = context.Event(), context.Event(), context.Array("d", 1)
    serving = context.Process(target=server, args=(address, None, ready, done, times))
    serving.start()
    ready.wait()
    count = int(seconds * rate)
    writer = context.Process(target=write_stamps, args=(address, count, rate))
    lags, seen, before = list[float](), set[float](), 0.0
    with connect(address) as world, world.replica() as replica:
        before = time.process_time()
        writer.start()
        scene = replica.scene
        while len(seen) < count and (scene := replica.wait(scene, 10.0) or scene) is not None:
            now = time.clock_gettime(time.CLOCK_MONOTONIC)
            sent = scene.local_pose("f1").translation[0]
            if sent > 1.0 and sent not in seen:
                seen.add(sent)
                lags.append(now - sent)
            if scene.local_pose("f2").translation[0] == 1.0:
                break
        taken = time.process_time() - before
        writer.join()
    done.set()
    serving.join()
    lags.sort()
    return {
        "updates": count,
        "versions in the replica": len(lags),
        "median ms": round(1e3 * statistics.median(lags), 2),
        "p99 ms": round(1e3 * lags[int(0.99 * len(lags))], 2),
        "processor us of the replica for an update": round(1e6 * taken / count, 1),
    }


def write_stamps(address: str, count: int, rate: float) -> None:
    """Write the time into the world at a rate."""
    with connect(address) as world:
        begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        for k in range(count):
            time.sleep(max(0.0, begun + k / rate - time.clock_gettime(time.CLOCK_MONOTONIC)))
            now = time.clock_gettime(time.CLOCK_MONOTONIC)
            world.set_pose("f1", Pose([now, 0, 0]), covariance=COVARIANCE)
        world.set_pose("f2", Pose([1, 0, 0]))


def recovery(updates: int, batch: int, folder: Path) -> dict[str, float]:
    """Return the times of writing a log of updates with covariance, and of recovering from it."""
    log = folder / f"log{batch}"
    # it never begins anew
    limits = ServiceLimits(requests_per_second=1e9, bytes_per_second=1e12, log_bytes=10**12)
    transport = InProcessTransport()
    before = time.process_time()
    with WorldServer(transport, thousand_frames(), log=log, limits=limits) as live:
        session, wanted = os.urandom(16), list[bytes]()
        for number in range(updates // batch):
            first = number * batch
            operations = [
                m.SetPose(
                    f"f{(first + j) % 999}",
                    (first + j, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
                    COVARIANCE.tobytes(),
                )
                for j in range(batch)
            ]
            live._receive(
                m.encode((m.FORMAT, "", session, number, m.Edit(operations))), wanted.append
            )
            if number % 64 == 0:
                Client(transport).look("roots")  # waits until all is on disk
        fingerprint, version = live.live.scene.fingerprint, live.version
    written = time.process_time() - before
    begun, processor = time.perf_counter(), time.process_time()
    scan = RecordingTransport(InProcessTransport(), log)
    scanned = time.process_time() - processor
    scan.close()
    begun, processor = time.perf_counter(), time.process_time()
    with WorldServer(InProcessTransport(), log=log) as live:
        seconds, processor = time.perf_counter() - begun, time.process_time() - processor
        assert (live.live.scene.fingerprint, live.version) == (fingerprint, version)
    return {
        "updates": updates,
        "in one version": batch,
        "log MB": round(log.stat().st_size / 1e6),
        "processor us to write one": round(1e6 * written / updates, 1),
        "checking s": round(scanned, 2),
        "recovery s": round(seconds, 2),
        "recovery processor s": round(processor, 2),
    }


def free_address() -> str:
    """Return an address that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{probe.getsockname()[1]}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of a rate")
    parser.add_argument(
        "--updates", type=int, default=1_000_000, help="in the log that is recovered"
    )
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    arguments = parser.parse_args()
    table: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:

        def measure(name: str, numbers: dict[str, float]) -> None:
            table[name] = numbers
            print(
                f"{name}: {', '.join(f'{key} {value}' for key, value in numbers.items())}",
                flush=True,
            )

        measure("queries", throughput("queries", arguments.seconds, None))
        measure("updates", throughput("updates", arguments.seconds, None))
        measure("updates with a log", throughput("updates", arguments.seconds, f"{folder}/served"))
        measure("replica", lag(arguments.seconds))
        measure("recovery, batches", recovery(arguments.updates, BATCH, Path(folder)))
        measure("recovery, single", recovery(arguments.updates, 1, Path(folder)))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
