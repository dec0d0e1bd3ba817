// Uncertainty of scenes: noise, measurements, the edits and the queries.

#include <cmath>

#include "edits.hpp"
#include "tmkit/scene_gaussian.hpp"

namespace tmkit::bindings {

Ref<const EdgeNoise> own_noise(const std::optional<ArrayArgument>& covariance, std::string_view frame,
                               std::string_view parent) {
    if (!covariance) return nullptr;
    std::string edge(1, '\'');
    edge.append(frame).append("' in '").append(parent).append("'");
    return EdgeNoise::of_covariance(read_covariance(*covariance, "the covariance of " + edge), edge);
}

Ref<const EdgeNoise> own_twist_noise(const std::optional<ArrayArgument>& covariance, std::string_view frame,
                                     std::string_view reference) {
    if (!covariance) return nullptr;
    const std::string edge = "twist of '" + std::string(frame) + "' relative to '" + std::string(reference) + "'";
    return EdgeNoise::of_covariance(read_covariance(*covariance, "the covariance of the " + edge), edge);
}

Ref<const EdgeNoise> with_covariance(const EdgeNoise& noise, const Covariance& covariance) {
    const Matrix6 given = covariance.matrix(), made = noise.covariance.matrix();
    double greatest = 0.0, defect = 0.0;
    for (std::size_t i = 0; i < 36; ++i) {
        greatest = std::max(greatest, std::abs(made[i]));
        defect = std::max(defect, std::abs(made[i] - given[i]));
    }
    if (defect > 1e-9 * greatest)
        throw Error(ErrorKind::scene,
                    "the covariance is not the sum of the squares of the maps: they differ by " + number_text(defect));
    const Ref<EdgeNoise> copy(new EdgeNoise(noise));
    copy->covariance = covariance;
    return Ref<const EdgeNoise>(copy);
}

namespace {

using SourceMaps = nb::typed<nb::mapping, SourceHandle, ArrayArgument>;

Ref<const EdgeNoise> noise_of(const SourceMaps& maps) {
    NoiseSum sum;
    for (nb::handle item : maps.items()) {
        const auto source = nb::cast<SourceHandle>(item[0]);
        const std::size_t d = source.source->dimension;
        const std::vector<double> v = read_matrix(item[1], "map", d, ErrorKind::scene);
        if (v.size() != 6 * d)
            throw Error(ErrorKind::scene, "the map of noise source '" + source.source->label +
                                              "' must have shape (6, " + std::to_string(d) + "), not (" +
                                              std::to_string(v.size() / d) + ", " + std::to_string(d) + ")");
        std::vector<Vector6> columns(d);
        for (std::size_t k = 0; k < 6; ++k)
            for (std::size_t c = 0; c < d; ++c) columns[c][k] = v[k * d + c];
        sum.add(source.source, columns, [](const Vector6& column) { return column; });
    }
    return sum.edge();
}

ReadOnlyArray map_array(std::span<const Vector6> columns) {
    std::vector<double> rows(6 * columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c)
        for (std::size_t k = 0; k < 6; ++k) rows[k * columns.size() + c] = columns[c][k];
    return make_array(std::move(rows), {6, columns.size()});
}

const NoiseTerm& term_of(const NoiseHandle& noise, const SourceHandle& source) {
    for (const NoiseTerm& term : noise.noise->terms)
        if (term.source == source.source) return term;
    throw Error(ErrorKind::scene, "this edge has no error of noise source '" + source.source->label + "'");
}

std::vector<double> read_square(const ArrayArgument& matrix, std::size_t n) {
    const std::vector<double> v = read_matrix(matrix, "covariance", n, ErrorKind::scene);
    if (v.size() != n * n)
        throw Error(ErrorKind::scene, "covariance must have shape (" + std::to_string(n) + ", " + std::to_string(n) +
                                          "), not (" + std::to_string(v.size() / n) + ", " + std::to_string(n) + ")");
    Matrix6 padded{};
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) padded[6 * i + j] = v[n * i + j];
    Covariance::checked(padded, "covariance");
    return v;
}

double read_deviation(double deviation, const char* what) {
    if (!std::isfinite(deviation) || deviation < 0.0)
        throw Error(ErrorKind::scene, std::string("the standard deviation of a ") + what +
                                          " must be a finite number and not negative, not " +
                                          std::to_string(deviation));
    return deviation;
}

Vector3 point_or_origin(const std::optional<ArrayArgument>& point) {
    return point ? read_vector3(*point, "point") : Vector3{};
}

const char* name_of(Measurement::Kind kind) {
    switch (kind) {
        case Measurement::Kind::pose: return "pose";
        case Measurement::Kind::position: return "position";
        case Measurement::Kind::bearing: return "bearing";
        default: return "range";
    }
}

Measurement of_bearing(const std::string& target, const std::string& reference, const ArrayArgument& direction,
                       double deviation, const std::optional<ArrayArgument>& point) {
    const Vector3 v = read_vector3(direction, "direction");
    if (!(norm(v) > 0.0)) throw Error(ErrorKind::scene, "direction is zero, which points nowhere");
    const double variance = read_deviation(deviation, "bearing") * deviation;
    return {Measurement::Kind::bearing,    target, reference, {}, (1.0 / norm(v)) * v, 0.0, point_or_origin(point),
            {variance, 0.0, 0.0, variance}};
}

Measurement of_range(const std::string& target, const std::string& reference, double distance, double deviation,
                     const std::optional<ArrayArgument>& point) {
    if (!std::isfinite(distance) || distance < 0.0)
        throw Error(ErrorKind::scene,
                    "distance must be a finite number and not negative, not " + std::to_string(distance));
    return {Measurement::Kind::range,
            target,
            reference,
            {},
            {},
            distance,
            point_or_origin(point),
            {read_deviation(deviation, "range") * deviation}};
}

ConditionOptions options_of(const std::optional<int>& iterations) {
    ConditionOptions options;
    if (!iterations) return options;
    if (*iterations < 1)
        throw Error(ErrorKind::scene, "iterations must be at least 1, not " + std::to_string(*iterations));
    options.most_iterations = *iterations;
    return options;
}

void condition(SceneEdit& edit, const Measurement& measurement, const double* q, const std::optional<int>& iterations) {
    SceneEdit attempt(edit.scene());
    const ConditionReport report = attempt.condition(measurement, q, options_of(iterations));
    if (!report.converged && !iterations)
        throw Error(ErrorKind::scene,
                    "conditioning on the measurement of '" + measurement.target + "' in '" + measurement.reference +
                        "' did not come to rest in " + std::to_string(report.iterations) +
                        " iterations: it lies too far from what is expected for the errors that are known; look at "
                        "scene.innovation, and give iterations= to take what was reached");
    edit = std::move(attempt);
}

std::string parent_name(const SceneGraph& scene, std::string_view frame) {
    const FrameRecord& record = scene.record(frame);
    return record.parent == no_frame ? std::string() : scene.record(record.parent).name->text;
}

template <class Self>
void bind_noise_edits_of(auto& cls) {
    cls.def("set_covariance",
            [](Self self, std::string_view frame, const std::optional<ArrayArgument>& covariance) {
        const Ref<const EdgeNoise> noise = own_noise(covariance, frame, parent_name(scene_before(self), frame));
        return apply_edit(self, [&](SceneEdit& s) { s.set_noise(frame, noise); });
    }, nb::arg("frame"), nb::arg("covariance").none(),
            R"(Set the covariance of the pose of a frame relative to its parent. O(log n).

The pose is ``T @ Pose.exp(xi)`` with T as ``local_pose`` and the joint give it and xi = [rho, theta] of mean zero,
in metres and radians, in the frame's own axes, behind the joint. The error comes from a source of its own.

Args:
    frame: the frame.
    covariance: (6, 6) of xi, symmetric positive semi-definite; None or zero: exact. Replaces the error of the edge.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root; a matrix that is not symmetric positive semi-definite, with its eigenvalues.)")
        .def("set_noise",
             [](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](SceneEdit& s) { s.set_noise(frame, noise); });
    }, nb::arg("frame"), nb::arg("maps"),
             R"(Set the sources of the error of an edge: ``xi = sum of map @ w`` over sources w. O(log n).

Edges that share a source have correlated errors.

Args:
    frame: the frame whose edge it is.
    maps: by source, (6, dimension) metres and radians for one standard deviation, in the frame's own axes. Empty:
        exact.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root, or a map of another shape.)")
        .def("set_noise",
             [](Self self, std::string_view frame, const std::optional<NoiseHandle>& noise) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_noise(frame, noise ? noise->noise : nullptr); });
    }, nb::arg("frame"), nb::arg("noise").none(), R"(Set the error of an edge to that of another edge.

