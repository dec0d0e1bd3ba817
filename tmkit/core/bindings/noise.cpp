// Noise sources, the errors of edges and their edits, measurements and conditioning on them.
#include <cmath>

#include "edits.hpp"

#define MEASURED "\n\nArgs:\n    frame: the measured frame."
#define NO_MEASUREMENT                                                                            \
    "\n\nRaises:\n    SceneError: if a number is not finite, or the covariance is not symmetric " \
    "positive semi-definite."

#define OF_NOISE "\n\nArgs:\n    frame: the frame below the edge."

namespace tmkit::bindings {

Ref<const EdgeNoise> noise_of(const SourceMaps& maps) {
    NoiseSum sum;
    for (nb::handle item : maps.items()) {
        const auto source = nb::cast<SourceHandle>(item[0]);
        const std::size_t d = source.source->dimension;
        const std::string what = "the map of noise source '" + source.source->label + "'";
        const std::vector<double> v = read_shaped(item[1], what.c_str(), 6, d);
        std::vector<Vector6> columns(d);
        for (std::size_t k = 0; k < 6; ++k)
            for (std::size_t c = 0; c < d; ++c) columns[c][k] = v[k * d + c];
        sum.add(source.source, columns, [](const Vector6& column) { return column; });
    }
    return sum.edge();
}

Ref<const EdgeNoise> own_noise(const OptionalArray& covariance, std::string_view frame,
                               std::string_view reference, bool of_twist) {
    if (!covariance) return nullptr;
    const std::string edge =
                          format_text(of_twist ? "twist of '{}' relative to '{}'" : "'{}' in '{}'",
                                      frame, reference),
                      what = (of_twist ? "the covariance of the " : "the covariance of ") + edge;
    return EdgeNoise::of_covariance(read_covariance(*covariance, what), edge);
}

Ref<const EdgeNoise> own_noise(const PoseArgument& pose, std::string_view frame,
                               std::string_view reference) {
    if (!nb::isinstance<GaussianPose>(pose.value)) return nullptr;
    const Covariance& covariance = nb::cast<const GaussianPose&>(pose.value).covariance;
    return EdgeNoise::of_covariance(covariance, format_text("'{}' in '{}'", frame, reference));
}

Ref<const EdgeNoise> with_covariance(const EdgeNoise& noise, const Covariance& covariance) {
    const Matrix6 stated = covariance.matrix(), sum = noise.covariance.matrix();
    double greatest = 0.0, defect = 0.0;
    for (std::size_t i = 0; i < 36; ++i) {
        greatest = std::max(greatest, std::abs(sum[i]));
        defect = std::max(defect, std::abs(sum[i] - stated[i]));
    }
    if (defect > 1e-9 * greatest)
        throw Error(ErrorKind::scene,
                    "the covariance is not the sum of the squares of the maps: they differ by {}",
                    defect);
    const Ref<EdgeNoise> copy(new EdgeNoise(noise));
    copy->covariance = covariance;
    return Ref<const EdgeNoise>(copy);
}

namespace {

ReadOnlyArray map_array(std::span<const Vector6> columns) {
    std::vector<double> rows(6 * columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c)
        for (std::size_t k = 0; k < 6; ++k) rows[k * columns.size() + c] = columns[c][k];
    return make_array(std::move(rows), {6, columns.size()});
}

const NoiseTerm& term_of(const NoiseHandle& noise, const SourceHandle& source) {
    for (const NoiseTerm& term : noise.noise->terms)
        if (term.source == source.source) return term;
    throw Error(ErrorKind::scene, "this edge has no error of noise source '{}'",
                source.source->label);
}

std::vector<double> read_covariance_of(const ArrayArgument& matrix, std::size_t n) {
    const std::vector<double> v = read_shaped(matrix, "covariance", n, n);
    Matrix6 padded{};
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) padded[6 * i + j] = v[n * i + j];
    Covariance::checked(padded, "covariance");
    return v;
}

double read_deviation(const NumberArgument& argument, const char* unit, const char* what) {
    const double deviation = read_number(argument, "deviation", unit);
    if (!std::isfinite(deviation) || deviation < 0.0)
        throw Error(
            ErrorKind::scene,
            "the standard deviation of a {} must be a finite number and not negative, not {}", what,
            deviation);
    return deviation;
}

Vector3 point_or_origin(const OptionalArray& point) {
    return point ? read_vector3(*point, "point", "m") : Vector3{};
}

const char* name_of(Measurement::Kind kind) {
    return std::array{"pose", "position", "bearing", "range"}[static_cast<std::size_t>(kind)];
}

Measurement of_bearing(const std::string& frame, const ArrayArgument& direction,
                       const std::optional<std::string>& relative_to,
                       const NumberArgument& deviation, const OptionalArray& point) {
    const Vector3 v = read_vector3(direction, "direction");
    if (!(norm(v) > 0.0)) throw Error(ErrorKind::scene, "direction must not be zero");
    const double sigma = read_deviation(deviation, "rad", "bearing"), variance = sigma * sigma;
    return {Measurement::Kind::bearing,
            frame,
            relative_to,
            {},
            (1.0 / norm(v)) * v,
            0.0,
            point_or_origin(point),
            {variance, 0.0, 0.0, variance}};
}

Measurement of_range(const std::string& frame, const NumberArgument& measured,
                     const std::optional<std::string>& relative_to, const NumberArgument& deviation,
                     const OptionalArray& point) {
    const double distance = read_number(measured, "distance", "m");
    if (!std::isfinite(distance) || distance < 0.0)
        throw Error(ErrorKind::scene, "distance must be a finite number and not negative, not {}",
                    distance);
    Measurement new_measurement{Measurement::Kind::range, frame, relative_to};
    new_measurement.distance = distance;
    new_measurement.point = point_or_origin(point);
    const double sigma = read_deviation(deviation, "m", "range");
    new_measurement.covariance = {sigma * sigma};
    return new_measurement;
}

void bind_edge_noise(nb::class_<NoiseHandle>& cls) {
    cls.def("__init__",
            [](NoiseHandle* self, const SourceMaps& maps, const OptionalArray& covariance) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        if (!noise)
            throw Error(ErrorKind::scene,
                        "without an error there is no EdgeNoise: an exact edge has None");
        new (self) NoiseHandle{
            covariance ? with_covariance(*noise, read_covariance(*covariance, "covariance"))
                       : noise};
    }, "maps"_a, nb::kw_only(), "covariance"_a = nb::none())
        .def_prop_ro("covariance",
                     [](const NoiseHandle& n) { return covariance_array(n.noise->covariance); },
                     "(6, 6) of [rho, theta], read-only.")
        .def_prop_ro("sources",
                     [](const NoiseHandle& n) {
        nb::list sources;
        for (const NoiseTerm& term : n.noise->terms) sources.append(SourceHandle{term.source});
        return nb::typed<nb::tuple, SourceHandle, nb::ellipsis>(nb::tuple(sources));
    }, "The sources, each once.")
        .def("map", [](const NoiseHandle& n, const SourceHandle& source) {
        return map_array(n.noise->map(term_of(n, source)));
    }, "source"_a, R"(Return the map (6, dimension) of one of the sources, read-only.

Raises:
    SceneError: if the edge has no error of this source.)");
    const auto key = [](const NoiseHandle& n) {
        return nb::make_tuple(n.noise->terms.size(), n.noise->covariance.linear[0],
                              n.noise->covariance.angular[0]);
    };
    bind_value(cls, key, [](const NoiseHandle& n) {
        return format_text("EdgeNoise({} sources)", n.noise->terms.size());
    });
}

