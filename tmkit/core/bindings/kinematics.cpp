#include "tmkit/kinematics.hpp"

#include "bindings.hpp"

namespace tmkit::bindings {

void bind_kinematics(nb::module_& m) {
    nb::class_<Kinematics>(m, "Kinematics", R"(A scene at a configuration: forward kinematics has run, the poses are there to read.

Made by ``scene.at(q)``. Immutable.)")
        .def_prop_ro("scene", [](const Kinematics& k) { return k.scene(); }, "The version of the scene.")
        .def_prop_ro("q", [](const Kinematics& k) { return make_array(k.q(), {k.q().size()}); }, "(n_joints,) configuration, read-only.")
        .def_prop_ro("poses", [](const Kinematics& k) {
            std::vector<double> rows;
            rows.reserve(7 * k.poses().size());
            for (const Pose& pose : k.poses()) {
                rows.insert(rows.end(), pose.translation.begin(), pose.translation.end());
                rows.insert(rows.end(), pose.quat_xyzw.begin(), pose.quat_xyzw.end());
            }
            return make_array(std::move(rows), {k.poses().size(), 7});
        }, "(n, 7) x, y, z, qx, qy, qz, qw of each frame relative to its root, in frame_names order; read-only.")
        .def("pose", [](const Kinematics& k, const std::string& target, const std::optional<std::string>& reference) {
            return reference ? k.pose(target, *reference) : k.pose(target);
        }, nb::arg("target"), nb::arg("reference") = nb::none(), R"(Return reference_from_target; relative to the root when no reference is given.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames stand in different trees.)")
        .def("jacobian", [](const Kinematics& k, const std::string& frame) { return make_array(k.jacobian(frame), {6, k.q().size()}); },
             nb::arg("frame"), R"(Return the Jacobian (6, n_joints) of a frame's origin: its twist is J @ qdot.

Rows are linear (m), then angular (rad), expressed in the axes of the root. O(depth + n_joints).

Raises:
    UnknownNameError: no such frame.)")
        .def("__repr__", [](const Kinematics& k) {
            return "Kinematics(" + std::to_string(k.poses().size()) + " frames, " + std::to_string(k.q().size()) + " joints)";
        });
}

}  // namespace tmkit::bindings
