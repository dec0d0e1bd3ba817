#include "tmkit/inverse_kinematics.hpp"

#include "motion.hpp"

#define PLACED_FRAME                                                     \
    "\n    frame: the frame to place, such as the tool frame of an arm." \
    "\n    target_pose: relative_to_from_frame."

namespace tmkit::bindings {
namespace {

// Solutions with the names of the colliding frames.
struct NamedSolutions : InverseKinematicsSolutions {
    std::size_t joint_count;
    PairCounts blocking_pairs;
};

InverseKinematicsResult inverse_kinematics(const SceneGraph& scene, const std::string& tip,
                                           const Pose& target,
                                           const std::vector<std::string>& joints,
                                           const ArrayArgument& q,
                                           const std::optional<std::string>& reference,
                                           const IkSettings& settings) {
    const InverseKinematics problem = make_problem(scene, tip, joints, q, "q", reference);
    return without_gil([&](const auto&) { return problem.solve(target, settings); });
}

NamedSolutions inverse_kinematics_solutions(const SceneOrWorld& scene, const std::string& tip,
                                            const Pose& target,
                                            const std::vector<std::string>& joints,
                                            const ArrayArgument& q,
                                            const std::optional<std::string>& reference,
                                            const IkSettings& settings) {
    const InverseKinematics problem = make_problem(scene.scene(), tip, joints, q, "q", reference);
    const CollisionWorld* world = scene.world();
    InverseKinematicsSolutions result = without_gil([&](const auto& interrupted) {
        return solve_all(problem, target, settings, world, interrupted);
    });
    PairCounts blocking = name_counts(world, result.blocking);
    return {std::move(result), scene.scene().joint_count(), blocking};
}

void bind_results(nb::module_& m) {
    nb::enum_<InverseKinematicsStatus>(m, "InverseKinematicsStatus",
                                       "Status of an inverse kinematics search.")
        .value("SOLVED", InverseKinematicsStatus::solved, "within the tolerances and limits")
        .value("NOT_FOUND", InverseKinematicsStatus::not_found,
               "no try succeeded; a solution may exist")
        .value("OUT_OF_REACH", InverseKinematicsStatus::out_of_reach,
               "proved: the target is beyond the reach of the links");
    result_class<InverseKinematicsResult>(
        m, "InverseKinematicsResult", "Solution of :func:`inverse_kinematics`, or its best try.")
        .def_ro("status", &InverseKinematicsResult::status, "Status of the search.")
        .def_prop_ro("q", [](const InverseKinematicsResult& r) { return make_array(r.q); },
                     R"((n_joints,) solution, read-only; the best try if there is none.

It has all joints of the scene, in the order of ``scene.joint_names``. Joints outside ``joints``
keep their values.)")
        .def_ro("position_error", &InverseKinematicsResult::position_error,
                "Distance between the frame at ``q`` and the target [m].")
        .def_ro("rotation_error", &InverseKinematicsResult::rotation_error,
                "Angle between the frame at ``q`` and the target [rad].")
        .def_ro("iterations", &InverseKinematicsResult::iterations, "Steps of all tries together.")
        .def_ro("restarts", &InverseKinematicsResult::restarts, "Random configurations used.")
        .def("__repr__", [](const InverseKinematicsResult& r) {
        return format_text(
            "InverseKinematicsResult({}, position_error={}, rotation_error={}, restarts={})",
            status_name(r.status), r.position_error, r.rotation_error, r.restarts);
    });
    result_class<NamedSolutions>(m, "InverseKinematicsSolutions",
                                 R"(Solutions of :func:`inverse_kinematics_solutions`, best first.

``len(solutions)`` is their number, and ``for q in solutions`` iterates over them. The best solution
is the nearest one to the start, in the maximum norm.)")
        .def_ro("status", &NamedSolutions::status, "SOLVED if there is at least one solution.")
        .def("__len__", [](const NamedSolutions& s) { return s.configurations.size(); })
        .def("__iter__",
             [](const NamedSolutions& s) {
        const nb::object rows = nb::cast(array_of(s.configurations, s.joint_count));
        return nb::cast<nb::typed<nb::iterator, ReadOnlyArray>>(nb::iter(rows));
    })
        .def_prop_ro("q",
                     [](const NamedSolutions& s) -> std::optional<ReadOnlyArray> {
        if (s.configurations.empty()) return std::nullopt;
        return make_array(s.configurations.front());
    }, "(n_joints,) best solution, read-only; None without a solution.")
        .def_prop_ro("configurations",
                     [](const NamedSolutions& s) {
        return array_of(s.configurations, s.joint_count);
    }, R"((k, n_joints) solutions, best first, read-only.

A row has all joints of the scene, in the order of ``scene.joint_names``. Joints outside ``joints``
keep their values.)")
        .def_ro("tries", &NamedSolutions::tries, "Starting configurations used.")
        .def_ro("in_collision", &NamedSolutions::in_collision,
                "Number of solutions rejected by the world as in collision.")
        .def_ro("blocking_pairs", &NamedSolutions::blocking_pairs,
                "(frame_a, frame_b, count) of their collisions, most frequent first.")
        .def_ro("is_target_in_collision", &NamedSolutions::target_collides,
                "Proved: every solution collides, since one does in frames with the same relative "
                "pose in all.")
        .def("__repr__", [](const NamedSolutions& s) {
        return format_text("InverseKinematicsSolutions({}, {} found, {} in collision)",
                           status_name(s.status), s.configurations.size(), s.in_collision);
    });
}

// The end of both docstrings.
constexpr const char* shared_arguments = R"(
    relative_to: the reference frame of the target pose; the root of the frame's tree if omitted.
        The joints may move it too.
    settings: effort and tolerances; the defaults of :class:`IkSettings` if omitted.

Raises:
    UnknownNameError: if a frame or joint is not in the scene.
    DisconnectedError: if ``frame`` and ``relative_to`` are in different trees.
    ConfigurationError: if ``q`` has the wrong length or is outside the limits, or a joint mimics
        another.)";

}  // namespace

