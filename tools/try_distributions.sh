#!/usr/bin/env bash
# Run the README's commands in an empty Debian, from the files of a release, without the repository:
#
#     sudo tools/try_distributions.sh DIST [tests]
#
# DIST is the folder that tools/build_wheel.sh wrote. The system has Python and nothing else when the wheel is installed and
# demonstrated; a compiler is added for the source distribution. With "tests", the README's command for the tests runs too
# (half an hour on two cores). Needs debootstrap, and access to a mirror of Debian and a package index; PIP_CONFIG_FILE names
# the settings of pip that the new system uses, if any.
set -euo pipefail

dist=$(cd "${1:?the folder with the wheel and the source distribution}" && pwd)
tests=${2:-}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

step() { printf '\n=== %s (%d s so far)\n' "$1" "$SECONDS"; }
# inside COMMANDS: in the new system, with its own processes and mounts, which end with it.
inside() {
    unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
        mount -t proc proc "$0/proc"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
        mount -t tmpfs tmpfs "$0/dev/shm"
        exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 bash -euo pipefail -c "$1"
    ' "$root" "$1"
}

step "an empty Debian with Python"
debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm "$root" > "$root.log" 2>&1 || { cat "$root.log"; exit 1; }
rm "$root.log"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
if [ -n "${PIP_CONFIG_FILE:-}" ]; then cp "$PIP_CONFIG_FILE" "$root/etc/pip.conf"; fi
mkdir "$root/dist"
cp "$dist"/*.whl "$dist"/*.tar.gz "$root/dist/"

step "the wheel: installed, demonstrated, checked"
inside 'if type -P gcc g++ c++ cmake git; then exit 1; fi
    python3 -m venv /plain && source /plain/bin/activate && cd /root
    pip install --quiet /dist/*.whl && tmkit demo --out demo && tmkit check demo/plan.json'

step "the source distribution: the README's first command"
inside 'apt-get update -qq && apt-get install -y -qq --no-install-recommends g++ python3-dev > /var/log/compiler
    mkdir /source && tar -xzf /dist/*.tar.gz -C /source --strip-components=1
    python3 -m venv /full && source /full/bin/activate && cd /source
    command=$(awk "/^<!-- ci: demo -->/ { found = 1 } found && /^pip/ { print; exit }" README.md)
    echo "$command" && eval "$command"'

if [ "$tests" = tests ]; then
    step "the source distribution: the README's command for the tests"
    inside 'source /full/bin/activate && cd /source
        command=$(awk "/^<!-- ci: test -->/ { found = 1 } found && /^pytest/ { print; exit }" README.md)
        echo "$command" && eval "$command"'
fi
step "done"