Args:
    frame: the frame whose edge it is.
    noise: what ``noise`` returned for another edge; None: exact.)")
        .def("add_noise",
             [](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](SceneEdit& s) {
            if (noise) s.add_noise(frame, *noise);
        });
    }, nb::arg("frame"), nb::arg("maps"), R"(Add errors to those of an edge. O(log n).

Maps of a source that the edge already has are summed.

Args:
    frame: the frame whose edge it is.
    maps: by source, (6, dimension) metres and radians for one standard deviation; see ``set_noise``.

Raises:
    UnknownNameError: no such frame.
    SceneError: a root, or a map of another shape.)")
        .def("set_twist_noise",
             [](Self self, std::string_view frame, const SourceMaps& maps) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        return apply_edit(self, [&](SceneEdit& s) { s.set_twist_noise(frame, noise); });
    }, nb::arg("frame"), nb::arg("maps"),
             R"(Set the sources of the error of a twist edge, as ``set_noise`` does for a pose. O(log n).

Args:
    frame: a frame with a twist edge.
    maps: by source, (6, dimension) m/s and rad/s for one standard deviation, at the frame's origin and in its axes.
        Empty: exact.

Raises:
    UnknownNameError: no such frame.
    SceneError: it has no twist, or a map of another shape.)")
        .def("set_twist_noise",
             [](Self self, std::string_view frame, const std::optional<NoiseHandle>& noise) {
        return apply_edit(self, [&](SceneEdit& s) { s.set_twist_noise(frame, noise ? noise->noise : nullptr); });
    }, nb::arg("frame"), nb::arg("noise").none(), R"(Set the error of a twist edge to that of another one.

Args:
    frame: a frame with a twist edge.
    noise: what ``twist_noise`` returned; None: exact.)")
        .def("add_joint_noise",
             [](Self self, std::string_view joint, double variance) {
        return apply_edit(self, [&](SceneEdit& s) { s.add_joint_noise(joint, variance); });
    }, nb::arg("joint"), nb::arg("variance"),
             R"(Set the variance of the value of a joint: an uncertain encoder. O(joints log n).

The joints that mimic it now move by the same error.

Args:
    joint: name of the joint.
    variance: rad^2 or m^2.

Raises:
    UnknownNameError: no such joint.
    SceneError: a mimic joint, or a variance that is negative or not finite.)")
        .def("condition",
             [](Self self, const Measurement& measurement, const std::optional<ArrayArgument>& q,
                const std::optional<int>& iterations) {
        const ConfigurationArgument configuration(q, scene_before(self));
        return apply_edit(self, [&](SceneEdit& s) { condition(s, measurement, configuration.get(), iterations); });
    },
             nb::arg("measurement"), nb::kw_only(), nb::arg("q") = nb::none(), nb::arg("iterations") = nb::none(),
             R"(Condition the scene on a measurement: update means, covariances and correlations.

Every edge that shares a source of error with the path between the two frames is corrected, also off the path, and
every twist that does, since it has moved one of them (``integrated``). The result is the most likely one for the
measurement and all that was known (an iterated Kalman filter); its covariance is of first order there. An error
behind a joint is corrected for the configuration ``q``. O(noisy frames + sources^2).

Args:
    measurement: the measured pose, position, bearing or range.
    q: (n_joints,) configuration of the measurement, radians or metres; optional when no joint is on the path.
    iterations: steps to take, whether or not they converge; one is the extended Kalman filter. Until convergence if
        omitted.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    SceneError: the measurement contradicts what is known exactly, or the steps do not converge.)");
}

}  // namespace

