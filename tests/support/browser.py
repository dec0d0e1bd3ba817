"""Chromium of Debian, controlled by playwright, for tests of pages; skipped where it is absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

# Without the switches after the first, chromium draws with SwiftShader, several times slower than
# Mesa's llvmpipe.
_SWITCHES = ("--no-sandbox", "--use-gl=angle", "--use-angle=gl-egl", "--ignore-gpu-blocklist")
_TIMEOUT = 120_000  # milliseconds: a machine may be busy

_NODE_POSES = """names => Object.fromEntries(names.map(name => {
    const node = window.__viserMutable.nodeRefFromName['/bodies/' + name];
    return [name, [...node.position.toArray(), ...node.quaternion.toArray()]];
}))"""
_TWO_FRAMES = (
    "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>"
    " done(true))))"
)


@contextmanager
def short_temporary_folder() -> Iterator[None]:
    """Create sockets below /tmp, since the path of a socket has at most 107 bytes."""
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="browser-", dir="/tmp") as folder:
        os.environ["TMPDIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before


@contextmanager
def open_browser() -> Iterator[Any]:
    """Start a browser without pages; the test is skipped without chromium or playwright."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the tests of pages need playwright"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("the tests of pages need Debian's chromium: apt-get install chromium")
    with short_temporary_folder(), playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(_SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(
    browser: Any, url: str, *, width: int = 640, height: int = 400
) -> Iterator[tuple[Any, list[str], list[str]]]:
    """Open a page of a scene in a new session; yield it with lists of its errors and requests."""
    page = browser.new_page(viewport={"width": width, "height": height})
    try:
        page.set_default_timeout(_TIMEOUT)
        errors: list[str] = []
        requests: list[str] = []
        page.on(
            "console",
            lambda message: errors.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: errors.append(str(error)))
        # A blob is content of the page itself, such as its lighting.
        page.on(
            "request",
            lambda request: request.url.startswith("blob:") or requests.append(request.url),
        )
        page.goto(url)
        page.wait_for_function("window.tmkit && window.tmkit.ready")
        yield page, errors, requests
    finally:
        page.close()


def drawn_poses(page: Any, frames: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Return the poses (7,) of the nodes of frames as they are drawn: x, y, z, qx, qy, qz, qw."""
    page.evaluate(_TWO_FRAMES)
    poses = page.evaluate(_NODE_POSES, list(frames))
    return {name: np.array(pose) for name, pose in poses.items()}


def distance(drawn: NDArray[np.float64], pose: Any) -> float:
    """Return the largest difference between a drawn pose (7,) and a pose, over all components."""
    sign = np.copysign(1.0, drawn[3:] @ pose.quat_xyzw)  # q and -q are one rotation
    return float(
        np.max(
            np.abs(
                np.concatenate([drawn[:3] - pose.translation, sign * drawn[3:] - pose.quat_xyzw])
            )
        )
    )
