// The linear algebra of conditioning (scene_edit_condition.cpp): the inverse root of the innovation's covariance S, and
// what it leaves of the errors.
//
// L has the closed form I - G^T U diag((1 - sqrt(1 - l)) / l) U^T G where G = S^-1/2 A and
// G G^T = U diag(l) U^T = I - S^-1/2 R S^-1/2, so nothing larger than the measurement is decomposed.
//
// Sums are plain loops: the products of a library are blocked by the sizes of a CPU's caches, and would give other bits
// on another one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tmkit/covariance.hpp"

namespace tmkit {

inline constexpr double well_known = 1e-8;  // what Cholesky may lose of a diagonal of S before eigenvectors are asked
inline constexpr double no_information = 1e-13;  // of the greatest eigenvalue of S: a direction that is known exactly

// Row-major, small.
struct Rows {
    std::size_t rows = 0, columns = 0;
    std::vector<double> values;
    Rows(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c, 0.0) {}
    double& operator()(std::size_t i, std::size_t j) { return values[i * columns + j]; }
    double operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
    const double* row(std::size_t i) const { return values.data() + i * columns; }
};

inline double product(const double* a, const double* b, std::size_t n) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// S^-1/2 in its eigenvectors: rows of the whitening matrix, without directions in which nothing is uncertain.
struct Whitening {
    Rows matrix{0, 0};
    Rows exact{0, 0};
    std::vector<double> innovation_covariance;

    Whitening(const Rows& a, const std::vector<double>& r) {
        const std::size_t m = a.rows;
        std::vector<double> s = r, values, vectors;
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                s[i * m + j] = 0.5 * (r[i * m + j] + r[j * m + i]) + product(a.row(i), a.row(j), a.columns);
                s[j * m + i] = s[i * m + j];
            }
        innovation_covariance = s;
        if (by_cholesky(s, m)) return;
        const std::vector<double> scales = comparable_scales(s, m);
        const auto divisor = [&scales](std::size_t i) { return scales[i] > 0.0 ? scales[i] : 1.0; };
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < m; ++j)
                s[i * m + j] = scales[i] * scales[j] > 0.0 ? s[i * m + j] / (scales[i] * scales[j]) : 0.0;
        symmetric_eigen(s, m, values, vectors);
        std::size_t null = 0;
        while (null < m && !(values[null] > no_information * values[m - 1] && values[null] > 0.0)) ++null;
        matrix = Rows(m - null, m);
        exact = Rows(null, m);
        for (std::size_t i = 0; i < m; ++i) {
            double length = 0.0;  // of an exact direction in the units of what was measured
            for (std::size_t k = 0; k < m; ++k) length = length_of(length, vectors[i * m + k] / divisor(k));
            for (std::size_t k = 0; k < m; ++k)
                if (i < null) exact(i, k) = vectors[i * m + k] / divisor(k) / length;
                else matrix(i - null, k) = vectors[i * m + k] / divisor(k) / std::sqrt(values[i]);
        }
    }
    // The inverse of S's lower triangle: cheaper than eigenvectors, where no direction is exact or nearly so.
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
    // How far rounding of the residual moves the sources.
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
        for (std::size_t i = 0; i < y.size(); ++i) y[i] = product(matrix.row(i), x.data(), x.size());
        return y;
    }
};

// C with L = I - G^T C G and L L^T = I - G^T G. With G G^T = U diag(l) U^T, 1 - l are the eigenvalues of the whitened
// noise of the measurement: so they keep their digits where the noise is small beside what was known before.
inline Rows correction(const Whitening& whitening, const std::vector<double>& noise) {
    const std::size_t r = whitening.matrix.rows, m = whitening.matrix.columns;
    std::vector<double> white(r * r, 0.0), values, vectors;
    for (std::size_t i = 0; i < r; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = 0.0;
            for (std::size_t k = 0; k < m; ++k)
                for (std::size_t l = 0; l < m; ++l)
                    sum +=
                        whitening.matrix(i, k) * 0.5 * (noise[k * m + l] + noise[l * m + k]) * whitening.matrix(j, l);
            white[i * r + j] = white[j * r + i] = sum;
        }
    symmetric_eigen(white, r, values, vectors);
    Rows c(r, r);
    for (std::size_t v = 0; v < r; ++v) {
        const double factor = 1.0 / (1.0 + std::sqrt(std::clamp(values[v], 0.0, 1.0)));  // (1 - sqrt(1 - l)) / l
        for (std::size_t i = 0; i < r; ++i)
            for (std::size_t j = 0; j < r; ++j) c(i, j) += factor * vectors[v * r + i] * vectors[v * r + j];
    }
    return c;
}

}  // namespace tmkit
