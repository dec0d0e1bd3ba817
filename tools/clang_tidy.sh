#!/usr/bin/env bash
# Look for mistakes in the core with clang-tidy, by .clang-tidy; some 80 seconds of one core, since sources that are
# compiled together are read together. Arguments: parts of names of what is looked at (graph, motion, _core); all without.
# Wants clang-tidy; what a build of the core needs is installed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pip install --quiet "libcoal[build]>=3.0.2,<3.1" cmeel-eigen "cmeel[build]" "nanobind>=3,<4" cmake ninja
cmake -G Ninja -S "$root" -B "$work" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }

wanted=$(IFS='|'; echo "${*:-.}")
python - "$work" "$wanted" <<'PYTHON' | xargs -n 1 clang-tidy --quiet -p "$work" --config-file="$root/.clang-tidy"
import json, re, sys

folder, wanted = sys.argv[1:]
for entry in json.load(open(f"{folder}/compile_commands.json")):
    if "nanobind" not in entry["file"] and re.search(wanted, entry["output"]):
        print(entry["file"])
PYTHON
