"""Robots that come from packages which need not be there."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from tmkit.formats.mesh.package_uris import PackageResolver

__all__ = ["example_robot", "require_robot"]

_FROM_EXAMPLE_ROBOT_DATA = ("ur5", "baxter")


def require_robot(robot: str) -> None:
    """Skip the test when the package that describes a robot is not there."""
    if robot in _FROM_EXAMPLE_ROBOT_DATA:
        try:
            importlib.metadata.distribution("example-robot-data")
        except importlib.metadata.PackageNotFoundError:
            pytest.skip("needs example-robot-data")


def example_robot(path: str) -> Path:
    """Return a file of example-robot-data; skip the test when it is not there.

    Args:
        path: below its folder ``robots``.
    """
    path_or_none = PackageResolver().find(f"package://example-robot-data/robots/{path}")
    if path_or_none is None:
        pytest.skip("needs example-robot-data")
    return path_or_none
