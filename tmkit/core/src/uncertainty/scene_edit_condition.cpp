// Conditioning of a scene on a measurement: the posterior of every edge that shares a source with
// the path.
//
// The sources w of the path have the prior N(0, I). With e(w) the residual of the measurement with
// every edge at T_e exp(J_e w), the most likely w minimises |w|^2 + e^T R^-1 e. The Gauss-Newton
// method finds it, which for this sum is the iterated Kalman filter:
//
//     A = de/dw,   S = A A^T + R,   w <- A^T S^-1 (A w - e)
//
// until w converges. Then every edge that uses one of these sources, on the path or not, moves to
// T_e exp(J_e w). Its maps become Jr(J_e w) J_e L with L L^T = P = I - A^T S^-1 A, of one joint
// source that replaces them all, since data measured together are correlated. A twist that uses
// one, since it has acted, becomes V_e + J_e w, and its maps J_e L.
//
// L has the closed form I - G^T U diag((1 - sqrt(1 - l)) / l) U^T G where G = S^-1/2 A and
// G G^T = U diag(l) U^T = I - S^-1/2 R S^-1/2, so no matrix larger than the measurement is
// decomposed. A joint source with more dimensions than its edges is reduced by an LQ factorisation
// of their stacked maps.
//
// For a badly known orientation, another retraction replaces exp, and its Jacobian replaces Jr,
// since exp would overstate the information on the sources: see retraction.hpp.
//
// The error of a joint's edge is behind the joint. Its correction is applied before the joint and
// is exact at the configuration of the measurement; along the joint's own axis it is exact at every
// configuration.
//
// Sums are plain loops: a library blocks products by the cache sizes of a CPU, which would give
// other bits on another one.
//
// Source: Bell and Cathey, "The iterated Kalman filter update as a Gauss-Newton method", for the
// iteration.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tmkit/retraction.hpp"
#include "tmkit/scene_edit.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {
namespace {

// Largest residual of a measurement of exact data [m or rad].
constexpr double contradiction = 1e-6;
// Largest loss of a diagonal of S by Cholesky, before eigenvectors are used.
constexpr double well_known = 1e-8;
// Relative to the greatest eigenvalue of S: a direction of exact data.
constexpr double no_information = 1e-13;

// Row-major, small.
struct Rows {
    std::size_t rows = 0, columns = 0;
    std::vector<double> values;
    Rows(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c, 0.0) {}
    double& operator()(std::size_t i, std::size_t j) { return values[i * columns + j]; }
    double operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
    const double* row(std::size_t i) const { return values.data() + i * columns; }
};

double product(const double* a, const double* b, std::size_t n) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// S^-1/2 in its eigenvectors: rows of the whitening matrix, without directions of zero uncertainty.
struct Whitening {
    Rows matrix{0, 0};
    Rows exact{0, 0};
    std::vector<double> innovation_covariance;

