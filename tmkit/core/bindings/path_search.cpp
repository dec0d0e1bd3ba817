#include "tmkit/path_search.hpp"

#include <cmath>

#include "motion.hpp"

namespace tmkit::bindings {
namespace {

// A result with names in addition to its numbers, independent of the world.
template <class Result> struct Named : Result {
    std::size_t joint_count;
    std::optional<PairNames> pair_names;
    std::optional<std::string> joint_name;
};
using NamedLine = Named<StraightLineResult>;
using NamedRecheck = Named<RecheckResult>;
struct NamedPath : Named<PathResult> {
    PairCounts blocking_pairs;
    std::optional<PairNames> straight_pair;
};

template <class Result>
Named<Result> with_names(Result result, const SceneGraph& scene, const CollisionWorld* world) {
    const auto pair = pair_names(world, result.pair);
    std::optional<std::string> joint;
    if (result.joint >= 0) joint = joint_of_entry(scene, result.joint).name;
    return {std::move(result), scene.joint_count(), pair, joint};
}

// Text of the pair and the joint of a result.
template <class Result> std::string cause_text(const Named<Result>& r) {
    const auto& [first, second] = r.pair_names.value_or(PairNames());
    return (r.pair_names ? ", pair=(" + quote(first) + ", " + quote(second) + ")" : "") +
           (r.joint_name ? ", joint=" + quote(*r.joint_name) : "");
}

Configurations rows_of(const std::vector<double>& values, std::size_t columns) {
    Configurations rows;
    for (std::size_t i = 0; i < values.size(); i += columns)
        rows.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i),
                          values.begin() + static_cast<std::ptrdiff_t>(i + columns));
    return rows;
}

// One configuration, or several as rows.
Configurations read_goals(const ArrayArgument& argument, std::size_t columns) {
    const nb::object& value = argument.value;
    const bool single =
        PySequence_Check(value.ptr()) && nb::len(value) > 0 && !nb::hasattr(value[0], "__len__");
    if (single) return {read_vector(argument, "goals", columns)};
    Configurations goals = rows_of(read_matrix(argument, "goals", columns), columns);
    if (goals.empty())
        throw Error(ErrorKind::configuration, "goals must hold at least one configuration");
    return goals;
}

// Values of PathConstraint, which has checked its numbers.
using ConstraintValues = nb::typed<nb::sequence, nb::object>;

std::vector<PathConstraint> read_constraints(const ConstraintValues& values,
                                             const SceneGraph& scene) {
    using Kind = PathConstraint::Kind;
    std::vector<PathConstraint> constraints;
    for (const nb::handle value : values) {
        if (!nb::hasattr(value, "tolerance"))
            throw Error(ErrorKind::configuration,
                        "constraints must be PathConstraint values, not {}",
                        nb::cast<std::string>(nb::repr(value)));
        const auto text = [&](const char* name) { return nb::cast<std::string>(value.attr(name)); };
        const auto vector = [&](const char* name) { return nb::cast<Vector3>(value.attr(name)); };
        const bool turns = text("kind") == "orientation";
        const Kind kind = turns                    ? Kind::orientation
                          : text("kind") == "line" ? Kind::line
                                                   : Kind::plane;
        constraints.push_back({kind, scene.frame_number(text("frame")),
                               vector(turns ? "axis" : "offset"), vector("direction"),
                               vector("point"), nb::cast<double>(value.attr("tolerance"))});
    }
    return constraints;
}

NamedPath search(const CollisionWorld& world, const std::vector<std::string>& joints,
                 const ArrayArgument& start, const ArrayArgument& goals,
                 const ConstraintValues& constraints, const std::vector<ArrayArgument>& known_paths,
                 const PathSettings& settings) {
    const std::size_t n = world.joint_count();
    PathQuery query;
    query.entries = joint_entries(world.scene(), joints);
    if (query.entries.empty())
        throw Error(ErrorKind::configuration, "joints must name at least one joint");
    query.constraints = read_constraints(constraints, world.scene());
    query.start = read_vector(start, "start", n);
    query.goals = read_goals(goals, n);
    for (const ArrayArgument& path : known_paths)
        query.known.push_back(rows_of(read_matrix(path, "known", n), n));
    PathResult result = without_gil(
        [&](const auto& interrupted) { return search_path(world, query, settings, interrupted); });
    PairCounts blocking = name_counts(&world, result.blocking);
    const auto straight = pair_names(&world, result.straight);
    return {with_names(std::move(result), world.scene(), &world), blocking, straight};
}

