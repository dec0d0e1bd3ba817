// Queries of the uncertainty of SceneArrays.
#include "edits.hpp"

namespace tmkit::bindings {
void bind_arrays_noise(nb::class_<SceneArrays>& cls) {
    cls.def("noise",
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
             [](SceneArrays& self, std::string_view frame, const std::optional<std::string_view>& relative_to,
                const std::optional<ArrayArgument>& q) {
        if (!q) return in_range(self.gaussian_pose(frame, relative_to));
        const HeldVector numbers(*q, "q", [&] { return self.joint_count(); });
        return in_range(self.gaussian_pose(frame, relative_to, numbers.numbers()));
    },
             nb::arg("frame"), nb::kw_only(), nb::arg("relative_to") = nb::none(), nb::arg("q") = nb::none(),
             R"(Return the pose of one frame relative to another with its covariance. O(depth).

The same bits as ``SceneGraph.gaussian_pose``. For the writer: it works in the arrays' own scratch.

Args:
    frame: the frame of which the pose is returned.
    relative_to: the frame it is relative to; the root of its tree if omitted.
    q: (n_joints,) configuration, radians or metres; the present one if omitted.

Returns:
    relative_to_from_frame.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConcurrentWriteError: another thread is writing.)");
}

}  // namespace tmkit::bindings
