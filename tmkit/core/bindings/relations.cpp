// Relations in a scene: their numbers, and the registered functions that give them meaning as methods.
#include "tmkit/scene_relations.hpp"

#include "bindings.hpp"
#include "registered.hpp"

namespace tmkit::bindings {
namespace {

using Name = std::string_view;
using MaybeArray = std::optional<ReadOnlyArray>;
using MaybeConfiguration = std::optional<ArrayArgument>;

// None says that a name is wrong, which Python then explains; nothing is looked up twice where all is right.
void bind_position_numbers(nb::class_<SceneGraph>& cls) {
    cls.def("_related_position",
            [](const SceneGraph& s, Name point, Name body, Name ref_point, Name ref_body, Name axes,
               const MaybeConfiguration& q) -> MaybeArray {
        if (!sits_on(s, point, body) || !sits_on(s, ref_point, ref_body) || !s.find(axes)) return std::nullopt;
        return make_array(related_position(s, point, ref_point, axes, ConfigurationArgument(q, s).get()));
    },
            nb::arg("point"), nb::arg("body"), nb::arg("ref_point"), nb::arg("ref_body"), nb::arg("axes"),
            nb::arg("q") = nb::none(), "The numbers (3,) of a position; None where a name is wrong.")
        .def("_related_orientation",
             [](const SceneGraph& s, Name ori, Name body, Name ref_ori, Name ref_body, Name axes,
                const MaybeConfiguration& q) -> MaybeArray {
        if (!sits_on(s, ori, body) || !sits_on(s, ref_ori, ref_body) || !s.find(axes)) return std::nullopt;
        const Matrix3 m = related_orientation(s, ori, ref_ori, axes, ConfigurationArgument(q, s).get());
        return make_array({m.begin(), m.end()}, {3, 3});
    },
             nb::arg("ori"), nb::arg("body"), nb::arg("ref_ori"), nb::arg("ref_body"), nb::arg("axes"),
             nb::arg("q") = nb::none(), "The numbers (3, 3) of an orientation; None where a name is wrong.");
}

void bind_pose_numbers(nb::class_<SceneGraph>& cls) {
    cls.def("_related_pose",
            [](const SceneGraph& s, Name point, Name ori, Name body, Name ref_point, Name ref_ori, Name ref_body,
               Name axes, const MaybeConfiguration& q) -> MaybeArray {
        if (!sits_on(s, ori, body) || !sits_on(s, ref_ori, ref_body)) return std::nullopt;
        const ConfigurationArgument configuration(q, s);
        if (point == ori && ref_point == ref_ori && axes == ref_ori) {
            const Matrix4 m = s.pose(ori, ref_ori, configuration.get()).matrix();
            return make_array({m.begin(), m.end()}, {4, 4});
        }
        if (!sits_on(s, point, body) || !sits_on(s, ref_point, ref_body) || !s.find(axes)) return std::nullopt;
        const Vector3 p = related_position(s, point, ref_point, axes, configuration.get());
        const Matrix3 m = related_orientation(s, ori, ref_ori, axes, configuration.get());
        return make_array({m[0], m[1], m[2], p[0], m[3], m[4], m[5], p[1], m[6], m[7], m[8], p[2], 0.0, 0.0, 0.0, 1.0},
                          {4, 4});
    },
            nb::arg("point"), nb::arg("ori"), nb::arg("body"), nb::arg("ref_point"), nb::arg("ref_ori"),
            nb::arg("ref_body"), nb::arg("axes"), nb::arg("q") = nb::none(),
            "The numbers of a pose in one matrix (4, 4); None where a name is wrong.");
}

void bind_twist_numbers(nb::class_<SceneGraph>& cls) {
    cls.def("_related_twist",
            [](const SceneGraph& s, std::optional<Name> point, Name body, Name ref_body, Name axes,
               const MaybeConfiguration& q, char part) -> MaybeArray {
        if ((point && !sits_on(s, *point, body) && !sits_on(s, *point, ref_body)) || !s.find(axes)) return std::nullopt;
        const BodyId *moves = s.find_body(body), *reference = s.find_body(ref_body);
        if (!moves || !reference) return std::nullopt;
        const std::optional<Vector6> twist =
            related_twist(s, point, *moves, *reference, axes, ConfigurationArgument(q, s).get());
        if (!twist) return std::nullopt;
        if (part == 't') return make_array(*twist);
        return make_array(part == 'v' ? std::vector<double>(twist->begin(), twist->begin() + 3)
                                      : std::vector<double>(twist->begin() + 3, twist->end()),
                          {3});
    },
            nb::arg("point").none(), nb::arg("body"), nb::arg("ref_body"), nb::arg("axes"), nb::arg("q") = nb::none(),
            nb::arg("part") = 't', R"(The numbers (6,) of a twist, or (3,) of its linear (v) or angular (w) part.

None where a name is wrong or no path of twists leads there.)");
}

void bind_uncertain_twist_numbers(nb::class_<SceneGraph>& cls) {
    cls.def("_uncertain_twist",
            [](const SceneGraph& s, Name point, Name body, Name ref_body, Name axes,
               const MaybeConfiguration& q) -> std::optional<std::pair<ReadOnlyArray, std::optional<NoiseHandle>>> {
        if ((!sits_on(s, point, body) && !sits_on(s, point, ref_body)) || !s.find(axes)) return std::nullopt;
        const BodyId *moves = s.find_body(body), *reference = s.find_body(ref_body);
        if (!moves || !reference) return std::nullopt;
        NoiseSum error;
        const std::optional<Vector6> twist =
            related_twist(s, point, *moves, *reference, axes, ConfigurationArgument(q, s).get(), &error);
        if (!twist) return std::nullopt;
        return std::pair{make_array(*twist), noise_or_none(error.edge())};
    },
            nb::arg("point"), nb::arg("body"), nb::arg("ref_body"), nb::arg("axes"), nb::arg("q") = nb::none(),
            R"(The numbers (6,) of a twist and its error, source by source (None: exact).

None where a name is wrong or no path of twists leads there.)");
}

void bind_numbers(nb::class_<SceneGraph>& cls) {
    bind_position_numbers(cls);
    bind_pose_numbers(cls);
    bind_twist_numbers(cls);
    bind_uncertain_twist_numbers(cls);
}

void bind_relate(nb::class_<SceneGraph>& cls) {
    cls.def("relate",
            [](nb::handle self, nb::handle coord, nb::handle representation, nb::handle q, nb::handle qd) {
        if (representation.is_none() && q.is_none() && qd.is_none())
            return registered_function(&Registered::relate)(self, coord);  // names cost time
        return registered_function(&Registered::relate)(self, coord, nb::arg("representation") = representation,
                                                        nb::arg("q") = q, nb::arg("qd") = qd);
    }, nb::arg("coord"), nb::kw_only(), nb::arg("representation") = nb::none(), nb::arg("q") = nb::none(),
            nb::arg("qd") = nb::none(),
            nb::sig("def relate(self, coord: typing.Any, *, representation: type | None = None, q: "
                    "numpy.typing.ArrayLike | None = None, qd: numpy.typing.ArrayLike | None = None) -> typing.Any"),
            R"(Return a relation that holds in the scene, with its numbers. O(depth log n).

Args:
    coord: coordinates of a position, orientation, pose, linear velocity, angular velocity or twist, whose names are
        frames and bodies of the scene. The point of a velocity is a frame of the body or of the reference body.
    representation: the form of the numbers. By default a position vector, a rotation matrix, vector and matrix (a
        rotation vector instead of the matrix where the axes are not those of the reference frame) or a six-vector.
    q: (n_joints,) configuration, radians or metres; required when a joint is on the path.
    qd: (n_joints,) joint velocities, rad/s or m/s: velocities are then those of the joints, not of twist edges.

Returns:
    The relation: a ``SemanticPose`` for a ``PoseCoord``, and so on.

Raises:
    UnknownNameError: no such frame or body.
    SemanticError: a frame is not on the body named; no poses, or no twists, lead from one to the other; or the
        representation cannot express what is asked for.
    ConfigurationError: a joint is on the path and q is missing.)");
}

void bind_relation_edits(nb::class_<SceneGraph>& cls) {
    cls.def("add_pose",
            [](nb::handle self, nb::handle pose, const Joint& joint, nb::handle q, const std::string& on_conflict) {
        return nb::typed<nb::object, SceneGraph>(registered_function(&Registered::add_pose)(
            self, pose, nb::arg("joint") = joint, nb::arg("q") = q, nb::arg("on_conflict") = on_conflict));
    }, nb::arg("pose"), nb::kw_only(), nb::arg("joint") = Joint{}, nb::arg("q") = nb::none(),
            nb::arg("on_conflict") = "refuse",
            nb::sig("def add_pose(self, pose: typing.Any, *, joint: Joint = ..., q: numpy.typing.ArrayLike | None = "
                    "None, on_conflict: str = 'refuse') -> SceneGraph"),
            R"(Return the scene with the pose of one frame relative to another as a new edge.

A pose of points that are no origins of frames, or in the axes of a third frame, is converted by the poses of the
scene.

Args:
    pose: the relation, whose names are frames and bodies of the scene.
    joint: how the frame moves relative to its reference, at value 0 in this pose; fixed if omitted.
    q: (n_joints,) configuration, radians or metres; required when a joint is on the path of a conversion.
    on_conflict: ``refuse``, or ``invert``: try a refused pose the other way round.

Raises:
    UnknownNameError: no such frame, body or ``on_conflict``.
    SemanticError: not a pose, a frame is not on the body named, or the pose cannot be converted.
    CycleError, SceneError: the edge would break a rule of the scene.)");
}

void bind_twist_relations(nb::class_<SceneGraph>& cls) {
    cls.def("gaussian_twist",
            [](nb::handle self, nb::handle coord, nb::handle q) {
        return registered_function(&Registered::gaussian_twist)(self, coord, nb::arg("q") = q);
    }, nb::arg("coord"), nb::kw_only(), nb::arg("q") = nb::none(),
            nb::sig("def gaussian_twist(self, coord: typing.Any, *, q: numpy.typing.ArrayLike | None = None) -> "
                    "typing.Any"),
            R"(Return the twist of one body relative to another with its covariance. O(t) for t twist edges.

Args:
    coord: coordinates of a twist, as for ``relate``; joints do not move.
    q: (n_joints,) configuration, radians or metres; required when a joint is on the path of a pose.

Returns:
    Linear velocity of the point (m/s) and angular velocity (rad/s), in the axes of the frame of expression, with
    the covariance (6, 6), to first order.

Raises:
    UnknownNameError: no such frame or body.
    SemanticError: not coordinates of a twist, a frame is not on the body named, or no twists lead there.
    ConfigurationError: a joint is on the path and q is missing.)")
        .def("add_twist",
             [](nb::handle self, nb::handle twist, nb::handle covariance, nb::handle frame, nb::handle q,
                const std::string& on_conflict, bool strict) {
        return nb::typed<nb::object, SceneGraph>(registered_function(&Registered::add_twist)(
            self, twist, nb::arg("covariance") = covariance, nb::arg("frame") = frame, nb::arg("q") = q,
            nb::arg("on_conflict") = on_conflict, nb::arg("strict") = strict));
    },
             nb::arg("twist"), nb::kw_only(), nb::arg("covariance") = nb::none(), nb::arg("frame") = nb::none(),
             nb::arg("q") = nb::none(), nb::arg("on_conflict") = "refuse", nb::arg("strict") = false,
             nb::sig("def add_twist(self, twist: typing.Any, *, covariance: numpy.typing.ArrayLike | None = None, "
                     "frame: str | None = None, q: numpy.typing.ArrayLike | None = None, on_conflict: str = 'refuse', "
                     "strict: bool = False) -> SceneGraph"),
             R"(Return the scene with the twist of one body relative to another as an edge.

A twist at another point or in other axes than those of the edge is converted by the poses of the scene.

Args:
    twist: the relation: a twist of a body of the scene relative to another.
    covariance: (6, 6) of the linear velocity of the point and the angular velocity, in the axes of the relation,
        m/s and rad/s; converted like the twist. None or zero: exact.
    frame: the frame that the edge leads to; that of the twist's point if omitted.
    q: (n_joints,) configuration, radians or metres; required when a joint is on the path of a conversion.
    on_conflict: ``refuse``, or ``invert``: try a refused twist the other way round, as one of the reference body.
    strict: refuse a twist between two bodies that twist edges join already, in any direction and over any frames.

Raises:
    UnknownNameError: no such frame, body or ``on_conflict``.
    SemanticError: not a twist, a frame is not on the body named, or the twist cannot be converted.
    SceneError: the edge would break a rule of the scene.)")
        .def("integrate", [](nb::handle self, double dt) {
        return nb::typed<nb::object, SceneGraph>(registered_function(&Registered::integrate)(self, dt));
    }, nb::arg("dt"), R"(Return the scene after its twists have acted for a time ``dt`` in seconds, with their errors.

Raises:
    SemanticError: a time that is not finite.)");
}

}  // namespace

void bind_relations(nb::class_<SceneGraph>& cls) {
    bind_numbers(cls);
    bind_relate(cls);
    bind_relation_edits(cls);
    bind_twist_relations(cls);
}

}  // namespace tmkit::bindings
