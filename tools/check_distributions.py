"""Check of the contents of a wheel and an sdist: ``check_distributions.py WHEEL SDIST``.

The wheel contains the package with its type information, the built-in domains and scenes, the core
with its libraries, and nothing else (no tests, no C++). The source distribution contains every file
of the repository.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ("domains/", "scenes/", "examples/cell/", "examples/trays/")
BUILT = re.compile(r"tmkit/_core\.[^/]+\.so|tmkit/_libraries/libtmkit-[^/]+|[^/]+\.dist-info/.+")

LICENCES = "LICENSES_OF_LIBRARIES.txt"
# how the names begin of the libraries in that file
LICENSED = ("assimp", "boost", "coal", "octoma", "qhull", "z.")


def tracked_files() -> set[str]:
    """Return the files that git tracks, and those that it would; without git, all."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        return {str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()}
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


def wanted_in_wheel(files: set[str]) -> set[str]:
    """Return the paths in the wheel of the repository's files that belong into it."""
    package = {
        name for name in files if name.startswith("tmkit/") and not name.startswith("tmkit/core/")
    }
    return package | {f"tmkit/data_files/{name}" for name in files if name.startswith(DATA)}


def problems(wheel: Path, sdist: Path) -> Iterator[str]:
    """Yield the faults of the two files."""
    files = tracked_files()
    with zipfile.ZipFile(wheel) as archive:
        contained = {name for name in archive.namelist() if not name.endswith("/")}
    wanted = wanted_in_wheel(files)
    built = {name for name in contained if BUILT.fullmatch(name)}
    yield from (f"{wheel.name} lacks {name}" for name in sorted(wanted - contained))
    yield from (
        f"{wheel.name} should not contain {name}" for name in sorted(contained - wanted - built)
    )
    for part in ("tmkit/_core.", "tmkit/_libraries/libtmkit-coal."):
        if not any(name.startswith(part) for name in built):
            yield f"{wheel.name} lacks {part}*"
    libraries = {name.partition("/libtmkit-")[2] for name in built if "/_libraries/" in name}
    yield from (
        f"{LICENCES} lacks {name}" for name in sorted(libraries) if not name.startswith(LICENSED)
    )
    if not any(name.endswith(f".dist-info/licenses/{LICENCES}") for name in built):
        yield f"{wheel.name} lacks {LICENCES}"
    if "manylinux" not in wheel.name:
        yield f"{wheel.name} is not tagged for several Linux distributions"
    with tarfile.open(sdist) as archive:
        contained = {name.partition("/")[2] for name in archive.getnames()}
        sources = {
            name.partition("/")[2]
            for name in archive.getnames()
            if archive.getmember(name).isfile()
        }
    yield from (f"{sdist.name} lacks {name}" for name in sorted(files - contained))
    yield from (
        f"{sdist.name} should not contain {name}" for name in sorted(sources - files - {"PKG-INFO"})
    )


if __name__ == "__main__":
    faults = list(problems(*map(Path, sys.argv[1:])))
    sys.exit("\n".join(faults) or 0)
