"""Results of a batch in a folder: a journal during the run, then a Parquet table and scenes.

The journal (SQLite) has one row for each finished problem. Such a problem is not planned again, and
a second row for it is ignored. The table, ``results.parquet``, has the rows in the order of the
problems. The card, ``results.json``, has counts and digests. The scenes at the start are versions
of the store in ``scenes`` (:mod:`tmkit.store`). The later scenes follow from the plan.

Invariants: the same batch has the same table, bit for bit, except for :data:`TIMING_COLUMNS`,
unless a time limit ended a problem.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmkit._support.closing import Closing
from tmkit._support.extras import importing
from tmkit._support.output import write_text
from tmkit.batch.attempts import Row
from tmkit.batch.problems import Batch, Job
from tmkit.errors import FileFormatError, MissingFileError, OutputError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.plans.plan_file import plan_from_dict

if TYPE_CHECKING:
    import pyarrow as pa

    from tmkit.store import Store

TIMING_COLUMNS = ("tries", "seconds", "cpu_seconds", "task_seconds")
"""Columns of the table that may differ between two runs of the same batch."""

TABLE = "results.parquet"
"""Name of the file with the table."""

CARD = "results.json"
"""Name of the file with counts and digests."""

STORE = "scenes"
"""Name of the folder with the version store of the scenes."""

_JOURNAL = "journal.sqlite"
"""Name of the file with the journal."""

_ROWS_PER_PART = 500
"""Number of rows that are read or written at a time."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, digest TEXT NOT NULL, row BLOB NOT"
    " NULL)"
)
"""Statement that creates the table of the journal."""


