// Poses and twists between frames, each query bound once for scenes and for arrays; errors,
// samples; Kinematics.
#include "edits.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_gaussian.hpp"

#define POSE_FRAMES                                                                               \
    "\n    frame: the frame whose pose is returned."                                              \
    "\n    relative_to: the reference frame, in whose axes the coordinates are; the root of its " \
    "tree if omitted."
#define BAD_Q                                                                                    \
    "\n    ConfigurationError: {if a joint is on the path and q is missing, or q has the wrong " \
    "length|if q has the wrong"                                                                  \
    " length} or non-finite numbers."
#define Q_OR_PRESENT                                                                           \
    "\n    q: (n_joints,) configuration [rad or m]; {optional if no joint is on the path|the " \
    "present one if omitted}."

namespace tmkit::bindings {
namespace {

// The reference frame and the configuration as arguments of scenes and arrays.
std::string_view reference_of(const SceneGraph& scene, std::string_view frame,
                              const OptionalName& relative_to) {
    return reference_frame(scene, frame, relative_to);
}
const OptionalName& reference_of(const SceneArrays&, std::string_view,
                                 const OptionalName& relative_to) {
    return relative_to;
}

template <class Scene> void bind_poses(nb::class_<Scene>& cls) {
    cls.def("pose",
            [](const Scene& s, std::string_view frame, const OptionalName& relative_to,
               const OptionalArray& q) {
        return in_range(s.pose(frame, reference_of(s, frame, relative_to), At<Scene>(q, s).get()));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "q"_a = nb::none(),
            text_for<Scene>("Return the pose of one frame relative to another: "
                            "relative_to_from_frame.{ O(depth log n).|"
                            R"(

O(depth); O(1) without relative_to and q. The same bits as ``SceneGraph.pose`` at this
configuration.}

Args:)" POSE_FRAMES Q_OR_PRESENT NO_PATH BAD_Q));
    cls.def("pose",
            [](const Scene& s, std::string_view frame, const OptionalName& relative_to,
               const NumberArgument& stamp, const OptionalArray& q, std::string_view policy) {
        return in_range(s.pose(frame, reference_of(s, frame, relative_to), At<Scene>(q, s).get(),
                               {read_stamp(stamp), stamp_policy(policy)}));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "stamp"_a, "q"_a = nb::none(),
            "policy"_a = "interpolated",
            text_for<Scene>(
                R"(Return the pose of one frame relative to another at a time, by stamped poses.

{O(depth log n).|O(depth + poses of the edges). The same bits as ``SceneGraph.pose`` for this
configuration and stamp.} Edges without stamped poses have their pose; joints are at q.

Args:)" POSE_FRAMES R"(
    stamp: time of the pose [s].)" Q_OR_PRESENT R"(
    policy: between two stamps, the pose of the ``closest`` (of two equally near, the newer) or of
        the ``preceding`` stamp, or an ``interpolated`` one: the origin along a straight line, the
        orientation along the shorter arc. ``screw`` interpolates with a constant twist. ``clamped``
        interpolates, and outside of a history returns the pose at its nearer end.

Raises:
    UnknownNameError: if a frame or the policy is unknown.
    DisconnectedError: if the frames are in different trees.
    StampError: if the stamp is outside the history of an edge on the path, and the policy is not
        ``clamped``.)" BAD_Q));
}

GaussianPose gaussian(const SceneGraph& scene, std::string_view frame, std::string_view reference,
                      const double* q) {
    return gaussian_pose(scene, frame, reference, q);
}
GaussianPose gaussian(SceneArrays& arrays, std::string_view frame, const OptionalName& reference,
                      const SceneArrays::Configuration& q) {
    return arrays.gaussian_pose(frame, reference, q);
}

template <class Scene> void bind_standard_deviations(nb::class_<Scene>& cls) {
    cls.def(
        "standard_deviation",
        [](Scene& s, std::string_view frame, const OptionalName& relative_to,
           const OptionalArray& q) {
        const GaussianPose pose = in_range(
            gaussian(s, frame, reference_of(s, frame, relative_to), At<Scene>(q, s).get()));
        const Matrix6 covariance = pose.covariance.matrix();
        Vector6 deviation;
        for (std::size_t k = 0; k < 6; ++k)
            deviation[k] = std::sqrt(std::max(0.0, covariance[7 * k]));
        return make_array(deviation);
    },
        "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "q"_a = nb::none(),
        text_for<Scene>("Return (6,) the standard deviations of the pose of one frame relative to "
                        "another.{ O(depth log n).|"
                        R"(

O(depth). The same bits as ``SceneGraph.standard_deviation``. For the writer, since it uses the
arrays' scratch.}

These are the square roots of the diagonal of ``gaussian_pose(...).covariance``, to first order:
along x, y and z [m], then about x, y and z [rad], in the axes of the frame. The norm of the first
three numbers is the root-mean-square error of the position, which is the same in all axes.

Args:)" POSE_ARGS Q_OR_PRESENT R"(

Returns:
    (6,) deviations [m, rad], read-only; 0 if the pose is exact.)" NO_PATH BAD_Q
                        "{|\n    ConcurrentWriteError: if another thread is writing.}"));
}

template <class Scene> void bind_uncertain_poses_and_twists(nb::class_<Scene>& cls) {
    cls.def("gaussian_pose",
            [](Scene& s, std::string_view frame, const OptionalName& relative_to,
               const OptionalArray& q) {
        return in_range(
            gaussian(s, frame, reference_of(s, frame, relative_to), At<Scene>(q, s).get()));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "q"_a = nb::none(),
            text_for<Scene>("Return the pose of one frame relative to another with its "
                            "covariance.{ O(depth log n).|"
                            R"(

O(depth). The same bits as ``SceneGraph.gaussian_pose``. For the writer, since it uses the arrays'
scratch.}

The covariance is of first order in the errors of the edges on the path, with all their
correlations, in the axes of the frame. See ``sample_poses`` for errors that are too large for first
order.

Args:)" POSE_ARGS Q_OR_PRESENT R"(

Returns:
    relative_to_from_frame.)" NO_PATH BAD_Q
                            "{|\n    ConcurrentWriteError: if another thread is writing.}"));
    cls.def("twist_from_stamps",
            [](const Scene& s, std::string_view frame, const OptionalName& relative_to,
               const NumberArgument& first, const NumberArgument& second, const OptionalArray& q,
               std::string_view policy) {
        return make_array(s.twist_from_stamps(
            frame, reference_of(s, frame, relative_to), read_stamp(first, "first"),
            read_stamp(second, "second"), At<Scene>(q, s).get(), stamp_policy(policy)));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "first"_a, "second"_a,
            "q"_a = nb::none(), "policy"_a = "interpolated",
            text_for<Scene>(
                R"(Return (6,) the constant twist of a frame relative to another between two stamps.

It moves the pose at the first stamp to that at the second. It is the twist of the frame's body, at
the frame's origin and in its axes, linear part first [m/s, rad/s]: an argument of ``set_twist``,
relative to the body of ``relative_to``.

Args:
    frame: the frame that moves.
    relative_to: the reference frame; the root of its tree if omitted.
    first: stamp of the first pose [s].
    second: a later stamp [s].)" Q_OR_PRESENT R"(
    policy: for stamps between those of the histories; see ``pose``.

Raises:
    StampError: if the second stamp is not later, or one is outside a history on the path.
    UnknownNameError, DisconnectedError, ConfigurationError: if ``pose`` raises it.)"));
}

}  // namespace

template <class Scene> void bind_pose_queries(nb::class_<Scene>& cls) {
    bind_poses(cls);
    bind_uncertain_poses_and_twists(cls);
    bind_standard_deviations(cls);
}
template void bind_pose_queries(nb::class_<SceneGraph>& cls);
template void bind_pose_queries(nb::class_<SceneArrays>& cls);

// --- scenes at a configuration

namespace {

void bind_kinematics_poses(nb::class_<Kinematics>& cls) {
    cls.def_prop_ro("scene", [](const Kinematics& k) { return k.scene(); },
                    "The version of the scene.")
        .def_prop_ro("q", [](const Kinematics& k) { return make_array(k.q()); },
                     "(n_joints,) configuration, read-only.")
        .def_prop_ro("qd",
                     [](const Kinematics& k) -> std::optional<ReadOnlyArray> {
        if (k.qd().size() != k.q().size()) return std::nullopt;
        return make_array(k.qd());
    }, "(n_joints,) velocities of the joints, read-only, or None.")
        .def_prop_ro("poses",
                     [](const Kinematics& k) {
        std::vector<double> rows(7 * k.size());
        for (std::size_t frame = 0; frame < k.size(); ++frame)
            write_pose(&rows[7 * frame], k.pose(static_cast<std::int32_t>(frame)));
        return make_rows(std::move(rows), 7);
    },
                     "(n, 7) x, y, z, qx, qy, qz, qw of each frame relative to its root, in "
                     "frame_names order; read-only.");
    cls.def("pose",
            [](const Kinematics& k, std::string_view frame, const OptionalName& relative_to) {
        return in_range(relative_to ? k.pose(frame, *relative_to) : k.pose(frame));
    }, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(),
            "Return the pose of one frame relative to another at this configuration: "
            "relative_to_from_frame."
            R"(

Args:)" POSE_ARGS NO_PATH)
        .def("jacobian",
             [](const Kinematics& k, std::string_view frame, const OptionalArray& point,
                const OptionalName& axes) {
        return make_array(
            k.jacobian(frame, point ? read_vector3(*point, "point", "m") : Vector3{}, axes),
            {6, k.q().size()});
    },
             "frame"_a, nb::kw_only(), "point"_a = nb::none(), "axes"_a = nb::none(),
             R"(Return the Jacobian (6, n_joints) of a point fixed to a frame. O(depth + n_joints).

``J @ qdot`` is the velocity of the point relative to the root: rows are linear [m/s], then angular
[rad/s].

Args:
    frame: the frame that carries the point.
    point: (3,) point, in coordinates of the frame [m]; its origin if omitted.
    axes: the frame in whose axes the rows are; the root if omitted.)" NO_FRAME R"(
    DisconnectedError: if ``axes`` is in another tree.)");
}

}  // namespace

void bind_kinematics(nb::module_& m) {
    nb::class_<Kinematics> cls(m, "Kinematics", nb::is_weak_referenceable(),
                               R"(A scene at a configuration, with all poses computed.

Created by ``scene.at(q)``. Immutable.)");
    bind_kinematics_poses(cls);
    cls.def("twist",
            [](const Kinematics& k, std::string_view frame, const OptionalName& relative_to,
               const OptionalName& axes) {
        if (k.qd().size() != k.q().size())
            throw Error(ErrorKind::configuration,
                        "a twist needs the velocities of the joints: scene.at(q, qd)");
        const SceneGraph& scene = k.scene();
        const std::string_view from = reference_frame(scene, frame, relative_to);
        return make_array(k.twist(frame, from, axes ? *axes : from));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "axes"_a = nb::none(),
            "Return the twist (6,) of one frame relative to another: by joints, and by twist "
            "edges. O(depth)."
            R"(

Twist edges determine the motion of the edges that they cover. Elsewhere the joints move at ``qd``,
and fixed and free edges do not move. With t twist edges on the path O(t depth).

Linear part of the frame's origin [m/s], then angular part [rad/s]. In the notation of relations it
is ``(frame|its body, body of relative_to, [axes])``.

Args:
    frame: the frame whose body moves, and whose origin is the point.
    relative_to: a frame of the reference body; the root of its tree if omitted.
    axes: the frame in whose axes the twist is; ``relative_to`` if omitted, ``frame`` for the
        body-fixed twist.

Raises:
    UnknownNameError: if a frame is unknown.
    DisconnectedError: if the frames are in different trees.
    ConfigurationError: if there are no joint velocities, as in ``scene.at(q)`` without ``qd``.
    SceneError: if twist edges cover an edge of the path without determining its motion.)")
        .def("__repr__", [](const Kinematics& k) {
        return format_text("Kinematics({} frames, {} joints)", k.size(), k.q().size());
    });
}

// --- errors of poses and samples

namespace {

void bind_stamp_queries(nb::module_& m) {
    m.def("common_stamps",
          [](const SceneGraph& s, std::string_view a, std::string_view b) {
        const auto interval = s.common_stamps(a, b);
        return interval ? std::optional(std::pair((*interval)[0], (*interval)[1])) : std::nullopt;
    }, "scene"_a, "a"_a, "b"_a,
          "Return the interval of common stamps of all stamped edges between two frames. O(depth "
          "log n)."
          R"(

Args:
    scene: the scene.
    a: a frame.
    b: another frame of the same tree.

Returns:
    The oldest and the newest stamp [s]; the oldest is the later one if the histories have no common
    time. None if no edge between the frames has stamped poses.)" NO_PATH);
}

void bind_error_queries(nb::module_& m) {
    m.def("path_noise",
          [](const SceneGraph& s, std::string_view frame, const OptionalName& relative_to,
             const OptionalArray& q) {
        return noise_or_none(path_noise(s, s.record(reference_frame(s, frame, relative_to)),
                                        s.record(frame), ConfigurationArgument(q, s).get())
                                 .edge());
    },
          "scene"_a, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "q"_a = nb::none(),
          R"(Return the error of a relative pose by source, or None if it is exact. O(depth log n).

Args:
    scene: the scene.)" POSE_ARGS Q_ON_PATH R"(

Returns:
    The error of relative_to_from_frame, in the axes of the frame.)" NO_POSE);
}

void bind_sampling_queries(nb::module_& m) {
    m.def("sample_poses",
          [](const SceneGraph& s, std::string_view frame, const OptionalName& relative_to,
             std::size_t count, std::uint64_t seed, const OptionalArray& q) {
        const ConfigurationArgument configuration(q, s);
        std::vector<double> rows;
        const std::string to(frame), from(reference_frame(s, frame, relative_to));
        {
            nb::gil_scoped_release release;
            const std::vector<Pose> poses =
                sample_poses(s, to, from, configuration.get(), count, seed);
            rows.resize(7 * poses.size());
            for (std::size_t i = 0; i < poses.size(); ++i) write_pose(&rows[7 * i], poses[i]);
        }
        return make_rows(std::move(rows), 7);
    },
          "scene"_a, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "count"_a, "seed"_a,
          "q"_a = nb::none(),
          R"(Sample poses from the errors of the edges. O(count * path).

Each source is drawn once a sample and perturbs its edges on the path, without linearisation.

Args:
    scene: the scene.)" POSE_ARGS R"(
    count: number of samples.
    seed: seed of the random numbers; the same seed gives the same poses.)" Q_ON_PATH R"(

Returns:
    (count, 7) relative_to_from_frame: x, y, z, qx, qy, qz, qw; read-only.)" NO_POSE)
        .def("innovation",
             [](const SceneGraph& s, const Measurement& measurement, const OptionalArray& q) {
        SceneEdit edit(s);
        return edit.condition(measurement, ConfigurationArgument(q, s).get(), {0, 0.0});
    }, "scene"_a, "measurement"_a, nb::kw_only(), "q"_a = nb::none(),
             "Return the deviation of a measurement from its expected value, for gating. The scene "
             "does not change."
             R"(

Args:
    scene: the scene.
    measurement: the measured pose, position, bearing or range.
    q: (n_joints,) configuration of the measurement [rad or m]; optional if no joint is
        on the path.)" NO_POSE);
}

template <class Scene> void bind_twist_functions(nb::module_& m, auto&& noise) {
    m.def("twist_noise",
          [noise](const Scene& s, std::string_view frame) {
        return noise_or_none(noise(s, frame));
    }, "scene"_a, "frame"_a,
          R"(Return the error of a frame's twist edge by source; None if exact or absent. O(log n).

Args:
    scene: the scene; or its arrays, for the writer.
    frame: the frame.)" NO_FRAME);
}

}  // namespace

void bind_scene_functions(nb::module_& m) {
    bind_stamp_queries(m);
    bind_error_queries(m);
    bind_sampling_queries(m);
    bind_twist_functions<SceneGraph>(m, [](const SceneGraph& s, std::string_view frame) {
        return Ref<const EdgeNoise>(s.record(frame).twist_noise());
    });
    bind_twist_functions<SceneArrays>(m, [](const SceneArrays& s, std::string_view frame) {
        return Ref<const EdgeNoise>(s.twist_noise(frame));
    });
}

}  // namespace tmkit::bindings