void bind_noise_edits(nb::class_<SceneGraph>& scene, nb::class_<SceneEditHandle>& edit) {
    bind_noise_edits_of<nb::typed<nb::object, SceneGraph>>(scene);
    bind_noise_edits_of<SceneEditHandle&>(edit);
}

void bind_noise(nb::module_& m) {
    nb::class_<SourceHandle>(m, "NoiseSource", nb::is_weak_referenceable(),
                             R"(Where errors come from: a standard normal vector, independent of all other sources.

Edges that hold maps of one source have correlated errors. A source is the same as itself alone, whatever it is
called.

Args:
    dimension: of the vector, at least 1.
    label: for people.)")
        .def("__init__",
             [](SourceHandle* self, std::size_t dimension, const std::string& label) {
        if (dimension == 0) throw Error(ErrorKind::scene, "a noise source needs a dimension of at least 1");
        new (self) SourceHandle{Ref<const NoiseSource>(new NoiseSource(dimension, label))};
    }, nb::arg("dimension"), nb::arg("label") = "")
        .def_prop_ro("dimension", [](const SourceHandle& s) { return s.source->dimension; }, "Of the vector.")
        .def_prop_ro("label", [](const SourceHandle& s) { return s.source->label; }, "For people.")
        .def("__eq__",
             [](const SourceHandle& a, nb::handle b) {
        return nb::isinstance<SourceHandle>(b) && a.source == nb::cast<SourceHandle>(b).source;
    }, nb::arg("other").none())
        .def("__hash__", [](const SourceHandle& s) {
        return std::hash<const NoiseSource*>()(s.source.get());
    }).def("__repr__", [](const SourceHandle& s) {
        return "NoiseSource(" + std::to_string(s.source->dimension) + ", '" + s.source->label + "')";
    });

    nb::class_<NoiseHandle>(m, "EdgeNoise", nb::is_weak_referenceable(),
                            R"(The error of one edge: a linear map of noise sources. Immutable.

Made by ``scene.noise(frame)`` and of maps.

Args:
    maps: by source, (6, dimension) metres and radians for one standard deviation, in the axes of the edge's frame.
    covariance: (6, 6), to the bit as it was once given; it must agree with the maps within 1e-9 of its greatest
        entry.

Raises:
    SceneError: a map of another shape, no error at all, or a covariance that is not that of the maps.)")
        .def("__init__",
             [](NoiseHandle* self, const SourceMaps& maps, const std::optional<ArrayArgument>& covariance) {
        const Ref<const EdgeNoise> noise = noise_of(maps);
        if (!noise) throw Error(ErrorKind::scene, "without an error there is no EdgeNoise: an exact edge has None");
        new (self)
            NoiseHandle{covariance ? with_covariance(*noise, read_covariance(*covariance, "covariance")) : noise};
    }, nb::arg("maps"), nb::kw_only(), nb::arg("covariance") = nb::none())
        .def_prop_ro("covariance", [](const NoiseHandle& n) { return covariance_array(n.noise->covariance); },
                     "(6, 6) of [rho, theta], read-only.")
        .def_prop_ro("sources",
                     [](const NoiseHandle& n) {
        nb::list sources;
        for (const NoiseTerm& term : n.noise->terms) sources.append(SourceHandle{term.source});
        return nb::typed<nb::tuple, SourceHandle, nb::ellipsis>(nb::tuple(sources));
    }, "The sources, each once.")
        .def("map",
             [](const NoiseHandle& n, const SourceHandle& source) {
        return map_array(n.noise->map(term_of(n, source)));
    }, nb::arg("source"), R"(Return the map (6, dimension) of one of the sources, read-only.

Raises:
    SceneError: the edge has no error of this source.)")
        .def("__eq__",
             [](const NoiseHandle& a, nb::handle b) {
        return nb::isinstance<NoiseHandle>(b) && a.noise->same_content(*nb::cast<NoiseHandle>(b).noise);
    }, nb::arg("other").none())
        .def("__hash__", [](const NoiseHandle& n) {
        return nb::hash(
            nb::make_tuple(n.noise->terms.size(), n.noise->covariance.linear[0], n.noise->covariance.angular[0]));
    }).def("__repr__", [](const NoiseHandle& n) {
        return "EdgeNoise(" + std::to_string(n.noise->terms.size()) + " sources)";
    });
}

