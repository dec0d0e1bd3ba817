#include "tmkit/covariance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>

#include "tmkit/error.hpp"

namespace tmkit {
namespace {

// Tolerance for rounding, relative to the greatest entry or eigenvalue.
constexpr double tolerance = 1e-9;
// Relative to the greatest eigenvalue: smaller ones count as zero.
constexpr double negligible = 1e-14;
// Relative to the greatest variance: smaller ones lose most digits.
constexpr double far_apart = 1e-10;
// Relative to the greatest variance: rounding error of a zero variance.
constexpr double rounding = 1e-24;

std::string short_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

std::string list_values(const std::vector<double>& values) {
    std::string text;
    for (double value : values) text += (text.empty() ? "[" : ", ") + short_text(value);
    return text + "]";
}

// Rotate two rows or columns of numbers into one another, by the cosine and sine of an angle.
void turn(double* x, double* y, std::size_t stride, std::size_t count, double c, double s) {
    for (std::size_t k = 0; k < count * stride; k += stride) {
        const double a = x[k], b = y[k];
        x[k] = c * a - s * b;
        y[k] = s * a + c * b;
    }
}

}  // namespace

void symmetric_eigen(std::vector<double> a, std::size_t n, std::vector<double>& values,
                     std::vector<double>& vectors) {
    std::vector<double> v(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) v[i * n + i] = 1.0;
    for (int sweep = 0; sweep < 60; ++sweep) {
        double off_diagonal = 0.0, total = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j)
                (i == j ? total : off_diagonal) += a[i * n + j] * a[i * n + j];
        if (off_diagonal == 0.0 || off_diagonal < 1e-34 * total) break;
        for (std::size_t p = 0; p + 1 < n; ++p)
            for (std::size_t r = p + 1; r < n; ++r) {
                const double apr = a[p * n + r];
                if (apr == 0.0) continue;
                const double theta = (a[r * n + r] - a[p * n + p]) / (2.0 * apr);
                const double t = (theta >= 0.0 ? 1.0 : -1.0) /
                                 (std::abs(theta) + std::sqrt(theta * theta + 1.0));
                const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
                turn(&a[p], &a[r], n, n, c, s);
                turn(&a[p * n], &a[r * n], 1, n, c, s);
                a[p * n + r] = a[r * n + p] = 0.0;
                turn(&v[p * n], &v[r * n], 1, n, c, s);
            }
    }
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
        return std::pair(a[i * n + i], i) < std::pair(a[j * n + j], j);
    });
    values.resize(n);
    vectors.resize(n * n);
    for (std::size_t i = 0; i < n; ++i) {
        values[i] = a[order[i] * n + order[i]];
        std::copy_n(&v[order[i] * n], n, &vectors[i * n]);
    }
}

std::vector<double> comparable_scales(const std::vector<double>& matrix, std::size_t n) {
    double greatest = 0.0, least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < n; ++i) greatest = std::max(greatest, matrix[i * n + i]);
    for (std::size_t i = 0; i < n; ++i)
        if (matrix[i * n + i] > rounding * greatest) least = std::min(least, matrix[i * n + i]);
    std::vector<double> scales(n, 1.0);
    if (!(least < far_apart * greatest)) return scales;
    for (std::size_t i = 0; i < n; ++i)
        scales[i] = matrix[i * n + i] > rounding * greatest ? std::sqrt(matrix[i * n + i]) : 0.0;
    return scales;
}

Covariance Covariance::checked(const Matrix6& m, std::string_view what) {
    const std::string name(what);
    double greatest = 0.0, defect = 0.0;
    for (double value : m) {
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, "{} must be finite numbers", name);
        greatest = std::max(greatest, std::abs(value));
    }
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < i; ++j)
            defect = std::max(defect, std::abs(m[6 * i + j] - m[6 * j + i]));
    if (defect > tolerance * greatest)
        throw Error(ErrorKind::scene,
                    "{} is not symmetric: two entries that should be equal differ by {}", name,
                    short_text(defect));
    const Covariance result = of_blocks(m);
    const Matrix6 symmetrise = result.matrix();
    std::vector<double> values, vectors;
    symmetric_eigen({symmetrise.begin(), symmetrise.end()}, 6, values, vectors);
    if (values.front() < -tolerance * std::max(std::abs(values.front()), values.back()))
        throw Error(ErrorKind::scene, "{} is not positive semi-definite: its eigenvalues are {}",
                    name, list_values(values));
    return result;
}

