#!/usr/bin/env bash
# Make the tables of docs/results/judges.md again:
#
#     tests/benchmarks/judges.sh FOLDER [kinder|motion|lagriffoul|pddlstream|ipc ...]
#
# Run it with the interpreter of an environment that has tmkit and its extra "test" on the path. FOLDER receives what the
# tables need: public repositories, the problems of MotionBenchMaker, and an environment for KinDER. What is in it is taken as
# it is, so copies serve where there is no network. All tables take about a day on two cores; each is written to
# docs/results/tables when it is complete.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tables=$here/../../docs/results/tables
mkdir -p "${1:?judges.sh FOLDER [NAME ...]}"
folder=$(cd "$1" && pwd)
shift
names=("$@")
[ $# -gt 0 ] || names=(kinder motion lagriffoul pddlstream ipc)

# clone REPOSITORY: of GitHub, into a folder of its own name.
clone() {
    local target
    target=$folder/$(basename "$1")
    [ -d "$target" ] || git clone --quiet --depth 1 --recurse-submodules --shallow-submodules "https://github.com/$1" "$target"
}

make_kinder() {
    clone Princeton-Robot-Planning-and-Learning/kinder-baselines
    [ -d "$folder/kinder" ] || "$here/kinder/install.sh" "$folder/kinder" "$folder/kinder-baselines"
    "$folder/kinder/bin/python" "$here/kinder/table.py" --planners tmkit bilevel --seeds 0:10 \
        --json "$folder/kinder.json" --out "$tables/kinder.md"
}

make_motion() {
    local sources=$folder/vamp_planner-0.6.4
    if [ ! -d "$sources" ]; then
        pip download --quiet --no-deps --no-binary :all: --dest "$folder" vamp-planner==0.6.4
        tar -xzf "$sources.tar.gz" -C "$folder"
        find "$sources/resources" -name problems.tar.bz2 -execdir tar -xjf {} \;
    fi
    python -c "import vamp" || pip install --quiet vamp-planner==0.6.4
    python "$here/search_table.py" "$sources/resources" --first 26 --problems 100 --out "$tables/search.md"
}

make_lagriffoul() {
    clone wbthomason-robotics/planet
    clone caelan/pybullet-planning
    local files
    mapfile -t files < <(find "$folder/planet" "$folder/pybullet-planning" -path '*clutter*.xml' -o -path '*tmp-benchmark-data*.xml' | sort)
    python "$here/lagriffoul_table.py" "${files[@]}" --seeds 3 --siblings 1 3 5 7 9 --out "$tables/lagriffoul.md"
}

make_pddlstream() {
    clone caelan/pddlstream
    clone caelan/pybullet-planning
    [ -x "$folder/pddlstream/downward/builds/release/bin/downward" ] || (cd "$folder/pddlstream" && downward/build.py)
    TMKIT_PDDLSTREAM=$folder/pddlstream python "$here/pddlstream_table.py" --out "$tables/pddlstream.md" \
        --files "$(find "$folder/pybullet-planning" -type d -path '*problems/json' | head -1)"
}

make_ipc() {
    clone aibasel/downward-benchmarks
    python "$here/ipc_table.py" "$folder/downward-benchmarks" --examples --out "$tables/ipc.md"
}

for name in "${names[@]}"; do
    printf '\n=== %s (%d s so far)\n' "$name" "$SECONDS"
    "make_$name"
done
