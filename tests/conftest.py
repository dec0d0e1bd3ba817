"""Settings of the whole test suite: how hard hypothesis tries.

Profiles, chosen by the environment variable ``HYPOTHESIS_PROFILE``:

* ``default``: for development; random, so that every run looks somewhere
  else;
* ``ci``: fewer examples from a fixed seed, so that a run can be repeated: it tries the same ones
  each time;
* ``long``: for a night, or after a change to the core.

A test that needs another effort than the profile's scales it:
``@settings(max_examples=scaled_examples(0.2))``, from ``support.effort``.

No test depends on the clock: time limits guard against hangs only, searches without a plan end by
``max_iterations``.

Each test process has a separate folder for temporary files, which is empty after each module.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_HANG = 1200.0  # time limit of a test on a busy machine [s]

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("default", max_examples=100, **_COMMON)
settings.register_profile("ci", max_examples=40, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("long", max_examples=3000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A process that a shell starts in the background ignores SIGINT, and so do its children; tests of
# interrupts need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # likewise under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


_TEMPORARY = pytest.StashKey[tuple[str, str | None]]()
"""Folder of this process for temporary files, and the previous value of ``TMPDIR``."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep loaded scenes and temporary files in pytest's folders, not in the user's."""
    os.environ["TMKIT_CACHE"] = str(config.rootpath / ".pytest_cache" / "scenes")
    # tmp_path stays where it was
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    config.stash[_TEMPORARY] = tempfile.mkdtemp(prefix="tests-of-tmkit-"), os.environ.get("TMPDIR")
    os.chmod(config.stash[_TEMPORARY][0], 0o755)  # some tests read as another user
    os.environ["TMPDIR"] = tempfile.tempdir = config.stash[_TEMPORARY][0]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder for temporary files."""
    folder, before = config.stash[_TEMPORARY]
    tempfile.tempdir = None
    os.environ.pop("TMPDIR")
    if before is not None:
        os.environ["TMPDIR"] = before
    shutil.rmtree(folder)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, which finds nothing among them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """Use one process more than cores with ``-n auto``, since some tests wait for programs."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return cores + 1


@pytest.fixture(scope="module", autouse=True)
def _no_temporary_file_stays(pytestconfig: pytest.Config) -> Iterator[None]:
    """Require that the tests of a module and their programs leave no temporary file."""
    folder = pytestconfig.stash[_TEMPORARY][0]
    before = {*os.listdir(folder)}
    yield
    assert {*os.listdir(folder)} == before, f"tests of this module left temporary files in {folder}"


@pytest.fixture(scope="session", autouse=True)
def _no_default_time_limit() -> Iterator[None]:
    """Disable the time limit of plans, unless a test sets one, since other load slows them."""
    from tmkit.tamp import options

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "DEFAULT_TIME_LIMIT", _HANG)
        yield


_SHARING = ("manipulation", "plans", "simulation", "tamp", "visualization", "world")


@cache
def _loaded(*names: str) -> Any:
    from tmkit.formats import load_scene

    return load_scene(*names)


@pytest.fixture(scope="module", autouse=True)
def _scenes_are_shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Load a built-in scene once for all tests of users of scenes; other tests load it anew."""
    import tmkit as tk

    load = tk.load_scene

    def shared(*sources: Any, **options: Any) -> Any:
        is_builtin = all(isinstance(source, str) and source.isidentifier() for source in sources)
        return _loaded(*sources) if is_builtin and not options else load(*sources, **options)

    with pytest.MonkeyPatch.context() as patch:
        if any(f"tests/{folder}/" in request.path.as_posix() for folder in _SHARING):
            patch.setattr(tk, "load_scene", shared)
        yield
