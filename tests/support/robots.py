"""Robots that come from packages which need not be there."""

from __future__ import annotations

import importlib.metadata

import pytest

__all__ = ["require_robot"]

_FROM_EXAMPLE_ROBOT_DATA = ("ur5", "baxter")


def require_robot(robot: str) -> None:
    """Skip the test when the package that describes a robot is not there."""
    if robot in _FROM_EXAMPLE_ROBOT_DATA:
        try:
            importlib.metadata.distribution("example-robot-data")
        except importlib.metadata.PackageNotFoundError:
            pytest.skip("needs example-robot-data")
