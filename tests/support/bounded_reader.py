"""Reader of scene files under limits of processor time and memory.

Usage: ``python bounded_reader.py SECONDS MEGABYTES FILE...``.

The limits are the system's, of this process: a reader that exceeds one is killed or out of memory,
whatever it does. Before each file its name is written, after it ``value`` or ``error``, so that the
last line has the file that did not end. An error must be tmkit's own and name the file.
"""

from __future__ import annotations

import math
import resource
import sys
import warnings
from pathlib import Path

from tmkit.errors import TmkitError
from tmkit.formats import load_scene


def read(path: Path) -> str:
    """Return how reading a file ends."""
    with_robot = path.with_suffix(".urdf")
    try:
        load_scene(*([with_robot, path] if path.suffix == ".srdf" else [path]), on_note=str)
    except TmkitError as error:
        named = any(f"{path.stem}." in text for text in (str(error), str(error.data)))
        return "error" if named else f"nameless {error}"
    return "value"


def read_bounded(seconds: float, megabytes: float, paths: list[Path]) -> None:
    """Read files, the first twice, so that its imports are not counted."""
    warnings.simplefilter("ignore")
    read(paths[0])
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = size + int(1e6 * megabytes)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for path in paths:
        sys.stdout.write(f"{path.name} ")
        sys.stdout.flush()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = usage.ru_utime + usage.ru_stime
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used + seconds), resource.RLIM_INFINITY))
        sys.stdout.write(f"{read(path)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    read_bounded(float(sys.argv[1]), float(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
