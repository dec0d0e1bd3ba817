// Damped least squares step of inverse kinematics and of projections, within the limits of the
// joints.
#pragma once

#include <algorithm>
#include <cmath>

#include "tmkit/inverse_kinematics.hpp"

namespace tmkit {

// Solve the symmetric positive definite system a y = b by Cholesky factors, in place.
inline void solve_symmetric(double (&a)[6][6], Vector6& b) {
    for (int j = 0; j < 6; ++j) {
        for (int k = 0; k < j; ++k)
            for (int i = j; i < 6; ++i) a[i][j] -= a[i][k] * a[j][k];
        const double scale = 1.0 / std::sqrt(a[j][j]);
        for (int i = j; i < 6; ++i) a[i][j] *= scale;
    }
    for (int i = 0; i < 6; ++i) {
        for (int k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = 5; i >= 0; --i) {
        for (int k = i + 1; k < 6; ++k) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
}

// Compute the damped step of the joints that are not fixed, and zero for fixed ones.
inline void damped_step(const Vector6* columns, std::size_t n, const bool* held,
                        const Vector6& error, double damping, double* step) {
    double a[6][6] = {};
    for (int i = 0; i < 6; ++i) a[i][i] = damping;
    for (std::size_t c = 0; c < n; ++c)
        if (!held[c])
            for (int i = 0; i < 6; ++i)
                for (int j = 0; j <= i; ++j) a[i][j] += columns[c][i] * columns[c][j];
    Vector6 y = error;
    solve_symmetric(a, y);
    for (std::size_t c = 0; c < n; ++c) {
        step[c] = 0.0;
        if (!held[c])
            for (int i = 0; i < 6; ++i) step[c] += columns[c][i] * y[i];
    }
}

// Fix the joints at a limit that a step would move beyond it; return whether any was fixed.
inline bool hold_at_limits(const double* x, const double* step,
                           const std::vector<std::array<double, 2>>& limits, bool* held) {
    bool more = false;
    for (std::size_t c = 0; c < limits.size(); ++c) {
        const auto& [lower, upper] = limits[c];
        if (!held[c] && ((x[c] <= lower && step[c] < 0.0) || (x[c] >= upper && step[c] > 0.0)))
            more = held[c] = true;
    }
    return more;
}

// Apply a step, scaled to at most 1 in every joint and stopped at the limits.
inline void take_step(double* x, const double* step, std::size_t n,
                      const std::array<double, 2>* limits) {
    double longest = 0.0;
    for (std::size_t c = 0; c < n; ++c) longest = std::max(longest, std::abs(step[c]));
    const double scale = longest > 1.0 ? 1.0 / longest : 1.0;
    for (std::size_t c = 0; c < n; ++c) {
        x[c] += scale * step[c];
        if (limits) x[c] = std::clamp(x[c], limits[c][0], limits[c][1]);
    }
}

}  // namespace tmkit