void bind_measurement(nb::module_& m) {
    nb::class_<Measurement>(m, "Measurement", nb::is_weak_referenceable(),
                            R"(What a sensor says of one frame relative to another, and how sure it is. Immutable.

Made by :meth:`of_pose`, :meth:`of_position`, :meth:`of_bearing` and :meth:`of_range`; used by ``scene.condition``.)")
        .def_static("of_pose",
                    [](const std::string& target, const std::string& reference, const Pose& pose,
                       const ArrayArgument& covariance) {
        read_covariance(covariance, "covariance");
        return Measurement{Measurement::Kind::pose, target, reference, pose, {}, 0.0, {}, read_square(covariance, 6)};
    },
                    nb::arg("target"), nb::arg("reference"), nb::arg("pose"), nb::arg("covariance"),
                    R"(A measured reference_from_target.

Args:
    target: the frame that is seen.
    reference: the frame from which it is seen.
    pose: reference_from_target.
    covariance: (6, 6) of [rho, theta] in the axes of the measured target.)")
        .def_static("of_position",
                    [](const std::string& target, const std::string& reference, const ArrayArgument& position,
                       const ArrayArgument& covariance, const std::optional<ArrayArgument>& point) {
        return Measurement{Measurement::Kind::position,
                           target,
                           reference,
                           {},
                           read_vector3(position, "position"),
                           0.0,
                           point_or_origin(point),
                           read_square(covariance, 3)};
    },
                    nb::arg("target"), nb::arg("reference"), nb::arg("position"), nb::arg("covariance"), nb::kw_only(),
                    nb::arg("point") = nb::none(), R"(A measured position of a point of the target.

Args:
    target: the frame that is seen.
    reference: the frame from which it is seen.
    position: (3,) metres, in the axes of the reference.
    covariance: (3, 3) m^2, in the axes of the reference.
    point: (3,) metres, in the axes of the target; its origin if omitted.)")
        .def_static("of_bearing", &of_bearing, nb::arg("target"), nb::arg("reference"), nb::arg("direction"),
                    nb::kw_only(), nb::arg("deviation"), nb::arg("point") = nb::none(),
                    R"(A measured direction to a point of the target.

Args:
    target: the frame that is seen.
    reference: the frame from which it is seen.
    direction: (3,) of any length, in the axes of the reference.
    deviation: standard deviation in radians, the same in every direction across.
    point: (3,) metres, in the axes of the target; its origin if omitted.)")
        .def_static("of_range", &of_range, nb::arg("target"), nb::arg("reference"), nb::arg("distance"), nb::kw_only(),
                    nb::arg("deviation"), nb::arg("point") = nb::none(),
                    R"(A measured distance of a point of the target from the origin of the reference.

Args:
    target: the frame that is seen.
    reference: the frame from which it is seen.
    distance: metres.
    deviation: standard deviation in metres.
    point: (3,) metres, in the axes of the target; its origin if omitted.)")
        .def_prop_ro("kind", [](const Measurement& z) { return name_of(z.kind); },
                     "``pose``, ``position``, ``bearing`` or ``range``.")
        .def_prop_ro("target", [](const Measurement& z) { return z.target; }, "The frame that is seen.")
        .def_prop_ro("reference", [](const Measurement& z) { return z.reference; }, "The frame from which it is seen.")
        .def_prop_ro("covariance", [](const Measurement& z) { return make_array(z.covariance, {z.size(), z.size()}); },
                     "(m, m) of what was measured, read-only.")
        .def("__repr__", [](const Measurement& z) {
        return std::string("Measurement(") + name_of(z.kind) + " of '" + z.target + "' in '" + z.reference + "')";
    });

    nb::class_<ConditionReport>(m, "Innovation", nb::is_weak_referenceable(),
                                "How far a measurement lies from what was expected. Made by ``scene.innovation``.")
        .def_prop_ro("residual",
                     [](const ConditionReport& r) { return make_array(r.innovation, {r.innovation.size()}); },
                     "(m,) measured minus expected, in the measurement's own tangent; read-only.")
        .def_prop_ro("covariance",
                     [](const ConditionReport& r) {
        const std::size_t n = r.innovation.size();
        return make_array(r.innovation_covariance, {n, n});
    }, "(m, m) of the residual: that of the expected pose and that of the measurement; read-only.")
        .def_prop_ro("squared_mahalanobis", [](const ConditionReport& r) { return r.squared_mahalanobis; },
                     R"(Squared Mahalanobis distance of the residual.

Chi-square with m degrees of freedom if all assumptions hold.)")
        .def("__repr__", [](const ConditionReport& r) {
        return "Innovation(squared_mahalanobis=" + number_text(r.squared_mahalanobis) + ", " +
               std::to_string(r.innovation.size()) + " numbers)";
    });
}

