"""The browser of the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.browser import open_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start one browser for all pages of a module: its start takes as long as a page."""
    with open_browser() as browser:
        yield browser
