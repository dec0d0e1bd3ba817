// Settings of the motion functions: effort, tolerances and resolution.
#include "motion.hpp"
#include "state.hpp"

namespace tmkit::bindings {
namespace {

void require_count(std::int64_t value, const char* name, std::int64_t least) {
    if (value < least)
        throw Error(ErrorKind::configuration, "{} must be at least {}, got {}", name, least, value)
            .with({{"value", static_cast<double>(value)}});
}

// The text of a settings value, from the names and values of its fields.
std::string settings_text(std::string text, std::initializer_list<const char*> names,
                          const nb::tuple& values) {
    text += '(';
    std::size_t i = 0;
    for (const char* name : names) {
        text += (i == 0 ? "" : ", ") + std::string(name) + "=" +
                nb::cast<std::string>(nb::repr(values[i]));
        ++i;
    }
    return text + ")";
}

IkSettings make_ik_settings(std::uint64_t seed, const std::optional<int>& restarts,
                            int max_iterations, double position_tolerance,
                            double rotation_tolerance, int max_solutions, double separation) {
    require_positive({{position_tolerance, "position_tolerance"}, {separation, "separation"}});
    if (!(rotation_tolerance > 0.0))
        throw Error(ErrorKind::configuration, "rotation_tolerance must be positive, got {}",
                    rotation_tolerance)
            .with({{"value", rotation_tolerance}});
    if (restarts) require_count(*restarts, "restarts", 0);
    require_count(max_iterations, "max_iterations", 1);
    require_count(max_solutions, "max_solutions", 1);
    return {seed,          restarts,  max_iterations, position_tolerance, rotation_tolerance,
            max_solutions, separation};
}

nb::tuple ik_values(const IkSettings& s) {
    return nb::make_tuple(s.seed, s.restarts, s.max_iterations, s.position_tolerance,
                          s.rotation_tolerance, s.max_solutions, s.separation);
}

void bind_ik_settings(nb::module_& m) {
    nb::class_<IkSettings> cls(m, "IkSettings", nb::is_weak_referenceable(),
                               R"(Effort and tolerances of inverse kinematics. Immutable.

Args:
    seed: seed of the random configurations; the same seed gives the same result.
    restarts: random configurations to try after ``q``; if omitted 25 for one solution and 100 for
        several.
    max_iterations: steps of one try.
    position_tolerance: largest position error of a solution [m].
    rotation_tolerance: largest rotation error of a solution [rad]; infinite leaves the orientation
        free.
    max_solutions: number of solutions after which ``inverse_kinematics_solutions`` ends.
    separation: several solutions differ by more than this in some joint [rad or m].

Raises:
    ConfigurationError: if a tolerance or the separation is not positive, or a number is too
        small.)");
    cls.def("__init__", made_by(&make_ik_settings), nb::kw_only(), "seed"_a = 0,
            "restarts"_a = nb::none(), "max_iterations"_a = 100, "position_tolerance"_a = 1e-5,
            "rotation_tolerance"_a = 1e-5, "max_solutions"_a = 8, "separation"_a = 0.1)
        .def_ro("seed", &IkSettings::seed, "Seed of the random configurations.")
        .def_ro("restarts", &IkSettings::restarts,
                "Random configurations to try after ``q``, or None.")
        .def_ro("max_iterations", &IkSettings::max_iterations, "Steps of one try.")
        .def_ro("position_tolerance", &IkSettings::position_tolerance,
                "Largest position error of a solution [m].")
        .def_ro("rotation_tolerance", &IkSettings::rotation_tolerance,
                "Largest rotation error of a solution [rad]; infinite if the orientation is free.")
        .def_ro("max_solutions", &IkSettings::max_solutions,
                "Number of solutions after which the search ends.")
        .def_ro("separation", &IkSettings::separation,
                "Smallest difference of two solutions in some joint [rad or m].");
    bind_value(cls, &ik_values, [](const IkSettings& s) {
        return settings_text("IkSettings",
                             {"seed", "restarts", "max_iterations", "position_tolerance",
                              "rotation_tolerance", "max_solutions", "separation"},
                             ik_values(s));
    });
    bind_state(cls, &ik_values, "inverse kinematics settings", &make_ik_settings);
}

std::optional<double> limit_of(const PathSettings& s) {
    return std::isinf(s.time_limit) ? std::nullopt : std::optional(s.time_limit);
}

PathSettings make_path_settings(std::uint64_t seed, std::int64_t max_iterations, double step,
                                double resolution, std::int64_t shortcut_iterations,
                                const std::optional<double>& time_limit, bool proved) {
    require_positive({{step, "step"}, {resolution, "resolution"}});
    require_count(max_iterations, "max_iterations", 0);
    require_count(shortcut_iterations, "shortcut_iterations", 0);
    if (time_limit && !(*time_limit >= 0.0))
        throw Error(ErrorKind::configuration, "time_limit must not be negative, got {}",
                    *time_limit)
            .with({{"value", *time_limit}});
    PathSettings settings{seed, max_iterations, step, resolution, proved, shortcut_iterations};
    if (time_limit) settings.time_limit = *time_limit;
    return settings;
}

nb::tuple path_values(const PathSettings& s) {
    return nb::make_tuple(s.seed, s.max_iterations, s.step, s.resolution, s.shortcut_iterations,
                          limit_of(s), s.proved);
}

void bind_path_settings(nb::module_& m) {
    nb::class_<PathSettings> cls(m, "PathSettings", nb::is_weak_referenceable(),
                                 R"(Effort and resolution of a path search. Immutable.

Args:
    seed: seed of the random configurations; the same seed gives the same path.
    max_iterations: random configurations to draw before the search ends without a path.
    step: longest edge of the trees, Euclidean over the moving joints [rad or m].
    resolution: largest step of any joint between two samples of a motion that is not proved [rad or
        m].
    shortcut_iterations: attempts to cut corners of the path; 0 returns the path unchanged.
    time_limit: time after which the search stops [s]; unlimited if omitted.
    proved: whether all motions of the path are proved to keep the margins, not only at samples.
        (Within 0.0016 rad of an end of a motion, which may touch, at samples of 1e-4.) Half spaces
        that joints carry cannot be proved.

Raises:
    ConfigurationError: if the step or the resolution is not positive, or another number is
        negative.)");
    cls.def("__init__", made_by(&make_path_settings), nb::kw_only(), "seed"_a = 0,
            "max_iterations"_a = 250000, "step"_a = 1.0, "resolution"_a = 0.02,
            "shortcut_iterations"_a = 100, "time_limit"_a = nb::none(), "proved"_a = true)
        .def_ro("seed", &PathSettings::seed, "Seed of the random configurations.")
        .def_ro("max_iterations", &PathSettings::max_iterations,
                "Random configurations to draw at most.")
        .def_ro("step", &PathSettings::step,
                "Longest edge of the trees, Euclidean over the moving joints [rad or m].")
        .def_ro("resolution", &PathSettings::resolution,
                "Largest step of any joint between two samples [rad or m].")
        .def_ro("shortcut_iterations", &PathSettings::shortcut_iterations,
                "Attempts to cut corners of the path.")
        .def_prop_ro("time_limit", &limit_of, "Time after which the search stops [s], or None.")
        .def_ro("proved", &PathSettings::proved, "Whether all motions of the path are proved.");
    bind_value(cls, &path_values, [](const PathSettings& s) {
        return settings_text("PathSettings",
                             {"seed", "max_iterations", "step", "resolution", "shortcut_iterations",
                              "time_limit", "proved"},
                             path_values(s));
    });
    bind_state(cls, &path_values, "path settings", &make_path_settings);
}

StraightLineSettings make_line_settings(double position_step, double rotation_step,
                                        double max_joint_jump, double deviation, double resolution,
                                        bool position_only) {
    require_positive({{position_step, "position_step"},
                      {rotation_step, "rotation_step"},
                      {max_joint_jump, "max_joint_jump"},
                      {deviation, "deviation"},
                      {resolution, "resolution"}});
    return {position_step, rotation_step, max_joint_jump, deviation, resolution, position_only};
}

nb::tuple line_values(const StraightLineSettings& s) {
    return nb::make_tuple(s.position_step, s.rotation_step, s.max_joint_jump, s.deviation,
                          s.resolution, s.position_only);
}

void bind_line_settings(nb::module_& m) {
    nb::class_<StraightLineSettings> cls(
        m, "StraightLineSettings", nb::is_weak_referenceable(),
        R"(Steps and tolerances of a straight motion of the tip. Immutable.

Args:
    position_step: distance between two solutions of inverse kinematics [m].
    rotation_step: rotation between two solutions of inverse kinematics [rad].
    max_joint_jump: largest change of any joint between two solutions [rad or m].
    deviation: largest distance of the frame's origin from the line between two rows of the path
        [m].
    resolution: largest step of any joint between two collision checks [rad or m].
    position_only: whether only the origin of the frame follows the line and its orientation is
        free.

Raises:
    ConfigurationError: if a number is not positive and finite.)");
    cls.def("__init__", made_by(&make_line_settings), nb::kw_only(), "position_step"_a = 0.005,
            "rotation_step"_a = 0.05, "max_joint_jump"_a = 0.3, "deviation"_a = 0.0005,
            "resolution"_a = 0.01, "position_only"_a = false)
        .def_ro("position_step", &StraightLineSettings::position_step,
                "Distance between two solutions [m].")
        .def_ro("rotation_step", &StraightLineSettings::rotation_step,
                "Rotation between two solutions [rad].")
        .def_ro("max_joint_jump", &StraightLineSettings::max_joint_jump,
                "Largest change of any joint between two solutions [rad or m].")
        .def_ro("deviation", &StraightLineSettings::deviation,
                "Largest distance from the line [m].")
        .def_ro("resolution", &StraightLineSettings::resolution,
                "Largest step of any joint between two collision checks [rad or m].")
        .def_ro("position_only", &StraightLineSettings::position_only,
                "Whether the orientation is free.");
    bind_value(cls, &line_values, [](const StraightLineSettings& s) {
        return settings_text("StraightLineSettings",
                             {"position_step", "rotation_step", "max_joint_jump", "deviation",
                              "resolution", "position_only"},
                             line_values(s));
    });
    bind_state(cls, &line_values, "straight line settings", &make_line_settings);
}

}  // namespace

void bind_motion_settings(nb::module_& m) {
    bind_ik_settings(m);
    bind_path_settings(m);
    bind_line_settings(m);
}

}  // namespace tmkit::bindings