void bind_measurement_makers(nb::class_<Measurement>& cls) {
    cls.def_static("of_pose",
                   [](const std::string& frame, const Pose& pose, const ArrayArgument& covariance,
                      const std::optional<std::string>& relative_to) {
        return Measurement{Measurement::Kind::pose,          frame, relative_to, pose, {}, 0.0, {},
                           read_covariance_of(covariance, 6)};
    },
                   "frame"_a, "pose"_a, nb::kw_only(), "covariance"_a, "relative_to"_a = nb::none(),
                   R"(Create a measurement of a pose.)" MEASURED R"(
    pose: the measured relative_to_from_frame.
    covariance: (6, 6) covariance of [rho, theta] [m, rad], in the axes of the measured frame.
    relative_to: the reference frame; the root of its tree if omitted.)" NO_MEASUREMENT)
        .def_static("of_position",
                    [](const std::string& frame, const ArrayArgument& position,
                       const ArrayArgument& covariance,
                       const std::optional<std::string>& relative_to, const OptionalArray& point) {
        Measurement new_measurement{Measurement::Kind::position, frame, relative_to};
        new_measurement.vector = read_vector3(position, "position", "m");
        new_measurement.point = point_or_origin(point);
        new_measurement.covariance = read_covariance_of(covariance, 3);
        return new_measurement;
    },
                    "frame"_a, "position"_a, nb::kw_only(), "covariance"_a,
                    "relative_to"_a = nb::none(), "point"_a = nb::none(),
                    R"(Create a measurement of the position of a point of a frame.)" MEASURED R"(
    position: (3,) position, in the axes of ``relative_to`` [m].
    covariance: (3, 3) covariance, in the axes of ``relative_to`` [m^2].
    relative_to: the reference frame; the root of its tree if omitted.
    point: (3,) point, in the axes of the frame [m]; its origin if omitted.)" NO_MEASUREMENT);
    cls.def_static("of_bearing", &of_bearing, "frame"_a, "direction"_a, nb::kw_only(),
                   "relative_to"_a = nb::none(), "deviation"_a, "point"_a = nb::none(),
                   R"(Create a measurement of the direction to a point of a frame.)" MEASURED R"(
    direction: (3,) of any length, in the axes of ``relative_to``.
    relative_to: the reference frame; the root of its tree if omitted.
    deviation: standard deviation [rad], the same in every direction across.
    point: (3,) point, in the axes of the frame [m]; its origin if omitted.

Raises:
    SceneError: if a number is not finite, the direction is zero, or the deviation is negative.)")
        .def_static("of_range", &of_range, "frame"_a, "distance"_a, nb::kw_only(),
                    "relative_to"_a = nb::none(), "deviation"_a, "point"_a = nb::none(),
                    "Create a measurement of the distance of a point of a frame from another "
                    "frame's origin." MEASURED
                    R"(
    distance: measured distance [m].
    relative_to: the frame whose origin is the reference; the root of its tree if omitted.
    deviation: standard deviation [m].
    point: (3,) point, in the axes of the frame [m]; its origin if omitted.

Raises:
    SceneError: if a number is not finite, or the distance or the deviation is negative.)");
}

