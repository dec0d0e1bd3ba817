#include "tmkit/retraction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tmkit {
namespace {

// [rad^2], of 13 degrees: an axis with a smaller variance is known
constexpr double known_variance = 0.05;
// [rad^2]: an axis with a larger variance is unknown; in between, M grows with the variance
constexpr double unknown_variance = 0.06;
// Of a Jacobian, whose rows are of the order of one: below it there is no inverse.
constexpr double smallest_pivot = 1e-3;
constexpr double residual_tolerance = 1e-9;  // largest error of a residual relative to its distance
constexpr int most_newton_steps = 30;

Matrix6 product(const Matrix6& a, const Matrix6& b) {
    Matrix6 c{};
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t k = 0; k < 6; ++k)
            for (std::size_t j = 0; j < 6; ++j) c[6 * i + j] += a[6 * i + k] * b[6 * k + j];
    return c;
}

Vector6 product(const Matrix6& a, const Vector6& x) {
    Vector6 y{};
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t k = 0; k < 6; ++k) y[i] += a[6 * i + k] * x[k];
    return y;
}

double greatest(const Vector6& x) {
    double most = 0.0;
    for (const double value : x) most = std::max(most, std::abs(value));
    return most;
}

// Gauss-Jordan elimination with row pivots; nullopt if a pivot is zero.
std::optional<Matrix6> inverse(Matrix6 m) {
    Matrix6 result{};
    for (std::size_t i = 0; i < 6; ++i) result[7 * i] = 1.0;
    for (std::size_t c = 0; c < 6; ++c) {
        std::size_t pivot = c;
        for (std::size_t i = c + 1; i < 6; ++i)
            if (std::abs(m[6 * i + c]) > std::abs(m[6 * pivot + c])) pivot = i;
        const double size = m[6 * pivot + c];
        if (!(std::abs(size) > smallest_pivot)) return std::nullopt;
        for (std::size_t k = 0; k < 6; ++k) {
            std::swap(m[6 * pivot + k], m[6 * c + k]);
            std::swap(result[6 * pivot + k], result[6 * c + k]);
            m[6 * c + k] /= size;
            result[6 * c + k] /= size;
        }
        for (std::size_t i = 0; i < 6; ++i) {
            const double factor = m[6 * i + c];
            if (i == c || factor == 0.0) continue;
            for (std::size_t k = 0; k < 6; ++k) {
                m[6 * i + k] -= factor * m[6 * c + k];
                result[6 * i + k] -= factor * result[6 * c + k];
            }
        }
    }
    return result;
}

}  // namespace

Retraction::Retraction(const Covariance& covariance) {
    const Matrix3& angular = covariance.angular;
    if (!(angular[0] + angular[4] + angular[8] > known_variance)) return;
    std::vector<double> values, vectors;
    symmetric_eigen({angular.begin(), angular.end()}, 3, values, vectors);
    knows_no_axis_ = values.front() > known_variance;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double variance = values[axis];
        if (!(variance > known_variance)) continue;
        has_turn_ = true;
        const double fraction =
            std::min(1.0, (variance - known_variance) / (unknown_variance - known_variance));
        const Vector3 u{vectors[3 * axis], vectors[3 * axis + 1], vectors[3 * axis + 2]};
        for (std::size_t i = 0; i < 3; ++i) {
            const double* cross = &covariance.cross[3 * i];
            const double shift = (cross[0] * u[0] + cross[1] * u[1] + cross[2] * u[2]) / variance;
            for (std::size_t j = 0; j < 3; ++j) {
                turn_[6 * i + 3 + j] += fraction * shift * u[j];
                turn_[6 * (3 + i) + 3 + j] += fraction * u[i] * u[j];
            }
        }
    }
}

Pose Retraction::pose(const Vector6& xi) const {
    if (!has_turn_) return Pose::exp(xi);
    const Vector6 turn = product(turn_, xi);
    return Pose::exp(xi + negative(turn)) * Pose::exp(turn);
}

// d exp(xi - M xi) exp(M xi) = Ad(exp(-M xi)) Jr(xi - M xi) (1 - M) + Jr(M xi) M; this is the first
// term.
Matrix6 Retraction::known_jacobian(const Vector6& xi, const Vector6& turn) const {
    Matrix6 known_map = -1.0 * turn_;
    for (std::size_t i = 0; i < 6; ++i) known_map[7 * i] += 1.0;
    return product(adjoint(Pose::exp(negative(turn))),
                   product(right_jacobian(xi + negative(turn)), known_map));
}

Matrix6 Retraction::jacobian(const Vector6& xi) const {
    if (!has_turn_) return right_jacobian(xi);
    const Vector6 turn = product(turn_, xi);
    return known_jacobian(xi, turn) + product(right_jacobian(turn), turn_);
}

Retraction::Residual Retraction::residual(const Pose& pose) const {
    if (has_turn_)
        if (const std::optional<Residual> solution = solve(pose)) return *solution;
    // If a badly known rotation is half a turn, the pose does not determine the known part.
    const Vector6 error = pose.log();
    return {error, inverse_right_jacobian(error)};
}

// Newton's method, from the log.
std::optional<Retraction::Residual> Retraction::solve(const Pose& target) const {
    Vector6 xi = target.log();
    double last = std::numeric_limits<double>::infinity();
    for (int step = 0; step < most_newton_steps; ++step) {
        const Vector6 missing = (pose(xi).inverse() * target).log();
        const double size = greatest(missing);
        if (size == 0.0 || !(size < 0.5 * last)) break;
        last = size;
        const std::optional<Matrix6> inverted = inverse(jacobian(xi));
        if (!inverted) return std::nullopt;
        xi = xi + product(*inverted, missing);
    }
    if (!(greatest((pose(xi).inverse() * target).log()) <
          residual_tolerance * (1.0 + norm(target.translation))))
        return std::nullopt;
    // The inverse of K + Jr(M xi) M is (E K + M)^-1 E with E the inverse of Jr(M xi), or its mean
    // at M xi and -M xi.
    const Vector6 turn = product(turn_, xi);
    Matrix6 of_turn = inverse_right_jacobian(turn);
    if (knows_no_axis_) of_turn = 0.5 * (of_turn + inverse_left_jacobian(turn));
    const std::optional<Matrix6> inverted =
        inverse(product(of_turn, known_jacobian(xi, turn)) + turn_);
    if (!inverted) return std::nullopt;
    return Residual{xi, product(*inverted, of_turn)};
}

}  // namespace tmkit
