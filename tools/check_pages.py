"""Check links and search of the built pages: ``python tools/check_pages.py FOLDER [PREFIX]``.

It reads the HTML that Sphinx wrote and needs no network: every link, picture, script, frame and
anchor that leads to the pages themselves must be there; addresses elsewhere are not followed. Pages
that were built for a host have absolute paths below a PREFIX, such as ``/tmkit/0.1.0/``, in their
404 page. With playwright and Debian's chromium, frequent searches must find their page first. It
ends with 1 when a link is broken or a search finds another page first.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

SEARCHES = {
    "MoveIt": "reference/glossary.html",
    "PDDLStream": "howto/streams.html",
    "grasp": "howto/samplers.html",
    "calibration": "concepts/uncertainty.html",
    "xacro": "reference/scenes.html",
}
"""The page that a search finds first, by its words."""


class _Page(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[tuple[str, int]] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the target of the tag, and the anchors that it defines."""
        for name, value in attrs:
            if (
                name in ("href", "src", "poster", "data")
                and value
                and not (tag == "link" and name == "canonical")
            ):
                self.addresses.append((value, self.getpos()[0]))
            elif name in ("id", "name") and value:
                self.anchors.add(value)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken_links(folder: Path, *, prefix: str = "/") -> tuple[list[str], int]:
    """Return the broken links of the pages as ``page:line: address``, and the number of links.

    Args:
        folder: the pages.
        prefix: beginning of absolute paths of the pages.
    """
    broken, followed = [], 0
    for path in sorted(folder.rglob("*.html")):
        if "notebooks" in path.relative_to(folder).parts[:-1]:
            continue  # files written by tutorials are tested there
        for address, line in _read(path).addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            start = folder if parts.path.startswith("/") else path.parent
            target = (
                (start / unquote(parts.path).removeprefix(prefix)).resolve() if parts.path else path
            )
            target = target / "index.html" if target.is_dir() else target
            is_there = target.is_file() and target.is_relative_to(folder)
            if is_there and parts.fragment and target.suffix == ".html":
                is_there = unquote(parts.fragment) in _read(target).anchors
            if not is_there:
                broken.append(f"{path.relative_to(folder)}:{line}: {address}")
    return broken, followed


def wrong_searches(browser: Any, folder: Path, searches: Mapping[str, str]) -> list[str]:
    """Return the searches of the pages that find another page first.

    Args:
        browser: a browser of playwright.
        folder: the pages.
        searches: file of the expected page by the words of a search.
    """
    wrong = []
    page = browser.new_page()
    for words, expected in searches.items():
        page.goto(f"{(folder / 'search.html').as_uri()}?q={quote(words)}")
        page.wait_for_function("document.querySelector('.search-summary')?.textContent.trim()")
        results = page.locator("ul.search li a")
        first = results.first.get_attribute("href") if results.count() else "no page"
        if first.partition("#")[0] != expected:
            wrong.append(f"search for {words!r}: finds {first} first, expected {expected}")
    page.close()
    return wrong


def _check_searches(folder: Path) -> list[str]:
    """Return the wrong searches; without a browser none, and print what is missing."""
    chromium = shutil.which("chromium")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        sys.stdout.write("searches not checked: they need playwright and Debian's chromium\n")
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        wrong = wrong_searches(browser, folder, SEARCHES)
        browser.close()
    sys.stdout.write(f"{len(SEARCHES)} searches, {len(wrong)} wrong\n")
    return wrong


def main() -> int:
    """Print the broken links and the wrong searches."""
    folder = Path(sys.argv[1]).resolve()
    broken, followed = broken_links(folder, prefix=(sys.argv[2:] or ["/"])[0])
    sys.stdout.write(f"{followed} links inside the pages, {len(broken)} broken\n")
    wrong = broken + _check_searches(folder)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong or not followed else 0


if __name__ == "__main__":
    sys.exit(main())