    Whitening(const Rows& a, const std::vector<double>& r) {
        const std::size_t m = a.rows;
        std::vector<double> s = r, values, vectors;
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                s[i * m + j] =
                    0.5 * (r[i * m + j] + r[j * m + i]) + product(a.row(i), a.row(j), a.columns);
                s[j * m + i] = s[i * m + j];
            }
        innovation_covariance = s;
        if (by_cholesky(s, m)) return;
        const std::vector<double> scales = comparable_scales(s, m);
        const auto divisor = [&scales](std::size_t i) { return scales[i] > 0.0 ? scales[i] : 1.0; };
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < m; ++j)
                s[i * m + j] =
                    scales[i] * scales[j] > 0.0 ? s[i * m + j] / (scales[i] * scales[j]) : 0.0;
        // Eigenvectors of nearly equal eigenvalues are arbitrary, and would mix known and unknown
        // directions.
        if (by_cholesky(s, m)) {
            for (std::size_t i = 0; i < m; ++i)
                for (std::size_t k = 0; k <= i; ++k) matrix(i, k) /= divisor(k);
            return;
        }
        symmetric_eigen(s, m, values, vectors);
        std::size_t null = 0;
        while (null < m && !(values[null] > no_information * values[m - 1] && values[null] > 0.0))
            ++null;
        matrix = Rows(m - null, m);
        exact = Rows(null, m);
        for (std::size_t i = 0; i < m; ++i) {
            double length = 0.0;  // of an exact direction in the units of the measurement
            for (std::size_t k = 0; k < m; ++k)
                length = length_of(length, vectors[i * m + k] / divisor(k));
            for (std::size_t k = 0; k < m; ++k)
                if (i < null) exact(i, k) = vectors[i * m + k] / divisor(k) / length;
                else matrix(i - null, k) = vectors[i * m + k] / divisor(k) / std::sqrt(values[i]);
        }
    }
    // The inverse of S's lower triangle: cheaper than eigenvectors, if no direction is exact or
    // nearly so.
    bool by_cholesky(const std::vector<double>& s, std::size_t m) {
        std::vector<double> l(m * m, 0.0);
        double least = 1.0, greatest = 0.0;
        for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = s[i * m + j];
                for (std::size_t k = 0; k < j; ++k) sum -= l[i * m + k] * l[j * m + k];
                if (i != j) l[i * m + j] = sum / l[j * m + j];
                else if (!(sum > well_known * s[i * m + i])) return false;
                else l[i * m + i] = std::sqrt(sum);
            }
            least = i == 0 ? s[0] : std::min(least, s[i * m + i]);
            greatest = std::max(greatest, s[i * m + i]);
        }
        if (!(least > well_known * greatest)) return false;
        matrix = Rows(m, m);
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = i == j ? 1.0 : 0.0;
                for (std::size_t k = j; k < i; ++k) sum -= l[i * m + k] * matrix(k, j);
                matrix(i, j) = sum / l[i * m + i];
            }
        return true;
    }
    // Effect of the residual's rounding on the sources.
    double rounding(double reach) const {
        double squared = 0.0;
        for (std::size_t i = 0; i < matrix.rows; ++i) {
            double sum = 0.0;
            for (std::size_t k = 0; k < matrix.columns; ++k) sum += std::abs(matrix(i, k));
            squared += sum * sum;
        }
        return 16.0 * std::numeric_limits<double>::epsilon() * reach * std::sqrt(squared);
    }
    Rows times(const Rows& a) const {
        Rows g(matrix.rows, a.columns);
        for (std::size_t i = 0; i < g.rows; ++i)
            for (std::size_t k = 0; k < a.rows; ++k) {
                const double factor = matrix(i, k);
                for (std::size_t j = 0; j < a.columns; ++j) g(i, j) += factor * a(k, j);
            }
        return g;
    }
    std::vector<double> times(const std::vector<double>& x) const {
        std::vector<double> y(matrix.rows);
        for (std::size_t i = 0; i < y.size(); ++i)
            y[i] = product(matrix.row(i), x.data(), x.size());
        return y;
    }
};

// C with L = I - G^T C G and L L^T = I - G^T G. With G G^T = U diag(l) U^T, 1 - l are the
// eigenvalues of the whitened noise of the measurement, which keep their digits if the noise is
// small beside the prior.
Rows correction(const Whitening& whitening, const std::vector<double>& noise) {
    const std::size_t r = whitening.matrix.rows, m = whitening.matrix.columns;
    std::vector<double> white(r * r, 0.0), values, vectors;
    for (std::size_t i = 0; i < r; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = 0.0;
            for (std::size_t k = 0; k < m; ++k)
                for (std::size_t l = 0; l < m; ++l)
                    sum += whitening.matrix(i, k) * 0.5 * (noise[k * m + l] + noise[l * m + k]) *
                           whitening.matrix(j, l);
            white[i * r + j] = white[j * r + i] = sum;
        }
    symmetric_eigen(white, r, values, vectors);
    Rows c(r, r);
    for (std::size_t v = 0; v < r; ++v) {
        // (1 - sqrt(1 - l)) / l.
        const double factor = 1.0 / (1.0 + std::sqrt(std::clamp(values[v], 0.0, 1.0)));
        for (std::size_t i = 0; i < r; ++i)
            for (std::size_t j = 0; j < r; ++j)
                c(i, j) += factor * vectors[v * r + i] * vectors[v * r + j];
    }
    return c;
}

Vector6 times(const Matrix6& m, const Vector6& x) {
    Vector6 y{};
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t k = 0; k < 6; ++k) y[i] += m[6 * i + k] * x[k];
    return y;
}

// The sources of a path, numbered.
struct Sources {
    NoiseSum all;
    std::size_t dimensions() const { return all.columns().size(); }

    // J_e w over these sources.
    Vector6 error(const EdgeNoise& noise, const std::vector<double>& w) const {
        Vector6 xi{};
        for_each_column(noise, [&](std::size_t source, const Vector6& column) {
            for (std::size_t k = 0; k < 6; ++k) xi[k] += w[source] * column[k];
        });
        return xi;
    }
    template <class Visit> void for_each_column(const EdgeNoise& noise, Visit&& visit) const {
        for (const NoiseTerm& term : noise.terms) {
            const NoiseTerm* mine = all.find(term.source.get());
            if (!mine) continue;
            const auto map = noise.map(term);
            for (std::size_t c = 0; c < map.size(); ++c) visit(mine->column + c, map[c]);
        }
    }
};