void bind_inverse_kinematics(nb::module_& m) {
    bind_results(m);
    m.def("inverse_kinematics", &inverse_kinematics, "scene"_a, "frame"_a, nb::kw_only(),
          "target_pose"_a, "joints"_a, "q"_a, "relative_to"_a = nb::none(),
          "settings"_a = IkSettings{},
          Text{R"(Find joint values that put a frame at a pose.

The first try starts at ``q``, the others at random configurations within the limits (unlimited
angles: -pi to pi). A solution satisfies the limits; its angles are shifted by whole turns to the
values nearest to ``q``. About 20 us for an arm of seven joints.

Args:
    scene: the version of the scene.)" PLACED_FRAME R"(
    joints: names of the joints that may move; those off the chain from ``relative_to`` to ``frame``
        do not change.
    q: (n_joints,) values of all joints, and the first start.)"} +
              shared_arguments);
    m.def("inverse_kinematics_solutions", &inverse_kinematics_solutions, "scene"_a, "frame"_a,
          nb::kw_only(), "target_pose"_a, "joints"_a, "q"_a, "relative_to"_a = nb::none(),
          "settings"_a = IkSettings{},
          Text{R"(Find several different joint values that put a frame at a pose.

Starts from ``q`` and then from random configurations, until ``settings.max_solutions`` solutions
are found or the restarts are exhausted. If the solutions of a redundant arm collide, the elbow
moves while ``frame`` is fixed, until one is free. If the first one collides in frames with the same
relative pose in every solution, such as the hand and a wall, all solutions collide, and the search
ends.

Args:
    scene: the version of the scene, or a collision world of it, for solutions
        without collisions.)" PLACED_FRAME
               R"(
    joints: names of the joints that may move.
    q: (n_joints,) values of all joints, and the first start.)"} +
              shared_arguments);
}

}  // namespace tmkit::bindings
