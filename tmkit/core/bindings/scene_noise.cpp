// The edits of the errors of edges, and conditioning on measurements.

#include <cmath>

#include "edits.hpp"

#define OF_NOISE "\n\nArgs:\n    frame: the frame whose edge it is."

namespace tmkit::bindings {

namespace {

ConditionOptions options_of(const std::optional<int>& iterations) {
    ConditionOptions options;
    if (!iterations) return options;
    if (*iterations < 1) throw Error(ErrorKind::scene, "max_iterations must be at least 1, not {}", *iterations);
    options.most_iterations = *iterations;
    return options;
}

void condition(SceneEdit& edit, const Measurement& measurement, const double* q, const std::optional<int>& iterations) {
    SceneEdit attempt(edit.scene());
    const ConditionReport report = attempt.condition(measurement, q, options_of(iterations));
    if (!report.converged && !iterations)
        throw Error(ErrorKind::scene,
                    "conditioning on the measurement of '{}' in {} did not converge in {} iterations: it lies too "
                    "far from the expected value for the known errors; see innovation(scene, measurement), or give "
                    "max_iterations= to accept the last iterate",
                    measurement.target, (measurement.reference ? "'" + *measurement.reference + "'" : "its root"),
                    report.iterations);
    edit = std::move(attempt);
}

template <class Self> void bind_edge_noise_edits(auto& cls) {
    cls.def("set_covariance",
            [](Self self, std::string_view frame, const OptionalArray& covariance) {
        const Ref<const EdgeNoise> noise = own_noise(covariance, frame, scene_before(self).specification(frame).parent);
        return apply_edit(self, [&](auto& s) { s.set_noise(frame, noise); });
    }, "frame"_a, "covariance"_a.none(),
            text_for<Self>(R"(Set the covariance of the pose of a frame relative to its parent.{ O(log n).|}

The pose is ``T @ Pose.exp(xi)`` with T as ``local_pose`` and the joint give it and xi = [rho, theta] of mean zero,
in metres and radians, in the frame's own axes, behind the joint. The error comes from a source of its own.)" OF_FRAME
                           R"(
    covariance: (6, 6) of xi, symmetric positive semi-definite; None or zero: exact. Replaces the error of the edge.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root; a matrix that is not symmetric positive semi-definite, with its eigenvalues.{|
    CapacityError: no room for its source; construct SceneArrays with a larger ``noise``.})"))
        .def("set_noise",
             [](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](auto& s) { s.set_noise(frame, noise); });
    }, "frame"_a, "maps"_a,
             text_for<Self>(
                 R"(Set the sources of the error of an edge: ``xi = sum of map @ w`` over sources w.{ O(log n).|}

Edges that share a source have correlated errors.)" OF_NOISE R"(
    maps: by source, (6, dimension) metres and radians for one standard deviation, in the frame's own axes. Empty:
        exact.)" NO_FRAME R"(
    SceneError: a root, or a map of another shape.{|
    CapacityError: no room for its sources.})"))
        .def("set_noise", [](Self self, std::string_view frame, const std::optional<NoiseHandle>& noise) {
        return apply_edit(self, [&](auto& s) { s.set_noise(frame, noise ? noise->noise : nullptr); });
    }, "frame"_a, "noise"_a.none(), R"(Set the error of an edge to that of another edge.)" OF_NOISE R"(
    noise: what ``noise`` returned for another edge; None: exact.)");
    cls.def("set_twist_noise",
            [](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](auto& s) { s.set_twist_noise(frame, noise); });
    }, "frame"_a, "maps"_a,
            R"(Set the sources of the error of a twist edge, as ``set_noise`` does for a pose.

Args:
    frame: a frame with a twist edge.
    maps: by source, (6, dimension) m/s and rad/s for one standard deviation, at the frame's origin and in its axes.
        Empty: exact.)" NO_FRAME R"(
    SceneError: it has no twist, or a map of another shape.)")
        .def("set_twist_noise", [](Self self, std::string_view frame, const std::optional<NoiseHandle>& noise) {
        return apply_edit(self, [&](auto& s) { s.set_twist_noise(frame, noise ? noise->noise : nullptr); });
    }, "frame"_a, "noise"_a.none(), R"(Set the error of a twist edge to that of another one.

Args:
    frame: a frame with a twist edge.
    noise: what ``twist_noise`` returned; None: exact.)");
}

template <class Self> void bind_whole_noise_edits(auto& cls) {
    cls.def("add_noise",
            [](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](SceneEdit& s) {
            if (noise) s.add_noise(frame, *noise);
        });
    }, "frame"_a, "maps"_a, R"(Add errors to those of an edge. O(log n).

Maps of a source that the edge already has are summed.)" OF_NOISE R"(
    maps: by source, (6, dimension) metres and radians for one standard deviation; see ``set_noise``.)" NO_FRAME R"(
    SceneError: a root, or a map of another shape.)")
        .def("add_joint_noise", EDIT(add_joint_noise, std::string_view, double), "joint"_a, "variance"_a,
             R"(Set the variance of the value of a joint: an uncertain encoder. O(joints log n).

The joints that mimic it now move by the same error.

Args:
    joint: name of the joint.
    variance: rad^2 or m^2.)" NO_JOINT R"(
    SceneError: a mimic joint, or a variance that is negative or not finite.)");
    cls.def(
        "condition",
        [](Self self, const Measurement& measurement, const OptionalArray& q, const std::optional<int>& iterations) {
        const ConfigurationArgument configuration(q, scene_before(self));
        return apply_edit(self, [&](SceneEdit& s) { condition(s, measurement, configuration.get(), iterations); });
    }, "measurement"_a, nb::kw_only(), "q"_a = nb::none(), "max_iterations"_a = nb::none(),
        R"(Condition the scene on a measurement: update means, covariances and correlations.

Every edge that shares a source of error with the path between the two frames is corrected, also off the path, and
every twist that does, since it has moved one of them (``integrate``). The result is the most likely one for the
measurement and all that was known (an iterated Kalman filter); its covariance is of first order there. An error
behind a joint is corrected for the configuration ``q``. O(noisy frames + sources^2).

Args:
    measurement: the measured pose, position, bearing or range.
    q: (n_joints,) configuration of the measurement, radians or metres; optional when no joint is on the path.
    max_iterations: steps to take, whether or not they converge; one is the extended Kalman filter. Until convergence if
        omitted.)" NO_PATH R"(
    SceneError: the measurement contradicts what is known exactly, or the steps do not converge.)");
}

}  // namespace

template <class Scene> void bind_noise_edits(nb::class_<Scene>& cls) {
    using Self = SelfOf<Scene>;
    bind_edge_noise_edits<Self>(cls);
    if constexpr (!std::is_same_v<Scene, SceneArrays>) bind_whole_noise_edits<Self>(cls);
}
template void bind_noise_edits(nb::class_<SceneGraph>&);
template void bind_noise_edits(nb::class_<SceneEditHandle>&);
template void bind_noise_edits(nb::class_<SceneArrays>&);

}  // namespace tmkit::bindings