Measurement expected_measurement(const Measurement& measurement, const SceneGraph& scene,
                                 const OptionalArray& q) {
    const ConfigurationArgument configuration(q, scene);
    const OptionalName relative_to =
        measurement.reference ? OptionalName(*measurement.reference) : std::nullopt;
    const std::string_view reference = reference_frame(scene, measurement.target, relative_to);
    return measurement.expected_at(
        in_range(scene.pose(measurement.target, reference, configuration.get())));
}

}  // namespace

void bind_noise(nb::module_& m) {
    nb::class_<SourceHandle> source(
        m, "NoiseSource", nb::is_weak_referenceable(),
        R"(A source of errors: a standard normal vector, independent of all other sources.

Edges with maps of one source have correlated errors. A source equals only itself, regardless of its
label.

Args:
    dimension: dimension of the vector, at least 1.
    label: name for messages and plots.

Raises:
    SceneError: if the dimension is 0.)");
    source
        .def("__init__",
             [](SourceHandle* self, std::size_t dimension, const std::string& label) {
        if (dimension == 0)
            throw Error(ErrorKind::scene, "a noise source needs a dimension of at least 1");
        new (self) SourceHandle{Ref<const NoiseSource>(new NoiseSource(dimension, label))};
    }, "dimension"_a, "label"_a = "")
        .def_prop_ro("dimension", [](const SourceHandle& s) { return s.source->dimension; },
                     "Dimension of the vector.")
        .def_prop_ro("label", [](const SourceHandle& s) { return s.source->label; },
                     "Name for messages and plots; not part of equality.");
    bind_value(source, [](const SourceHandle& s) {
        return reinterpret_cast<std::uintptr_t>(s.source.get());
    }, [](const SourceHandle& s) {
        return format_text("NoiseSource({}, '{}')", s.source->dimension, s.source->label);
    });

    nb::class_<NoiseHandle> noise(m, "EdgeNoise", nb::is_weak_referenceable(),
                                  R"(Error of one edge: a linear map of noise sources. Immutable.

Created by ``scene.noise(frame)`` or from maps.

Args:
    maps: by source, (6, dimension) map of one standard deviation [m, rad], in the axes of the
        edge's frame.
    covariance: (6, 6) exact covariance, as first given; it must agree with the maps within 1e-9 of
        its greatest entry.

Raises:
    SceneError: if a map has another shape, there is no error, or the covariance differs from that
        of the maps.)");
    bind_edge_noise(noise);
}

