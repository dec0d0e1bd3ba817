"""The processor time of planning, with that of the programs that it starts."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from tmkit.task_planning import fast_downward_process as translator

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Return the processor time of this process, its ended children and the translator server."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    server = translator._server._process
    fields = (
        []
        if server is None
        else Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    )
    return (
        sum(usage.ru_utime + usage.ru_stime for usage in used)
        + sum(map(int, fields[11:15])) / _TICKS
    )
