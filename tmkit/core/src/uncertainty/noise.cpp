#include "tmkit/noise.hpp"

#include <algorithm>
#include <cmath>

#include "tmkit/retraction.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit {

Ref<const EdgeNoise> EdgeNoise::of_covariance(const Covariance& covariance, std::string label) {
    std::vector<Vector6> columns = covariance.root();
    if (columns.empty()) return nullptr;
    const auto result = make_ref<EdgeNoise>();
    result->covariance = covariance;
    result->terms = {
        {Ref<const NoiseSource>(new NoiseSource(columns.size(), std::move(label))), 0}};
    result->maps = std::move(columns);
    return result;
}

const NoiseTerm* NoiseSum::find(const NoiseSource* source) const {
    for (const NoiseTerm& term : terms_)
        if (term.source.get() == source) return &term;
    return nullptr;
}

Vector6* NoiseSum::columns_of(const Ref<const NoiseSource>& source) {
    if (const NoiseTerm* old_term = find(source.get())) return columns_.data() + old_term->column;
    terms_.push_back({source, columns_.size()});
    columns_.resize(columns_.size() + source->dimension);
    return columns_.data() + terms_.back().column;
}

void NoiseSum::write_edge(EdgeNoise& edge) const {
    edge.terms.clear();
    edge.maps.clear();
    for (const NoiseTerm& term : terms_) {
        const auto columns = map(term);
        if (std::all_of(columns.begin(), columns.end(),
                        [](const Vector6& c) { return c == Vector6{}; }))
            continue;
        edge.terms.push_back({term.source, edge.maps.size()});
        edge.maps.insert(edge.maps.end(), columns.begin(), columns.end());
    }
    edge.covariance = Covariance::of_columns(edge.maps);
    require_in_range(edge.covariance.matrix(), "a covariance");
}

Ref<const EdgeNoise> NoiseSum::edge() const {
    const auto result = make_ref<EdgeNoise>();
    write_edge(*result);
    return result->terms.empty() ? Ref<const EdgeNoise>() : Ref<const EdgeNoise>(result);
}

// --- measurements

namespace {

constexpr double no_distance = 1e-12;  // [m]

// Two unit vectors perpendicular to a unit vector, right-handed with it; a deterministic function
// of that vector.
void axes_across(const Vector3& direction, Vector3& first, Vector3& second) {
    std::size_t least = 0;
    for (std::size_t i = 1; i < 3; ++i)
        if (std::abs(direction[i]) < std::abs(direction[least])) least = i;
    Vector3 helper{};
    helper[least] = 1.0;
    first = cross(direction, helper);
    first = (1.0 / norm(first)) * first;
    second = cross(direction, first);
}

// The rotation vector from the measured to the expected direction, by its two components across the
// measured one (that along it is zero). Also its derivative by that of the observed point, `dp`, at
// the distance `length`.
void linearise_bearing(const Vector3& measured, const Vector3& direction, double length,
                       const std::array<Vector3, 6>& dp, std::vector<double>& residual,
                       std::vector<double>& derivative) {
    Vector3 first, second;
    axes_across(measured, first, second);
    const double parallel = dot(measured, direction), a = dot(first, direction),
                 b = dot(second, direction);
    const double perpendicular = length_of(a, b), angle = arctangent(perpendicular, parallel);
    const double scale =
        perpendicular < 1e-9 ? (parallel > 0.0 ? 1.0 : 0.0) : angle / perpendicular;
    residual = {0.0, 0.0};
    if (measured != direction) residual = {scale * a, scale * b};
    for (std::size_t k = 0; k < 6; ++k) {
        // d direction.
        const Vector3 turn = (1.0 / length) * (dp[k] - dot(direction, dp[k]) * direction);
        const double da = dot(first, turn), db = dot(second, turn), dparallel = dot(measured, turn);
        // e = angle * (a, b) / perpendicular.
        double ea = da, eb = db;
        if (perpendicular >= 1e-9) {
            const double dperpendicular = (a * da + b * db) / perpendicular;
            const double dangle = parallel * dperpendicular - perpendicular * dparallel;
            const double dscale = (dangle - scale * dperpendicular) / perpendicular;
            ea = scale * da + dscale * a;
            eb = scale * db + dscale * b;
        }
        derivative[k] = ea;
        derivative[6 + k] = eb;
    }
}

}  // namespace

double Measurement::require_distance(const Vector3& point_in_reference) const {
    const double length = norm(point_in_reference);
    if (length < no_distance)
        throw Error(
            ErrorKind::scene,
            "frame '{}' is at the position of {}: direction and change of range are undefined",
            target, (reference ? "frame " + quote(*reference) : "its root"));
    return length;
}

Measurement Measurement::expected_at(const Pose& x) const {
    Measurement expected = *this;
    const Vector3 p = x.apply(point);
    if (kind == Kind::pose) expected.pose = x;
    if (kind == Kind::position) expected.vector = p;
    if (kind == Kind::bearing) expected.vector = (1.0 / require_distance(p)) * p;
    if (kind == Kind::range) expected.distance = require_distance(p);
    return expected;
}

void Measurement::linearise(const Pose& x, std::vector<double>& residual,
                            std::vector<double>& derivative) const {
    residual.assign(size(), 0.0);
    derivative.assign(6 * size(), 0.0);
    if (kind == Kind::pose) {
        Matrix6 noise{};
        std::copy(covariance.begin(), covariance.end(), noise.begin());
        const auto [error, by_tangent] = Retraction(Covariance::of_blocks(noise))
                                             .residual(pose == x ? Pose{} : pose.inverse() * x);
        residual.assign(error.begin(), error.end());
        derivative.assign(by_tangent.begin(), by_tangent.end());
        return;
    }
    // p(X exp(xi)) = R (point + theta x point + rho) + t: dp = R rho - R [point] theta.
    const Vector3 p = x.apply(point);
    const Matrix3 r = x.rotation();
    std::array<Vector3, 6> dp;
    for (std::size_t k = 0; k < 3; ++k) {
        Vector3 unit{};
        unit[k] = 1.0;
        dp[k] = {r[k], r[3 + k], r[6 + k]};
        dp[3 + k] = x.rotate(cross(unit, point));
    }
    if (kind == Kind::position) {
        for (std::size_t i = 0; i < 3; ++i) {
            residual[i] = p[i] - vector[i];
            for (std::size_t k = 0; k < 6; ++k) derivative[6 * i + k] = dp[k][i];
        }
        return;
    }
    const double length = require_distance(p);
    const Vector3 direction = (1.0 / length) * p;
    if (kind == Kind::range) {
        residual[0] = length - distance;
        for (std::size_t k = 0; k < 6; ++k) derivative[k] = dot(direction, dp[k]);
        return;
    }
    linearise_bearing(vector, direction, length, dp, residual, derivative);
}

}  // namespace tmkit
