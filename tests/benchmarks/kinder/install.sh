#!/usr/bin/env bash
# install.sh FOLDER [BASELINES]: an environment with KinDER above that of the active interpreter,
# which has tmkit and its tests; BASELINES is a clone of kinder-baselines, for its bilevel planner
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?install.sh FOLDER [BASELINES]}
below=$(python -c "import sysconfig; print(sysconfig.get_path('purelib'))")
python -m venv --without-pip "$folder"
site=$("$folder/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
echo "import site; site.addsitedir('$below')" > "$site/zz_below.pth"
python -m pip --python "$folder/bin/python" install --no-deps -r "$here/requirements.txt"
if [ $# -gt 1 ]; then
    baselines=$(cd "$2" && pwd)
    printf '%s\n' "$baselines/kinder-models/src" "$baselines/kinder-bilevel-planning/src" \
        > "$site/baselines.pth"
fi
