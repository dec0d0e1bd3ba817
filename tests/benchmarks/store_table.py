"""Costs of versions in a store, beside bare SQLite.

Run by hand: ``python tests/benchmarks/store_table.py [--json docs/results/tables/store.json]``.
Processor times are medians of many short bursts; the results are ratios to the floor in the same
process: a transaction of bare SQLite that inserts a row of the same size and moves a tip. Engines
are compared with the same rows; LMDB is measured where its wheel (``lmdb``) is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import pickle
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import processor_time

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose
from tmkit.store import Store
from tmkit.store.versions import StoreLimits

BURST, ROUNDS = 50, 20
BYTES = 420  # of a row


def burst(work: Callable[[int], object], start: int = 0) -> float:
    """Return the median processor time of a call [us]; each call has its own index."""
    times = []
    for first in range(start, start + BURST * ROUNDS, BURST):
        begun = time.process_time()
        for number in range(first, first + BURST):
            work(number)
        times.append((time.process_time() - begun) / BURST * 1e6)
    return statistics.median(times)


def once(work: Callable[[], object], runs: int = 7) -> float:
    """Return the median processor time of a call, milliseconds."""
    return 1e3 * statistics.median(processor_time(work) for _ in range(runs))


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def thousand_frames() -> SceneGraph:
    """Return a scene of 1,000 frames in a tree."""
    with SceneGraph().edit() as edit:
        for k in range(999):
            edit.add_frame(f"f{k}", "world" if k < 10 else f"f{k // 3}", pose=Pose([0.1 * k, 0, 0]))
    return edit.finish()


def versions_of(scene: SceneGraph, count: int) -> list[SceneGraph]:
    """Return versions, each of which moves one frame of the one before."""
    versions = [scene]
    for k in range(count):
        versions.append(versions[-1].set_pose(f"f{k % 999}", Pose([k + 0.5, 2, 3])))
    return versions


def sqlite_rows(folder: Path, batch: int) -> tuple[float, float]:
    """Return the times of a row into and out of bare SQLite."""
    base = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=NORMAL")
    base.execute(
        "CREATE TABLE rows (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT"
        " NULL)"
    )
    base.execute("CREATE TABLE tips (name TEXT PRIMARY KEY, id BLOB NOT NULL) WITHOUT ROWID")
    body = os.urandom(BYTES)

    def put(number: int) -> None:
        key = hashlib.sha256(str(number).encode()).digest()
        if number % batch == 0:
            base.execute("BEGIN IMMEDIATE")
        base.execute("SELECT id FROM tips WHERE name=?", ("main",)).fetchall()
        base.execute("INSERT INTO rows (id, body) VALUES (?, ?)", (key, body))
        base.execute("REPLACE INTO tips VALUES (?, ?)", ("main", key))
        if number % batch == batch - 1:
            base.execute("COMMIT")

    def get(number: int) -> None:
        key = hashlib.sha256(str(number).encode()).digest()
        base.execute("SELECT body FROM rows WHERE id=?", (key,)).fetchall()

    times = burst(put), burst(get)
    base.close()
    return times


def lmdb_rows(folder: Path, batch: int, *, sync: bool) -> tuple[float, float]:
    """Return the times of a row into and out of LMDB."""
    import lmdb

    base = lmdb.open(str(folder), map_size=1 << 28, max_dbs=2, sync=sync)
    rows, tips = base.open_db(b"rows"), base.open_db(b"tips")
    body, open_ = os.urandom(BYTES), []

    def put(number: int) -> None:
        key = hashlib.sha256(str(number).encode()).digest()
        if number % batch == 0:
            open_.append(base.begin(write=True))
        open_[0].get(b"main", db=tips)
        open_[0].put(key, body, db=rows)
        open_[0].put(b"main", key, db=tips)
        if number % batch == batch - 1:
            open_.pop().commit()

    def get(number: int) -> None:
        with base.begin(db=rows) as reading:
            reading.get(hashlib.sha256(str(number).encode()).digest())

    times = burst(put), burst(get)
    base.close()
    return times


def measure(folder: Path) -> dict[str, float]:
    """Return all numbers by name."""
    times: dict[str, float] = {}
    engines: dict[str, Callable[[Path, int], tuple[float, float]]] = {"SQLite": sqlite_rows}
    if importlib.util.find_spec("lmdb"):
        engines["LMDB, synchronised"] = lambda path, batch: lmdb_rows(path, batch, sync=True)
        engines["LMDB, not synchronised"] = lambda path, batch: lmdb_rows(path, batch, sync=False)
    for name, rows in engines.items():
        for batch in (1, BURST):
            place = folder / f"{name}{batch}"
            place.mkdir()
            put, get = rows(place, batch)
            times[f"us: a row into {name}, {batch} a transaction"] = put
            times[f"us: a row out of {name}"] = get
    scenes = versions_of(thousand_frames(), 3 * BURST * ROUNDS)
    store = Store(folder / "one")
    store.put(scenes[0])
    times["us: a version in, a transaction each"] = burst(lambda k: store.put(scenes[k + 1]))
    with store.batch():
        times["us: a version in, in one batch"] = burst(
            lambda k: store.put(scenes[k + 1]), BURST * ROUNDS
        )
    ids = [version.id for version in store.log()][::-1]
    reader = Store(folder / "one")
    reader.get(ids[0])
    times["us: a version out"] = burst(lambda k: reader.get(ids[k + 1]))
    times["us: a fingerprint after an edit"] = burst(lambda k: scenes[k + 2000].fingerprint)
    times["us: SHA-256 of a scene of 1,000 frames"] = once(scenes[9].digest) * 1e3
    times["us: pickle of a scene of 1,000 frames"] = once(lambda: pickle.dumps(scenes[9])) * 1e3
    limits = StoreLimits(cached_versions=1)
    times["ms: a version that is far from a snapshot"] = once(
        lambda: Store(folder / "one", limits=limits).get(ids[-1])
    )
    store.close()
    sizes = []
    for first, last in ((0, 1), (1, 50)):
        with Store(folder / "fifty") as store, store.batch():
            for scene in scenes[first:last]:
                store.put(scene)
        sizes.append(size(folder / "fifty"))
    single, fifty = sizes
    times["bytes: one version of 1,000 frames"] = single
    times["bytes: one more version"] = (fifty - single) / 49
    times["ratio: room of 50 versions to that of one"] = fifty / single
    robot = tk.load_scene("baxter_table")
    store = Store(folder / "robot")
    store.put(robot)
    times["ms: Baxter from its description"] = once(lambda: tk.load_scene("baxter_table"), 3)
    times["ms: Baxter from a store"] = once(lambda: Store(folder / "robot").get("main"))
    times["MB: Baxter's blobs"] = size(folder / "robot" / "blobs") / 1e6
    return times


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the numbers and their ratios")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = measure(Path(folder))
    floors = {
        "us: a version in, a transaction each": times["us: a row into SQLite, 1 a transaction"],
        "us: a version in, in one batch": times[f"us: a row into SQLite, {BURST} a transaction"],
        "us: a version out": times["us: a row out of SQLite"],
        "ms: Baxter from a store": times["ms: Baxter from its description"],
    }
    print("| | | of its floor |\n|---|--:|--:|")
    for name, value in times.items():
        unit, _, what = name.partition(": ")
        ratio = f"{value / floors[name]:.3g}" if name in floors else ""
        print(f"| {what} | {value:.3g} {unit.replace('us', 'µs').replace('ratio', '')} | {ratio} |")
    if arguments.json:
        ratios = {name: value / floors[name] for name, value in times.items() if name in floors}
        arguments.json.write_text(
            json.dumps({"measured": times, "ratios": ratios}, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
