// Queries of uncertain scenes: covariances, their sources, samples.
#include "edits.hpp"
#include "tmkit/scene_gaussian.hpp"

namespace tmkit::bindings {

namespace {

void bind_error_queries(nb::module_& m) {
    m.def(
        "joint_gaussian",
        [](const SceneGraph& s, const std::vector<std::pair<std::string, std::string>>& pairs, const OptionalArray& q) {
        JointGaussian joint = joint_gaussian(s, pairs, ConfigurationArgument(q, s).get());
        for (const Pose& mean : joint.means) require_in_range(mean, "a mean");
        const std::size_t n = 6 * pairs.size();
        return std::pair{tuple_of(joint.means), make_array(std::move(joint.covariance), {n, n})};
    }, "scene"_a, "pairs"_a, nb::kw_only(), "q"_a = nb::none(),
        R"(Return several relative poses with the covariance of all their errors together.

Args:
    scene: the scene.
    pairs: (frame, relative_to) of each.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on a path.

Returns:
    The m means, and (6 m, 6 m) the covariance of their stacked errors, each in its frame's axes; read-only.)" NO_POSE);
    m.def("path_noise",
          [](const SceneGraph& s, std::string_view frame, const OptionalName& relative_to, const OptionalArray& q) {
        return noise_or_none(path_noise(s, s.record(reference_frame(s, frame, relative_to)), s.record(frame),
                                        ConfigurationArgument(q, s).get())
                                 .edge());
    }, "scene"_a, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "q"_a = nb::none(),
          R"(Return the error of a relative pose by source, or None when it is exact. O(depth log n).

Args:
    scene: the scene.)" POSE_ARGS Q_ON_PATH R"(

Returns:
    The error of relative_to_from_frame, in the axes of the frame.)" NO_POSE);
}

void bind_sampling_queries(nb::module_& m) {
    m.def("sample_poses",
          [](const SceneGraph& s, std::string_view frame, const OptionalName& relative_to, std::size_t count,
             std::uint64_t seed, const OptionalArray& q) {
        const ConfigurationArgument configuration(q, s);
        std::vector<double> rows;
        const std::string to(frame), from(reference_frame(s, frame, relative_to));
        {
            nb::gil_scoped_release release;
            const std::vector<Pose> poses = sample_poses(s, to, from, configuration.get(), count, seed);
            rows.resize(7 * poses.size());
            for (std::size_t i = 0; i < poses.size(); ++i) write_pose(&rows[7 * i], poses[i]);
        }
        return make_rows(std::move(rows), 7);
    },
          "scene"_a, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "count"_a, "seed"_a, "q"_a = nb::none(),
          R"(Return poses drawn from the errors of the edges. O(count * path).

Each source is drawn once a sample and every edge of the path is perturbed by it: nothing is linearised.

Args:
    scene: the scene.)" POSE_ARGS R"(
    count: how many samples.
    seed: of the random numbers; the same seed gives the same poses.)" Q_ON_PATH R"(

Returns:
    (count, 7) relative_to_from_frame: x, y, z, qx, qy, qz, qw; read-only.)" NO_POSE)
        .def("innovation",
             [](const SceneGraph& s, const Measurement& measurement, const OptionalArray& q) {
        SceneEdit edit(s);
        return edit.condition(measurement, ConfigurationArgument(q, s).get(), {0, 0.0});
    }, "scene"_a, "measurement"_a, nb::kw_only(), "q"_a = nb::none(),
             R"(Return how far a measurement lies from its expected value, for gating. The scene does not change.

Args:
    scene: the scene.
    measurement: the measured pose, position, bearing or range.
    q: (n_joints,) configuration measured at, radians or metres; optional when no joint is on the path.)" NO_POSE);
}

template <class Scene> void bind_twist_functions(nb::module_& m, auto&& noise) {
    m.def("twist_noise", [noise](const Scene& s, std::string_view frame) { return noise_or_none(noise(s, frame)); },
          "scene"_a, "frame"_a,
          R"(Return the error of a frame's twist edge by source; None when exact or absent. O(log n).

Args:
    scene: the scene; or its arrays, for the writer.
    frame: the frame.)" NO_FRAME);
}

}  // namespace

void bind_scene_functions(nb::module_& m) {
    bind_error_queries(m);
    bind_sampling_queries(m);
    bind_twist_functions<SceneGraph>(m, [](const SceneGraph& s, std::string_view frame) {
        return Ref<const EdgeNoise>(s.record(frame).twist_noise());
    });
    bind_twist_functions<SceneArrays>(
        m, [](const SceneArrays& s, std::string_view frame) { return Ref<const EdgeNoise>(s.twist_noise(frame)); });
}

}  // namespace tmkit::bindings