class Journal(Closing):
    """Rows of finished problems in a database, which one process at a time can open.

    Args:
        folder: folder of the results, which is created if missing.

    Raises:
        OutputError: if the folder cannot be written, or another process runs a batch in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _msgspec()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(folder / _JOURNAL, timeout=1.0, isolation_level=None)
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            busy = "another process runs a batch in it" if "locked" in str(error) else str(error)
            raise OutputError(f"{folder}: {busy}", path=str(folder), reason=busy) from error

    def close(self) -> None:
        """Close the database, after which another process can open it."""
        self._database.close()

    def keys(self, digests: Mapping[str, str]) -> set[str]:
        """Return the keys of the finished problems, and remove the rows of changed problems.

        Args:
            digests: digests of the problems of the batch, by key.
        """
        stored = dict(self._database.execute("SELECT key, digest FROM rows"))
        changed = [(key,) for key, digest in stored.items() if digests.get(key, digest) != digest]
        self._database.executemany("DELETE FROM rows WHERE key = ?", changed)
        return {key for key in stored if key in digests} - {key for key, *_ in changed}

    def add(self, rows: Iterable[tuple[str, str, Row]]) -> None:
        """Add keys, digests and rows in one transaction, without keys that have a row."""
        msgspec = _msgspec()
        encoded = [(key, digest, msgspec.msgpack.encode(row)) for key, digest, row in rows]
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR IGNORE INTO rows VALUES (?, ?, ?)", encoded)

    def row(self, key: str) -> Row:
        """Return the row of a finished problem."""
        (data,) = self._database.execute("SELECT row FROM rows WHERE key = ?", (key,)).fetchone()
        return _msgspec().msgpack.decode(data)  # type: ignore[no-any-return]  # an encoded row


def _msgspec() -> Any:
    with importing("msgspec", "learning", "batches need"):
        import msgspec
    return msgspec


def arrow() -> Any:
    """Return pyarrow with its Parquet module."""
    with importing("pyarrow", "learning", "results in Parquet need"):
        import pyarrow.parquet
    return pyarrow


def _schema() -> pa.Schema:
    pa = arrow()
    text, number, count = pa.string(), pa.float64(), pa.int64()
    return pa.schema(
        [
            ("number", count),
            ("key", text),
            ("entry", text),
            ("seed", count),
            ("parameters", text),
            ("status", text),
            ("explanation", text),
            ("actions", pa.list_(text)),
            ("cost", number),
            ("path_length", number),
            ("skeletons", count),
            ("attempts", count),
            ("constraints", count),
            ("diagnosis", text),
            ("trials", text),
            ("scene", text),
            ("plan", text),
            ("is_valid", pa.bool_()),
            ("ends_well", pa.bool_()),
            ("tries", count),
            ("seconds", number),
            ("cpu_seconds", number),
            ("task_seconds", number),
        ]
    )


def write_results(
    folder: Path, batch: Batch, journal: Journal, scene_of: Callable[[Job, Row], str | None]
) -> dict[str, Any]:
    """Write the table and the card of a finished batch, each atomically; return the card.

    Args:
        folder: folder of the results.
        batch: batch whose problems all have a row.
        journal: rows of the problems.
        scene_of: function that returns the version of the scene at the start of a problem with
            this row, or None if it is not stored.

    Raises:
        OutputError: if a file cannot be written.
    """
    pa, schema = arrow(), _schema()
    counts: Counter[str] = Counter()
    digest = hashlib.sha256()
    partial = folder / f".{TABLE}.new"
    try:
        with pa.parquet.ParquetWriter(partial, schema, compression="zstd", version="2.6") as writer:
            rows: list[Row] = []
            for job in batch.jobs():
                result = journal.row(job.key)
                row = {
                    "number": job.number,
                    "key": job.key,
                    "entry": job.entry.name,
                    "seed": job.seed,
                    "parameters": json.dumps(
                        dict(job.entry.parameters), sort_keys=True, default=str
                    ),
                    "scene": scene_of(job, result),
                    **result,
                }
                counts[row["status"]] += 1
                columns = (name for name in schema.names if name not in TIMING_COLUMNS)
                content = {name: row.get(name) for name in columns}
                digest.update(json.dumps(content, sort_keys=True).encode())
                rows.append(row)
                if len(rows) == _ROWS_PER_PART:
                    writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                    rows.clear()
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
        os.replace(partial, folder / TABLE)
    except OSError as error:
        partial.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise OutputError(
            f"{folder / TABLE}: {reason}", path=str(folder / TABLE), reason=reason
        ) from error
    card = {
        "problems": len(batch),
        "statuses": dict(sorted(counts.items())),
        "digest": digest.hexdigest(),
        "columns": list(schema.names),
        "timing_columns": list(TIMING_COLUMNS),
    }
    write_text(folder / CARD, json.dumps(card, indent=1) + "\n")
    return card


@dataclass(frozen=True, eq=False)
class BatchRow:
    """Row of the table for one problem.

    Attributes:
        values: values by column.
    """

    values: Mapping[str, Any]
    _store: Store

    def __getitem__(self, column: str) -> Any:
        return self.values[column]

    @property
    def is_solved(self) -> bool:
        """True if the problem has a plan."""
        return self.values["plan"] is not None

    @property
    def scene(self) -> SceneGraph | None:
        """Scene at the start; None after an error, since the source may have failed."""
        version = self.values["scene"]
        return None if version is None else self._store.get(version)

    @property
    def plan(self) -> Plan | None:
        """Plan with all its scene versions, or None; computed at each access."""
        if self.values["plan"] is None:
            return None
        document = json.loads(self.values["plan"])
        return plan_from_dict(document, source=self.values["key"], scene=self.scene)

    def __repr__(self) -> str:
        return f"BatchRow({self.values['key']}: {self.values['status']})"


class BatchTable:
    """Reader of the results of a batch, which reads rows on request.

    Args:
        folder: folder written by :func:`tmkit.batch.run_batch`.

    Attributes:
        card: counts and digests.

    Raises:
        MissingFileError: if the folder has no table, as before the end of the batch.
        FileFormatError: if the table or the card is invalid.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / TABLE).exists():
            is_running = (self.folder / _JOURNAL).exists()
            hint = "the batch has not ended" if is_running else "it has no results of a batch"
            raise MissingFileError(
                f"there is no {TABLE} in '{folder}': {hint}", path=str(folder), nearest=None
            )
        pa = arrow()
        try:
            self._file = pa.parquet.ParquetFile(self.folder / TABLE)
            self.card: Mapping[str, Any] = json.loads(
                (self.folder / CARD).read_text(encoding="utf-8")
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FileFormatError.at(self.folder, f"its results cannot be read: {error}") from error
        from tmkit.store import Store

        self._store = Store(self.folder / STORE)

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def __iter__(self) -> Iterator[BatchRow]:
        for part in self._file.iter_batches(_ROWS_PER_PART):
            for values in part.to_pylist():
                yield BatchRow(values, self._store)

    def table(self, *columns: str) -> pa.Table:
        """Return columns, by default all, as an Arrow table, which has ``to_pandas()``."""
        return self._file.read(columns=list(columns) or None)

    def __repr__(self) -> str:
        return f"BatchTable({len(self)} problems: {self.card['statuses']})"


def open_results(folder: str | Path) -> BatchTable:
    """Return the results in a folder; see :class:`BatchTable`."""
    return BatchTable(folder)