Covariance Covariance::of_blocks(const Matrix6& m) {
    const auto symmetrise = [&m](std::size_t i, std::size_t j) {
        return i == j ? m[7 * i] : 0.5 * (m[6 * i + j] + m[6 * j + i]);
    };
    Covariance result;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            result.linear[3 * i + j] = symmetrise(i, j);
            result.cross[3 * i + j] = symmetrise(i, 3 + j);
            result.angular[3 * i + j] = symmetrise(3 + i, 3 + j);
        }
    return result;
}

Covariance Covariance::of_columns(std::span<const Vector6> columns) {
    Covariance result;
    for (const Vector6& c : columns)
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j < 3; ++j) {
                result.linear[3 * i + j] += c[i] * c[j];
                result.cross[3 * i + j] += c[i] * c[3 + j];
                result.angular[3 * i + j] += c[3 + i] * c[3 + j];
            }
    return result;
}

Matrix6 Covariance::matrix() const {
    Matrix6 m;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            m[6 * i + j] = linear[3 * i + j];
            m[6 * i + 3 + j] = cross[3 * i + j];
            m[6 * (3 + i) + j] = cross[3 * j + i];
            m[6 * (3 + i) + 3 + j] = angular[3 * i + j];
        }
    return m;
}

std::vector<Vector6> Covariance::root() const {
    const Matrix6 m = matrix();
    std::vector<double> scaled(m.begin(), m.end()), values, vectors;
    const std::vector<double> scales = comparable_scales(scaled, 6);
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 6; ++j)
            scaled[6 * i + j] =
                scales[i] * scales[j] > 0.0 ? scaled[6 * i + j] / (scales[i] * scales[j]) : 0.0;
    symmetric_eigen(scaled, 6, values, vectors);
    std::vector<Vector6> columns;
    for (std::size_t i = 6; i-- > 0;) {
        if (!(values[i] > negligible * values[5]) || values[i] <= 0.0) break;
        Vector6 column;
        for (std::size_t k = 0; k < 6; ++k)
            column[k] = std::sqrt(values[i]) * vectors[6 * i + k] * scales[k];
        columns.push_back(column);
    }
    return columns;
}

// --- beyond first order
//
// First order (covariance.hpp) neglects products of errors. For two independent errors x1 and x2,
// carried to the tangent space of the product, log(exp(x1) exp(x2)) is x1 + x2 + [x1, x2]/2 + ...
// Its second moment to fourth order in the errors has the terms S1 S2 of Barfoot and Furgale,
// "Associating uncertainty with three-dimensional poses for use in estimation problems", 2014. They
// use left errors; as the Baker-Campbell-Hausdorff series is the same on the right, the formula is
// too, with Ad(T2^-1) xi1 and xi2 in the place of xi1 and Ad(T1) xi2.
//
// Invariants: if one of two errors is zero both orders agree to the last bit; the difference is of
// the order of the product of covariances.
//
// The sum of the terms is truncated, so with large or rank-deficient errors it need not be positive
// semi-definite. With A1 and A2 the means of the squared brackets, it is (1 + A2/12) S1 (1 +
// A2/12)^T + (1 + A1/12) S2 (1 + A1/12)^T + B/4 without the terms A2 S1 A2^T/144 and A1 S2
// A1^T/144, which are of sixth order; they are added if the sum has a negative eigenvalue.

namespace {

// <<A>> = A - tr(A) 1: the mean of hat(x) hat(y) for E[x y^T] = A^T.
Matrix3 fold(const Matrix3& a) {
    Matrix3 c = a;
    const double trace = a[0] + a[4] + a[8];
    for (std::size_t i = 0; i < 9; i += 4) c[i] -= trace;
    return c;
}

// <<A, B>> = <<A>> <<B>> + <<B A>>
Matrix3 fold(const Matrix3& a, const Matrix3& b) { return fold(a) * fold(b) + fold(b * a); }

// Adds factor (A S + S A^T) for A = [[diagonal, corner], [0, diagonal]].
void add_both_sides(Covariance& result, double factor, const Matrix3& diagonal,
                    const Matrix3& corner, const Covariance& s) {
    const Matrix3 linear = diagonal * s.linear + corner * transpose(s.cross);
    const Matrix3 cross = diagonal * s.cross + corner * s.angular + s.cross * transpose(diagonal);
    const Matrix3 angular = diagonal * s.angular;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            result.linear[3 * i + j] += factor * (linear[3 * i + j] + linear[3 * j + i]);
            result.cross[3 * i + j] += factor * cross[3 * i + j];
            result.angular[3 * i + j] += factor * (angular[3 * i + j] + angular[3 * j + i]);
        }
}