void bind_measurement(nb::module_& m) {
    nb::class_<Measurement> measurement(
        m, "Measurement", nb::is_weak_referenceable(),
        R"(A measurement of one frame relative to another, with its uncertainty. Immutable.

Created by :meth:`of_pose`, :meth:`of_position`, :meth:`of_bearing` and :meth:`of_range`; used by
``scene.condition``.)");
    bind_measurement_makers(measurement);
    measurement
        .def_prop_ro("kind", [](const Measurement& z) { return name_of(z.kind); },
                     "``pose``, ``position``, ``bearing`` or ``range``.")
        .def_prop_ro("frame", [](const Measurement& z) { return z.target; }, "The measured frame.")
        .def_prop_ro("relative_to", [](const Measurement& z) { return z.reference; },
                     "The reference frame; None: the root of its tree.")
        .def_prop_ro("covariance",
                     [](const Measurement& z) {
        return make_array(z.covariance, {z.size(), z.size()});
    }, "(m, m) covariance of the measurement, read-only.")
        .def("expected", &expected_measurement, "scene"_a, nb::kw_only(), "q"_a = nb::none(),
             "Return this measurement with the value that a scene predicts at its means. O(depth "
             "log n)."
             R"(

In planning it represents a future observation, the maximum-likelihood observation: conditioning on
it shrinks covariances and moves no mean. For a scene with true poses it is the measurement without
noise.

Args:
    scene: the scene that predicts the value.
    q: (n_joints,) configuration of the measurement [rad or m]; optional if no joint is on the path.

Returns:
    A measurement of the same kind, frames, point and covariance.)" NO_POSE R"(
    SceneError: if a bearing or a range is of a point at the origin of ``relative_to``.

Source: Platt, Tedrake, Kaelbling and Lozano-Perez, "Belief space planning assuming maximum
likelihood observations".)")
        .def("__repr__", [](const Measurement& z) {
        return std::string("Measurement(") + name_of(z.kind) + " of '" + z.target + "' in " +
               (z.reference ? "'" + *z.reference + "'" : "its root") + ")";
    });

    nb::class_<ConditionReport> innovation(
        m, "Innovation", nb::is_weak_referenceable(),
        "Deviation of a measurement from its prediction. Created by ``innovation``.");
    innovation
        .def_prop_ro("residual", [](const ConditionReport& r) { return make_array(r.innovation); },
                     "(m,) measured minus expected, in the measurement's own tangent; read-only.")
        .def_prop_ro("covariance",
                     [](const ConditionReport& r) {
        const std::size_t n = r.innovation.size();
        return make_array(r.innovation_covariance, {n, n});
    },
                     "(m, m) covariance of the residual, the sum of those of the expected pose and "
                     "of the measurement; read-only.")
        .def_prop_ro("squared_mahalanobis",
                     [](const ConditionReport& r) { return r.squared_mahalanobis; },
                     R"(Squared Mahalanobis distance of the residual.

Chi-square with m degrees of freedom if all assumptions hold.)")
        .def("__repr__", [](const ConditionReport& r) {
        return format_text("Innovation(squared_mahalanobis={}, {} numbers)", r.squared_mahalanobis,
                           r.innovation.size());
    });
}

