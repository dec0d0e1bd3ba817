#!/usr/bin/env bash
# Run pytest against a core that is built with the address and undefined-behaviour sanitizers, bindings and nanobind included:
#
#     tools/sanitized_tests.sh [BUILD_FOLDER [PYTEST_ARGUMENT ...]]
#
# Without arguments it runs a slice: what damages pickles, runs code within arguments, overflows, and edits scenes and arrays;
# and it fuzzes pickles for a while. BUILD_FOLDER is made unless it is there, and kept; without one, a temporary folder is used.
# Wants an environment with the requirements of the tests and those of the build (CONTRIBUTING.md).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=${1:-$work/build}
[ $# -gt 0 ] && shift
slice=(tests/graph/test_unpickling.py tests/graph/test_arguments_that_run_code.py tests/graph/test_overflow.py
    tests/graph/test_arrays_edges.py tests/graph/test_stamped_poses.py tests/graph/test_uncertain_twists.py tests/spatial/test_pose.py)

begin=$SECONDS
if [ ! -e "$build/CMakeCache.txt" ]; then
    cmake -G Ninja -S "$root" -B "$build" -DTMKIT_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=Debug \
        -DPython_EXECUTABLE="$(command -v python)" > "$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
fi
cmake --build "$build" --target _core > "$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
cmake --install "$build" --prefix "$work/site" > "$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
cp -r "$root/tmkit" "$work/"
rm -rf "$work/tmkit/core"
cp -r "$work/tmkit/." "$work/site/tmkit/"
# An editable install would be found before the folders of PYTHONPATH.
cat > "$work/site/sitecustomize.py" <<'PYTHON'
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
PYTHON
echo "--- sanitized core built in $((SECONDS - begin)) s"

# The runtime of the sanitizers comes first, and with it what it intercepts; Python's own memory is never freed at exit.
export LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export PYTHONPATH="$work/site:$root/tests/fuzz" PYTHONSAFEPATH=1 PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1
cd "$root"
python -c 'import tmkit._core as core, sys; sys.exit(not core.__file__.startswith(sys.argv[1]))' "$work/site"
begin=$SECONDS
if [ $# -gt 0 ]; then
    python -m pytest -q -p no:cacheprovider "$@"
else
    python -m pytest -q -p no:cacheprovider "${slice[@]}"
    python tests/fuzz/fuzz_pickle.py --inputs 200 --seed 1 --timeout 120 --memory 33554432 --findings "$work/findings"
fi
echo "--- sanitized tests passed in $((SECONDS - begin)) s"
