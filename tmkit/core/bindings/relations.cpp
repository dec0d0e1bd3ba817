// Numbers of relations in a scene; the Python layer adds their semantics.
#include "tmkit/scene_relations.hpp"

#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

using Name = std::string_view;
using MaybeArray = std::optional<ReadOnlyArray>;

// None if a name is unknown, which Python then explains; no second look-up is needed for valid
// names. None also if no path of twists leads there.
std::optional<Vector6> twist_numbers(const SceneGraph& s, std::optional<Name> point, Name body,
                                     Name ref_body, Name axes, const OptionalArray& q,
                                     const OptionalArray& qd, NoiseSum* error = nullptr) {
    const FrameRecord *point_frame = point ? s.find(*point) : nullptr, *axes_frame = s.find(axes);
    const BodyId *moves = s.find_body(body), *reference = s.find_body(ref_body);
    if (!axes_frame || !moves || !reference ||
        (point &&
         (!point_frame || (point_frame->body != *moves && point_frame->body != *reference))))
        return std::nullopt;
    return related_twist(s, point_frame, *moves, *reference, *axes_frame,
                         ConfigurationArgument(q, s).get(),
                         ConfigurationArgument::rates(qd, s).get(), error);
}

using OptionalText = std::optional<std::string>;
using TwistOfFrames = nb::typed<nb::tuple, MaybeArray, nb::str, nb::str>;

TwistOfFrames twist_of_frames(const SceneGraph& s, Name frame, const OptionalName& relative_to,
                              const OptionalName& point_frame, const OptionalName& axes,
                              const OptionalArray& q, const OptionalArray& qd) {
    const FrameRecord& moving = s.record(frame);
    const FrameRecord& still =
        relative_to ? s.record(*relative_to) : s.record(s.root_of(moving.id));
    const FrameRecord* axes_frame = axes ? s.find(*axes) : &still;
    std::optional<Vector6> twist;
    if (axes_frame) {
        const FrameRecord& point = point_frame ? s.record(*point_frame) : moving;
        const ConfigurationArgument q_argument(q, s),
            velocities = ConfigurationArgument::rates(qd, s);
        const std::vector<double> zeros(qd && !q ? s.joint_count() : 0);
        twist = related_twist(s, &point, moving.body, still.body, *axes_frame,
                              q_argument.held ? q_argument.get() : zeros.data(), velocities.get());
    }
    return TwistOfFrames(nb::make_tuple(twist ? MaybeArray(make_array(*twist)) : std::nullopt,
                                        s.body(moving.body).name->text,
                                        s.body(still.body).name->text));
}

void bind_twist_numbers(nb::class_<SceneGraph>& cls) {
    cls.def("_related_twist",
            [](const SceneGraph& s, std::optional<Name> point, Name body, Name ref_body, Name axes,
               const OptionalArray& q, const OptionalArray& qd) -> MaybeArray {
        const std::optional<Vector6> twist = twist_numbers(s, point, body, ref_body, axes, q, qd);
        return twist ? MaybeArray(make_array(*twist)) : std::nullopt;
    },
            "point"_a.none(), "body"_a, "ref_body"_a, "axes"_a, "q"_a = nb::none(),
            "qd"_a = nb::none(),
            R"(The numbers (6,) of a twist; the point is on one of the bodies.

None if a name is unknown or the relative motion is not determined.)");
    cls.def("_twist_of_frames", &twist_of_frames, "frame"_a, "relative_to"_a.none(), "at"_a.none(),
            "axes"_a.none(), "q"_a.none(), "qd"_a.none(),
            "The numbers (6,) of the twist of a frame relative to another, and the names of their "
            "bodies."
            R"(

None instead of the numbers if the name of the axes is unknown or the motion is not determined.)");
    cls.def("_unstated_edge", [](const SceneGraph& s, Name a, Name b) -> OptionalText {
        const FrameRecord* edge = unstated_edge(s, s.record(a), s.record(b));
        return edge ? OptionalText(edge->name->text) : std::nullopt;
    }, "a"_a, "b"_a, "The frame below the first edge without a stated motion between two frames.");
    cls.def("_unstated_edges",
            [](const SceneGraph& s) {
        std::vector<std::string> edges;
        s.for_each_frame([&](const FrameRecord& frame) {
            if (!frame.is_stated) edges.push_back(frame.name->text);
        });
        return edges;
    },
            "The frames below edges without a stated motion, in insertion order, also if twist "
            "edges cover them. O(n).");
    cls.def("_has_group", &SceneGraph::has_group, "name"_a, "Whether the group exists.");
    cls.def("_edges_of_twists", &edges_of_twists, "frame"_a,
            "The frames below edges of poses that twist edges cover, in the tree of a frame.");
    cls.def("_joint_values",
            [](const SceneGraph& s, nb::handle values, const char* what) {
        return make_array(read_vector(values, what, s.joint_count()));
    }, "values"_a, "what"_a,
            "One number a joint, (n_joints,); `what` names them where they are not that.");
    cls.def("_uncertain_twist",
            [](const SceneGraph& s, Name point, Name body, Name ref_body, Name axes,
               const OptionalArray& q, const OptionalArray& qd)
                -> std::optional<std::pair<ReadOnlyArray, std::optional<NoiseHandle>>> {
        NoiseSum error;
        const std::optional<Vector6> twist =
            twist_numbers(s, point, body, ref_body, axes, q, qd, &error);
        if (!twist) return std::nullopt;
        return std::pair{make_array(*twist), noise_or_none(error.edge())};
    },
            "point"_a, "body"_a, "ref_body"_a, "axes"_a, "q"_a = nb::none(), "qd"_a = nb::none(),
            R"(The numbers (6,) of a twist and its error, source by source (None: exact).

None if a name is unknown or the relative motion is not determined.)");
}

}  // namespace