// The measurement's residual and its derivative by the sources, at the value w. Returns the largest
// extent of the poses [m], whose rounding is that of the residual.
double linearise(const Path& path, const Measurement& measurement, const Sources& sources,
                 const std::vector<double>& w, std::vector<double>& residual, Rows& derivative) {
    struct Edge {
        const EdgeNoise* noise;
        double sign;
        Pose common_from_child;
        Vector6 xi;
        Retraction retraction;
    };
    std::vector<Edge> edges;
    Pose target, reference;
    for_each_edge(path, [&](const FrameRecord& edge, bool up) {
        Pose& pose = up ? reference : target;
        pose = pose * path.pose_of(edge);
        if (!edge.noise) return;
        const Vector6 xi = sources.error(*edge.noise, w);
        const Retraction retraction(edge.noise->covariance);
        if (xi != Vector6{}) pose = pose * retraction.pose(xi);
        edges.push_back({edge.noise.get(), up ? -1.0 : 1.0, pose, xi, retraction});
    });
    double reach = 1.0 + norm(target.translation) + norm(reference.translation);
    for (const Edge& edge : edges)
        reach = std::max(reach, 1.0 + norm(edge.common_from_child.translation));
    std::vector<double> by_tangent;
    measurement.linearise(path.count(true) == 0 ? target : reference.inverse() * target, residual,
                          by_tangent);
    std::fill(derivative.values.begin(), derivative.values.end(), 0.0);
    for (const Edge& edge : edges) {
        const Pose child_from_target = edge.common_from_child.inverse() * target;
        const bool at_mean = edge.xi == Vector6{};
        const Matrix6 jacobian = at_mean ? Matrix6{} : edge.retraction.jacobian(edge.xi);
        sources.for_each_column(*edge.noise, [&](std::size_t source, const Vector6& column) {
            const Vector6 moved =
                carry_down(at_mean ? column : times(jacobian, column), child_from_target);
            for (std::size_t i = 0; i < derivative.rows; ++i)
                derivative(i, source) += edge.sign * product(&by_tangent[6 * i], moved.data(), 6);
        });
    }
    return reach;
}

// Columns whose squares, and products between blocks, are those of the stacked maps; as many as
// there are rows. Householder's LQ factorisation: M = L Q, and Q Q^T = I.
void compress(std::vector<std::vector<Vector6>>& maps) {
    const std::size_t rows = 6 * maps.size(), columns = maps.front().size();
    Rows m(rows, columns);
    for (std::size_t e = 0; e < maps.size(); ++e)
        for (std::size_t c = 0; c < columns; ++c)
            for (std::size_t k = 0; k < 6; ++k) m(6 * e + k, c) = maps[e][c][k];
    std::vector<double> v(columns);
    for (std::size_t i = 0; i < rows; ++i) {
        double* row = &m(i, 0);
        const double length = std::sqrt(product(row + i, row + i, columns - i));
        if (length == 0.0) continue;
        std::fill(v.begin(), v.end(), 0.0);
        std::copy(row + i, row + columns, v.begin() + static_cast<std::ptrdiff_t>(i));
        v[i] += v[i] < 0.0 ? -length : length;
        const double squared = product(v.data() + i, v.data() + i, columns - i);
        for (std::size_t k = i; k < rows; ++k) {
            const double factor = 2.0 * product(&m(k, i), v.data() + i, columns - i) / squared;
            for (std::size_t c = i; c < columns; ++c) m(k, c) -= factor * v[c];
        }
    }
    for (std::size_t e = 0; e < maps.size(); ++e) {
        maps[e].resize(rows);
        for (std::size_t c = 0; c < rows; ++c)
            for (std::size_t k = 0; k < 6; ++k)
                maps[e][c][k] = c <= 6 * e + k ? m(6 * e + k, c) : 0.0;
    }
}

void check_measurement(const Measurement& measurement) {
    const std::size_t m = measurement.size();
    if (measurement.covariance.size() != m * m)
        throw Error(ErrorKind::scene,
                    "a measurement of {} numbers needs a covariance of shape ({}, {})", m, m, m);
}

// The limit of the iteration: the values of the sources, and their covariance P = I - G^T C G.
struct Estimate {
    std::vector<double> w;
    Rows g{0, 0}, c{0, 0};
};