// --- edits of the errors of edges

namespace {

ConditionOptions options_of(const std::optional<int>& iterations) {
    ConditionOptions options;
    if (!iterations) return options;
    if (*iterations < 1)
        throw Error(ErrorKind::scene, "max_iterations must be at least 1, not {}", *iterations);
    options.most_iterations = *iterations;
    return options;
}

void condition(SceneEdit& edit, const Measurement& measurement, const double* q,
               const std::optional<int>& iterations) {
    SceneEdit attempt(edit.scene());
    const ConditionReport report = attempt.condition(measurement, q, options_of(iterations));
    if (!report.converged && !iterations)
        throw Error(ErrorKind::scene,
                    "conditioning on the measurement of '{}' in {} did not converge in {} "
                    "iterations: it is too far from the expected value for the known errors; see "
                    "innovation(scene, "
                    "measurement), or give "
                    "max_iterations= to accept the last iterate",
                    measurement.target,
                    (measurement.reference ? "'" + *measurement.reference + "'" : "its root"),
                    report.iterations);
    edit = std::move(attempt);
}

// Bind the setters of an error: by maps of sources, and by the noise of another edge.
template <class Self>
void bind_noise_setter(auto& cls, const char* name, auto set, const char* text_of_maps,
                       const char* text_of_noise) {
    cls.def(name, [set](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](auto& s) { set(s, frame, noise); });
    }, "frame"_a, "maps"_a, text_of_maps);
    cls.def(name,
            [set](Self self, std::string_view frame, const std::optional<NoiseHandle>& noise) {
        return apply_edit(self, [&](auto& s) { set(s, frame, noise ? noise->noise : nullptr); });
    }, "frame"_a, "noise"_a.none(), text_of_noise);
}

