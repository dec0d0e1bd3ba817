#include "tmkit/kinematics.hpp"

#include "bindings.hpp"

namespace tmkit::bindings {

void bind_kinematics(nb::module_& m) {
    nb::class_<Kinematics>(m, "Kinematics", R"(A scene at a configuration: forward kinematics has run, the poses are there to read.

Made by ``scene.at(q)``. Immutable.)")
        .def_prop_ro("scene", [](const Kinematics& k) { return k.scene(); }, "The version of the scene.")
        .def_prop_ro("q", [](const Kinematics& k) { return make_array(k.q(), {k.q().size()}); }, "(n_joints,) configuration, read-only.")
        .def_prop_ro("poses", [](const Kinematics& k) {
            std::vector<double> rows(7 * k.size());
            for (std::size_t frame = 0; frame < k.size(); ++frame) {
                const Pose& pose = k.pose(static_cast<std::int32_t>(frame));
                std::copy(pose.translation.begin(), pose.translation.end(), rows.begin() + static_cast<std::ptrdiff_t>(7 * frame));
                std::copy(pose.quat_xyzw.begin(), pose.quat_xyzw.end(), rows.begin() + static_cast<std::ptrdiff_t>(7 * frame + 3));
            }
            return make_array(std::move(rows), {k.size(), 7});
        }, "(n, 7) x, y, z, qx, qy, qz, qw of each frame relative to its root, in frame_names order; read-only.")
        .def("pose", [](const Kinematics& k, std::string_view target, const std::optional<std::string_view>& reference) {
            return reference ? k.pose(target, *reference) : k.pose(target);
        }, nb::arg("target"), nb::arg("reference") = nb::none(), R"(Return reference_from_target; relative to the root when no reference is given.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames stand in different trees.)")
        .def("jacobian", [](const Kinematics& k, std::string_view frame, const std::optional<ArrayArgument>& point, const std::optional<std::string_view>& axes) {
            return make_array(k.jacobian(frame, point ? read_vector3(*point, "point") : Vector3{}, axes), {6, k.q().size()});
        }, nb::arg("frame"), nb::kw_only(), nb::arg("point") = nb::none(), nb::arg("axes") = nb::none(), R"(Return the Jacobian (6, n_joints) of a point fixed to a frame: J @ qdot is its velocity relative to the root.

Rows are linear (m/s of that point), then angular (rad/s). O(depth + n_joints).

Args:
    frame: the frame that carries the point.
    point: (3,) metres, in coordinates of the frame; its origin when left out.
    axes: the frame in whose axes the rows are expressed; the root when left out.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: ``axes`` stands in another tree.)")
        .def("__repr__", [](const Kinematics& k) {
            return "Kinematics(" + std::to_string(k.size()) + " frames, " + std::to_string(k.q().size()) + " joints)";
        });
}

}  // namespace tmkit::bindings