NamedLine follow_line(const SceneOrWorld& scene, const std::string& tip, const ArrayArgument& start,
                      const Pose& target, const std::vector<std::string>& joints,
                      const std::optional<std::string>& reference,
                      const StraightLineSettings& settings) {
    const InverseKinematics problem =
        make_problem(scene.scene(), tip, joints, start, "start", reference);
    const CollisionWorld* world = scene.world();
    return with_names(
        without_gil([&](const auto&) { return straight_line(problem, target, world, settings); }),
        scene.scene(), world);
}

NamedRecheck recheck(const CollisionWorld& world, const ArrayArgument& path, double resolution,
                     const std::optional<std::string>& tool_frame, double tool_travel) {
    require_positive({{resolution, "resolution"}, {tool_travel, "tool_travel"}});
    const RecheckOptions options{
        resolution, tool_frame ? world.scene().frame_number(*tool_frame) : -1, tool_travel};
    const Configurations rows =
        rows_of(read_matrix(path, "path", world.joint_count()), world.joint_count());
    return with_names(without_gil([&](const auto& interrupted) {
        return recheck_path(world, rows, options, interrupted);
    }),
                      world.scene(), &world);
}

void make_path(NamedPath* self, PathStatus status, const ArrayArgument& path,
               const PairCounts& blocking, const std::optional<PairNames>& pair,
               const std::optional<std::string>& joint, std::int64_t goal_index,
               const std::optional<PairNames>& straight) {
    std::size_t columns = 0;
    const std::vector<double> numbers = read_grid(path, "path", columns, ErrorKind::configuration);
    PathResult result{
        .status = status, .path = rows_of(numbers, columns), .goal_index = goal_index};
    for (std::size_t i = columns; i < numbers.size(); i += columns) {
        double squared = 0.0;
        for (std::size_t j = i; j < i + columns; ++j)
            squared += (numbers[j] - numbers[j - columns]) * (numbers[j] - numbers[j - columns]);
        result.length += std::sqrt(squared);
    }
    new (self) NamedPath{{std::move(result), columns, pair, joint}, blocking, straight};
}

void bind_path_result(nb::module_& m) {
    nb::enum_<PathStatus>(m, "PathStatus", "Status of a path search.")
        .value("SOLVED", PathStatus::solved, "a path is returned")
        .value("START_IN_COLLISION", PathStatus::start_in_collision, "see ``pair``")
        .value("GOAL_IN_COLLISION", PathStatus::goal_in_collision,
               "no goal is usable; see ``pair`` for the first")
        .value("START_OUT_OF_LIMITS", PathStatus::start_out_of_limits, "see ``joint``")
        .value("GOAL_OUT_OF_LIMITS", PathStatus::goal_out_of_limits,
               "no goal is within its limits; see ``joint`` for the first")
        .value("START_VIOLATES_CONSTRAINT", PathStatus::start_violates_constraint,
               "no path satisfies the constraints")
        .value("GOAL_VIOLATES_CONSTRAINT", PathStatus::goal_violates_constraint,
               "no usable goal satisfies the constraints")
        .value("NO_PATH", PathStatus::no_path, "the iterations are exhausted; a path may exist")
        .value("TIME_LIMIT", PathStatus::time_limit, "the time limit ended the search")
        .value("RECHECK_FAILED", PathStatus::recheck_failed,
               "paths were found but none passed the finer check; see ``pair``");
    result_class<NamedPath>(
        m, "PathResult", "The result of a path search, by ``search_path`` or by another planner.")
        .def("__init__", &make_path, "status"_a, "path"_a, nb::kw_only(),
             "blocking_pairs"_a = nb::tuple(), "pair"_a = nb::none(), "joint"_a = nb::none(),
             "goal_index"_a = -1, "straight_pair"_a = nb::none(),
             R"(Create the result of a motion planner.

Args:
    status: status of the search.
    path: (k, n_joints) full configurations from the start to a goal; no rows unless SOLVED.
    blocking_pairs: (frame_a, frame_b, count) of the collisions, most frequent first.
    pair: the colliding frames, if one pair decided.
    joint: the joint outside its limits, if one decided.
    goal_index: index of the reached goal, or -1.
    straight_pair: the colliding frames of the straight motion.

Raises:
    ConfigurationError: if the path is not a matrix of finite numbers.)")
        .def_ro("status", &NamedPath::status, "Status of the search.")
        .def_prop_ro(
            "path", [](const NamedPath& r) { return array_of(r.path, r.joint_count); },
            R"((k, n_joints) full configurations to be joined by straight joint motions, read-only.

The first is the start, the last the goal, up to whole turns of continuous joints; (0, n_joints)
unless SOLVED.)")
        .def_ro("goal_index", &NamedPath::goal_index, "Index of the reached goal, or -1.")
        .def_ro("iterations", &NamedPath::iterations, "Random configurations drawn.")
        .def_ro("checks", &NamedPath::checks, "Configurations checked.")
        .def_ro("length", &NamedPath::length, "Length of the path, Euclidean over the joints.")
        .def_ro("blocking_pairs", &NamedPath::blocking_pairs,
                "(frame_a, frame_b, count) of the collisions, most frequent first.")
        .def_ro("pair", &NamedPath::pair_names,
                "The frames that collide at the start, the goal or in the recheck.")
        .def_ro("joint", &NamedPath::joint_name, "The joint that is outside its limits.")
        .def_ro("straight_pair", &NamedPath::straight_pair,
                "The colliding frames of the straight motion to the nearest goal, or None.")
        .def("__repr__", [](const NamedPath& r) {
        const std::string path =
            r.path.empty() ? "" : format_text(", {} waypoints, length={}", r.path.size(), r.length);
        return format_text("PathResult({}{}{}, {} iterations)", status_name(r.status), path,
                           cause_text(r), r.iterations);
    });
}