// A S A^T of the same A.
Covariance both_sides(const Matrix3& diagonal, const Matrix3& corner, const Covariance& s) {
    const Matrix3 upper = diagonal * s.linear + corner * transpose(s.cross);  // A S, first row
    const Matrix3 right = diagonal * s.cross + corner * s.angular;
    const Matrix3 lower = diagonal * s.angular;
    return {multiply_transposed(upper, diagonal) + multiply_transposed(right, corner),
            multiply_transposed(right, diagonal), multiply_transposed(lower, diagonal)};
}

Covariance squared_commutator(const Covariance& of, const Covariance& s) {
    return both_sides(fold(of.angular), fold(of.cross + transpose(of.cross)), s);
}

// Products round differently on the two sides of the diagonal; a covariance is exactly symmetric.
Matrix3 symmetrise(const Matrix3& m) { return 0.5 * (m + transpose(m)); }
Covariance symmetrise(const Covariance& c) {
    return {symmetrise(c.linear), c.cross, symmetrise(c.angular)};
}

// Return whether Cholesky's factorisation fails, with a tolerance for rounding on the diagonal.
bool has_negative(const Covariance& covariance) {
    Matrix6 m = covariance.matrix();
    double greatest = 0.0;
    for (std::size_t i = 0; i < 6; ++i) greatest = std::max(greatest, m[7 * i]);
    for (std::size_t j = 0; j < 6; ++j) {
        double pivot = m[7 * j] + 1e-13 * greatest;
        for (std::size_t k = 0; k < j; ++k) pivot -= m[6 * j + k] * m[6 * j + k];
        if (!(pivot > 0.0)) return greatest > 0.0 || pivot < 0.0;
        m[7 * j] = std::sqrt(pivot);
        for (std::size_t i = j + 1; i < 6; ++i) {
            for (std::size_t k = 0; k < j; ++k) m[6 * i + j] -= m[6 * i + k] * m[6 * j + k];
            m[6 * i + j] /= m[7 * j];
        }
    }
    return false;
}

void add_commutator(Covariance& result, const Covariance& of, const Covariance& s) {
    add_both_sides(result, 1.0 / 12.0, fold(of.angular), fold(of.cross + transpose(of.cross)), s);
}

}  // namespace

Covariance fourth_order_terms(const Covariance& a, const Covariance& b) {
    Covariance result;
    if (a.is_zero() || b.is_zero()) return result;
    add_commutator(result, a, b);
    add_commutator(result, b, a);
    const Matrix3 a_transposed = transpose(a.cross), b_transposed = transpose(b.cross);
    const Matrix3 linear = (fold(a.angular, b.linear) + fold(a_transposed, b.cross)) +
                           (fold(a.cross, b_transposed) + fold(a.linear, b.angular));
    const Matrix3 cross = fold(a.angular, b_transposed) + fold(a_transposed, b.angular);
    const Matrix3 angular = fold(a.angular, b.angular);
    for (std::size_t i = 0; i < 9; ++i) {
        result.linear[i] += 0.25 * linear[i];
        result.cross[i] += 0.25 * cross[i];
        result.angular[i] += 0.25 * angular[i];
    }
    return symmetrise(result);
}

GaussianPose compose_to_fourth_order(const GaussianPose& a, const GaussianPose& b) {
    GaussianPose result{a.mean * b.mean, a.covariance.carry_down(b.mean)};
    const Covariance carried = result.covariance, more = fourth_order_terms(carried, b.covariance);
    result.covariance += b.covariance;
    result.covariance += more;
    if (!has_negative(result.covariance)) return result;
    for (const auto& [linear, cross, angular] :
         {squared_commutator(b.covariance, carried), squared_commutator(carried, b.covariance)})
        result.covariance +=
            symmetrise({1.0 / 144.0 * linear, 1.0 / 144.0 * cross, 1.0 / 144.0 * angular});
    return result;
}

}  // namespace tmkit
