"""Sources of joint states and objects, tested in the environment of ROS 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Ros

FILES = sorted(
    file.name
    for file in (Path(__file__).parent / "inside").glob("*.py")
    if file.name not in ("conftest.py", "publishers.py")
)


@pytest.mark.parametrize("file", FILES)
def test_sources(file: str, ros: Ros) -> None:
    """All tests of a file pass there."""
    ros.test(file)
