// Poses and twists between frames: each query is bound once, for scenes and for arrays.
#include "edits.hpp"
#include "tmkit/scene_gaussian.hpp"

#define POSE_FRAMES                                                                                                  \
    "\n    frame: the frame of which the pose is returned."                                                          \
    "\n    relative_to: the frame it is relative to, and in whose axes the coordinates are; the root of its tree if" \
    " omitted."
#define BAD_Q                                                                                                       \
    "\n    ConfigurationError: {a joint is on the path and q is missing, or q has the wrong length|q has the wrong" \
    " length} or non-finite numbers."
#define Q_OR_PRESENT                                          \
    "\n    q: (n_joints,) configuration, radians or metres; " \
    "{optional when no joint is on the path|the present one if omitted}."

namespace tmkit::bindings {
namespace {

// The reference frame and the configuration as scenes and arrays take them.
std::string_view reference_of(const SceneGraph& scene, std::string_view frame, const OptionalName& relative_to) {
    return reference_frame(scene, frame, relative_to);
}
const OptionalName& reference_of(const SceneArrays&, std::string_view, const OptionalName& relative_to) {
    return relative_to;
}

template <class Scene> void bind_poses(nb::class_<Scene>& cls) {
    cls.def(
        "pose",
        [](const Scene& s, std::string_view frame, const OptionalName& relative_to, const OptionalArray& q) {
        return in_range(s.pose(frame, reference_of(s, frame, relative_to), At<Scene>(q, s).get()));
    }, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "q"_a = nb::none(),
        text_for<Scene>(R"(Return the pose of one frame relative to another: relative_to_from_frame.{ O(depth log n).|

O(depth); O(1) without relative_to and q. The same bits as ``SceneGraph.pose`` gives at this configuration.}

Args:)" POSE_FRAMES Q_OR_PRESENT NO_PATH BAD_Q));
    cls.def("pose",
            [](const Scene& s, std::string_view frame, const OptionalName& relative_to, double stamp,
               const OptionalArray& q, std::string_view policy) {
        return in_range(
            s.pose(frame, reference_of(s, frame, relative_to), At<Scene>(q, s).get(), {stamp, stamp_policy(policy)}));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "stamp"_a, "q"_a = nb::none(),
            "policy"_a = "interpolated",
            text_for<Scene>(R"(Return the pose of one frame relative to another at a time, by stamped poses.

{O(depth log n).|O(depth + poses of the edges). The same bits as ``SceneGraph.pose`` for this configuration and stamp.}
Edges without stamped poses keep their pose; joints are at q.

Args:)" POSE_FRAMES R"(
    stamp: seconds.)" Q_OR_PRESENT R"(
    policy: between two stamps, the pose of the ``closest`` (of two equally near, the newer), of the ``preceding``,
        or one ``interpolated``: the origin along a straight line, the orientation along the shorter arc; with
        ``screw`` the motion between both is one of constant twist. ``clamped`` interpolates, and outside of a history
        takes the pose at its nearer end.

Raises:
    UnknownNameError: no such frame, or policy.
    DisconnectedError: the frames are in different trees.
    StampError: the stamp lies outside the history of an edge on the path, and the policy is not ``clamped``.)" BAD_Q));
}

GaussianPose gaussian(const SceneGraph& scene, std::string_view frame, std::string_view reference, const double* q) {
    return gaussian_pose(scene, frame, reference, q);
}
GaussianPose gaussian(SceneArrays& arrays, std::string_view frame, const OptionalName& reference,
                      const SceneArrays::Configuration& q) {
    return arrays.gaussian_pose(frame, reference, q);
}

template <class Scene> void bind_uncertain_poses_and_twists(nb::class_<Scene>& cls) {
    cls.def("gaussian_pose",
            [](Scene& s, std::string_view frame, const OptionalName& relative_to, const OptionalArray& q) {
        return in_range(gaussian(s, frame, reference_of(s, frame, relative_to), At<Scene>(q, s).get()));
    }, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "q"_a = nb::none(),
            text_for<Scene>(R"(Return the pose of one frame relative to another with its covariance.{ O(depth log n).|

O(depth). The same bits as ``SceneGraph.gaussian_pose``. For the writer: it works in the arrays' own scratch.}

The covariance is of first order in the errors of the edges on the path, with all their correlations, in the axes of
the frame. See ``sample_poses`` for errors so large that first order is not enough.

Args:)" POSE_ARGS Q_OR_PRESENT R"(

Returns:
    relative_to_from_frame.)" NO_PATH BAD_Q "{|\n    ConcurrentWriteError: another thread is writing.}"));
    cls.def("twist_from_stamps",
            [](const Scene& s, std::string_view frame, const OptionalName& relative_to, double first, double second,
               const OptionalArray& q, std::string_view policy) {
        return make_array(s.twist_from_stamps(frame, reference_of(s, frame, relative_to), first, second,
                                              At<Scene>(q, s).get(), stamp_policy(policy)));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "first"_a, "second"_a, "q"_a = nb::none(),
            "policy"_a = "interpolated",
            text_for<Scene>(R"(Return (6,) the constant twist of a frame relative to another between two stamps.

It leads from the pose at the first stamp to that at the second. It is the twist of the frame's body, at the
frame's origin and in its axes, linear part first (m/s, rad/s): what ``set_twist`` takes, relative to the body of
``relative_to``.

Args:
    frame: the frame that moves.
    relative_to: the frame relative to which it moves; the root of its tree if omitted.
    first: stamp of the first pose, seconds.
    second: a later stamp, seconds.)" Q_OR_PRESENT R"(
    policy: for stamps between those of the histories; see ``pose``.

Raises:
    StampError: the second stamp is not later, or one lies outside a history on the path.
    UnknownNameError, DisconnectedError, ConfigurationError: as ``pose``.)"));
}

}  // namespace

template <class Scene> void bind_pose_queries(nb::class_<Scene>& cls) {
    bind_poses(cls);
    bind_uncertain_poses_and_twists(cls);
}
template void bind_pose_queries(nb::class_<SceneGraph>& cls);
template void bind_pose_queries(nb::class_<SceneArrays>& cls);

}  // namespace tmkit::bindings