void bind_line_and_recheck_results(nb::module_& m) {
    nb::enum_<StraightLineStatus>(m, "StraightLineStatus",
                                  "Status of a straight motion of the tip.")
        .value("SOLVED", StraightLineStatus::solved, "the tip reaches the target")
        .value("UNREACHABLE", StraightLineStatus::unreachable,
               "no joint values were found at ``fraction``")
        .value("JOINT_LIMIT", StraightLineStatus::joint_limit,
               "the motion continues only beyond the limit of ``joint``")
        .value("JOINT_JUMP", StraightLineStatus::joint_jump,
               "``joint`` would exceed the largest step")
        .value("COLLISION", StraightLineStatus::collision, "``pair`` collides at ``fraction``");
    result_class<NamedLine>(m, "StraightLineResult", "Result of ``straight_line``.")
        .def_ro("status", &NamedLine::status, "Status of the motion.")
        .def_prop_ro("path", [](const NamedLine& r) { return array_of(r.path, r.joint_count); },
                     "(k, n_joints) full configurations from the start to the target, or up to the "
                     "failure; read-only.")
        .def_ro("fraction", &NamedLine::fraction,
                "1 if solved, else the fraction of the line up to the failure.")
        .def_ro("pair", &NamedLine::pair_names, "The frames that collide, of COLLISION.")
        .def_ro("joint", &NamedLine::joint_name, "The joint, of JOINT_LIMIT and JOINT_JUMP.")
        .def_ro("checks", &NamedLine::checks, "Configurations checked.")
        .def("__repr__", [](const NamedLine& r) {
        return format_text("StraightLineResult({}, {} waypoints, fraction={}{})",
                           status_name(r.status), r.path.size(), r.fraction, cause_text(r));
    });
    nb::enum_<RecheckStatus>(m, "RecheckStatus", "Status of a recheck.")
        .value("OK", RecheckStatus::ok, "the path is free and within the limits")
        .value("COLLISION", RecheckStatus::collision, "``pair`` collides")
        .value("OUT_OF_LIMITS", RecheckStatus::out_of_limits, "``joint`` is outside its limits");
    result_class<NamedRecheck>(m, "RecheckResult", "Result of ``recheck_path``.")
        .def_ro("status", &NamedRecheck::status, "Status of the check.")
        .def_prop_ro("is_ok", [](const NamedRecheck& r) { return r.status == RecheckStatus::ok; },
                     "Whether the path is free and within the limits.")
        .def_ro("segment", &NamedRecheck::segment,
                "The failure is on the motion from row ``segment`` to the next; -1 if there is "
                "none.")
        .def_ro("fraction", &NamedRecheck::fraction, "Fraction of the segment, 0 to 1.")
        .def_ro("pair", &NamedRecheck::pair_names, "The frames that collide.")
        .def_ro("joint", &NamedRecheck::joint_name, "The joint outside its limits.")
        .def_prop_ro("q",
                     [](const NamedRecheck& r) -> std::optional<ReadOnlyArray> {
        if (r.q.empty()) return std::nullopt;
        return make_array(r.q);
    }, "(n_joints,) the configuration of the failure, read-only.")
        .def_ro("checks", &NamedRecheck::checks, "Configurations checked.")
        .def("__repr__", [](const NamedRecheck& r) {
        const std::string place =
            r.status == RecheckStatus::ok
                ? ""
                : format_text(", segment={}, fraction={}", r.segment, r.fraction);
        return format_text("RecheckResult({}{}{}, {} checks)", status_name(r.status), place,
                           cause_text(r), r.checks);
    });
}