void require_no_contradiction(const Whitening& whitening, const std::vector<double>& innovation,
                              const Measurement& measurement) {
    for (std::size_t i = 0; i < whitening.exact.rows; ++i)
        if (std::abs(product(whitening.exact.row(i), innovation.data(), innovation.size())) >
            contradiction)
            throw Error(
                ErrorKind::scene,
                "the measurement of frame '{}' in {} contradicts exact data: neither "
                "the path "
                "between them nor the measurement has an error in the direction in which they "
                "differ",
                measurement.target,
                (measurement.reference ? "frame " + quote(*measurement.reference) : "its root"));
}

// Gauss-Newton steps, shortened if they oscillate.
struct Steps {
    double last = 0.0, damping = 1.0;

    // Move w towards G^T z for the whitened innovation z; return the length of the whole step in
    // the maximum norm.
    double take(const Rows& g, const std::vector<double>& white, int count,
                std::vector<double>& w) {
        std::vector<double> next(w.size(), 0.0);
        for (std::size_t i = 0; i < g.rows; ++i)
            for (std::size_t c = 0; c < w.size(); ++c) next[c] += g(i, c) * white[i];
        double step = 0.0;
        for (std::size_t c = 0; c < w.size(); ++c) step = std::max(step, std::abs(next[c] - w[c]));
        if (count > 2 && step > 0.9 * last) damping = std::max(0.5 * damping, 1.0 / 64.0);
        for (std::size_t c = 0; c < w.size(); ++c) w[c] += damping * (next[c] - w[c]);
        last = step;
        return step;
    }
};

// Estimate the most likely values of the sources; without iterations or sources, compute only the
// innovation.
Estimate estimate(const Path& path, const Measurement& measurement, const Sources& sources,
                  const ConditionOptions& options, ConditionReport& report) {
    const std::size_t m = measurement.size(), d = sources.dimensions();
    Estimate solution{std::vector<double>(d, 0.0)};
    std::vector<double> residual, innovation(m);
    Rows a(m, d);
    for (Steps steps;;) {
        const double reach = linearise(path, measurement, sources, solution.w, residual, a);
        for (std::size_t i = 0; i < m; ++i)
            innovation[i] = product(a.row(i), solution.w.data(), d) - residual[i];
        const Whitening whitening(a, measurement.covariance);
        require_no_contradiction(whitening, innovation, measurement);
        solution.g = whitening.times(a);
        const std::vector<double> white = whitening.times(innovation);
        if (report.iterations == 0) {
            report.innovation = innovation;
            report.innovation_covariance = whitening.innovation_covariance;
            report.squared_mahalanobis = product(white.data(), white.data(), white.size());
        }
        if (options.most_iterations == 0 || d == 0) return solution;
        ++report.iterations;
        const double step = steps.take(solution.g, white, report.iterations, solution.w);
        double size = 1.0;
        for (double number : solution.w) size = std::max(size, std::abs(number));
        report.converged = step <= std::max(options.tolerance * size, whitening.rounding(reach));
        if (report.converged || report.iterations >= options.most_iterations) {
            // With the derivatives of the last step.
            solution.c = correction(whitening, measurement.covariance);
            return solution;
        }
    }
}

// An edge that uses one of the sources, and the change of its mean.
struct Change {
    FrameId frame;
    const EdgeNoise* noise;
    bool of_twist;
    Vector6 xi;
    Matrix6 jacobian;
    Pose shift;
};

// J L = J - (J G^T) C G for the maps J of an edge, most of whose columns are zero; empty if it uses
// no source.
std::vector<Vector6> posterior_map(const EdgeNoise& noise, const Sources& sources,
                                   const Estimate& solution) {
    const Rows &g = solution.g, &c = solution.c;
    std::vector<Vector6> columns, onto(g.rows);
    sources.for_each_column(noise, [&](std::size_t source, const Vector6& column) {
        if (columns.empty()) columns.resize(sources.dimensions());
        columns[source] = column;
        for (std::size_t i = 0; i < g.rows; ++i)
            for (std::size_t k = 0; k < 6; ++k) onto[i][k] += g(i, source) * column[k];
    });
    for (std::size_t i = 0; !columns.empty() && i < g.rows; ++i) {
        Vector6 factor{};
        for (std::size_t r = 0; r < g.rows; ++r)
            for (std::size_t k = 0; k < 6; ++k) factor[k] += c(i, r) * onto[r][k];
        for (std::size_t s = 0; s < columns.size(); ++s)
            for (std::size_t k = 0; k < 6; ++k) columns[s][k] -= factor[k] * g(i, s);
    }
    return columns;
}

