"""Files of the report of an execution, from which ``tmkit execute --resume`` goes on.

A file has the report and the executed plan, which differs from the plan file after a resumption.
The digest of the plan file shows that both belong together.

Invariant: reading runs no code.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tmkit._support.json_files import read_json
from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.cli.common import write_json
from tmkit.errors import FileFormatError, OutputError
from tmkit.formats.json.reading import JsonNode
from tmkit.plans import ExecutionReport, ExecutionStatus, Plan
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict

_FORMAT = "tmkit-execution"
"""Value of the key ``format``."""

_FORMAT_VERSION = 1
"""Version of the format."""


@dataclass(frozen=True)
class ReportFile:
    """File for the report of an execution.

    Attributes:
        path: the file.
        plan_file: file of the plan of the command.
        plan: executed plan.
    """

    path: Path
    plan_file: Path
    plan: Plan

    def remove(self) -> None:
        """Remove the file, if there is one.

        Raises:
            OutputError: if it cannot be removed.
        """
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            reason = f"cannot be removed: {error.strerror}"
            raise OutputError(
                f"{self.path}: {reason}", path=str(self.path), reason=reason
            ) from None

    def save(self, report: ExecutionReport) -> None:
        """Write a report, whose steps and segments are those of the plan.

        Raises:
            OutputError: if the file cannot be written.
        """
        document = {
            "format": _FORMAT,
            "version": _FORMAT_VERSION,
            "plan_digest": _digest(self.plan_file),
            "report": report.to_dict(),
            "plan": plan_to_dict(self.plan, with_timing=False),
        }
        write_json(self.path, document)


def load_record(path: Path, plan_file: Path) -> tuple[Plan, ExecutionReport]:
    """Read the executed plan and its report.

    Args:
        path: file of the report.
        plan_file: file of the plan of the command.

    Raises:
        MissingFileError: if there is no report.
        FileFormatError: if the file is not a report, or not of this plan.
    """
    limit = ReadingLimits().json_bytes
    document, _ = read_json(path, limit=limit, what="execution report")
    top = JsonNode(document, str(path))
    top.require_keys_among("format", "plan", "plan_digest", "report", "version")
    if top.get("format").value != _FORMAT or top.get("version").value != _FORMAT_VERSION:
        raise top.error(
            f"is not the report of an execution, '{_FORMAT}' of version {_FORMAT_VERSION}"
        )
    if top.get("plan_digest").value != _digest(plan_file):
        raise top.get("plan_digest").error(
            f"is the report of another plan: '{plan_file}' has changed since"
        )
    plan = plan_from_dict(top.get("plan").table(), source=str(path))
    return plan, _read_report(top.get("report"))


def _read_report(node: JsonNode) -> ExecutionReport:
    """Return the report of a document."""
    positions = node.get("positions")
    return ExecutionReport(
        complete_steps=node.get("complete_steps").integer(),
        steps=node.get("steps").integer(),
        status=ExecutionStatus(node.get("status").one_of([*ExecutionStatus])),
        message=node.get("message").text(),
        step=node.get("step").integer(),
        segment=node.get("segment").integer(),
        kind=node.get("kind").text(),
        time=node.get("time").number(),
        positions={name: positions.get(name).number() for name in positions.table()},
        is_at_rest=node.get("is_at_rest").flag(),
    )


def _digest(path: Path) -> str:
    """Return the digest of the content of a file."""
    data = read_bytes(
        path,
        limit=ReadingLimits().json_bytes,
        error=lambda reason: FileFormatError.at(path, reason),
    )
    return hashlib.sha256(data).hexdigest()