void bind_gaussian_queries(nb::class_<SceneGraph>& cls) {
    cls.def("gaussian_pose",
            [](const SceneGraph& s, std::string_view target, std::string_view reference,
               const std::optional<ArrayArgument>& q) {
        return in_range(gaussian_pose(s, target, reference, ConfigurationArgument(q, s).get()));
    },
            nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("q") = nb::none(),
            R"(Return the pose of one frame relative to another with its covariance. O(depth log n).

The covariance is of first order in the errors of the edges on the path, with all their correlations, in the axes of
the target. See ``sample_poses`` for errors so large that first order is not enough.

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.

Returns:
    reference_from_target.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("joint_gaussian",
             [](const SceneGraph& s, const std::vector<std::pair<std::string, std::string>>& pairs,
                const std::optional<ArrayArgument>& q) {
        JointGaussian joint = joint_gaussian(s, pairs, ConfigurationArgument(q, s).get());
        for (const Pose& mean : joint.means) require_in_range(mean, "a mean");
        const std::size_t n = 6 * pairs.size();
        return std::pair{nb::typed<nb::tuple, Pose, nb::ellipsis>(nb::tuple(nb::cast(joint.means))),
                         make_array(std::move(joint.covariance), {n, n})};
    },
             nb::arg("pairs"), nb::kw_only(), nb::arg("q") = nb::none(),
             R"(Return several relative poses with the covariance of all their errors together.

Args:
    pairs: (target, reference) of each.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on a path.

Returns:
    The m means, and (6 m, 6 m) the covariance of their stacked errors, each in the axes of its target; read-only.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("contributions",
             [](const SceneGraph& s, std::string_view target, std::string_view reference,
                const std::optional<ArrayArgument>& q) {
        const NoiseSum error = path_noise(s, s.record(reference), s.record(target), ConfigurationArgument(q, s).get());
        nb::list shares;
        for (const NoiseTerm& term : error.terms())
            shares.append(
                nb::make_tuple(SourceHandle{term.source}, covariance_array(Covariance::of_columns(error.map(term)))));
        return nb::typed<nb::tuple, nb::typed<nb::tuple, SourceHandle, ReadOnlyArray>, nb::ellipsis>(nb::tuple(shares));
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("q") = nb::none(),
             R"(Return the share of each source in the covariance of a relative pose. O(depth log n).

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.

Returns:
    For each source on the path, in the order of the path down and then up, its (6, 6) share, in the axes of the
        target:
    the shares sum to the covariance. A source whose effects cancel has a share of zero.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("path_noise",
             [](const SceneGraph& s, std::string_view target, std::string_view reference,
                const std::optional<ArrayArgument>& q) {
        return noise_or_none(
            path_noise(s, s.record(reference), s.record(target), ConfigurationArgument(q, s).get()).edge());
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("q") = nb::none(),
             R"(Return the error of a relative pose by source, or None when it is exact. O(depth log n).

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.

Returns:
    The error of reference_from_target, in the axes of the target.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("sample_poses",
             [](const SceneGraph& s, std::string_view target, std::string_view reference, std::size_t count,
                std::uint64_t seed, const std::optional<ArrayArgument>& q) {
        const ConfigurationArgument configuration(q, s);
        std::vector<double> rows;
        const std::string to(target), from(reference);
        {
            nb::gil_scoped_release release;
            for (const Pose& pose : sample_poses(s, to, from, configuration.get(), count, seed)) {
                rows.insert(rows.end(), pose.translation.begin(), pose.translation.end());
                rows.insert(rows.end(), pose.quat_xyzw.begin(), pose.quat_xyzw.end());
            }
        }
        return make_array(std::move(rows), {count, 7});
    },
             nb::arg("target"), nb::arg("reference"), nb::kw_only(), nb::arg("count"), nb::arg("seed"),
             nb::arg("q") = nb::none(), R"(Return poses drawn from the errors of the edges. O(count * path).

Each source is drawn once a sample and every edge of the path is perturbed by it: nothing is linearised.

Args:
    target: the frame of which the pose is returned.
    reference: the frame it is relative to.
    count: how many samples.
    seed: of the random numbers; the same seed gives the same poses.
    q: (n_joints,) configuration, radians or metres; optional when no joint is on the path.

Returns:
    (count, 7) reference_from_target: x, y, z, qx, qy, qz, qw; read-only.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("innovation",
             [](const SceneGraph& s, const Measurement& measurement, const std::optional<ArrayArgument>& q) {
        SceneEdit edit(s);
        return edit.condition(measurement, ConfigurationArgument(q, s).get(), {0, 0.0});
    }, nb::arg("measurement"), nb::kw_only(), nb::arg("q") = nb::none(),
             R"(Return how far a measurement lies from its expected value, for gating. The scene does not change.

Args:
    measurement: the measured pose, position, bearing or range.
    q: (n_joints,) configuration of the measurement, radians or metres; optional when no joint is on the path.

Raises:
    UnknownNameError: no such frame.
    DisconnectedError: the frames are in different trees.
    ConfigurationError: a joint is on the path and q is missing, or q has the wrong length or non-finite numbers.)")
        .def("noise", [](const SceneGraph& s, std::string_view frame) { return noise_or_none(s.record(frame).noise); },
             nb::arg("frame"),
             R"(Return the error of a frame's pose relative to its parent by source, or None when exact. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("edge_covariance",
             [](const SceneGraph& s, std::string_view frame) {
        const Ref<const EdgeNoise>& noise = s.record(frame).noise;
        return covariance_array(noise ? noise->covariance : Covariance{});
    }, nb::arg("frame"),
             R"(Return the covariance (6, 6) of a frame's pose relative to its parent; zeros when exact. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("twist_noise",
             [](const SceneGraph& s, std::string_view frame) {
        return noise_or_none(Ref<const EdgeNoise>(s.record(frame).twist_noise()));
    }, nb::arg("frame"), R"(Return the error of a frame's twist edge by source; None when exact or absent. O(log n).

Raises:
    UnknownNameError: no such frame.)")
        .def("twist_covariance",
             [](const SceneGraph& s, std::string_view frame) {
        const EdgeNoise* noise = s.record(frame).twist_noise();
        return covariance_array(noise ? noise->covariance : Covariance{});
    }, nb::arg("frame"), R"(Return the covariance (6, 6) of a frame's twist edge; zeros when exact or absent. O(log n).

At the frame's origin and in its axes.

Raises:
    UnknownNameError: no such frame.)")
        .def_prop_ro("noisy_frames", [](const SceneGraph& s) {
        std::vector<std::string> names;
        for (FrameId id : s.frames_with_noise()) names.push_back(s.record(id).name->text);
        return tuple_of(names);
    }, "Names of the frames whose pose relative to their parent is not exact, in insertion order.");
}

void bind_arrays_noise(nb::class_<SceneArrays>& cls) {
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
    SceneError: it has no twist.)")
        .def("twist_noise",
             [](const SceneArrays& self, std::string_view frame) {
        return noise_or_none(self.twist_noise(frame));
    }, nb::arg("frame"), R"(Return the error of a frame's twist edge, or None when exact or absent. For the writer.

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

}  // namespace tmkit::bindings