// The posterior noise of an edge: of the joint source, and of its own sources that were not on the
// path, in its new axes.
Ref<const EdgeNoise> posterior_noise(const Change& change, const Ref<const NoiseSource>& joint,
                                     const std::vector<Vector6>& map, const Sources& sources) {
    NoiseSum sum;
    sum.add(joint, map, as_it_is);
    for (const NoiseTerm& term : change.noise->terms)
        if (!sources.all.find(term.source.get()))
            sum.add(term.source, change.noise->map(term),
                    [&](const Vector6& column) { return times(change.jacobian, column); });
    return sum.edge();
}

// The edge's pose before its joint, with the frame behind it shifted: A M S = (A M S M^-1) M.
Pose posterior_pose(const SceneGraph& scene, const FrameRecord& edge, Pose shift, const double* q) {
    if (shift == Pose{}) return edge.pose;
    if (edge.joint) {
        const Pose motion =
            joint_motion(edge.joint_type, edge.joint->axis, scene.joint_value(edge, q));
        shift = motion * shift * motion.inverse();
    }
    const Pose pose = edge.pose * shift;
    require_in_range(pose, "the pose of a frame");
    return pose;
}

}  // namespace

ConditionReport NoiseEdits::condition(const Measurement& measurement, const double* q,
                                      const ConditionOptions& options) {
    check_measurement(measurement);
    const FrameRecord& target = record(measurement.target);
    const FrameRecord& reference =
        measurement.reference ? record(*measurement.reference) : record(scene_.root_of(target.id));
    const Path path(scene_, reference, target, q);
    Sources sources;
    for_each_edge(path, [&](const FrameRecord& edge, bool) {
        if (edge.noise) sources.all.add(*edge.noise, as_it_is);
    });
    ConditionReport report;
    const Estimate solution = estimate(path, measurement, sources, options, report);
    if (options.most_iterations == 0) return report;  // innovation only
    if (sources.dimensions() == 0) {
        report.converged = true;
        return report;
    }
    // The changes of all edges that use one of the sources.
    std::vector<Change> changes;
    std::vector<std::vector<Vector6>> maps;
    const auto change = [&](FrameId id, const EdgeNoise* noise, bool of_twist) {
        std::vector<Vector6> map = posterior_map(*noise, sources, solution);
        if (map.empty()) return;
        const Vector6 xi = sources.error(*noise, solution.w);
        const Retraction retraction(noise->covariance);
        // a twist is a vector already.
        const Matrix6 jacobian = retraction.jacobian(of_twist ? Vector6{} : xi);
        for (Vector6& column : map) column = times(jacobian, column);
        changes.push_back(
            {id, noise, of_twist, xi, jacobian, of_twist ? Pose{} : retraction.pose(xi)});
        maps.push_back(std::move(map));
    };
    scene_.noises_.for_each(
        [&](FrameId id, const Ref<const EdgeNoise>& noise) { change(id, noise.get(), false); });
    scene_.twists_.for_each([&](FrameId id, BodyId) {
        if (const EdgeNoise* noise = record(id).twist_noise()) change(id, noise, true);
    });
    if (sources.dimensions() > 6 * maps.size()) compress(maps);
    const Ref<const NoiseSource> joint(
        new NoiseSource(maps.front().size(),
                        "measurement of " + measurement.target + " in " + reference.name->text));
    // All values first, since numbers may overflow, before any is stored.
    std::vector<std::pair<Pose, Ref<const EdgeNoise>>> made;
    for (std::size_t e = 0; e < changes.size(); ++e) {
        Ref<const EdgeNoise> noise = posterior_noise(changes[e], joint, maps[e], sources);
        made.emplace_back(changes[e].of_twist ? Pose{}
                                              : posterior_pose(scene_, record(changes[e].frame),
                                                               changes[e].shift, q),
                          std::move(noise));
    }
    for (std::size_t e = 0; e < changes.size(); ++e) {
        const FrameId id = changes[e].frame;
        if (changes[e].of_twist) correct_twist(id, changes[e].xi, made[e].second);
        else correct_pose(id, made[e].first, made[e].second);
    }
    return report;
}

void NoiseEdits::correct_twist(FrameId id, const Vector6& xi, const Ref<const EdgeNoise>& noise) {
    change_details(record(id), [&](FrameDetails& details) {
        for (std::size_t k = 0; k < 6; ++k) details.twist->vector[k] += xi[k];
        details.twist->noise = noise;
    });
}

void NoiseEdits::correct_pose(FrameId id, const Pose& pose, const Ref<const EdgeNoise>& noise) {
    store_noise(id, noise);
    if (record(id).pose == pose) return;
    own(id).pose = pose;
    note_change(id, false);
}

}  // namespace tmkit
