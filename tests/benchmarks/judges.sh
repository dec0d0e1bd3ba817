#!/usr/bin/env bash
# Make the tables of docs/results/judges.md again:
#
#     tests/benchmarks/judges.sh [--trial] FOLDER [kinder|motion|lagriffoul|pddlstream|ipc ...]
#
# Run it with the interpreter of an environment that has tmkit and its extra "test" on the path. FOLDER receives what the
# tables need: public repositories, the problems of MotionBenchMaker, and an environment for KinDER. What is in it is taken as
# it is, so copies serve where there is no network. All tables take about a day on two cores; each is written to
# docs/results/tables when it is complete.
#
# --trial runs few problems once, in minutes, and writes the tables to FOLDER/trial. Without names it omits KinDER, whose
# small form is "kinder/table.py --environments NAME --seeds 0:1".
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tables=$here/../../docs/results/tables
all=(kinder motion lagriffoul pddlstream ipc)
trial=
if [ "${1:-}" = --trial ]; then
    trial=yes
    shift
fi
usage="judges.sh [--trial] FOLDER [NAME ...]"
case ${1:-} in -*) echo "usage: $usage" >&2 && exit 2 ;; esac
target=${1:?"$usage"}
shift
for name in "$@"; do
    case " ${all[*]} " in
        *" $name "*) ;;
        *) echo "judges.sh: no table '$name'; expected ${all[*]}" >&2 && exit 2 ;;
    esac
done
mkdir -p "$target"
folder=$(cd "$target" && pwd)
names=("$@")
[ $# -gt 0 ] || names=("${all[@]}")
if [ -n "$trial" ]; then
    tables=$folder/trial
    mkdir -p "$tables"
    [ $# -gt 0 ] || names=("${all[@]:1}")
fi

# in_trial ARGUMENT...: print arguments, one a line, in a trial only. Later options replace earlier ones.
in_trial() {
    [ -z "$trial" ] || printf '%s\n' "$@"
}

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
    python -c "import vamp" 2> /dev/null || pip install --quiet vamp-planner==0.6.4
    local small
    mapfile -t small < <(in_trial --robots panda --sets table_pick --problems 27 --rounds 1)
    python "$here/search_table.py" "$sources/resources" --first 26 --problems 100 "${small[@]}" --out "$tables/search.md"
}

make_lagriffoul() {
    clone wbthomason-robotics/planet
    clone caelan/pybullet-planning
    local files small
    mapfile -t files < <(
        find -L "$folder/pybullet-planning" -path '*/tmp-benchmark-data/*.xml' | sort -V
        find -L "$folder/planet" -regex '.*/clutter_[0-9]+\.xml' | sort -V
    )
    [ -z "$trial" ] || files=("${files[0]}" "${files[-1]}")
    mapfile -t small < <(in_trial --siblings 1 --sticks 6)
    python "$here/lagriffoul_table.py" "${files[@]}" --siblings 1 3 5 --seconds 120 "${small[@]}" --out "$tables/lagriffoul.md"
}

make_pddlstream() {
    clone caelan/pddlstream
    clone caelan/pybullet-planning
    local small
    mapfile -t small < <(in_trial rearrangement/swap simple.json --seeds 1)
    TMKIT_PDDLSTREAM=$folder/pddlstream python "$here/pddlstream_table.py" --out "$tables/pddlstream.md" \
        --files "$(find -L "$folder/pybullet-planning" -type d -path '*problems/json' | head -1)" "${small[@]}"
}

make_ipc() {
    clone aibasel/downward-benchmarks
    clone aiplan4eu/unified-planning
    local folders=("$folder/unified-planning" "$folder/downward-benchmarks") small
    [ -z "$trial" ] || folders=("$folder/unified-planning/unified_planning/test/pddl/depot" "$folder/downward-benchmarks/gripper")
    mapfile -t small < <(in_trial --seconds 5)
    [ -n "$trial" ] || small=(--examples)
    python "$here/ipc_table.py" "${folders[@]}" --sizes 0 --seconds 20 "${small[@]}" --out "$tables/ipc.md"
}

for name in "${names[@]}"; do
    printf '\n=== %s (%d s so far)\n' "$name" "$SECONDS"
    "make_$name"
done
