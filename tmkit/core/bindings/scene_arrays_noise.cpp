// Uncertainty of SceneArrays: edits and queries.
#include "edits.hpp"

namespace tmkit::bindings {
namespace {

void bind_arrays_noise_edits(nb::class_<SceneArrays>& cls) {
    cls.def("set_covariance",
            [](SceneArrays& self, std::string_view frame, const std::optional<ArrayArgument>& covariance) {
        const std::string parent = self.parent(frame).value_or("");
        const Ref<const EdgeNoise> noise = own_noise(covariance, frame, parent);
        self.set_noise(frame, noise.get());
    }, nb::arg("frame"), nb::arg("covariance").none(),
            R"(Set the covariance of the pose of a frame relative to its parent. It makes a source.

Args:
    frame: the frame.
    covariance: (6, 6) of [rho, theta], metres and radians in the frame's own axes; None or zero: exact. See
        ``SceneGraph.set_covariance``.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root; a matrix that is not symmetric positive semi-definite, with its eigenvalues.
    CapacityError: no room for its source; construct SceneArrays with a larger ``noise``.)")
        .def("set_noise",
             [](SceneArrays& self, std::string_view frame, const std::optional<NoiseHandle>& noise) {
        self.set_noise(frame, noise ? noise->noise.get() : nullptr);
    }, nb::arg("frame"), nb::arg("noise").none(),
             R"(Set the error of an edge, with its sources. See ``SceneGraph.set_noise``.

Args:
    frame: the frame whose edge it is.
    noise: what ``noise`` returned; None: exact.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root.
    CapacityError: no room for its sources.)")
        .def("set_twist_noise",
             [](SceneArrays& self, std::string_view frame, const std::optional<NoiseHandle>& noise) {
        self.set_twist_noise(frame, noise ? noise->noise : nullptr);
    }, nb::arg("frame"), nb::arg("noise").none(),
             R"(Set the error of a twist edge, with its sources. See ``SceneGraph.set_twist_noise``.

Args:
    frame: a frame with a twist edge.
    noise: what ``twist_noise`` returned; None: exact.

Raises:
    UnknownNameError: no such frame.
    SceneError: it has no twist.)");
}

void bind_arrays_noise_queries(nb::class_<SceneArrays>& cls) {
    cls.def("twist_noise",
            [](const SceneArrays& self, std::string_view frame) { return noise_or_none(self.twist_noise(frame)); },
            nb::arg("frame"), R"(Return the error of a frame's twist edge, or None when exact or absent. For the writer.

Raises:
    UnknownNameError: no such frame.)")
        .def("twist_covariance",
             [](const SceneArrays& self, std::string_view frame) {
        const Ref<const EdgeNoise> noise = self.twist_noise(frame);
        return covariance_array(noise ? noise->covariance : Covariance{});
    }, nb::arg("frame"),
             R"(Return the covariance (6, 6) of a frame's twist edge; zeros when exact or absent. For the writer.

Raises:
    UnknownNameError: no such frame.)")
        .def("noise",
             [](const SceneArrays& self, std::string_view frame) {
        const EdgeNoise* noise = self.noise(frame);
        return noise ? std::optional(NoiseHandle{Ref<const EdgeNoise>(new EdgeNoise(*noise))}) : std::nullopt;
    }, nb::arg("frame"),
             R"(Return the error of a frame's pose relative to its parent, or None when exact. For the writer.

Raises:
    UnknownNameError: no such frame.)")
        .def("edge_covariance",
             [](const SceneArrays& self, std::string_view frame) {
        const EdgeNoise* noise = self.noise(frame);
        return covariance_array(noise ? noise->covariance : Covariance{});
    }, nb::arg("frame"), R"(Return the covariance (6, 6) of a frame's pose relative to its parent. For the writer.

Zeros when exact.

Raises:
    UnknownNameError: no such frame.)")
        .def("gaussian_pose",
             [](SceneArrays& self, std::string_view target, std::string_view reference,
                const std::optional<ArrayArgument>& q) {
        if (!q) return in_range(self.gaussian_pose(target, reference));
        const HeldVector numbers(*q, "q", [&] { return self.joint_count(); });
        return in_range(self.gaussian_pose(target, reference, numbers.numbers()));
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("q") = nb::none(),
             R"(Return the pose of one frame relative to another with its covariance. O(depth).

The same bits as ``SceneGraph.gaussian_pose``. For the writer: it works in the arrays' own scratch.

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to.
    q: (n_joints,) configuration, radians or metres; the present one if omitted.

Returns:
    reference_from_target.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConcurrentWriteError: another thread is writing.)");
}

}  // namespace

void bind_arrays_noise(nb::class_<SceneArrays>& cls) {
    bind_arrays_noise_edits(cls);
    bind_arrays_noise_queries(cls);
}

}  // namespace tmkit::bindings