template <class Self> void bind_edge_noise_edits(auto& cls) {
    cls.def("set_covariance",
            [](Self self, std::string_view frame, const OptionalArray& covariance) {
        const Ref<const EdgeNoise> noise =
            own_noise(covariance, frame, scene_before(self).specification(frame).parent);
        return apply_edit(self, [&](auto& s) { s.set_noise(frame, noise); });
    }, "frame"_a, "covariance"_a.none(),
            text_for<Self>(
                R"(Set the covariance of the pose of a frame relative to its parent.{ O(log n).|}

The pose is ``T @ Pose.exp(xi)`` with T by ``local_pose`` and the joint, and xi = [rho, theta] [m,
rad] of mean zero, in the frame's own axes, behind the joint. The error has a new source.)" OF_FRAME
                R"(
    covariance: (6, 6) covariance of xi, symmetric positive semi-definite; None or zero: exact.
        Replaces the error of the edge.

Raises:
    UnknownNameError: if a frame is unknown.
    SceneError: if the frame is a root, or the matrix is not symmetric positive semi-definite (the
        message has its eigenvalues).{|
    CapacityError: if there is no capacity for its source; construct SceneArrays with a larger
        capacity ``noise``.})"));
    bind_noise_setter<Self>(
        cls, "set_noise",
        [](auto& s, std::string_view frame, const auto& noise) { s.set_noise(frame, noise); },
        text_for<Self>("Set the sources of the error of an edge: ``xi = sum of map @ w`` over "
                       "sources w.{ O(log n).|}"
                       R"(

Edges that share a source have correlated errors.)" OF_NOISE R"(
    maps: by source, (6, dimension) map of one standard deviation [m, rad], in the frame's own axes.
        Empty: exact.)" NO_FRAME R"(
    SceneError: if the frame is a root, or a map has another shape.{|
    CapacityError: if there is no capacity for its sources.})"),
        R"(Set the error of an edge to that of another edge.)" OF_NOISE R"(
    noise: result of ``noise`` for another edge; None: exact.)");
    bind_noise_setter<Self>(
        cls, "set_twist_noise",
        [](auto& s, std::string_view frame, const auto& noise) { s.set_twist_noise(frame, noise); },
        R"(Set the sources of the error of a twist edge, as ``set_noise`` for a pose.

Args:
    frame: a frame with a twist edge.
    maps: by source, (6, dimension) map of one standard deviation [m/s, rad/s], at the frame's
        origin and in its axes. Empty: exact.)" NO_FRAME R"(
    SceneError: if the frame has no twist, or a map has another shape.)",
        R"(Set the error of a twist edge to that of another one.

Args:
    frame: a frame with a twist edge.
    noise: result of ``twist_noise``; None: exact.)");
}

template <class Self> void bind_whole_noise_edits(auto& cls) {
    cls.def("add_noise",
            [](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](SceneEdit& s) {
            if (noise) s.add_noise(frame, *noise);
        });
    }, "frame"_a, "maps"_a,
            R"(Add errors to those of an edge. O(log n).

Maps of a source that the edge already has are summed.)" OF_NOISE R"(
    maps: by source, (6, dimension) map of one standard deviation [m, rad]; see
        ``set_noise``.)" NO_FRAME
            R"(
    SceneError: if the frame is a root, or a map has another shape.)")
        .def("add_joint_noise", EDIT(add_joint_noise, std::string_view, double), "joint"_a,
             "variance"_a,
             R"(Set the variance of the value of a joint: an uncertain encoder. O(joints log n).

Joints that mimic it have the same error.

Args:
    joint: name of the joint.
    variance: variance [rad^2 or m^2].)" NO_JOINT R"(
    SceneError: if the joint mimics another, or the variance is negative or not finite.)");
    cls.def("condition",
            [](Self self, const Measurement& measurement, const OptionalArray& q,
               const std::optional<int>& iterations) {
        const ConfigurationArgument configuration(q, scene_before(self));
        return apply_edit(self, [&](SceneEdit& s) {
            condition(s, measurement, configuration.get(), iterations);
        });
    },
            "measurement"_a, nb::kw_only(), "q"_a = nb::none(), "max_iterations"_a = nb::none(),
            R"(Condition the scene on a measurement: update means, covariances and correlations.

It corrects every edge that shares a source of error with the path between the two frames, also off
the path. It also corrects every twist that does, since that has moved a frame of them
(``integrate``). The result is the most likely one for the measurement and all prior data (an
iterated Kalman filter); its covariance is of first order there. An error behind a joint is
corrected for the configuration ``q``. O(noisy frames + sources^2).

Args:
    measurement: the measured pose, position, bearing or range.
    q: (n_joints,) configuration of the measurement [rad or m]; optional if no joint is on the path.
    max_iterations: number of steps, without a test of convergence; one is the extended Kalman
        filter. Until convergence if omitted.)" NO_PATH R"(
    SceneError: if the measurement contradicts exact data, or the iteration does not converge.)");
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