void bind_line_and_recheck(nb::module_& m) {
    m.def("straight_line", &follow_line, "scene"_a, "frame"_a, nb::kw_only(), "start"_a,
          "target_pose"_a, "joints"_a, "relative_to"_a = nb::none(),
          "settings"_a = StraightLineSettings{},
          "Move a frame straight to a target pose: translation linearly, rotation along the "
          "shorter arc."
          R"(

Inverse kinematics is solved at each step from the solution before, without restarts, so the arm
does not change its posture on the path.

Args:
    scene: the version of the scene, or a collision world of it, for a motion without collisions.
    frame: the frame to move, such as the tool frame of an arm.
    start: (n_joints,) full configuration at the start.
    target_pose: relative_to_from_frame at the end.
    joints: names of the joints that may move.
    relative_to: the reference frame of the target pose; the root of the frame's tree if omitted.
    settings: steps and tolerances; the defaults of :class:`StraightLineSettings` if omitted.

Raises:
    UnknownNameError: if a joint or frame is not in the scene.
    DisconnectedError: if ``frame`` and ``relative_to`` are in different trees.
    ConfigurationError: if the start has the wrong length, or a moving joint is outside its limits
        by more than 0.001 rad or 0.0001 m. Within this distance it starts at the limit.)");
    m.def("recheck_path", &recheck, "world"_a, "path"_a, nb::kw_only(), "resolution"_a = 0.003,
          "tool_frame"_a = nb::none(), "tool_travel"_a = 0.001,
          R"(Check a path of straight joint motions again, finely, and return the first failure.

Args:
    world: collision world, with its margins.
    path: (k, n_joints) full configurations, possibly none. Limits apply to the joints that move on
        it.
    resolution: largest step of any joint between two checks [rad or m].
    tool_frame: frame whose origin travels at most ``tool_travel`` between two checks; None for no
        bound.
    tool_travel: largest travel of the tool frame between two checks [m].)" NO_FRAME R"(
    ConfigurationError: if the path has the wrong shape or non-finite numbers.)");
}

}  // namespace

void bind_path_search(nb::module_& m) {
    bind_path_result(m);
    bind_line_and_recheck_results(m);
    m.def("search_path", &search, "world"_a, "joints"_a, nb::kw_only(), "start"_a, "goals"_a,
          "constraints"_a = nb::tuple(), "known"_a = nb::tuple(), "settings"_a = PathSettings{},
          "Search a collision-free path from a start to one of several goals with RRT-Connect, and "
          "shorten it."
          R"(

Start and goals are checked first; the straight motions are tried before any tree grows. The result
depends on the arguments and iteration counts alone; a time limit only ends the search.

Args:
    world: collision world, with its margins.
    joints: names of the joints that may move; all others have their values of ``start``.
    start: (n_joints,) full configuration. A moving joint that is past a limit by up to 0.001 rad
        or 0.0001 m starts at the limit.
    goals: (n_joints,) or (k, n_joints) full configurations; only the moving joints count. Those
        that are past a limit by as much end at the limit.
    constraints: up to 6 :class:`PathConstraint` that hold along the whole path. The points of the
        path are then dense enough that straight motions between them satisfy the constraints.
    known: paths (k, n_joints) that are tried, in order, before any tree grows, joined by straight
        motions to the start and to the goal nearest to their end. One that is free is returned with
        0 iterations; it is shortened at its joins.
    settings: effort and resolution; the defaults of :class:`PathSettings` if omitted.

Raises:
    UnknownNameError: if a joint or frame is not in the scene.
    ConfigurationError: if a configuration has the wrong length, a joint mimics another, or there
        are too many constraints.)");
    bind_line_and_recheck(m);
}

}  // namespace tmkit::bindings
