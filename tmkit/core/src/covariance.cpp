#include "tmkit/covariance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>

#include "tmkit/error.hpp"

namespace tmkit {
namespace {

constexpr double tolerance = 1e-9;   // of the greatest entry or eigenvalue: what rounding may have done
constexpr double negligible = 1e-14;  // of the greatest eigenvalue: no direction of its own

std::string short_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

std::string listed(const std::vector<double>& values) {
    std::string text;
    for (double value : values) text += (text.empty() ? "[" : ", ") + short_text(value);
    return text + "]";
}

}  // namespace

void symmetric_eigen(std::vector<double> a, std::size_t n, std::vector<double>& values, std::vector<double>& vectors) {
    std::vector<double> v(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) v[i * n + i] = 1.0;
    for (int sweep = 0; sweep < 60; ++sweep) {
        double off = 0.0, total = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) (i == j ? total : off) += a[i * n + j] * a[i * n + j];
        if (off == 0.0 || off < 1e-34 * total) break;
        for (std::size_t p = 0; p + 1 < n; ++p)
            for (std::size_t r = p + 1; r < n; ++r) {
                const double apr = a[p * n + r];
                if (apr == 0.0) continue;
                const double theta = (a[r * n + r] - a[p * n + p]) / (2.0 * apr);
                const double t = (theta >= 0.0 ? 1.0 : -1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1.0));
                const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
                for (std::size_t k = 0; k < n; ++k) {
                    const double kp = a[k * n + p], kr = a[k * n + r];
                    a[k * n + p] = c * kp - s * kr;
                    a[k * n + r] = s * kp + c * kr;
                }
                for (std::size_t k = 0; k < n; ++k) {
                    const double pk = a[p * n + k], rk = a[r * n + k];
                    a[p * n + k] = c * pk - s * rk;
                    a[r * n + k] = s * pk + c * rk;
                }
                a[p * n + r] = a[r * n + p] = 0.0;
                for (std::size_t k = 0; k < n; ++k) {
                    const double pk = v[p * n + k], rk = v[r * n + k];
                    v[p * n + k] = c * pk - s * rk;
                    v[r * n + k] = s * pk + c * rk;
                }
            }
    }
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a[i * n + i] < a[j * n + j]; });
    values.resize(n);
    vectors.resize(n * n);
    for (std::size_t i = 0; i < n; ++i) {
        values[i] = a[order[i] * n + order[i]];
        std::copy_n(&v[order[i] * n], n, &vectors[i * n]);
    }
}

Covariance Covariance::checked(const Matrix6& m, std::string_view what) {
    const std::string name(what);
    double greatest = 0.0, defect = 0.0;
    for (double value : m) {
        if (!std::isfinite(value)) throw Error(ErrorKind::scene, name + " must be finite numbers");
        greatest = std::max(greatest, std::abs(value));
    }
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < i; ++j) defect = std::max(defect, std::abs(m[6 * i + j] - m[6 * j + i]));
    if (defect > tolerance * greatest)
        throw Error(ErrorKind::scene, name + " is not symmetric: two entries that should be equal differ by " + short_text(defect));
    std::vector<double> even(36), values, vectors;
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 6; ++j) even[6 * i + j] = i == j ? m[7 * i] : 0.5 * (m[6 * i + j] + m[6 * j + i]);
    symmetric_eigen(even, 6, values, vectors);
    if (values.front() < -tolerance * std::max(std::abs(values.front()), values.back()))
        throw Error(ErrorKind::scene, name + " is not positive semi-definite: its eigenvalues are " + listed(values));
    Covariance result;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            result.linear[3 * i + j] = even[6 * i + j];
            result.cross[3 * i + j] = even[6 * i + 3 + j];
            result.angular[3 * i + j] = even[6 * (3 + i) + 3 + j];
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
    std::vector<double> values, vectors;
    symmetric_eigen({m.begin(), m.end()}, 6, values, vectors);
    std::vector<Vector6> columns;
    for (std::size_t i = 6; i-- > 0;) {
        if (!(values[i] > negligible * values[5]) || values[i] <= 0.0) break;
        Vector6 column;
        for (std::size_t k = 0; k < 6; ++k) column[k] = std::sqrt(values[i]) * vectors[6 * i + k];
        columns.push_back(column);
    }
    return columns;
}