void bind_relations(nb::class_<SceneGraph>& cls) {
    cls.def("_related_position",
            [](const SceneGraph& s, Name point, Name body, Name ref_point, Name ref_body, Name axes,
               const OptionalArray& q) -> MaybeArray {
        if (!sits_on(s, point, body) || !sits_on(s, ref_point, ref_body) || !s.find(axes))
            return std::nullopt;
        return make_array(
            related_position(s, point, ref_point, axes, ConfigurationArgument(q, s).get()));
    },
            "point"_a, "body"_a, "ref_point"_a, "ref_body"_a, "axes"_a, "q"_a = nb::none(),
            "The numbers (3,) of a position; None if a name is unknown.")
        .def("_related_orientation",
             [](const SceneGraph& s, Name ori, Name body, Name ref_ori, Name ref_body, Name axes,
                const OptionalArray& q) -> MaybeArray {
        if (!sits_on(s, ori, body) || !sits_on(s, ref_ori, ref_body) || !s.find(axes))
            return std::nullopt;
        return make_square(
            related_orientation(s, ori, ref_ori, axes, ConfigurationArgument(q, s).get()), 3);
    },
             "ori"_a, "body"_a, "ref_ori"_a, "ref_body"_a, "axes"_a, "q"_a = nb::none(),
             "The numbers (3, 3) of an orientation; None if a name is unknown.");
    cls.def("_related_pose",
            [](const SceneGraph& s, Name point, Name ori, Name body, Name ref_point, Name ref_ori,
               Name ref_body, Name axes, const OptionalArray& q) -> MaybeArray {
        if (!sits_on(s, ori, body) || !sits_on(s, ref_ori, ref_body)) return std::nullopt;
        const ConfigurationArgument configuration(q, s);
        if (point == ori && ref_point == ref_ori && axes == ref_ori)
            return make_square(s.pose(ori, ref_ori, configuration.get()).matrix(), 4);
        if (!sits_on(s, point, body) || !sits_on(s, ref_point, ref_body) || !s.find(axes))
            return std::nullopt;
        const Vector3 p = related_position(s, point, ref_point, axes, configuration.get());
        const Matrix3 m = related_orientation(s, ori, ref_ori, axes, configuration.get());
        return make_array({m[0], m[1], m[2], p[0], m[3], m[4], m[5], p[1], m[6], m[7], m[8], p[2],
                           0.0, 0.0, 0.0, 1.0},
                          {4, 4});
    },
            "point"_a, "ori"_a, "body"_a, "ref_point"_a, "ref_ori"_a, "ref_body"_a, "axes"_a,
            "q"_a = nb::none(),
            "The numbers of a pose in one matrix (4, 4); None if a name is unknown.");
    bind_twist_numbers(cls);
}

}  // namespace tmkit::bindings
