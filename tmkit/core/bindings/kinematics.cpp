#include "tmkit/kinematics.hpp"

#include "bindings.hpp"

namespace tmkit::bindings {

namespace {

void bind_kinematics_poses(nb::class_<Kinematics>& cls) {
    cls.def_prop_ro("scene", [](const Kinematics& k) { return k.scene(); }, "The version of the scene.")
        .def_prop_ro("q", [](const Kinematics& k) { return make_array(k.q()); },
                     "(n_joints,) configuration, read-only.")
        .def_prop_ro("qd",
                     [](const Kinematics& k) -> std::optional<ReadOnlyArray> {
        if (k.qd().size() != k.q().size()) return std::nullopt;
        return make_array(k.qd());
    }, "(n_joints,) velocities of the joints, read-only; None when none were given.")
        .def_prop_ro("poses", [](const Kinematics& k) {
        std::vector<double> rows(7 * k.size());
        for (std::size_t frame = 0; frame < k.size(); ++frame)
            write_pose(&rows[7 * frame], k.pose(static_cast<std::int32_t>(frame)));
        return make_rows(std::move(rows), 7);
    }, "(n, 7) x, y, z, qx, qy, qz, qw of each frame relative to its root, in frame_names order; read-only.");
    cls.def("pose",
            [](const Kinematics& k, std::string_view frame, const OptionalName& relative_to) {
        return in_range(relative_to ? k.pose(frame, *relative_to) : k.pose(frame));
    }, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(),
            R"(Return the pose of one frame relative to another at this configuration: relative_to_from_frame.

Args:)" POSE_ARGS NO_PATH)
        .def("jacobian",
             [](const Kinematics& k, std::string_view frame, const OptionalArray& point, const OptionalName& axes) {
        return make_array(k.jacobian(frame, point ? read_vector3(*point, "point") : Vector3{}, axes),
                          {6, k.q().size()});
    }, "frame"_a, nb::kw_only(), "point"_a = nb::none(), "axes"_a = nb::none(),
             R"(Return the Jacobian (6, n_joints) of a point fixed to a frame. O(depth + n_joints).

``J @ qdot`` is the velocity of the point relative to the root: rows are linear (m/s), then angular (rad/s).

Args:
    frame: the frame that carries the point.
    point: (3,) metres, in coordinates of the frame; its origin if omitted.
    axes: the frame in whose axes the rows are expressed; the root if omitted.)" NO_FRAME R"(
    DisconnectedError: ``axes`` is in another tree.)");
}

}  // namespace

void bind_kinematics(nb::module_& m) {
    nb::class_<Kinematics> cls(m, "Kinematics", nb::is_weak_referenceable(),
                               R"(A scene at a configuration: forward kinematics has run, the poses are there to read.

Made by ``scene.at(q)``. Immutable.)");
    bind_kinematics_poses(cls);
    cls.def("twist",
            [](const Kinematics& k, std::string_view frame, const OptionalName& relative_to, const OptionalName& axes) {
        if (k.qd().size() != k.q().size())
            throw Error(ErrorKind::configuration, "a twist needs the velocities of the joints: scene.at(q, qd)");
        const SceneGraph& scene = k.scene();
        const std::string_view from = reference_frame(scene, frame, relative_to);
        return make_array(k.twist(frame, from, axes ? *axes : from));
    }, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "axes"_a = nb::none(),
            R"(Return the twist (6,) of one frame relative to another: by joints, and by twist edges. O(depth).

Where a twist edge says how a frame on the way moves, that counts; elsewhere the joints move as ``qd`` says, and fixed
and free edges do not. With t twist edges on the way O(t depth).

Linear part (m/s) of the frame's origin, then angular part (rad/s). In the notation of relations it is
``(frame|its body, body of relative_to, [axes])``.

Args:
    frame: the frame whose body moves, and whose origin is the point.
    relative_to: a frame of the body relative to which it moves; the root of its tree if omitted.
    axes: the frame in whose axes the numbers are; ``relative_to`` if omitted, ``frame`` for the body-fixed twist.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: the configuration has no velocities, as ``scene.at(q)`` without ``qd``.
    SceneError: twist edges lead over an edge on the way, and do not say how that moves.)")
        .def("__repr__",
             [](const Kinematics& k) { return formatted("Kinematics({} frames, {} joints)", k.size(), k.q().size()); });
}

}  // namespace tmkit::bindings