// --- Jacobians of the exponential ----------------------------------------------------------------------------------------

namespace {

Matrix3 skew(const Vector3& v) { return {0.0, -v[2], v[1], v[2], 0.0, -v[0], -v[1], v[0], 0.0}; }

// The blocks J and Q of the left Jacobian [[J, Q], [0, J]] at xi.
void left_blocks(const Vector6& xi, Matrix3& j, Matrix3& q) {
    const Vector3 rho{xi[0], xi[1], xi[2]}, theta{xi[3], xi[4], xi[5]};
    const double a2 = dot(theta, theta), a = std::sqrt(a2);
    // c1 = (1 - cos a)/a^2, c2 = (a - sin a)/a^3, c3 = (a^2 + 2 cos a - 2)/(2 a^4), c4 = (2a - 3 sin a + a cos a)/(2 a^5)
    double c1, c2, c3, c4;
    if (a < 0.5) {  // series: the closed forms cancel
        c1 = 1.0 / 2 - a2 * (1.0 / 24 - a2 * (1.0 / 720 - a2 * (1.0 / 40320 - a2 / 3628800)));
        c2 = 1.0 / 6 - a2 * (1.0 / 120 - a2 * (1.0 / 5040 - a2 * (1.0 / 362880 - a2 / 39916800)));
        c3 = 1.0 / 24 - a2 * (1.0 / 720 - a2 * (1.0 / 40320 - a2 * (1.0 / 3628800 - a2 / 479001600)));
        c4 = 1.0 / 120 - a2 * (1.0 / 2520 - a2 * (1.0 / 120960 - a2 * (1.0 / 9979200 - a2 / 1245404160.0)));
    } else {
        const double sine = std::sin(a), half = std::sin(0.5 * a), cosine = std::cos(a);
        c1 = 2.0 * half * half / a2;
        c2 = (a - sine) / (a2 * a);
        c3 = (a2 + 2.0 * cosine - 2.0) / (2.0 * a2 * a2);
        c4 = (2.0 * a - 3.0 * sine + a * cosine) / (2.0 * a2 * a2 * a);
    }
    const Matrix3 t = skew(theta), r = skew(rho), tt = multiply(t, t), tr = multiply(t, r), rt = multiply(r, t), trt = multiply(tr, t);
    const Matrix3 ttr = multiply(t, tr), rtt = multiply(rt, t), trtt = multiply(trt, t), ttrt = multiply(t, trt);
    for (std::size_t i = 0; i < 9; ++i) {
        j[i] = (i % 4 == 0) + c1 * t[i] + c2 * tt[i];
        q[i] = 0.5 * r[i] + c2 * (tr[i] + rt[i] + trt[i]) + c3 * (ttr[i] + rtt[i] - 3.0 * trt[i]) + c4 * (trtt[i] + ttrt[i]);
    }
}

Matrix6 of_blocks(const Matrix3& j, const Matrix3& q) {
    Matrix6 m{};
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 3; ++k) {
            m[6 * i + k] = m[6 * (3 + i) + 3 + k] = j[3 * i + k];
            m[6 * i + 3 + k] = q[3 * i + k];
        }
    return m;
}

Matrix3 inverse_of(const Matrix3& m) {
    const Vector3 x{m[0], m[1], m[2]}, y{m[3], m[4], m[5]}, z{m[6], m[7], m[8]};
    const Vector3 a = cross(y, z), b = cross(z, x), c = cross(x, y);
    const double s = 1.0 / dot(x, a);
    return {s * a[0], s * b[0], s * c[0], s * a[1], s * b[1], s * c[1], s * a[2], s * b[2], s * c[2]};
}

Vector6 negated(Vector6 xi) {
    for (double& value : xi) value = -value;
    return xi;
}

}  // namespace

Matrix6 right_jacobian(const Vector6& xi) {
    Matrix3 j, q;
    left_blocks(negated(xi), j, q);
    return of_blocks(j, q);
}

Matrix6 inverse_right_jacobian(const Vector6& xi) {
    Matrix3 j, q;
    left_blocks(negated(xi), j, q);
    const Matrix3 inverse = inverse_of(j);
    Matrix3 corner = multiply(multiply(inverse, q), inverse);
    for (double& value : corner) value = -value;
    return of_blocks(inverse, corner);
}

}  // namespace tmkit
